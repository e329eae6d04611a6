// Arguments of every op: trivially copyable, so a command list can hold them by value. Shapes: R
// rows, K inner width, N outputs, H heads, G kv heads, D head width, P positions. All activations
// are plain f32 unless said otherwise. The order of every sum is that of docs/numerics.md; nothing
// else about an op may change its bits.
#pragma once

#include <cstdint>

#include "tensor/tensor.hpp"

namespace loom {

enum class Activation : uint8_t {
  linear,
  relu,
  leaky_relu,
  relu2,
  silu,
  gelu_tanh,
  gelu_erf,
  tanh,
  sigmoid
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

// w (R16, dtype of its own) = pack of plain f32 src[N,K].
struct PackArgs {
  Tensor src, w;
  ScaleScope scope = ScaleScope::per_row;
};

// y[i,:] = table[ids[i],:]. ids are checked by the recorder's caller; table is R16 or plain f32.
struct GatherRowsArgs {
  Tensor table, ids, y;
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

// Rotates, in place, the halves of each head: (a, b) -> (a c - b s, a s + b c), row r at position
// first + r. x [R, heads*D]; cos, sin [P, D/2].
struct RopeArgs {
  Tensor x, cos, sin;
  int64_t heads = 1;
  int64_t first = 0;
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
// `length` positions; with window > 0 only p > first + r - window. Head h reads kv head h / (H/G).
struct AttentionArgs {
  Tensor q, y;
  KvCache cache;
  int64_t heads = 1;
  int64_t first = 0;
  int64_t length = 0;  // positions in the cache, first + R when causal
  int64_t window = 0;
  float scale = 1.0f;
  bool causal = true;
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
  exp,
  log,
  sqrt,
  neg,
  abs,
  softplus
};
struct UnaryArgs {
  Tensor x, y;
  UnaryKind kind = UnaryKind::linear;
};

enum class BinaryKind : uint8_t { add, sub, mul, div, max, min };
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

// Plain -> plain or R16 -> plain f32; either side may be any float dtype of 16 bits or more.
struct ConvertArgs {
  Tensor x, y;
};

struct FillArgs {
  Tensor y;
  float value = 0.0f;
};

}  // namespace loom
