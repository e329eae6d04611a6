#include "backend/cpu/processor.hpp"

#include "backend/cpu/isa.hpp"
#include "base/numbers/x86_features.hpp"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace loom::core {

bool runs_scalar() {
  return true;
}

#if defined(__x86_64__)
bool runs_avx2() {
  const X86Features& f = x86_features();
  return f.avx2 && f.f16c && f.fma && f.bmi2;
}
bool runs_avxvnni() {
  return runs_avx2() && x86_features().avxvnni;
}
bool runs_avx512() {
  const X86Features& f = x86_features();
  return runs_avx2() && f.avx512f && f.avx512bw && f.avx512dq && f.avx512vl;
}
bool runs_avx512vnni() {
  return runs_avx512() && x86_features().avx512vnni;
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
