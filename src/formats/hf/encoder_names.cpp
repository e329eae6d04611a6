#include "formats/hf/encoder_names.hpp"

#include <algorithm>
#include <span>

#include "base/text.hpp"
#include "families/encoder_family.hpp"

namespace loom::core {
namespace {

using enum EncoderRole;

// Names of BERT; rows of families have those that differ.
constexpr EncoderPartName kBertNames[] = {{tokens, "embeddings.word_embeddings"},
                                          {positions, "embeddings.position_embeddings"},
                                          {types, "embeddings.token_type_embeddings"},
                                          {embedding_norm, "embeddings.LayerNorm"},
                                          {head, "pooler.dense"},
                                          {labels, "classifier"},
                                          {q, "attention.self.query"},
                                          {k, "attention.self.key"},
                                          {v, "attention.self.value"},
                                          {o, "attention.output.dense"},
                                          {attention_norm, "attention.output.LayerNorm"},
                                          {inner, "intermediate.dense"},
                                          {outer, "output.dense"},
                                          {mlp_norm, "output.LayerNorm"}};

const EncoderFolder& folder_of(const EncoderConfig& config) {
  static constexpr EncoderFolder kPlain;
  const EncoderFamily* family = find_encoder_of_type(config.model_type);
  return family == nullptr ? kPlain : family->folder;
}

std::string_view name_of(EncoderRole role, const EncoderFolder& folder) {
  for (const std::span<const EncoderPartName> names :
       {folder.names, std::span<const EncoderPartName>(kBertNames)}) {
    const auto found = std::ranges::find(names, role, &EncoderPartName::role);
    if (found != names.end()) return found->name;
  }
  return {};
}

bool is_bias(const Param& param) {
  return param.spec.name == "beta" || param.spec.name.ends_with("bias");
}

}  // namespace

TensorPart hf_encoder_tensor(const Param& param, const EncoderConfig& config) {
  const EncoderPiece piece = encoder_piece(param, config);
  const bool bias = is_bias(param);
  const auto base = static_cast<EncoderRole>(static_cast<int>(piece.role) - (bias ? 1 : 0));
  const EncoderFolder& folder = folder_of(config);
  TensorPart part{"", 0, param.spec.shape[0]};
  if (!folder.norm_biases && param.spec.name == "beta") return part;
  const std::string block = piece.block >= 0 ? cat(folder.block, piece.block, ".") : std::string();
  part.name = cat(block, name_of(base, folder), bias ? ".bias" : ".weight");
  if (!folder.fused) return part;
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
  return folder_of(config).block;
}

std::string hf_encoder_prefix(const EncoderConfig& config) {
  return std::string(folder_of(config).prefix);
}

}  // namespace loom::core
