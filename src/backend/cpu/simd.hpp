// SIMD lane types for one instruction set. Included once per set, inside its own namespace, with
// LOOM_SIMD_WIDTH floats a register. Kernels use `V16`: the sixteen outputs of an R16 group, as 1,
// 2, 4 or 16 registers. Arithmetic uses the compilers' vector extension (IEEE, unfused). Intrinsics
// appear only where no operator exists: fused multiply-add, conversions from half precision, and
// dot.inl.
//
// No include guard and no namespace: see kernels.inl.

constexpr int kW = LOOM_SIMD_WIDTH;
constexpr int kNV = 16 / kW;  // registers per V16

typedef float Vf __attribute__((vector_size(4 * LOOM_SIMD_WIDTH)));
typedef int32_t Vi __attribute__((vector_size(4 * LOOM_SIMD_WIDTH)));
typedef uint32_t Vu __attribute__((vector_size(4 * LOOM_SIMD_WIDTH)));

struct V16 {
  Vf v[kNV];
};
struct I16 {
  Vi v[kNV];
};

// Loops over registers and tiles must be unrolled, or the tiles would be in memory. -O2 alone does
// not unroll them. The scalar set stays rolled: unrolled it would be a hundred thousand
// instructions and no faster.
#if LOOM_SIMD_WIDTH == 1
#define LOOM_UNROLL
#else
#define LOOM_UNROLL _Pragma("GCC unroll 16")
#endif
#define LOOM_EACH(i) LOOM_UNROLL for (int i = 0; i < kNV; ++i)

