#include "formats/hf/encoder_names.hpp"

#include <array>

#include "base/text.hpp"

namespace loom::core {
namespace {

struct EncoderName {
  EncoderRole role;  // its bias is the next role
  std::string_view bert, distilbert, modernbert;
};
using enum EncoderRole;
constexpr std::array kOutside = {
    EncoderName{tokens, "embeddings.word_embeddings", "embeddings.word_embeddings",
                "embeddings.tok_embeddings"},
    EncoderName{positions, "embeddings.position_embeddings", "embeddings.position_embeddings", ""},
    EncoderName{types, "embeddings.token_type_embeddings", "", ""},
    EncoderName{embedding_norm, "embeddings.LayerNorm", "embeddings.LayerNorm", "embeddings.norm"},
    EncoderName{final_norm, "", "", "final_norm"},
    EncoderName{head, "pooler.dense", "pre_classifier", "head.dense"},
    EncoderName{head_norm, "", "", "head.norm"},
    EncoderName{labels, "classifier", "classifier", "classifier"}};
constexpr std::array kInBlock = {
    EncoderName{q, "attention.self.query", "attention.q_lin", "attn.Wqkv"},
    EncoderName{k, "attention.self.key", "attention.k_lin", "attn.Wqkv"},
    EncoderName{v, "attention.self.value", "attention.v_lin", "attn.Wqkv"},
    EncoderName{o, "attention.output.dense", "attention.out_lin", "attn.Wo"},
    EncoderName{attention_norm, "attention.output.LayerNorm", "sa_layer_norm", "attn_norm"},
    EncoderName{inner, "intermediate.dense", "ffn.lin1", ""},
    EncoderName{outer, "output.dense", "ffn.lin2", ""},
    EncoderName{gate, "", "", "mlp.Wi"},
    EncoderName{up, "", "", "mlp.Wi"},
    EncoderName{down, "", "", "mlp.Wo"},
    EncoderName{mlp_norm, "output.LayerNorm", "output_layer_norm", "mlp_norm"}};

std::string_view blocks_of(EncoderFamily family) {
  if (family == EncoderFamily::distilbert) return "transformer.layer.";
  return family == EncoderFamily::modernbert ? "layers." : "encoder.layer.";
}

bool is_bias(const Param& param) {
  return param.spec.name == "beta" || param.spec.name.ends_with("bias");
}

// RoBERTa's head has different names.
std::string_view head_name(EncoderRole role, const EncoderConfig& config, std::string_view name) {
  if (config.family != EncoderFamily::roberta) return name;
  if (role == head) return "classifier.dense";
  return role == labels ? "classifier.out_proj" : name;
}

}  // namespace

TensorPart hf_encoder_tensor(const Param& param, const EncoderConfig& config) {
  const EncoderPiece piece = encoder_piece(param, config);
  const bool bias = is_bias(param);
  const auto base = static_cast<EncoderRole>(static_cast<int>(piece.role) - (bias ? 1 : 0));
  const bool modern = config.family == EncoderFamily::modernbert;
  TensorPart part{"", 0, param.spec.shape[0]};
  // The norms of ModernBERT have no biases.
  if (modern && param.spec.name == "beta") return part;
  const auto name_in = [&](const auto& rows) -> std::string_view {
    for (const EncoderName& row : rows) {
      if (row.role != base) continue;
      if (config.family == EncoderFamily::distilbert) return row.distilbert;
      return modern ? row.modernbert : row.bert;
    }
    return {};
  };
  std::string_view name = piece.block >= 0 ? name_in(kInBlock) : name_in(kOutside);
  if (piece.block < 0) name = head_name(base, config, name);
  const std::string place =
      piece.block >= 0 ? cat(blocks_of(config.family), piece.block, ".") : std::string();
  part.name = cat(place, name, bias ? ".bias" : ".weight");
  if (!modern) return part;
  if (base == q || base == k || base == v) {
    part.first_row = (base == q ? 0 : base == k ? 1 : 2) * config.hidden_size;
    part.rows = 3 * config.hidden_size;
  } else if (base == gate || base == up) {
    part.first_row = base == gate ? 0 : config.intermediate_size;
    part.rows = 2 * config.intermediate_size;
  }
  return part;
}

std::string_view hf_encoder_blocks(const EncoderConfig& config) {
  return blocks_of(config.family);
}

std::string hf_encoder_prefix(const EncoderConfig& config) {
  switch (config.family) {
    case EncoderFamily::bert: return "bert.";
    case EncoderFamily::roberta: return "roberta.";
    case EncoderFamily::distilbert: return "distilbert.";
    case EncoderFamily::modernbert: return "model.";
  }
  return {};
}

}  // namespace loom::core
