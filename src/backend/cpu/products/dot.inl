// Dot products of code bytes and activation bytes over a block, exact in every set. BlockSum adds
// up quads (four k) of one register of outputs. A byte of codes is unsigned, 0 to kMax. `a` holds
// the same four activations, -127 to 127, in every lane.
//
//   kDotOffset<kMax>  the amount that dot_bytes subtracts: sums are of (code - kDotOffset).
//   dot_bytes<kMax>   codes in the form that BlockSum reads.
//   kDotNegatives      whether a sum lacks negatives_of(), which its start value must supply.

#if LOOM_SIMD_WIDTH == 4 && defined(__wasm_relaxed_simd__)
template <int kMax>
constexpr bool kDotNegatives = kMax > 127;
#else
template <int kMax>
constexpr bool kDotNegatives = false;
#endif

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)

template <int kMax>
constexpr int kDotOffset = 0;
template <int kMax>
LOOM_INLINE Vi dot_bytes(Vi codes) {
  return codes;
}

// One instruction multiplies unsigned by signed bytes and adds sums of four to 32 bits.
template <int kMax, int kQuads>
struct BlockSum {
  Vi total;
  template <int J>
  LOOM_INLINE void add(Vi codes, Vi a) {
#if LOOM_SIMD_WIDTH == 16
    total = (Vi)_mm512_dpbusd_epi32((__m512i)total, (__m512i)codes, (__m512i)a);
#else
    total = (Vi)_mm256_dpbusd_avx_epi32((__m256i)total, (__m256i)codes, (__m256i)a);
#endif
  }
};

#elif LOOM_SIMD_WIDTH >= 8

// The processor multiplies unsigned by signed bytes to 16-bit sums of two, which saturate. Codes up
// to 128 fit. Larger codes become signed, and their signs move to the activations.
template <int kMax>
constexpr int kDotOffset = kMax > 128 ? 128 : 0;
template <int kMax>
LOOM_INLINE Vi dot_bytes(Vi codes) {
  if constexpr (kDotOffset<kMax> != 0) return codes ^ vi_set(static_cast<int32_t>(0x80808080u));
  return codes;
}

#if LOOM_SIMD_WIDTH == 16
LOOM_INLINE Vi multiply_pairs(Vi codes, Vi a) {
  return (Vi)_mm512_maddubs_epi16((__m512i)codes, (__m512i)a);
}
LOOM_INLINE Vi multiply_signed(Vi codes, Vi a) {
  const __m512i b = (__m512i)a;
  const __mmask64 negative = _mm512_movepi8_mask((__m512i)codes);
  const __m512i moved = _mm512_mask_sub_epi8(b, negative, _mm512_setzero_si512(), b);
  return (Vi)_mm512_maddubs_epi16(_mm512_abs_epi8((__m512i)codes), moved);
}
LOOM_INLINE Vi add_pairs(Vi x, Vi y) {
  return (Vi)_mm512_add_epi16((__m512i)x, (__m512i)y);
}
LOOM_INLINE Vi widen_pairs(Vi x) {
  return (Vi)_mm512_madd_epi16((__m512i)x, _mm512_set1_epi16(1));
}
#else
LOOM_INLINE Vi multiply_pairs(Vi codes, Vi a) {
  return (Vi)_mm256_maddubs_epi16((__m256i)codes, (__m256i)a);
}
LOOM_INLINE Vi multiply_signed(Vi codes, Vi a) {
  return (Vi)_mm256_maddubs_epi16(_mm256_abs_epi8((__m256i)codes),
                                  _mm256_sign_epi8((__m256i)a, (__m256i)codes));
}
LOOM_INLINE Vi add_pairs(Vi x, Vi y) {
  return (Vi)_mm256_add_epi16((__m256i)x, (__m256i)y);
}
LOOM_INLINE Vi widen_pairs(Vi x) {
  return (Vi)_mm256_madd_epi16((__m256i)x, _mm256_set1_epi16(1));
}
#endif

// Small codes add up in 16 bits for as many quads as fit.
template <int kMax, int kQuads>
struct BlockSum {
  static constexpr int kFits = kMax > 128 ? 1 : 32767 / (2 * 127 * kMax);
  Vi total, part;
  template <int J>
  LOOM_INLINE void add(Vi codes, Vi a) {
    const Vi now = kMax > 128 ? multiply_signed(codes, a) : multiply_pairs(codes, a);
    part = J % kFits == 0 ? now : add_pairs(part, now);
    // The asm forces the addition here. GCC would compute all products of a block first, and its
    // registers cannot hold them.
    __asm__("" : "+v"(part));
    if constexpr (J % kFits == kFits - 1 || J == kQuads - 1) total = total + widen_pairs(part);
  }
};

#elif LOOM_SIMD_WIDTH == 4 && defined(__ARM_FEATURE_MATMUL_INT8)

template <int kMax>
constexpr int kDotOffset = 0;
template <int kMax>
LOOM_INLINE Vi dot_bytes(Vi codes) {
  return codes;
}

// FEAT_I8MM multiplies unsigned by signed bytes.
template <int kMax, int kQuads>
struct BlockSum {
  Vi total;
  template <int J>
  LOOM_INLINE void add(Vi codes, Vi a) {
    total = (Vi)vusdotq_s32((int32x4_t)total, (uint8x16_t)codes, (int8x16_t)a);
  }
};

