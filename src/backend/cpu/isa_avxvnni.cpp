// AVX2 with the int8 dot products of AVX-VNNI (flags in src/backend/cpu/flags.cmake).
#define LOOM_ISA_NAMESPACE isa_avxvnni
#define LOOM_ISA_BASE isa_avx2
#define LOOM_SIMD_WIDTH 8
#define LOOM_ISA_NAME "avxvnni"
#include "backend/cpu/products/dot_kernels.inl"
