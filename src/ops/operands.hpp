// The properties that the arguments of an op declare, besides the row of ops.def. Hazards,
// lifetimes, relocation, scratch memory and gradients are derived from them; no second list of ops
// exists. A struct of arguments has:
//   static void operands(auto& self, auto&& f)
//     f(tensor, Access) for each of its tensors, absent (empty) ones too: reads(), writes(),
//     updates().
// It may have:
//   static constexpr Gradient kGradient: its gradient. Default: Gradient::missing.
//   int64_t work() const: an estimate of values touched once; two multiplications count as one.
//     Default: its first operand, once.
//   static void memory(const auto& self, auto&& f)
//     f(Q8Rows or KvCache, Access) for memory that is not a tensor. Default: none.
//   int64_t scratch() const: bytes that each lane needs. Default: kMatmulScratch.
//   static constexpr bool kF32Only = true: it has no form for f64.
//   static constexpr bool kOwnTypes = true: its outputs need not be of the compute type.
// Invariant: operands() defines the memory that a command touches, so it names every tensor.
#pragma once

#include <cstdint>

#include "tensor/tensor.hpp"

namespace loom::core {

// update: read and written.
enum class Access : uint8_t { read, write, update };

constexpr Access written(bool accumulate) {
  return accumulate ? Access::update : Access::write;
}

template <class F, class... Tensors>
void reads(F&& f, Tensors&... tensors) {
  (f(tensors, Access::read), ...);
}
template <class F, class... Tensors>
void writes(F&& f, Tensors&... tensors) {
  (f(tensors, Access::write), ...);
}
template <class F, class... Tensors>
void updates(F&& f, Tensors&... tensors) {
  (f(tensors, Access::update), ...);
}

// rule: gradient_rule(Differentiator&, const Args&) records the gradient. none: no gradient passes,
// because the result is not a smooth function (ids, codes, caches, fills), or the op is itself a
// gradient. missing: training through the op fails with its name.
enum class Gradient : uint8_t { missing, none, rule };

template <class Args>
constexpr Gradient gradient_kind() {
  if constexpr (requires { Args::kGradient; }) {
    return Args::kGradient;
  } else {
    return Gradient::missing;
  }
}
template <class Args>
constexpr bool f32_only() {
  if constexpr (requires { Args::kF32Only; }) return Args::kF32Only;
  return false;
}
template <class Args>
constexpr bool own_types() {
  if constexpr (requires { Args::kOwnTypes; }) return Args::kOwnTypes;
  return false;
}

// The cost in work() of a row of a large table, which comes from far memory: about 60 ns.
inline constexpr int64_t kFarRow = 1024;

// Scratch bytes that a lane needs: for any op without its own scratch(); for attention over
// `positions`; for attend and attend_dx over sequences of `positions` in either compute type.
constexpr int64_t kMatmulScratch = 256 << 10;
int64_t attention_scratch(int64_t positions);
int64_t attend_scratch(int64_t positions);
int64_t attend_dx_scratch(int64_t positions, bool capped);

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

// Rows of activations quantized per block of 32: value = code * scale. Codes and blocks are padded
// with zeros.
struct Q8Rows {
  int8_t* codes = nullptr;       // [rows][padded K]
  float* scales = nullptr;       // [rows][blocks]: absmax / 127
  int32_t* sums = nullptr;       // [rows][blocks]: sum of the 32 codes
  int32_t* half_sums = nullptr;  // [rows][blocks]: sum of the first 16 codes
  int64_t rows = 0, cols = 0, blocks = 0;
  int64_t padded_cols() const { return blocks * 32; }
};

// The KV cache of one layer, for one sequence or several, in a number type of its own. K is stored
// in groups of 16 positions, so that scores of 16 positions are one vector: keys
// [S][G][ceil(P/16)][D][16], values [S][G][P][D]. Types with a scale per block of 32 have blocks
// along D. f16 scales follow the codes: keys [G][ceil(P/16)][D/32][16], values [G][P][D/32]. With 4
// bits, numbers d and d + 16 of a block share a byte: keys [S][G][P/16][D/2][16], values [.][D/2].
struct KvCache {
  std::byte* keys = nullptr;
  std::byte* values = nullptr;
  int64_t kv_heads = 0, head_dim = 0, capacity = 0;  // capacity in positions, a multiple of 16
  int64_t sequences = 1;
  DType dtype = DType::f32;

  // Whether this type is supported: f32, f16, bf16, q8_0, q4_0.
  static bool can_hold(DType dtype);
  // The size of keys, and of values.
  int64_t sequence_numbers() const { return kv_heads * head_dim * capacity; }
  int64_t sequence_bytes() const;
  int64_t bytes() const { return sequences * sequence_bytes(); }
  float* f32_keys() const { return reinterpret_cast<float*>(keys); }
  float* f32_values() const { return reinterpret_cast<float*>(values); }
  // The cache of sequence s alone.
  KvCache sequence(int64_t s) const {
    const int64_t at = s * sequence_bytes();
    return {keys + at, values + at, kv_heads, head_dim, capacity, 1, dtype};
  }
};
inline KvCache f32_cache(float* keys, float* values, int64_t kv_heads, int64_t head_dim,
                         int64_t capacity, int64_t sequences = 1) {
  return {reinterpret_cast<std::byte*>(keys),
          reinterpret_cast<std::byte*>(values),
          kv_heads,
          head_dim,
          capacity,
          sequences};
}

// The location of a row of a ragged pass: its sequence, and its position in it.
struct RowPosition {
  int32_t sequence = 0, position = 0;
};
// The location of row r, from places (i32, [R, 2], or [R, 2 + N] with pages). If places is empty,
// it is position first + r of the only sequence.
inline RowPosition place_of(const Tensor& row_positions, int64_t r, int64_t first) {
  if (row_positions.empty()) return {0, static_cast<int32_t>(first + r)};
  const int32_t* row = row_positions.i32() + r * row_positions.row_stride;
  return {row[0], row[1]};
}

}  // namespace loom::core
