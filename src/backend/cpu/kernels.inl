// All SIMD kernels of one instruction set. Included once per set by isa_*.cpp, which defines
// LOOM_ISA_NAMESPACE, LOOM_SIMD_WIDTH and LOOM_ISA_NAME. The standard and shared headers come
// first, outside the namespace.
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "backend/cpu/isa.hpp"
#include "backend/reference/reference.hpp"
#include "base/inline.hpp"
#include "ops/activation.hpp"
#include "ops/activation_dx.hpp"
#include "ops/fmath.hpp"
#include "ops/ops.hpp"

#if LOOM_SIMD_WIDTH >= 8
#include <immintrin.h>
#endif

#if LOOM_SIMD_WIDTH == 16
// VSCALEFPS (Intel SDM) gives e * 2^n, rounded once. The lane type is this set's alone.
namespace loom::fmath {
typedef float Lanes16 __attribute__((vector_size(64)));
template <>
struct ScaleExp<Lanes16> {
  LOOM_INLINE static Lanes16 run(Lanes16 e, Int<Lanes16>, Lanes16 nf) {
    return _mm512_scalef_ps(e, nf);
  }
};
}  // namespace loom::fmath
#endif

namespace loom::LOOM_ISA_NAMESPACE {
namespace {

#include "backend/cpu/simd.hpp"

// Tile sizes that fit this set's registers.
constexpr int kQ8TileRows = LOOM_SIMD_WIDTH == 16 ? 6 : 2;
constexpr int kFloatTileRows = LOOM_SIMD_WIDTH == 16 ? 14 : LOOM_SIMD_WIDTH == 1 ? 4 : 6;
constexpr int kFloatTileGroups = LOOM_SIMD_WIDTH == 16 ? 2 : 1;
constexpr int kFloatRowGroups = LOOM_SIMD_WIDTH == 16 ? 8 : 4;

LOOM_INLINE float decode_step(ScaleRule rule, const R16& g, const std::byte* group, int64_t block,
                              int half, int lane) {
  return r16_step(g, group, lane, rule == ScaleRule::e4m3 ? block * 2 + half : block);
}

// Out of line: inlined into every tile it would be most of the code.
__attribute__((noinline)) void activate16(Activation kind, V16& x) {
  LOOM_EACH(i) x.v[i] = activate<Vf>(kind, x.v[i]);
}

// Stores sixteen outputs of row `row` from `column`; bias and activation only when the sum is
// complete.
LOOM_INLINE void finish_tile(const MatmulArgs& m, int64_t row, int64_t column, int64_t columns,
                             V16 total, bool last) {
  const int64_t n = columns - column;
  if (last) {
    if (!m.bias.empty()) total = add16(total, load16_n(m.bias.f32() + column, n));
    if (m.activation != Activation::linear) activate16(m.activation, total);
  }
  store16_n(m.y.f32_row(row) + column, total, n);
}

#include "backend/cpu/matmul_q8.inl"
//
#include "backend/cpu/decode.inl"
//
#include "backend/cpu/matmul_float.inl"
//
#include "backend/cpu/rows.inl"
//
#include "backend/cpu/attention.inl"
//
#include "backend/cpu/transpose.inl"
//
#include "backend/cpu/product.inl"
//
#include "backend/cpu/distance.inl"
//
#include "backend/cpu/attend.inl"
//
#include "backend/cpu/conv.inl"
//
#include "backend/cpu/conv_dx.inl"
//
#include "backend/cpu/update.inl"
//
#include "backend/cpu/rows_dx.inl"
//
#include "backend/cpu/recurrent.inl"

inline void matmul(const MatmulArgs& m, const Lane& lane) {
  const R16 w = r16_geometry(m.w.dtype, m.w.shape[0], m.w.shape[1]);
  if (m.use_q8) {
    matmul_q8(m, w, lane);
  } else {
    matmul_float(m, w, lane);
  }
}

}  // namespace

void fill_ops(Ops& ops) {
  ops.name = LOOM_ISA_NAME;
  ops.matmul = matmul;
  ops.quantise_rows = quantise_rows;
  ops.norm = norm;
  ops.rope = rope;
  ops.attention = attention;
  ops.unary = unary;
  ops.binary = binary;
  ops.gated = gated;
  ops.softmax = softmax;
  ops.gemm = gemm;
  ops.matmul_dx = matmul_dx;
  ops.squared_distance = squared_distance;
  ops.attend = attend_sequences;
  ops.attend_dx = attend_dx;
  ops.conv = conv;
  ops.conv_dx = conv_dx;
  ops.conv_dw = conv_dw;
  ops.pack = pack;
  ops.optimise = optimise;
  ops.reduce_cols = reduce_cols;
  ops.scatter_add_rows = scatter_add_rows;
  ops.unary_dx = unary_dx;
  ops.gated_dx = gated_dx;
  ops.softmax_dx = softmax_dx;
  ops.norm_dx = norm_dx;
  ops.loss = loss;
  ops.lstm_cell = lstm_cell;
  ops.lstm_products = true;
  ops.lstm_cell_dx = lstm_cell_dx;
  ops.gru_cell = gru_cell;
  ops.gru_cell_dx = gru_cell_dx;
}

}  // namespace loom::LOOM_ISA_NAMESPACE
