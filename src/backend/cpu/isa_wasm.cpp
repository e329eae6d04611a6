// The SIMD kernels compiled for WebAssembly SIMD128 (flags in src/backend/cpu/flags.cmake).
#define LOOM_ISA_NAMESPACE isa_wasm
#define LOOM_SIMD_WIDTH 4
#define LOOM_ISA_NAME "wasm"
#include "backend/cpu/kernels.inl"
