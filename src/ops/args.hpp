// Arguments of every op: trivially copyable, so a command list can hold them by value. Shapes: R
// rows, K inner width, N outputs, H heads, G kv heads, D head width, P positions, B samples. All
// activations are plain and of the backend's compute type (f32; f64 for the oracle of gradients)
// unless said otherwise. The order of every sum is that of docs/numerics.md; nothing else about an
// op may change its bits. An op named X_dx or X_dw is the gradient of X: d* is the derivative of
// the loss with respect to *. `accumulate` adds to what the output holds: old + new, once per
// value. `rows` (i32; empty: all, in order): the rows of a table that the op touches, each once at
// most; negative ones stand for none.
#pragma once

#include <cstdint>

#include "tensor/tensor.hpp"

namespace loom::core {

enum class Activation : uint8_t {
  linear,
  relu,
  leaky_relu,
  relu2,
  silu,
  gelu_tanh,
  gelu_erf,
  tanh,
  sigmoid,
  mish,
  softplus,
  elu,
  hard_swish
};

// Rows of activations quantised per block of 32: value = code * scale. Codes and blocks are padded
// with zeros.
struct Q8Rows {
  int8_t* codes = nullptr;       // [rows][padded K]
  float* scales = nullptr;       // [rows][blocks]: absmax / 127
  int32_t* sums = nullptr;       // [rows][blocks]: sum of the 32 codes
  int32_t* half_sums = nullptr;  // [rows][blocks]: sum of the first 16 codes
  int64_t rows = 0, cols = 0, blocks = 0;
  int64_t padded_cols() const { return blocks * 32; }
};

// y[R,N] = act(x[R,K] . w[N,K]^T + bias[N]). w is R16. Integer-path dtypes with q8 set compute in
// integers from q8 (rule 3), everything else from x in float (rule 2).
struct MatmulArgs {
  Tensor x, w, bias, y;
  Q8Rows q8;
  Activation activation = Activation::linear;
  bool use_q8 = false;
};

// q = rows of x quantised per block of 32.
struct QuantiseRowsArgs {
  Tensor x;
  Q8Rows q;
};

// w (R16, dtype of its own) = pack of plain src[N,K]. stochastic: each value is rounded up or down
// with the probability that makes its mean exact; value i draws number i of stream (seed, stream)
// at step `*step` (as in RandomArgs). ranges (may be empty; f32): what the scale of each row (of
// the tensor when scope says so) was taken from, read and updated: a scale is kept while its range
// shrinks by no more than `band` (HeldRanges in dtype/r16.hpp). [N], or [N, 2] for dtypes with a
// zero point; zeros: nothing yet. With `rows` (scope per_row; not for dtypes with a scale of the
// tensor) w is packed already, and those rows of src take the place of theirs.
struct PackArgs {
  Tensor src, w;
  ScaleScope scope = ScaleScope::per_row;
  bool stochastic = false;
  uint64_t seed = 0, stream = 0;
  Tensor step;
  Tensor ranges;
  float band = 0.125f;
  Tensor rows;
};

// y[i,:] = table[ids[i],:]. ids are checked by the recorder's caller; table is R16 or plain. The
// row of id `skip` gets no gradient. sparse: the gradient of the table is kept for the rows that
// ids name (Differentiator::rows), not for all.
struct GatherRowsArgs {
  Tensor table, ids, y;
  int64_t skip = -1;
  bool sparse = false;
};

// What ids name, each row once: rows[r] = ids[r] where that id stands for the first time, else -1;
// first[r] = the place where it does. Id `skip` is left out: -1 in both. seen [N]: memory of its
// own, N above every id; what it holds before and after means nothing.
struct DistinctRowsArgs {
  Tensor ids, seen, rows, first;
  int64_t skip = -1;
};

enum class NormKind : uint8_t { rms, layer };
// Row-wise over the last axis, cut into `segments` equal parts normalised on their own (per-head
// norms): rms: y = x / sqrt(mean(x^2) + eps) * gamma; layer: y = (x - mean) / sqrt(var + eps) *
// gamma + beta.
struct NormArgs {
  Tensor x, gamma, beta, y;
  float eps = 1e-5f;
  NormKind kind = NormKind::rms;
  int64_t segments = 1;
};

// y = the halves of each head of x rotated: (a, b) -> (a c - b s, a s + b c). Rows are runs of
// `length` (0: one run); row i of a run is at position first + i. inverse: by the negative angle,
// which is the gradient. x, y [R, heads*D], y may be x; cos, sin [P, D/2], f32. With `turned` > 0
// only the first `turned` values of each head are those halves, the others are kept, and cos, sin
// are [P, turned/2].
struct RopeArgs {
  Tensor x, y, cos, sin;
  int64_t heads = 1;
  int64_t first = 0;
  int64_t length = 0;
  bool inverse = false;
  int64_t turned = 0;
};

// The KV cache of one layer. K is stored in groups of 16 positions so that scores of 16 positions
// are one vector: keys [G][ceil(P/16)][D][16], values [G][P][D].
struct KvCache {
  float* keys = nullptr;
  float* values = nullptr;
  int64_t kv_heads = 0, head_dim = 0, capacity = 0;  // capacity in positions, a multiple of 16
  int64_t key_floats() const { return kv_heads * head_dim * capacity; }
};

// Appends rows of k and v [R, G*D] at positions first, first+1, ...
struct KvWriteArgs {
  Tensor k, v;
  KvCache cache;
  int64_t first = 0;
};

// y[r, h*D..] = softmax(scale * q . K^T) V over positions p <= first + r (causal), or over all
// `length` positions; with window > 0 only those nearer than `window`: |first + r - p| < window.
// Head h reads kv head h / (H/G). With soft_cap c > 0 a score s = scale * q . k counts as
// c tanh(s / c).
struct AttentionArgs {
  Tensor q, y;
  KvCache cache;
  int64_t heads = 1;
  int64_t first = 0;
  int64_t length = 0;  // positions in the cache, first + R when causal
  int64_t window = 0;
  float scale = 1.0f;
  bool causal = true;
  float soft_cap = 0.0f;
};

enum class UnaryKind : uint8_t {
  linear,
  relu,
  leaky_relu,
  relu2,
  silu,
  gelu_tanh,
  gelu_erf,
  tanh,
  sigmoid,
  mish,
  softplus,
  elu,
  hard_swish,
  exp,
  log,
  sqrt,
  neg,
  abs,
  square,
  reciprocal,
  step  // 1 where x >= 0, else 0; no gradient
};
struct UnaryArgs {
  Tensor x, y;
  UnaryKind kind = UnaryKind::linear;
};

enum class BinaryKind : uint8_t { add, sub, mul, div, max, min };
// y = a op b. b has the shape of a, or one row (the same for all rows of a), or one column (one
// value per row of a), or one value.
struct BinaryArgs {
  Tensor a, b, y;
  BinaryKind kind = BinaryKind::add;
};

// y = act(gate) * up
struct GatedArgs {
  Tensor gate, up, y;
  Activation activation = Activation::silu;
};

// Row-wise over the last axis: y = softmax(x * scale).
struct SoftmaxArgs {
  Tensor x, y;
  float scale = 1.0f;
};

enum class ReduceKind : uint8_t { sum, mean, sum_squares, max };
// y[r] = reduction of row r of x.
struct ReduceArgs {
  Tensor x, y;
  ReduceKind kind = ReduceKind::sum;
};

// ids[r] = index of the first largest value of row r (NaN counts as smallest). ids: i32.
struct ArgmaxArgs {
  Tensor x, ids;
};

// The k largest values of each row, descending, ties by ascending index. values [R,k], ids i32
// [R,k].
struct TopkArgs {
  Tensor x, values, ids;
};

// One of the k candidates of each row is drawn: next[r] = ids[r,i]. values [R,k] (f32) as topk
// leaves them, ids i32 [R,k], next i32 [R]; k <= kMost. After the weights all is in integers, ONE
// being 2^22:
//   w_i = ONE where v_i == v_0; 0 for other infinities; else min(floor(exp((v_i - v_0) /
//     temperature) ONE + 1/2), ONE), exp and its argument in f32 (NaN counts as -inf)
//   kept: candidate 0, and those after it up to the first with w_i < ceil(min_p ONE) or whose
//     predecessors sum up to ceil(ceil(top_p 2^31) (w_0 + .. + w_{k-1}) / 2^31)
//   i: the first with w_0 + .. + w_i > floor(u m / 2^32), m the sum of those kept and u word 0 of
//     Philox(seed, stream 0, index + r).
// temperature is positive and not subnormal, top_p in (0, 1], min_p in [0, 1].
struct DrawArgs {
  static constexpr int64_t kMost = 256;
  Tensor values, ids, next;
  float temperature = 1.0f, top_p = 1.0f, min_p = 0.0f;
  uint64_t seed = 0, index = 0;
};

// Plain -> plain or R16 -> plain f32; either side may be any float dtype of 16 bits or more.
struct ConvertArgs {
  Tensor x, y;
  Tensor rows;
};

struct FillArgs {
  Tensor y;
  float value = 0.0f;
};

// ---- Training: products of activations, gradients, losses, updates ----

// y[M,N] (+)= A B over plain matrices, K summed under rule 2. a is A [M,K], or A^T [K,M] when
// a_transposed; b is B [K,N], or B^T [N,K] when b_transposed.
struct GemmArgs {
  Tensor a, b, y;
  bool a_transposed = false;
  bool b_transposed = false;
  bool accumulate = false;
};

// dx[R,K] (+)= dy[R,N] . w[N,K], N summed under rule 2. w is R16 and decoded as in matmul.
struct MatmulDxArgs {
  Tensor dy, w, dx;
  bool accumulate = false;
};

// y[n] (+)= sum over r of x[r,n], under rule 4 down each column.
struct ReduceColsArgs {
  Tensor x, y;
  bool accumulate = false;
};

// table[ids[r],:] += dy[r,:], r ascending. Rows with id `skip` are left out. table: plain.
struct ScatterAddRowsArgs {
  Tensor dy, ids, table;
  int64_t skip = -1;
};

// dx = dy * f'. x holds the input of f, or, with from_output, its output (relu, leaky_relu,
// tanh, sigmoid, exp, sqrt, reciprocal, linear only). At a kink the derivative is that of the left
// side for relu, relu2 and abs (0, 0, 0), and 0.01 for leaky_relu.
struct UnaryDxArgs {
  Tensor x, dy, dx;
  UnaryKind kind = UnaryKind::linear;
  bool from_output = false;
};

// y = act(gate) * up: dgate = dy * up * act'(gate), dup = dy * act(gate).
struct GatedDxArgs {
  Tensor gate, up, dy, dgate, dup;
  Activation activation = Activation::silu;
};

// Gradient of norm by row segment. With r = 1/sqrt(mean(x^2) + eps), h = x r (rms) or
// r = 1/sqrt(var + eps), h = (x - mean) r (layer) and u = dy * gamma:
//   rms:   dx = r (u - h mean(u h));   layer: dx = r (u - mean(u) - h mean(u h)).
// scaled (may be empty) = dy * h, whose column sums are dgamma.
struct NormDxArgs {
  Tensor x, gamma, dy, dx, scaled;
  float eps = 1e-5f;
  NormKind kind = NormKind::rms;
  int64_t segments = 1;
};

// Row-wise: dx = scale * y * (dy - sum(dy * y)).
struct SoftmaxDxArgs {
  Tensor y, dy, dx;
  float scale = 1.0f;
};

// Row-wise alpha-entmax of x * scale (Peters, Niculae, Martins, 2019): y = max((a-1) x scale -
// t, 0)^(1/(a-1)) with t such that y sums to 1. alpha 2 (sparsemax, Martins and Astudillo, 2016)
// and 1.5 exactly by sorting, others by 60 halvings of t; alpha > 1.
struct EntmaxArgs {
  Tensor x, y;
  float scale = 1.0f;
  float alpha = 1.5f;
};
// With s = y^(2 - alpha) where y > 0, else 0: dx = scale * s * (dy - sum(s dy) / sum(s)).
struct EntmaxDxArgs {
  Tensor y, dy, dx;
  float scale = 1.0f;
  float alpha = 1.5f;
};

// A convolution of up to three axes (absent ones have extent, kernel and stride 1): samples
// [channels][in0][in1][in2] to [filters][out0][out1][out2]. Channels and filters are cut into
// `groups`; filter f sees the channels of its own. out[o] takes in[o * stride + k * dilation -
// pad], zeros outside.
struct ConvShape {
  int64_t channels = 1, filters = 1, groups = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, pad[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};

