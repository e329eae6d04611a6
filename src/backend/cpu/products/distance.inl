// squared_distance: like a product, with (x - c)^2 in place of x * c.

// One chunk of R rows against sixteen centres, added to the sums of earlier chunks.
template <int R>
LOOM_INLINE void distance_tile(const SquaredDistanceArgs& a, int64_t row, int64_t column,
                               int64_t first, int64_t n, const float* panel) {
  const int64_t left = a.y.cols() - column;
  const float* x[R];
  V16 s[R];
  LOOM_UNROLL for (int r = 0; r < R; ++r) {
    x[r] = a.x.f32_row(row + r) + first;
    s[r] = set16(0.0f);
  }
  for (int64_t k = 0; k < n; ++k) {
    LOOM_EACH(i) {
      const Vf centre = vf_load(panel + k * 16 + i * kW);
      LOOM_UNROLL for (int r = 0; r < R; ++r) {
        const Vf d = x[r][k] - centre;
        s[r].v[i] = vf_fma(d, d, s[r].v[i]);
      }
    }
  }
  LOOM_UNROLL for (int r = 0; r < R; ++r) {
    float* const y = a.y.f32_row(row + r) + column;
    if (first > 0) s[r] = add16(load16_n(y, left), s[r]);
    store16_n(y, s[r], left);
  }
}

inline void squared_distance(const SquaredDistanceArgs& a, const Lane& lane) {
  const R16 c = r16_geometry(a.c.dtype, a.c.shape[0], a.c.shape[1]);
  if (dtype_info(c.dtype).compute == ComputeType::f64 || c.cols == 0)
    return reference_ops().squared_distance(a, lane);
  constexpr int kRows = kW == 16 ? 8 : 4;
  auto* const panel = reinterpret_cast<float*>(lane.scratch);
  const LaneRange groups = lane.range(c.groups);
  for (int64_t g = groups.begin; g < groups.end; ++g) {
    for (int64_t first = 0; first < c.cols; first += kChunk) {
      const int64_t n = c.cols - first < kChunk ? c.cols - first : kChunk;
      decode_chunk(c, a.c.data, g, first, n, panel);
      int64_t r = 0;
      for (; r + kRows <= a.x.rows(); r += kRows)
        distance_tile<kRows>(a, r, g * 16, first, n, panel);
      for (; r < a.x.rows(); ++r) distance_tile<1>(a, r, g * 16, first, n, panel);
    }
  }
}
