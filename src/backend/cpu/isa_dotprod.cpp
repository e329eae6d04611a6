// NEON with the int8 dot products of FEAT_DotProd (flags in src/backend/cpu/flags.cmake).
#define LOOM_ISA_NAMESPACE isa_dotprod
#define LOOM_ISA_BASE isa_neon
#define LOOM_SIMD_WIDTH 4
#define LOOM_ISA_NAME "dotprod"
#include "backend/cpu/products/dot_kernels.inl"
