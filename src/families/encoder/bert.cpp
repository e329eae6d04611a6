// BERT, whose values are the defaults of a row.
// Sources: configuration_bert.py and modeling_bert.py of transformers 5.23.
#include "families/encoder_family.hpp"

namespace loom::core {

extern const EncoderFamily kBertEncoder;
constexpr EncoderFamily kBertEncoder = {.name = "Bert", .model_type = "bert"};

}  // namespace loom::core
