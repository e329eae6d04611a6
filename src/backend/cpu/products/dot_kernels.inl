// An instruction set that only adds an int8 dot product to another set, LOOM_ISA_BASE. Its
// quantized products are its own (dot4 of simd.hpp); all else is that of the base.
#include "backend/cpu/set.hpp"

namespace loom::core::LOOM_ISA_NAMESPACE {
namespace {

#include "backend/cpu/simd.hpp"
//
#include "backend/cpu/products/share.inl"
//
#include "backend/cpu/products/finish.inl"
//
#include "backend/cpu/products/dot.inl"
//
#include "backend/cpu/products/matmul_q8.inl"

}  // namespace

void matmul(const MatmulArgs& m, const Lane& lane) {
  if (!m.use_q8) return LOOM_ISA_BASE::matmul(m, lane);
  matmul_q8(m, r16_geometry(m.w.dtype, m.w.shape[0], m.w.shape[1]), lane);
}

void fill_ops(Ops& ops) {
  LOOM_ISA_BASE::fill_ops(ops);
  ops.name = LOOM_ISA_NAME;
  ops.matmul = matmul;
}

void fill_training(Ops& ops) {
  LOOM_ISA_BASE::fill_training(ops);
}

#include "backend/cpu/probe.inl"

}  // namespace loom::core::LOOM_ISA_NAMESPACE
