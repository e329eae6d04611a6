// DistilBERT.
// Sources: configuration_distilbert.py and modeling_distilbert.py of transformers 5.23.
#include "families/encoder_family.hpp"

namespace loom::core {

constexpr EncoderPartName kDistilbertNames[] = {
    {EncoderRole::head, "pre_classifier"},
    {EncoderRole::q, "attention.q_lin"},
    {EncoderRole::k, "attention.k_lin"},
    {EncoderRole::v, "attention.v_lin"},
    {EncoderRole::o, "attention.out_lin"},
    {EncoderRole::attention_norm, "sa_layer_norm"},
    {EncoderRole::inner, "ffn.lin1"},
    {EncoderRole::outer, "ffn.lin2"},
    {EncoderRole::mlp_norm, "output_layer_norm"},
};

extern const EncoderFamily kDistilbertEncoder;
constexpr EncoderFamily kDistilbertEncoder = {
    .name = "DistilBert",
    .model_type = "distilbert",
    .config = {.keys = {.hidden = "dim",
                        .inner = "hidden_dim",
                        .layers = "n_layers",
                        .heads = "n_heads",
                        .act = "activation",
                        .eps = ""},
               .types = false,
               .absolute_positions = false,
               .head_act = "relu"},
    .folder = {.names = kDistilbertNames, .prefix = "distilbert.", .block = "transformer.layer."}};

}  // namespace loom::core
