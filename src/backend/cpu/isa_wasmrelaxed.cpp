// The SIMD kernels compiled for WebAssembly with relaxed SIMD, whose multiply-add is fused on hosts
// that have the instruction and two steps on others (flags in src/backend/cpu/flags.cmake).
// Compiled with LOOM_WASM_RELAXED alone: a host that does not know relaxed SIMD refuses the whole
// module.
#define LOOM_ISA_NAMESPACE isa_wasmrelaxed
#define LOOM_SIMD_WIDTH 4
#define LOOM_ISA_NAME "wasmrelaxed"
#include "backend/cpu/kernels.inl"

namespace loom::core::isa_wasmrelaxed {

// Whether this host rounds once, tried on sums that cancel, that end halfway and that are
// subnormal.
bool fuses() {
  const float triples[][3] = {{0x1.001p0f, 0x1.001p0f, -0x1.002p0f},
                              {0x1.fffffep0f, 0x1.fffffep0f, -0x1.fffffcp1f},
                              {0x1.000002p0f, 0x1.000002p0f, 0x1p-25f},
                              {0x1.8p-70f, 0x1.8p-70f, 0x1p-140f},
                              {-0x1.abcdeep20f, 0x1.123456p-20f, 0x1.cccccep0f}};
  for (const auto& t : triples) {
    // Hidden from the compiler, which would fold constants its own way.
    volatile float a = t[0], b = t[1], c = t[2];
    if (vf_fma(vf_set(a), vf_set(b), vf_set(c))[0] != fused_exact(t[0], t[1], t[2])) return false;
  }
  return true;
}

}  // namespace loom::core::isa_wasmrelaxed
