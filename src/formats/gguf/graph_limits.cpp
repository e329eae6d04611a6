#include "formats/gguf/graph_limits.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom::core {

Status check_gguf_graph(const DecoderConfig& config, const DecoderFamily& family) {
  const GgufRules& rules = family.gguf;
  const auto refuse = [&](bool applies, const std::string& field) -> Status {
    if (!applies) return {};
    return unsupported(
        cat("llama.cpp reads no '", rules.name, "' file with ", field, "; write an .entity file"));
  };
  const bool square = config.num_heads * config.head_dim == config.hidden_size;
  LOOM_TRY(
      refuse(rules.square && !square, cat("head_dim ", config.head_dim, " x ", config.num_heads,
                                          " heads and hidden_size ", config.hidden_size)));
  LOOM_TRY(refuse(rules.tied && !config.tie_word_embeddings, "tie_word_embeddings false"));
  LOOM_TRY(refuse(rules.untied && config.tie_word_embeddings, "tie_word_embeddings true"));
  if (!rules.optional_parts) {
    LOOM_TRY(refuse(config.rope == RopeKind::llama3, "rope_type llama3"));
    // The classes whose biases no setting turns on have them in llama.cpp too.
    if (rules.bias) {
      LOOM_TRY(refuse(config.attention_out_bias, "a bias of the attention's output"));
      LOOM_TRY(refuse(config.mlp_bias, "mlp_bias"));
    }
  }
  return {};
}

std::vector<std::string> gguf_graph_notes(const DecoderConfig& config) {
  const DecoderFamily* family = find_family_in_gguf(config);
  if (family == nullptr || !family->gguf.ignores_window) return {};
  const bool narrow = std::ranges::any_of(config.layers, [&](const DecoderLayer& layer) {
    return layer.window > 0 && layer.window < config.max_positions;
  });
  if (!narrow) return {};
  return {cat("llama.cpp gives other logits of long texts: sliding_window: its '",
              family->gguf.name, "' sees all earlier tokens")};
}

}  // namespace loom::core
