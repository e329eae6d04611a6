// NEON with the mixed-sign int8 dot products of FEAT_I8MM (flags in src/backend/cpu/flags.cmake).
#define LOOM_ISA_NAMESPACE isa_i8mm
#define LOOM_ISA_BASE isa_neon
#define LOOM_SIMD_WIDTH 4
#define LOOM_ISA_NAME "i8mm"
#include "backend/cpu/products/dot_kernels.inl"
