// The roles of the parameters of decoders and encoders. Formats have tables of names by role.
#pragma once

#include <cstdint>

namespace loom::core {

enum class DecoderRole : uint8_t {
  token_embedding,
  output_norm,
  head,
  // Roles in a block, in order of use.
  attention_norm,  // before attention
  q,
  k,
  v,
  o,
  q_bias,
  k_bias,
  v_bias,
  o_bias,
  q_norm,
  k_norm,
  attention_sub_norm,   // between the heads and o
  attention_post_norm,  // after attention, if a model has four norms per block
  mlp_norm,
  gate,
  up,
  down,
  gate_bias,
  up_bias,
  down_bias,
  mlp_sub_norm,  // between the gated unit and down
  mlp_post_norm,
  // Roles of models with learned positions, or with biases of norms and heads.
  positions,
  output_norm_bias,
  head_bias,
  attention_norm_bias,
  mlp_norm_bias,
  // Roles of further options of attention.
  q_norm_bias,
  k_norm_bias,
  sinks,
  // Roles of blocks with experts.
  router,
  expert_gate,
  expert_up,
  expert_down,
  choice_bias,
  shared_gate,
  shared_up,
  shared_down,
  shared_router,
  router_bias,
  expert_gate_bias,
  expert_up_bias,
  expert_down_bias,
  // Roles of latent attention.
  q_down,
  q_down_norm,
  q_up,
  kv_down,
  kv_down_norm,
  k_up,
  v_up,
  // Roles of blocks with a scan or a gated convolution.
  mixer_in,
  mixer_in_bias,
  mixer_conv,
  mixer_conv_bias,
  mixer_select,  // of steps, B and C
  mixer_step,
  mixer_step_bias,
  mixer_rates,    // A_log
  mixer_through,  // D
  mixer_step_norm,
  mixer_b_norm,
  mixer_c_norm,
  mixer_norm,
  mixer_out,
  mixer_out_bias,
};
inline constexpr int kDecoderRoles = static_cast<int>(DecoderRole::mixer_out_bias) + 1;

// The weight and the bias of a part of an encoder are two consecutive roles.
enum class EncoderRole : uint8_t {
  tokens,
  positions,
  types,
  embedding_norm,
  embedding_norm_bias,
  q,
  q_bias,
  k,
  k_bias,
  v,
  v_bias,
  o,
  o_bias,
  attention_norm,
  attention_norm_bias,
  inner,  // of a plain unit
  inner_bias,
  outer,
  outer_bias,
  gate,  // of a gated one
  up,
  down,
  mlp_norm,
  mlp_norm_bias,
  final_norm,
  final_norm_bias,
  head,
  head_bias,
  head_norm,
  head_norm_bias,
  labels,
  labels_bias,
};

}  // namespace loom::core
