#include "base/numbers/x86_features.hpp"

#include <gtest/gtest.h>

#if defined(__x86_64__)
namespace loom::core {
namespace {

// The compilers of this test fill their own table. Zig's does not, which is why Loom has one.
TEST(X86Features, AreThoseThatTheCompilersTableNames) {
  __builtin_cpu_init();
  const X86Features& f = x86_features();
#define LOOM_SAME(name) EXPECT_EQ(f.name, __builtin_cpu_supports(#name) != 0) << #name
  LOOM_SAME(avx);
  LOOM_SAME(fma);
  LOOM_SAME(avx2);
  LOOM_SAME(bmi2);
  LOOM_SAME(avx512f);
  LOOM_SAME(avx512bw);
  LOOM_SAME(avx512dq);
  LOOM_SAME(avx512vl);
  LOOM_SAME(avx512vnni);
#undef LOOM_SAME
  EXPECT_EQ(x86_runs_fma, f.fma);
}

TEST(X86Features, OfNarrowRegistersStandWhereThoseOfWideOnesDo) {
  const X86Features& f = x86_features();
  EXPECT_TRUE(f.avx || !(f.fma || f.f16c || f.avx2 || f.avx512f));
  EXPECT_TRUE(f.avx2 || !f.avxvnni);
  EXPECT_TRUE(f.avx512f || !(f.avx512bw || f.avx512dq || f.avx512vl || f.avx512vnni));
}

}  // namespace
}  // namespace loom::core
#endif
