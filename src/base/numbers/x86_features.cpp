#include "base/numbers/x86_features.hpp"

#if defined(__x86_64__)
namespace loom::core {
namespace {

// The CPUID result of a leaf or subleaf; zeros if the processor does not have it.
struct Leaf {
  unsigned a = 0, b = 0, c = 0, d = 0;

  explicit Leaf(unsigned leaf, unsigned part = 0) {
    ask(0, 0);
    bool there = a >= leaf;
    if (there) ask(leaf, 0);
    if (there && part > 0) {
      there = a >= part;
      ask(leaf, part);
    }
    if (!there) a = b = c = d = 0;
  }

 private:
  void ask(unsigned leaf, unsigned part) {
    __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(leaf), "c"(part));
  }
};

bool bit(unsigned word, int at) {
  return (word >> at & 1) != 0;
}

// The register XCR0: the register sets that the operating system saves.
unsigned saved_registers(const Leaf& leaf) {
  constexpr int kOsxsave = 27;  // in `c`: without it there is no XGETBV
  if (!bit(leaf.c, kOsxsave)) return 0;
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

X86Features read_features() {
  constexpr unsigned kWide = 0x06, kWidest = 0xe6;  // registers of AVX; those and AVX-512's
  const Leaf one(1), seven(7), more(7, 1);
  const unsigned kept = saved_registers(one);
  const bool wide = (kept & kWide) == kWide, widest = (kept & kWidest) == kWidest;
  X86Features f;
  f.avx = wide && bit(one.c, 28);
  f.fma = f.avx && bit(one.c, 12);
  f.f16c = f.avx && bit(one.c, 29);
  f.avx2 = f.avx && bit(seven.b, 5);
  f.bmi2 = bit(seven.b, 8);
  f.avxvnni = f.avx2 && bit(more.a, 4);
  f.avx512f = widest && bit(seven.b, 16);
  f.avx512dq = f.avx512f && bit(seven.b, 17);
  f.avx512bw = f.avx512f && bit(seven.b, 30);
  f.avx512vl = f.avx512f && bit(seven.b, 31);
  f.avx512vnni = f.avx512f && bit(seven.c, 11);
  return f;
}

}  // namespace

const X86Features& x86_features() {
  static const X86Features features = read_features();
  return features;
}

const bool x86_runs_fma = x86_features().fma;

}  // namespace loom::core
#endif
