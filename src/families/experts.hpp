// The rules of a family with experts in place of some or all MLPs (DecoderExperts). They are a part
// of its row (family.hpp).
#pragma once

#include <cstdint>
#include <string_view>

#include "llm/decoder_config.hpp"

namespace loom::core {

struct ExpertRules {
  // The names of settings in config.json. An empty name: the class has no such setting.
  std::string_view count = "num_experts", other_count = "num_local_experts";  // two names for one
  std::string_view chosen = "num_experts_per_tok";
  std::string_view inner = "moe_intermediate_size";  // empty: that of an MLP
  std::string_view normalize_key = {}, scale = {};
  std::string_view limit = {}, gate_scale = {}, jitter = {};
  std::string_view groups = {}, chosen_groups = {};
  std::string_view group_method = {};  // groups count if that is "group_limited_greedy"
  // The inner size of the shared expert, or the number of `inner` sizes that it has. Without
  // either, the class has the default.
  std::string_view shared_inner = {}, shared_count = {};
  // Layer i has an MLP if it is among the first `first_dense`, after the layer `last` (-1: none),
  // in the list `dense_layers`, or if `step` does not divide i + 1. If the list `layer_kinds` is
  // there, it decides: "dense" or "sparse" for each layer.
  std::string_view first_dense = {}, last = {}, dense_layers = {}, step = {}, layer_kinds = {};

  // Values when a setting is absent.
  int32_t count_default = 0, chosen_default = 0, inner_default = 0;
  int32_t shared_default = 0;  // of shared_inner or shared_count
  int32_t first_dense_default = 0;
  bool normalize = true;
  double scale_default = 1, limit_default = 0, gate_scale_default = 1;

  // Values that the class fixes.
  RouterScore score = RouterScore::softmax;
  bool choice_bias = false;  // is added to the scores for the choice alone
  bool shared_gate = false;  // a gate scales the shared expert
  bool bias = false;         // of the products of experts, and of the router
  double up_offset = 0;
  int32_t group_best = 2;  // best scores of a group whose sum ranks it
};

}  // namespace loom::core
