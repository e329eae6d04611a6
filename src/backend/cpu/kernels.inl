// All SIMD kernels of one instruction set. Included once per set by isa_*.cpp, which defines
// LOOM_ISA_NAMESPACE, LOOM_SIMD_WIDTH and LOOM_ISA_NAME. The standard and shared headers come
// first, outside the namespace.
#include "backend/cpu/set.hpp"
#include "ops/recording/pages.hpp"

namespace loom::core::LOOM_ISA_NAMESPACE {
namespace {

#include "backend/cpu/simd.hpp"

// Tiles of float products that fit the registers of this set. WebAssembly does not expose the
// number of registers. Chromium on x86-64 has 15 of four floats, which hold two rows of sixteen
// outputs, their weights and one value.
#if LOOM_SIMD_WIDTH == 4 && !defined(__aarch64__)
constexpr int kFloatTileRows = 2, kFloatTileGroups = 1, kFloatRowGroups = 2;
#else
constexpr int kFloatTileRows = LOOM_SIMD_WIDTH == 16 ? 14 : LOOM_SIMD_WIDTH == 1 ? 4 : 6;
constexpr int kFloatTileGroups = LOOM_SIMD_WIDTH == 16 ? 2 : 1;
constexpr int kFloatRowGroups = LOOM_SIMD_WIDTH == 16 ? 8 : 4;
#endif

#include "backend/cpu/products/share.inl"
//
#include "backend/cpu/products/finish.inl"
//
#include "backend/cpu/products/dot.inl"
//
#include "backend/cpu/products/matmul_q8.inl"
//
#include "backend/cpu/products/decode.inl"
//
#include "backend/cpu/products/matmul_float.inl"
//
#include "backend/cpu/rows/rows.inl"
//
#include "backend/cpu/rows/attention.inl"
//
#include "backend/cpu/rows/transpose.inl"
//
#include "backend/cpu/rows/copy.inl"
//
#include "backend/cpu/products/product.inl"
//
#include "backend/cpu/products/distance.inl"
//
#include "backend/cpu/rows/attend.inl"
//
#include "backend/cpu/conv/conv.inl"
//
#include "backend/cpu/conv/conv_dx.inl"
//
#include "backend/cpu/conv/pool.inl"
//
#include "backend/cpu/rows/update.inl"
//
#include "backend/cpu/rows/rows_dx.inl"
//
#include "backend/cpu/rows/recurrent.inl"
}  // namespace

void matmul(const MatmulArgs& m, const Lane& lane) {
  const R16 w = r16_geometry(m.w.dtype, m.w.shape[0], m.w.shape[1]);
  if (m.use_q8) {
    matmul_q8(m, w, lane);
  } else {
    matmul_float(m, w, lane);
  }
}

namespace {
#include "backend/cpu/products/experts.inl"
}  // namespace

void fill_ops(Ops& ops) {
  ops.name = LOOM_ISA_NAME;
  ops.matmul = matmul;
  ops.quantize_rows = quantize_rows;
  ops.norm = norm;
  ops.rope = rope;
  ops.kv_write = kv_write;
  ops.attention = attention;
  ops.unary = unary;
  ops.binary = binary;
  ops.gated = gated;
  ops.softmax = softmax;
  ops.gemm = gemm;
  ops.matmul_dx = matmul_dx;
  ops.squared_distance = squared_distance;
  ops.attend = attend_sequences;
  ops.conv = conv;
  ops.conv_dx = conv_dx;
  ops.pack = pack;
  ops.reduce = reduce;
  ops.reduce_cols = reduce_cols;
  ops.lstm_cell = lstm_cell;
  ops.lstm_products = true;
  ops.gru_cell = gru_cell;
  ops.copy = copy;
  ops.pool = pool;
  ops.expert_matmul = expert_matmul;
}

#include "backend/cpu/rows/training.inl"
//
#include "backend/cpu/probe.inl"

}  // namespace loom::core::LOOM_ISA_NAMESPACE
