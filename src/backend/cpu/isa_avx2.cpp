// The SIMD kernels compiled for AVX2 with FMA (flags in src/backend/cpu/flags.cmake).
#define LOOM_ISA_NAMESPACE isa_avx2
#define LOOM_SIMD_WIDTH 8
#define LOOM_ISA_NAME "avx2"
#include "backend/cpu/kernels.inl"
