// The latent form of MultiHeadAttention: multi-head latent attention (DeepSeek-AI, "DeepSeek-V2",
// 2024). Keys and values of all heads are products of one short latent of a position:
//   [c, k_r] = Wc x; c = rms(c); k_r = rope(k_r)        latent and rope values
//   q_h = [q_n, q_r] = Wq_h x, or Wq_h rms(Wqc x); q_r = rope(q_r)
//   score = (Wk_h c) . q_n + k_r . q_r = c . (Wk_h^T q_n) + k_r . q_r
//   o_h = Wv_h (sum of p c); y = Wo [o_h]
// The second form of the score has one key [k_r, c] for all heads. The cache has it as the key and
// as the value of a position. k_up has Wk_h^T, [heads * latent, nope], and v_up has Wv_h,
// [heads * value, latent]: the products of all heads are one product with experts.
#pragma once

#include <vector>

#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"

namespace loom::core {

// x [R, heads * head_dim] with rotary positions: the first rotary_dim values of each head, or all
// (0).
Result<Tensor> rotated(ForwardCall& call, const Tensor& x, int64_t head_dim, int64_t rotary_dim);

bool is_latent(const LayerConfig& c);
void latent_params(const LayerConfig& c, std::vector<ParamSpec>& out);
Status check_latent(const LayerConfig& c);
// Values of a key in the cache.
int64_t latent_key_width(const LayerConfig& c);

// The operands of attention with one head of keys and values.
struct LatentOperands {
  Tensor q, k, v;
  Tensor starts;  // of the rows of each head, for latent_output()
};
Result<LatentOperands> latent_operands(ForwardCall& call);
// y [R, width], from the result of attention [R, heads * key width].
Result<Tensor> latent_output(ForwardCall& call, const LatentOperands& from, const Tensor& mixed);

}  // namespace loom::core
