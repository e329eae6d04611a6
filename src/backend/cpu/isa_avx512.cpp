// The SIMD kernels compiled for AVX-512 (flags in src/backend/cpu/flags.cmake).
#define LOOM_ISA_NAMESPACE isa_avx512
#define LOOM_SIMD_WIDTH 16
#define LOOM_ISA_NAME "avx512"
#include "backend/cpu/kernels.inl"
