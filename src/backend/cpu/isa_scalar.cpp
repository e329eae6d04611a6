// The kernels without vectors, for any processor (flags in src/backend/cpu/flags.cmake).
#define LOOM_ISA_NAMESPACE isa_scalar
#define LOOM_SIMD_WIDTH 1
#define LOOM_ISA_NAME "scalar"
#include "backend/cpu/kernels.inl"
