// The SIMD kernels compiled for NEON, which every 64-bit ARM processor has (flags in
// src/backend/cpu/flags.cmake).
#define LOOM_ISA_NAMESPACE isa_neon
#define LOOM_SIMD_WIDTH 4
#define LOOM_ISA_NAME "neon"
#include "backend/cpu/kernels.inl"
