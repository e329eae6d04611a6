// The SIMD kernels compiled for WebAssembly with relaxed SIMD (flags in
// src/backend/cpu/flags.cmake). Its multiply-add is fused on hosts that have the instruction, and
// two operations on others. Compiled with LOOM_WASM_RELAXED alone, because a host without relaxed
// SIMD refuses the whole module.
#define LOOM_ISA_NAMESPACE isa_wasmrelaxed
#define LOOM_SIMD_WIDTH 4
#define LOOM_ISA_NAME "wasmrelaxed"
#include "backend/cpu/fuse_check.hpp"
#include "backend/cpu/kernels.inl"

namespace loom::core::isa_wasmrelaxed {

bool fuses() {
  return rounds_once(
      [](float a, float b, float c) { return vf_fma(vf_set(a), vf_set(b), vf_set(c))[0]; });
}

}  // namespace loom::core::isa_wasmrelaxed
