// Loops that reach the peak rates of this set, each doing one thing, for `loom bench machine`.
// Their values are hidden from the compiler, which could otherwise predict them, and the returned
// number depends on all of the work. Sums stay in registers. Their count is latency times
// throughput: 8 to 10 on x86, 16 on ARM.
//
// Included last in the namespace of a set, after simd.hpp.

namespace {

#define LOOM_PROBE_UNROLL _Pragma("GCC unroll 32")

#if LOOM_SIMD_WIDTH == 1
typedef float ProbeFloat;
typedef double ProbeDouble;
#else
typedef Vf ProbeFloat;
typedef double ProbeDouble __attribute__((vector_size(4 * LOOM_SIMD_WIDTH)));
#endif

// Makes the value opaque to the compiler and keeps it in its register.
template <class V>
LOOM_INLINE void hide(V& v) {
#if defined(__x86_64__)
  __asm__ volatile("" : "+v"(v));
#elif defined(__aarch64__)
  __asm__ volatile("" : "+w"(v));
#else
  static_cast<void>(v);
#endif
}
LOOM_INLINE void hide_codes(Vi& v) {
#if LOOM_SIMD_WIDTH == 1 && (defined(__x86_64__) || defined(__aarch64__))
  int32_t lane = v[0];
  __asm__ volatile("" : "+r"(lane));
  v[0] = lane;
#else
  hide(v);
#endif
}

// A step of a chain as the kernels compute it, and the same in double.
LOOM_INLINE ProbeFloat probe_fma(ProbeFloat a, ProbeFloat b, ProbeFloat c) {
#if LOOM_SIMD_WIDTH == 1
  return fused(a, b, c);
#else
  return vf_fma(a, b, c);
#endif
}
LOOM_INLINE ProbeDouble probe_fma(ProbeDouble a, ProbeDouble b, ProbeDouble c) {
#if LOOM_SIMD_WIDTH == 16
  return (ProbeDouble)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif LOOM_SIMD_WIDTH == 8
  return (ProbeDouble)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif LOOM_SIMD_WIDTH == 4 && defined(__aarch64__)
  return (ProbeDouble)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#elif LOOM_SIMD_WIDTH == 4
  return ProbeDouble{fused(a[0], b[0], c[0]), fused(a[1], b[1], c[1])};
#else
  return fused(a, b, c);
#endif
}

// Registers of sums: all of the set except three that hold factors. Without vectors, processors
// without an fma instruction use a longer sequence that needs some of them.
#if LOOM_SIMD_WIDTH == 16 || defined(__aarch64__)
constexpr int kProbeSums = 24;
#elif LOOM_SIMD_WIDTH == 1
constexpr int kProbeSums = 8;
#else
constexpr int kProbeSums = 12;
#endif

// Every sum goes up and down again, so it stays bounded and never becomes subnormal.
template <class V>
LOOM_INLINE V probe_chains(int64_t rounds) {
  V a = V{} + 1.2345f, up = V{} + 0.8765f, down = V{} - 0.8764f, sums[kProbeSums];
  hide(a), hide(up), hide(down);
  LOOM_PROBE_UNROLL for (int i = 0; i < kProbeSums; ++i) {
    sums[i] = a;
    hide(sums[i]);
  }
  for (int64_t round = 0; round < rounds; ++round) {
    LOOM_PROBE_UNROLL for (int i = 0; i < kProbeSums; ++i) {
      sums[i] = probe_fma(a, up, sums[i]);
      hide(sums[i]);
    }
    LOOM_PROBE_UNROLL for (int i = 0; i < kProbeSums; ++i) {
      sums[i] = probe_fma(a, down, sums[i]);
      hide(sums[i]);
    }
  }
  LOOM_PROBE_UNROLL for (int i = 1; i < kProbeSums; ++i) sums[0] += sums[i];
  return sums[0];
}

template <class V>
LOOM_INLINE float first_lane(const V& v) {
  float lane;
  std::memcpy(&lane, &v, sizeof(lane));
  return lane;
}

inline float probe_f32(int64_t rounds) {
  return first_lane(probe_chains<ProbeFloat>(rounds));
}
inline float probe_f64(int64_t rounds) {
  return first_lane(probe_chains<ProbeDouble>(rounds));
}

// Registers of codes and of activations; each code meets each activation. If the dot product is one
// instruction, registers are the limit. If it is many, more sums would only spill.
#if LOOM_SIMD_WIDTH == 16 || defined(__ARM_FEATURE_DOTPROD)
constexpr int kProbeCodes = 4, kProbeRows = 5;
#elif defined(__AVXVNNI__)
constexpr int kProbeCodes = 3, kProbeRows = 3;
#else
constexpr int kProbeCodes = 2, kProbeRows = 2;
#endif
constexpr int kProbeQuads = 8;

// 4-bit codes of a block, read as in a matrix product: new codes in every quad, constant
// activations. Their products cancel, so no sum overflows.
inline float probe_dot(int64_t rounds) {
  using Sum = BlockSum<15, kProbeQuads>;
  Vi codes[kProbeCodes], rows[kProbeRows];
  Sum sums[kProbeCodes][kProbeRows] = {};
  LOOM_PROBE_UNROLL for (int i = 0; i < kProbeCodes; ++i) codes[i] = vi_set(0x0a0a0808);
  LOOM_PROBE_UNROLL for (int i = 0; i < kProbeRows; ++i) {
    rows[i] = vi_set(0x4db39b65);
    hide_codes(rows[i]);
  }
  for (int64_t round = 0; round < rounds; ++round) {
    each_quad(std::make_integer_sequence<int, kProbeQuads>{}, [&](auto j) LOOM_INLINE_LAMBDA {
      LOOM_PROBE_UNROLL for (int c = 0; c < kProbeCodes; ++c) hide_codes(codes[c]);
      LOOM_PROBE_UNROLL for (int c = 0; c < kProbeCodes; ++c) {
        LOOM_PROBE_UNROLL for (int r = 0; r < kProbeRows; ++r) {
          sums[c][r].template add<j.value>(codes[c], rows[r]);
        }
      }
    });
  }
  Vi total = {};
  LOOM_PROBE_UNROLL for (int c = 0; c < kProbeCodes; ++c) {
    LOOM_PROBE_UNROLL for (int r = 0; r < kProbeRows; ++r) total += sums[c][r].total;
  }
  return first_lane(total);
}

// Vectors per step of the memory loops. kProbeStep of cpu.hpp is a multiple of their bytes.
constexpr int kProbeVectors = 16;
constexpr int64_t kProbeBytes = kProbeVectors * static_cast<int64_t>(sizeof(Vi));
static_assert(kProbeStep % kProbeBytes == 0);

LOOM_INLINE void vi_store(std::byte* p, Vi v) {
  std::memcpy(p, &v, sizeof(v));
}

inline float probe_read(const std::byte* from, int64_t bytes) {
  Vi sums[8] = {};
  for (int64_t at = 0; at < bytes; at += kProbeBytes) {
    LOOM_PROBE_UNROLL for (int i = 0; i < kProbeVectors; ++i) {
      sums[i % 8] ^= vi_load(from + at + i * static_cast<int64_t>(sizeof(Vi)));
    }
    LOOM_PROBE_UNROLL for (int i = 0; i < 8; ++i) hide_codes(sums[i]);
  }
  LOOM_PROBE_UNROLL for (int i = 1; i < 8; ++i) sums[0] ^= sums[i];
  return first_lane(sums[0]);
}

inline void probe_write(std::byte* to, int64_t bytes) {
  Vi value = vi_set(0x3f8ccccd);
  for (int64_t at = 0; at < bytes; at += kProbeBytes) {
    hide_codes(value);
    LOOM_PROBE_UNROLL for (int i = 0; i < kProbeVectors; ++i) {
      vi_store(to + at + i * static_cast<int64_t>(sizeof(Vi)), value);
    }
  }
}

// The values are hidden, or the compiler would turn the loop into memcpy.
inline void probe_copy(const std::byte* from, std::byte* to, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kProbeBytes) {
    LOOM_PROBE_UNROLL for (int i = 0; i < kProbeVectors; ++i) {
      Vi value = vi_load(from + at + i * static_cast<int64_t>(sizeof(Vi)));
      hide_codes(value);
      vi_store(to + at + i * static_cast<int64_t>(sizeof(Vi)), value);
    }
  }
}

}  // namespace

void fill_probe(IsaProbe& probe) {
  constexpr int64_t kDoubles = LOOM_SIMD_WIDTH == 1 ? 1 : LOOM_SIMD_WIDTH / 2;
  probe.fma_f32 = {probe_f32, int64_t{2} * 2 * kProbeSums * kW};
  probe.fma_f64 = {probe_f64, 2 * 2 * kProbeSums * kDoubles};
  probe.dot_int8 = {probe_dot, int64_t{2} * 4 * kProbeQuads * kProbeCodes * kProbeRows * kW};
  probe.read = probe_read;
  probe.write = probe_write;
  probe.copy = probe_copy;
}
