// Transposes rows into lanes: blocks of sixteen by sixteen floats, in the registers of the set.

#if LOOM_SIMD_WIDTH > 1
// Exchanges a row bit for a lane bit: bit S selects rows in a and b before, and lanes after. One
// result has the lower halves of both, the other the upper halves.
template <int S, int... J>
LOOM_INLINE Vf lower_halves(Vf a, Vf b, std::integer_sequence<int, J...>) {
  return __builtin_shufflevector(a, b, ((J & S) != 0 ? kW + J - S : J)...);
}
template <int S, int... J>
LOOM_INLINE Vf upper_halves(Vf a, Vf b, std::integer_sequence<int, J...>) {
  return __builtin_shufflevector(a, b, ((J & S) != 0 ? kW + J : J + S)...);
}
template <int S>
LOOM_INLINE void exchange(Vf (&rows)[kW]) {
  LOOM_UNROLL for (int r = 0; r < kW; ++r) {
    if ((r & S) != 0) continue;
    const Vf a = rows[r], b = rows[r + S];
    rows[r] = lower_halves<S>(a, b, std::make_integer_sequence<int, kW>{});
    rows[r + S] = upper_halves<S>(a, b, std::make_integer_sequence<int, kW>{});
  }
}
#endif

// to[j][i] = from[i][j] for i, j in [0, 16); strides in floats.
LOOM_INLINE void transpose16(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
#if LOOM_SIMD_WIDTH == 1
  for (int64_t i = 0; i < 16; ++i) {
    for (int64_t j = 0; j < 16; ++j) to[j * to_stride + i] = from[i * from_stride + j];
  }
#else
  for (int64_t i = 0; i < 16; i += kW) {
    for (int64_t j = 0; j < 16; j += kW) {
      Vf rows[kW];
      LOOM_UNROLL for (int r = 0; r < kW; ++r) rows[r] = vf_load(from + (i + r) * from_stride + j);
      if constexpr (kW > 8) exchange<kW / 2>(rows);
      if constexpr (kW > 4) exchange<4>(rows);
      exchange<2>(rows);
      exchange<1>(rows);
      LOOM_UNROLL for (int r = 0; r < kW; ++r) vf_store(to + (j + r) * to_stride + i, rows[r]);
    }
  }
#endif
}

// to[j][i] = from[i][j] for up to sixteen rows of n values. Writes whole blocks: zeros where rows
// or values are missing.
inline void rows_to_lanes(const float* from, int64_t stride, int64_t rows, int64_t n, float* to) {
  for (int64_t j = 0; j < n; j += 16, to += 256) {
    if (rows >= 16 && n - j >= 16) {
      transpose16(from + j, stride, to, 16);
      continue;
    }
    float block[256] = {};
    for (int64_t i = 0; i < rows && i < 16; ++i)
      store16(block + i * 16, load16_n(from + i * stride + j, n - j));
    transpose16(block, 16, to, 16);
  }
}