  int64_t in_positions() const { return in[0] * in[1] * in[2]; }
  int64_t out_positions() const { return out[0] * out[1] * out[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t patch() const { return channels / groups * taps(); }
};

// y[B, F*out] = act(conv(x[B, C*in], w) + bias[F]). w R16 [F, patch], a row being [C/groups][taps].
// Each output is the rule 2 dot product of its row of w with its patch, zeros included.
struct ConvArgs {
  Tensor x, w, bias, y;
  ConvShape shape;
  Activation activation = Activation::linear;
};

// dx[B, C*in] (+)= the gradient of conv with respect to x: a transposed convolution of dy[B,
// F*out]. For each output position the patch gradient, rule 2 over the filters of the group, is
// formed; the ones that meet at an input value are added with the tap ascending, from +0. With bias
// [C] and activation, which may not be combined with accumulate, this is the forward pass of
// ConvTransposed.
struct ConvDxArgs {
  Tensor dy, w, bias, dx;
  ConvShape shape;
  Activation activation = Activation::linear;
  bool accumulate = false;
};

// dw[F, patch] (+)= the gradient with respect to w, plain: rule 2 over samples and, inside a
// sample, output positions.
struct ConvDwArgs {
  Tensor x, dy, dw;
  ConvShape shape;
  bool accumulate = false;
};

// Self-attention of whole sequences, without a cache: R = sequences * T rows. y[r,h] =
// softmax(scale
// * q . K^T) V over the positions of the row's own sequence it may see: earlier ones and itself
// (causal), the last `window` of those (window > 0; not causal: |distance| < window), and only
// those with mask != 0 (mask [sequences, T], may be empty). Sums and soft_cap as in attention, over
// all positions between the first and the last that causality and the window allow; masked ones
// count as zeros.
struct AttendArgs {
  Tensor q, k, v, y, mask;
  int64_t sequences = 1, heads = 1, kv_heads = 1, window = 0;
  float scale = 1.0f;
  bool causal = true;
  float soft_cap = 0.0f;
};
// With P the weights of attend: dv = P^T dy; dP = dy V^T; dS = P * (dP - rowsum(P * dP)) * scale;
// dq = dS k; dk = dS^T q; heads that share keys and values add up, head ascending. With soft_cap c,
// dS is multiplied by 1 - tanh(s / c)^2 before scale.
struct AttendDxArgs {
  Tensor q, k, v, dy, mask, dq, dk, dv;
  int64_t sequences = 1, heads = 1, kv_heads = 1, window = 0;
  float scale = 1.0f;
  bool causal = true;
  float soft_cap = 0.0f;
};

// One step of an LSTM (Hochreiter and Schmidhuber, 1997; forget gate of Gers, 1999). gates [B,4H]
// hold the sums of i|f|g|o, to which `more` [B,4H] is added where there is one. acts [B,4H] =
// sigmoid, sigmoid, tanh, sigmoid of them; c = f c_before + i g; h = o tanh(c). c_before may be
// empty: zeros. With h_before [B,H] and w [4H,H] (R16), more = h_before . w^T as matmul has it.
// That form is for the recorder, which takes it apart unless the backend has it
// (Ops::lstm_products).
struct LstmCellArgs {
  Tensor gates, c_before, acts, c, h;
  Tensor more, h_before, w;
};
// dc_next and dh may be empty (zeros). dgates [B,4H], dc_before [B,H].
struct LstmCellDxArgs {
  Tensor acts, c_before, c, dh, dc_next, dgates, dc_before;
};

// One step of a GRU (Cho et al., 2014; reset after the product, as cuDNN and PyTorch). gx [B,3H] =
// sums from the input, gh [B,3H] = sums from the state, both r|z|n. r = sigmoid(gx_r + gh_r), z
// likewise, n = tanh(gx_n + r gh_n), h = (1 - z) n + z h_before. acts [B,3H] = r|z|n.
struct GruCellArgs {
  Tensor gx, gh, h_before, acts, h;
};
struct GruCellDxArgs {
  Tensor acts, gh, h_before, dh, dgx, dgh, dh_before;
};

// y[R,K] = sum over n of (x[r,n] - c[k,n])^2, one chain per rule 2. c is R16.
struct SquaredDistanceArgs {
  Tensor x, c, y;
};

enum class RandomKind : uint8_t { uniform, normal, gumbel };
// y = counter-based random numbers: value i of stream (seed, stream) at step `*step` (a tensor of
// one value, a whole number below 2^24; empty: step 0). gumbel: -log(-log(u)).
struct RandomArgs {
  Tensor y, step;
  uint64_t seed = 0;
  uint64_t stream = 0;
  RandomKind kind = RandomKind::uniform;
};

enum class LossKind : uint8_t { mse, mae, huber, softmax_ce, bce, kl, cosine };
// The loss of each row times its weight, and the gradient: row_loss[r] = weight[r] L(pred[r],
// target[r]), dpred = weight[r] dL/dpred; one of them may be empty. target [R,N], or class ids i32
// [R] for softmax_ce.
//   mse, mae, huber, bce: mean over the N values; huber: d^2/2 up to `delta`, then delta (|d| -
//   delta/2); bce: on logits; softmax_ce: -sum t log softmax(pred), t smoothed to (1 - s) t + s/N
//   by `smoothing`; kl: sum t (log t - log softmax(pred)); cosine: 1 - cos(pred, target).
struct LossArgs {
  Tensor pred, target, weight, row_loss, dpred;
  LossKind kind = LossKind::mse;
  float delta = 1.0f;
  float smoothing = 0.0f;
};

enum class OptimizerKind : uint8_t { sgd, momentum, nesterov, rmsprop, adam, adamw, lion };
// One update of p in place, value by value, with gradient g * scale[0] (scale may be empty: 1; a
// NaN in it leaves everything unchanged). hyper [4] = learning rate, 1 - beta1^t, 1 - beta2^t,
// unused. m and v: first and second moment, where the kind has them. With `rows` row i of g belongs
// to row rows[i] of p, m and v; moments of other rows do not decay (as in PyTorch's SparseAdam).
//   sgd:      p -= lr (g + wd p)
//   momentum: m = b1 m + (g + wd p); p -= lr m     nesterov: p -= lr (g + wd p + b1 m)
//   rmsprop:  v = b2 v + (1 - b2) g^2; p -= lr g / (sqrt(v) + eps), g including wd p
//   adam:     m, v averages; p -= lr (m / c1) / (sqrt(v / c2) + eps), g including wd p;
//   adamw:    the same with p -= lr wd p apart from g (Loshchilov and Hutter, 2019)
//   lion:     p -= lr (sign(b1 m + (1 - b1) g) + wd p); m = b2 m + (1 - b2) g (Chen et al., 2023)
struct OptimiseArgs {
  Tensor p, g, m, v, hyper, scale;
  OptimizerKind kind = OptimizerKind::sgd;
  float beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f, decay = 0.0f;
  Tensor rows;
};

}  // namespace loom::core
