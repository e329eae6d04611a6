// SIMD lane types for one instruction set. Included once per set, inside its own namespace, with
// LOOM_SIMD_WIDTH floats a register. `V16` is what kernels speak: the sixteen outputs of an R16
// group, as 1, 2, 4 or 16 registers. Arithmetic is the compilers' vector extension (IEEE, unfused);
// intrinsics appear only where no operator says it: conversions from half precision and the int8
// dot product.
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

// Loops over registers and tiles must disappear, or the tiles would live in memory; -O2 alone does
// not unroll them.
// The scalar set stays rolled: unrolled it would be a hundred thousand instructions and no faster.
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
LOOM_INLINE Vf vf_set(float x) {
  return Vf{} + x;
}
LOOM_INLINE Vi vi_set(int32_t x) {
  return Vi{} + x;
}

LOOM_INLINE V16 load16(const float* p) {
  V16 r;
  LOOM_EACH(i) r.v[i] = vf_load(p + i * kW);
  return r;
}
LOOM_INLINE void store16(float* p, const V16& x) {
  LOOM_EACH(i) vf_store(p + i * kW, x.v[i]);
}
// x in the lanes where keep has all bits set, 0 in the others.
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

// acc + sum over the four bytes of each lane: unsigned code times signed activation byte. Exact for
// codes 0..255 and activations -127..127. `a` holds the same four activations in every lane.
#if LOOM_SIMD_WIDTH == 16 && defined(__AVX512VNNI__)
LOOM_INLINE Vi dot4(Vi acc, Vi codes, Vi a) {
  return (Vi)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)codes, (__m512i)a);
}
#elif LOOM_SIMD_WIDTH == 8
// maddubs would saturate for codes above 128, so bytes are widened in place: even and odd bytes as
// 16-bit lanes.
LOOM_INLINE Vi dot4(Vi acc, Vi codes, Vi a) {
  const __m256i c = (__m256i)codes;
  const __m256i b = (__m256i)a;
  const __m256i even = _mm256_madd_epi16(_mm256_and_si256(c, _mm256_set1_epi16(255)),
                                         _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8));
  const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(c, 8), _mm256_srai_epi16(b, 8));
  return acc + (Vi)_mm256_add_epi32(even, odd);
}
#else
LOOM_INLINE Vi dot4(Vi acc, Vi codes, Vi a) {
  for (int byte = 0; byte < 4; ++byte) {
    const Vi c = (codes >> (8 * byte)) & 255;
    const Vi s = (a << (24 - 8 * byte)) >> 24;
    acc += c * s;
  }
  return acc;
}
#endif

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
#else
LOOM_INLINE Vi lookup(Vi nibbles, const uint8_t* table) {
  uint8_t bytes[4 * LOOM_SIMD_WIDTH];
  std::memcpy(bytes, &nibbles, sizeof(bytes));
  for (uint8_t& b : bytes) b = table[b & 15];
  return vi_load(bytes);
}
#endif