LOOM_INLINE Vf vf_load(const float* p) {
  Vf v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
LOOM_INLINE void vf_store(float* p, Vf v) {
  std::memcpy(p, &v, sizeof(v));
}
LOOM_INLINE Vi vi_load(const void* p) {
  Vi v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
// Not Vf{} + x: that addition turns -0 into +0.
LOOM_INLINE Vf vf_set(float x) {
#if LOOM_SIMD_WIDTH == 16
  return (Vf)_mm512_set1_ps(x);
#elif LOOM_SIMD_WIDTH == 8
  return (Vf)_mm256_set1_ps(x);
#elif LOOM_SIMD_WIDTH == 4
  return Vf{x, x, x, x};
#else
  return Vf{x};
#endif
}
LOOM_INLINE Vi vi_set(int32_t x) {
  return Vi{} + x;
}

// One step of a chain, a * b + c rounded once (docs/numerics.md rule 2).
#if LOOM_SIMD_WIDTH == 16
LOOM_INLINE Vf vf_fma(Vf a, Vf b, Vf c) {
  return (Vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
#elif LOOM_SIMD_WIDTH == 8
LOOM_INLINE Vf vf_fma(Vf a, Vf b, Vf c) {
  return (Vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
#elif LOOM_SIMD_WIDTH == 4 && defined(__aarch64__)
LOOM_INLINE Vf vf_fma(Vf a, Vf b, Vf c) {
  return (Vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
#elif LOOM_SIMD_WIDTH == 4 && defined(__wasm_relaxed_simd__)
// The host may fuse it or not. The set runs only if fuses() reports that it is fused.
LOOM_INLINE Vf vf_fma(Vf a, Vf b, Vf c) {
  return (Vf)wasm_f32x4_relaxed_madd((v128_t)a, (v128_t)b, (v128_t)c);
}
#elif LOOM_SIMD_WIDTH == 4
// As fused_exact of base/numbers/fma.hpp, four at a time.
LOOM_INLINE Vf vf_fma(Vf a, Vf b, Vf c) {
  typedef double Vd __attribute__((vector_size(32)));
  typedef int64_t Vl __attribute__((vector_size(32)));
  const Vd product = __builtin_convertvector(a, Vd) * __builtin_convertvector(b, Vd);
  return __builtin_convertvector(add_to_odd<Vd, Vl>(product, __builtin_convertvector(c, Vd)), Vf);
}
#else
LOOM_INLINE Vf vf_fma(Vf a, Vf b, Vf c) {
  return Vf{fused(a[0], b[0], c[0])};
}
#endif
LOOM_INLINE Vf vf_fma(Vf a, float b, Vf c) {
  return vf_fma(a, vf_set(b), c);
}

LOOM_INLINE V16 load16(const float* p) {
  V16 r;
  LOOM_EACH(i) r.v[i] = vf_load(p + i * kW);
  return r;
}
LOOM_INLINE void store16(float* p, const V16& x) {
  LOOM_EACH(i) vf_store(p + i * kW, x.v[i]);
}
// x in the lanes in which keep has all bits set, 0 in the others.
LOOM_INLINE Vf vf_keep(Vi keep, Vf x) {
  return (Vf)(keep & (Vi)x);
}
// 0, 1, 2, ... from the first lane of register `i` of a V16.
LOOM_INLINE Vi vi_count(int i) {
  Vi v;
  for (int j = 0; j < kW; ++j) v[j] = i * kW + j;
  return v;
}
// The first n of sixteen values; the rest read as 0 / stay unwritten.
#if LOOM_SIMD_WIDTH == 16
LOOM_INLINE __mmask16 first_lanes(int64_t n) {
  return static_cast<__mmask16>((1u << (n < 16 ? n : 16)) - 1u);
}
LOOM_INLINE V16 load16_n(const float* p, int64_t n) {
  if (n >= 16) return load16(p);
  return {{(Vf)_mm512_maskz_loadu_ps(first_lanes(n), p)}};
}
LOOM_INLINE void store16_n(float* p, const V16& x, int64_t n) {
  if (n >= 16) return store16(p, x);
  _mm512_mask_storeu_ps(p, first_lanes(n), (__m512)x.v[0]);
}
#elif LOOM_SIMD_WIDTH == 8
LOOM_INLINE V16 load16_n(const float* p, int64_t n) {
  if (n >= 16) return load16(p);
  V16 r;
  LOOM_EACH(i) {
    const Vi keep = vi_count(i) < static_cast<int32_t>(n);
    r.v[i] = (Vf)_mm256_maskload_ps(p + i * kW, (__m256i)keep);
  }
  return r;
}
LOOM_INLINE void store16_n(float* p, const V16& x, int64_t n) {
  if (n >= 16) return store16(p, x);
  LOOM_EACH(i) {
    const Vi keep = vi_count(i) < static_cast<int32_t>(n);
    _mm256_maskstore_ps(p + i * kW, (__m256i)keep, (__m256)x.v[i]);
  }
}
#elif LOOM_SIMD_WIDTH == 4 && defined(__aarch64__)
// NEON has no masks: whole registers, then a partial one by halves and lanes.
LOOM_INLINE Vf vf_load_n(const float* p, int64_t n) {
  if (n >= 4) return vf_load(p);
  if (n <= 0) return Vf{};
  if (n == 1) return (Vf)vld1q_lane_f32(p, vdupq_n_f32(0.0f), 0);
  const float32x4_t low = vcombine_f32(vld1_f32(p), vdup_n_f32(0.0f));
  return (Vf)(n == 2 ? low : vld1q_lane_f32(p + 2, low, 2));
}
LOOM_INLINE void vf_store_n(float* p, Vf v, int64_t n) {
  if (n >= 4) return vf_store(p, v);
  if (n == 1) vst1q_lane_f32(p, (float32x4_t)v, 0);
  if (n >= 2) vst1_f32(p, vget_low_f32((float32x4_t)v));
  if (n == 3) vst1q_lane_f32(p + 2, (float32x4_t)v, 2);
}
LOOM_INLINE V16 load16_n(const float* p, int64_t n) {
  if (n >= 16) return load16(p);
  V16 r;
  LOOM_EACH(i) r.v[i] = vf_load_n(p + i * kW, n - i * kW);
  return r;
}
LOOM_INLINE void store16_n(float* p, const V16& x, int64_t n) {
  if (n >= 16) return store16(p, x);
  LOOM_EACH(i) vf_store_n(p + i * kW, x.v[i], n - i * kW);
}
#else
LOOM_INLINE V16 load16_n(const float* p, int64_t n) {
  if (n >= 16) return load16(p);
  float t[16] = {};
  for (int64_t i = 0; i < n; ++i) t[i] = p[i];
  return load16(t);
}
LOOM_INLINE void store16_n(float* p, const V16& x, int64_t n) {
  if (n >= 16) return store16(p, x);
  float t[16];
  store16(t, x);
  for (int64_t i = 0; i < n; ++i) p[i] = t[i];
}
#endif
// The first n of sixteen values, zeros after them.
LOOM_INLINE V16 keep16(V16 x, int64_t n) {
  if (n >= 16) return x;
  LOOM_EACH(i) x.v[i] = vf_keep(vi_count(i) < static_cast<int32_t>(n), x.v[i]);
  return x;
}
LOOM_INLINE V16 set16(float x) {
  V16 r;
  LOOM_EACH(i) r.v[i] = vf_set(x);
  return r;
}
LOOM_INLINE V16 add16(const V16& a, const V16& b) {
  V16 r;
  LOOM_EACH(i) r.v[i] = a.v[i] + b.v[i];
  return r;
}
// p[0], p[2], .. p[30].
#if LOOM_SIMD_WIDTH > 1
template <int... J>
LOOM_INLINE Vf every_second(Vf a, Vf b, std::integer_sequence<int, J...>) {
  return __builtin_shufflevector(a, b, (J < kW / 2 ? 2 * J : 2 * J + 1)...);
}
#endif
LOOM_INLINE V16 load16_second(const float* p) {
  V16 r;
#if LOOM_SIMD_WIDTH == 1
  LOOM_EACH(i) r.v[i] = Vf{p[2 * i]};
#else
  // The second load begins one value early, so nothing past the last value is read.
  LOOM_EACH(i) {
    r.v[i] = every_second(vf_load(p + 2 * kW * i), vf_load(p + 2 * kW * i + kW - 1),
                          std::make_integer_sequence<int, kW>{});
  }
#endif
  return r;
}
LOOM_INLINE V16 load16_every(const float* p, int64_t stride) {
  if (stride == 1) return load16(p);
  if (stride == 2) return load16_second(p);
  float values[16];
  for (int64_t i = 0; i < 16; ++i) values[i] = p[i * stride];
  return load16(values);
}

// A chunk sum as the first of a total. Chunk sums are added from +0, so -0 becomes +0. A chain of
// tiny negative products may end at -0. The same chain with extra zero terms, as attention adds
// them, ends at +0.
LOOM_INLINE V16 from_zero16(const V16& a) {
  V16 r;
  LOOM_EACH(i) r.v[i] = a.v[i] + 0.0f;
  return r;
}
LOOM_INLINE V16 mul16(const V16& a, const V16& b) {
  V16 r;
  LOOM_EACH(i) r.v[i] = a.v[i] * b.v[i];
  return r;
}
LOOM_INLINE V16 max16(const V16& a, const V16& b) {
  V16 r;
  LOOM_EACH(i) r.v[i] = fmath::max<Vf>(a.v[i], b.v[i]);
  return r;
}
LOOM_INLINE V16 to_float(const I16& a) {
  V16 r;
  LOOM_EACH(i) r.v[i] = __builtin_convertvector(a.v[i], Vf);
  return r;
}

// Half precision to float. Both conversions are exact, so the integer form and the instruction
// agree.
LOOM_INLINE Vf vf_from_bf16(const uint16_t* p) {
#if LOOM_SIMD_WIDTH == 16
  const __m256i h = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return (Vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16);
#elif LOOM_SIMD_WIDTH == 8
  const __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return (Vf)_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16);
#elif LOOM_SIMD_WIDTH == 4 && defined(__aarch64__)
  return (Vf)vshll_n_u16(vld1_u16(p), 16);
#else
  typedef uint16_t Vh __attribute__((vector_size(2 * LOOM_SIMD_WIDTH)));
  Vh h;
  std::memcpy(&h, p, sizeof(h));
  const Vu wide = __builtin_convertvector(h, Vu) << 16;
  Vf f;
  std::memcpy(&f, &wide, sizeof(f));
  return f;
#endif
}

LOOM_INLINE Vf vf_from_f16(const uint16_t* p) {
#if LOOM_SIMD_WIDTH == 16
  return (Vf)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif LOOM_SIMD_WIDTH == 8
  return (Vf)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#elif LOOM_SIMD_WIDTH == 4 && defined(__aarch64__)
  return (Vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
#else
  typedef uint16_t Vh __attribute__((vector_size(2 * LOOM_SIMD_WIDTH)));
  Vh h;
  std::memcpy(&h, p, sizeof(h));
  const Vi x = (Vi) __builtin_convertvector(h, Vu);
  const Vi sign = (x & 0x8000) << 16;
  const Vi magnitude = x & 0x7fff;
  // Normal numbers: move the fields, rebias by 112. Subnormals: count the mantissa in units of
  // 2^-24. Inf and NaN: exponent 255, payload kept, quiet.
  const Vi normal = (magnitude << 13) + (112 << 23);
  const Vf small = __builtin_convertvector(magnitude, Vf) * 0x1p-24f;
  const Vi special = (magnitude << 13) | 0x7f800000;
  const Vi quiet = special | (magnitude > 0x7c00 ? vi_set(0x00400000) : vi_set(0));
  Vi r = magnitude < 0x0400 ? (Vi)small : normal;
  r = magnitude >= 0x7c00 ? quiet : r;
  return (Vf)(r | sign);
#endif
}

// Small integers, a byte each.
LOOM_INLINE Vi vi_from_i8(const std::byte* p) {
#if LOOM_SIMD_WIDTH == 16
  return (Vi)_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#elif LOOM_SIMD_WIDTH == 8
  return (Vi)_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
#else
  typedef int8_t Vc __attribute__((vector_size(LOOM_SIMD_WIDTH)));
  Vc c;
  std::memcpy(&c, p, sizeof(c));
  return __builtin_convertvector(c, Vi);
#endif
}
LOOM_INLINE Vi vi_from_u8(const std::byte* p) {
#if LOOM_SIMD_WIDTH == 16
  return (Vi)_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#elif LOOM_SIMD_WIDTH == 8
  return (Vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
#else
  typedef uint8_t Vc __attribute__((vector_size(LOOM_SIMD_WIDTH)));
  Vc c;
  std::memcpy(&c, p, sizeof(c));
  return __builtin_convertvector(c, Vi);
#endif
}

// Looks up the low nibble of every byte in a 16-byte table.
#if LOOM_SIMD_WIDTH == 16
LOOM_INLINE Vi lookup(Vi nibbles, const uint8_t* table) {
  const __m512i t =
      _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  return (Vi)_mm512_shuffle_epi8(t, (__m512i)nibbles);
}
#elif LOOM_SIMD_WIDTH == 8
LOOM_INLINE Vi lookup(Vi nibbles, const uint8_t* table) {
  const __m256i t =
      _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  return (Vi)_mm256_shuffle_epi8(t, (__m256i)nibbles);
}
#elif LOOM_SIMD_WIDTH == 4 && defined(__aarch64__)
LOOM_INLINE Vi lookup(Vi nibbles, const uint8_t* table) {
  return (Vi)vqtbl1q_u8(vld1q_u8(table), (uint8x16_t)nibbles);
}
#else
LOOM_INLINE Vi lookup(Vi nibbles, const uint8_t* table) {
  uint8_t bytes[4 * LOOM_SIMD_WIDTH];
  std::memcpy(bytes, &nibbles, sizeof(bytes));
  for (uint8_t& b : bytes) b = table[b & 15];
  return vi_load(bytes);
}
#endif
