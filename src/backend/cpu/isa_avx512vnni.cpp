// AVX-512 with the int8 dot products of AVX-512 VNNI (flags in src/backend/cpu/flags.cmake).
#define LOOM_ISA_NAMESPACE isa_avx512vnni
#define LOOM_ISA_BASE isa_avx512
#define LOOM_SIMD_WIDTH 16
#define LOOM_ISA_NAME "avx512vnni"
#include "backend/cpu/products/dot_kernels.inl"
