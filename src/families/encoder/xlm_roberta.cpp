// XLM-RoBERTa.
// Sources: configuration_xlm_roberta.py and modeling_xlm_roberta.py of transformers 5.23.
#include "families/encoder_family.hpp"

namespace loom::core {

constexpr EncoderPartName kXlmRobertaNames[] = {{EncoderRole::head, "classifier.dense"},
                                                {EncoderRole::labels, "classifier.out_proj"}};

extern const EncoderFamily kXlmRobertaEncoder;
constexpr EncoderFamily kXlmRobertaEncoder = {
    .name = "XLMRoberta",
    .model_type = "xlm-roberta",
    .config = {.padded_positions = true},
    .folder = {.names = kXlmRobertaNames, .prefix = "roberta."}};

}  // namespace loom::core
