// RoBERTa.
// Sources: configuration_roberta.py and modeling_roberta.py of transformers 5.23.
#include "families/encoder_family.hpp"

namespace loom::core {

constexpr EncoderPartName kRobertaNames[] = {{EncoderRole::head, "classifier.dense"},
                                             {EncoderRole::labels, "classifier.out_proj"}};

extern const EncoderFamily kRobertaEncoder;
constexpr EncoderFamily kRobertaEncoder = {
    .name = "Roberta",
    .model_type = "roberta",
    .config = {.padded_positions = true},
    .folder = {.names = kRobertaNames, .prefix = "roberta."}};

}  // namespace loom::core
