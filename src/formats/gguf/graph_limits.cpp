#include "formats/gguf/graph_limits.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom::core {

Status check_gguf_graph(const DecoderConfig& config, const GgufArchitecture& architecture) {
  const auto refuse = [&](bool applies, const std::string& field) -> Status {
    if (!applies) return {};
    return unsupported(cat("llama.cpp reads no '", architecture.name, "' file with ", field,
                           "; write an .entity file"));
  };
  const bool square = config.num_heads * config.head_dim == config.hidden_size;
  LOOM_TRY(refuse(architecture.square && !square,
                  cat("head_dim ", config.head_dim, " x ", config.num_heads,
                      " heads and hidden_size ", config.hidden_size)));
  LOOM_TRY(refuse(architecture.tied && !config.tie_word_embeddings, "tie_word_embeddings false"));
  if (!architecture.optional_parts) {
    LOOM_TRY(refuse(config.rope == RopeKind::llama3, "rope_type llama3"));
    // The classes whose biases no setting turns on have them in llama.cpp too.
    if (architecture.bias) {
      LOOM_TRY(refuse(config.attention_out_bias, "a bias of the attention's output"));
      LOOM_TRY(refuse(config.mlp_bias, "mlp_bias"));
    }
  }
  return {};
}

std::vector<std::string> gguf_graph_notes(const DecoderConfig& config) {
  const GgufArchitecture* architecture = find_gguf_architecture(config);
  if (architecture == nullptr || !architecture->ignores_window) return {};
  const bool narrow = std::ranges::any_of(config.layers, [&](const DecoderLayer& layer) {
    return layer.window > 0 && layer.window < config.max_positions;
  });
  if (!narrow) return {};
  return {cat("llama.cpp gives other logits of long texts: sliding_window: its '",
              architecture->name, "' sees all earlier tokens")};
}

}  // namespace loom::core
