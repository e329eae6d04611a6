// What this x86-64 processor and its operating system run (Intel's manual of instructions, CPUID
// and XGETBV). The processor itself is asked: __builtin_cpu_supports reads a table of the
// compiler's library, which that of Zig leaves empty, as if nothing but the scalar kernels could
// run.
#pragma once

#if defined(__x86_64__)
namespace loom::core {

struct X86Features {
  bool avx = false, f16c = false, fma = false, avx2 = false, bmi2 = false;
  bool avx512f = false, avx512bw = false, avx512dq = false, avx512vl = false;
  bool avxvnni = false, avx512vnni = false;
};
const X86Features& x86_features();

// x86_features().fma, for code that asks at every step. It is false until the objects of the
// program exist, which takes the slower way to the same bits.
extern const bool x86_runs_fma;

}  // namespace loom::core
#endif