#elif LOOM_SIMD_WIDTH == 4 && defined(__aarch64__)

// Products of signed bytes: codes that may need the eighth bit become signed.
template <int kMax>
constexpr int kDotOffset = kMax > 127 ? 128 : 0;
template <int kMax>
LOOM_INLINE Vi dot_bytes(Vi codes) {
  if constexpr (kDotOffset<kMax> != 0) return codes ^ vi_set(static_cast<int32_t>(0x80808080u));
  return codes;
}

template <int kMax, int kQuads>
struct BlockSum {
  Vi total;
  template <int J>
  LOOM_INLINE void add(Vi codes, Vi a) {
    const auto c = (int8x16_t)codes;
    const auto b = (int8x16_t)a;
#if defined(__ARM_FEATURE_DOTPROD)
    total = (Vi)vdotq_s32((int32x4_t)total, c, b);
#else
    // Two products of at most 128 * 127 fit 16 bits together.
    const int16x8_t low = vmull_s8(vget_low_s8(c), vget_low_s8(b));
    const int16x8_t high = vmull_high_s8(c, b);
    total = (Vi)vpadalq_s16((int32x4_t)total, vpaddq_s16(low, high));
#endif
  }
};

#elif LOOM_SIMD_WIDTH == 4 && defined(__wasm_relaxed_simd__)

// In relaxed SIMD the host decides how an eighth bit of the second operand counts. Without that bit
// the sum is exact. Codes that need it become signed, and the activations enter as magnitudes: a *
// c is |a| * ~c + |a| if a < 0, and the last term is the same for all outputs.
template <int kMax>
constexpr int kDotOffset = kMax > 127 ? 128 : 0;
template <int kMax>
LOOM_INLINE Vi dot_bytes(Vi codes) {
  if constexpr (kDotOffset<kMax> != 0) return codes ^ vi_set(static_cast<int32_t>(0x80808080u));
  return codes;
}
LOOM_INLINE Vi relaxed_dot(Vi bytes, Vi small, Vi sum) {
  return (Vi)wasm_i32x4_relaxed_dot_i8x16_i7x16_add((v128_t)bytes, (v128_t)small, (v128_t)sum);
}

template <int kMax, int kQuads>
struct BlockSum {
  Vi total;
  template <int J>
  LOOM_INLINE void add(Vi codes, Vi a) {
    if constexpr (kDotNegatives<kMax>) {
      const auto below = (Vi)wasm_i8x16_lt((v128_t)a, wasm_i32x4_const_splat(0));
      total = relaxed_dot(codes ^ below, (Vi)wasm_i8x16_abs((v128_t)a), total);
    } else {
      total = relaxed_dot(a, codes, total);
    }
  }
};

// Minus the sum of the negative ones of 16 or 32 activations.
LOOM_INLINE int32_t negatives_of(const int8_t* a, int64_t count) {
  Vi sum{};
  for (int64_t i = 0; i < count; i += 16) {
    const v128_t below = wasm_i8x16_min(wasm_v128_load(a + i), wasm_i32x4_const_splat(0));
    sum = relaxed_dot((Vi)below, vi_set(0x01010101), sum);
  }
  return -(sum[0] + sum[1] + sum[2] + sum[3]);
}

#elif LOOM_SIMD_WIDTH == 4 && defined(__wasm_simd128__)

template <int kMax>
constexpr int kDotOffset = 0;
template <int kMax>
LOOM_INLINE Vi dot_bytes(Vi codes) {
  return codes;
}

// Bytes k0 and k2 of every quad as pairs of 16 bits, then k1 and k3. Their products are in the
// lanes of the sums.
LOOM_INLINE Vi dot_pairs(Vi codes, Vi a, Vi sum) {
  const v128_t even = wasm_i16x8_shr(wasm_i16x8_shl((v128_t)a, 8), 8);
  const v128_t odd = wasm_i16x8_shr((v128_t)a, 8);
  sum += (Vi)wasm_i32x4_dot_i16x8((v128_t)(codes & vi_set(0x00ff00ff)), even);
  return sum + (Vi)wasm_i32x4_dot_i16x8(wasm_u16x8_shr((v128_t)codes, 8), odd);
}

template <int kMax, int kQuads>
struct BlockSum {
  Vi total;
  template <int J>
  LOOM_INLINE void add(Vi codes, Vi a) {
    total = dot_pairs(codes, a, total);
  }
};

#else

template <int kMax>
constexpr int kDotOffset = 0;
template <int kMax>
LOOM_INLINE Vi dot_bytes(Vi codes) {
  return codes;
}

template <int kMax, int kQuads>
struct BlockSum {
  Vi total;
  template <int J>
  LOOM_INLINE void add(Vi codes, Vi a) {
    // Computed as scalars. clang 22 for RISC-V miscompiles shifts of one-lane vectors in a loop
    // over blocks (found by scripts/targets.sh riscv64).
    for (int byte = 0; byte < 4; ++byte) {
      const int32_t code = codes[0] >> (8 * byte) & 255;
      total[0] += code * static_cast<int8_t>(a[0] >> (8 * byte));
    }
  }
};

#endif

#if LOOM_SIMD_WIDTH != 4 || !defined(__wasm_relaxed_simd__)
LOOM_INLINE int32_t negatives_of(const int8_t*, int64_t) {
  return 0;
}
#endif
