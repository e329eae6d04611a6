// The SIMD kernels compiled for 128-bit vectors without intrinsics: NEON and WASM SIMD128, and SSE2
// for testing them.
#if defined(__aarch64__)
#define LOOM_ISA_NAME "neon"
#else
#define LOOM_ISA_NAME "wasm"
#endif
#define LOOM_ISA_NAMESPACE isa_simd128
#define LOOM_SIMD_WIDTH 4
#include "backend/cpu/kernels.inl"
