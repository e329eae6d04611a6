#include "backend/cpu/processor.hpp"

#include "backend/cpu/isa.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace loom::core {

bool runs_scalar() {
  return true;
}

#if defined(__x86_64__)
// __builtin_cpu_supports asks the operating system too: whether it keeps the wide registers. Clang
// 14 does not know its word for half precision, which needs the registers of AVX2.
static bool converts_halves() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
bool runs_avx2() {
  return __builtin_cpu_supports("avx2") && converts_halves() && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2");
}
bool runs_avxvnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return runs_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
}
bool runs_avx512() {
  return runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
bool runs_avx512vnni() {
  return runs_avx512() && __builtin_cpu_supports("avx512vnni");
}
#elif defined(__aarch64__)
bool runs_neon() {
  return true;
}
#if defined(__linux__)
bool runs_dotprod() {
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
}
bool runs_i8mm() {
  return runs_dotprod() && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
}
#else
bool runs_dotprod() {
  return false;
}
bool runs_i8mm() {
  return false;
}
#endif
#elif defined(__wasm_simd128__)
bool runs_wasm() {
  return true;
}
#if defined(LOOM_WASM_RELAXED)
bool runs_wasmrelaxed() {
  return isa_wasmrelaxed::fuses();
}
#endif
#endif

}  // namespace loom::core
