// The features that this x86-64 processor and its operating system support (Intel's instruction
// manual, CPUID and XGETBV). It queries the processor directly. __builtin_cpu_supports reads a
// table of the compiler's library; Zig leaves that table empty, so only the scalar kernels would
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

// x86_features().fma, for code that tests it at every step. It is false until static
// initialization, which selects the slower path with the same bits.
extern const bool x86_runs_fma;

}  // namespace loom::core
#endif
