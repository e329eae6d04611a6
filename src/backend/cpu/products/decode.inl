// Decodes sixteen rows of a packed matrix at a time to f32, [k][16]. The bits equal those of
// r16_decode. For types of 8 bits or less a value is (value of the code - zero point) * step,
// rounded once: the first two are small. If blocks have offsets, the product is exact and adding
// the offset rounds.

LOOM_INLINE Vf values_of(const float* table, Vi codes) {
#if LOOM_SIMD_WIDTH == 16
  return (Vf)_mm512_i32gather_ps((__m512i)codes, table, 4);
#elif LOOM_SIMD_WIDTH == 8
  return (Vf)_mm256_i32gather_ps(table, (__m256i)codes, 4);
#else
  Vf v;
  for (int i = 0; i < kW; ++i) v[i] = table[codes[i]];
  return v;
#endif
}

// Bits of the codes of one k in sixteen rows, from the plane at `plane` with `bits` bits.
LOOM_INLINE Vi plane_at(const std::byte* plane, int bits, int64_t k, int i) {
  const int quad = static_cast<int>(k % kR16Block) / 4;
  const int shift = bits * (quad / bits) + 8 * static_cast<int>(k % 4);
  return (Vi)((Vu)vi_load(plane + quad % bits * 64 + i * kW * 4) >> shift) & ((1 << bits) - 1);
}

// The codes of one k in sixteen rows.
LOOM_INLINE Vi codes_at(const R16& w, const std::byte* codes, int64_t k, int i) {
  if (w.wide) {
    typedef uint8_t Vb __attribute__((vector_size(LOOM_SIMD_WIDTH)));
    Vb bytes;
    std::memcpy(&bytes, codes + k * 16 + i * kW, sizeof(bytes));
    return __builtin_convertvector(bytes, Vi);
  }
  const std::byte* at = codes + k / kR16Block * w.block_code_bytes();
  const Vi low = plane_at(at, w.low_bits, k, i);
  if (w.low_bits == w.bits) return low;
  return low | plane_at(at + w.low_bits * 64, w.bits - w.low_bits, k, i) << w.low_bits;
}

// Levels of codes: code - bias if levels are direct, else a table lookup.
template <bool kDirect>
LOOM_INLINE Vf levels_of(const float* table, Vi codes) {
  if constexpr (kDirect) return __builtin_convertvector(codes, Vf) + table[0];
  return values_of(table, codes);
}

// The zero points, steps and offsets of the sixteen rows of a group.
struct BlockTerms {
  V16 zero, step, offset;
};
inline BlockTerms block_terms(const R16& w, const std::byte* data, int64_t group, int64_t block) {
  const DTypeInfo& info = dtype_info(w.dtype);
  const std::byte* const base = data + group * w.group_bytes;
  const std::byte* const record = base + w.block_scales + block * w.scale_block_bytes;
  float zeros[16] = {}, steps[16], offsets[16];
  for (int64_t lane = 0; lane < 16; ++lane) {
    int32_t zero = 0;
    if (info.affine()) std::memcpy(&zero, base + w.zeros + lane * 4, 4);
    if (info.zero == ZeroRule::code) zero = std::to_integer<int>(record[w.block_zeros + lane]);
    zeros[lane] = static_cast<float>(zero);
    steps[lane] = r16_step(w, data, group * 16 + lane, block);
    offsets[lane] = r16_offset(w, data, group * 16 + lane, block);
  }
  return {load16(zeros), load16(steps), load16(offsets)};
}

// Types of 8 bits or less, k in [first, first + n) of a group.
template <bool kDirect>
void decode_small(const R16& w, const std::byte* data, int64_t group, int64_t first, int64_t n,
                  float* out) {
  const DTypeInfo& info = dtype_info(w.dtype);
  const float* const table = r16_code_values(w.dtype);
  const std::byte* const base = data + group * w.group_bytes;
  const int64_t span = info.block > 0 ? info.block : first + n;  // k that share a step
  const bool shifted = info.shifted();
  for (int64_t k = first; k < first + n;) {
    const BlockTerms t = block_terms(w, data, group, k / span);
    const int64_t stop = (k / span + 1) * span;
    for (const int64_t end = stop < first + n ? stop : first + n; k < end; ++k, out += 16) {
      V16 v;
      LOOM_EACH(i) {
        const Vf level = levels_of<kDirect>(table, codes_at(w, base + w.codes, k, i));
        v.v[i] = (level - t.zero.v[i]) * t.step.v[i];
        if (shifted) v.v[i] = v.v[i] + t.offset.v[i];
      }
      store16(out, keep16(v, w.rows - group * 16));
    }
  }
}
