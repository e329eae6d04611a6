// Products with experts: the kernels of matmul, matmul_dx and gemm over the rows of one expert at a
// time. All lanes share each product. Their indices rotate with every expert, so that no lane gets
// the larger share of each.

// Groups of outputs that one product of unaligned() writes to the scratch.
constexpr int64_t kStagedGroups = 128;

// The weights of rows [first, first + rows), a multiple of 16, of a packed matrix.
inline Tensor packed_rows(const Tensor& w, const R16& g, int64_t first, int64_t rows) {
  Tensor part = w;
  part.shape = Shape{rows, g.cols};
  part.data = w.data + first / kR16Rows * g.group_bytes;
  return part;
}

inline Tensor plain_rows(const Tensor& t, int64_t first, int64_t rows) {
  Tensor part = t;
  part.shape = Shape{rows, t.cols()};
  part.data = t.data + first * t.row_stride * 4;
  return part;
}

// body(expert, first row, rows, lane) for each expert with rows.
template <class Args, class Body>
LOOM_INLINE void each_expert(const Args& a, const Lane& lane, Body body) {
  const int32_t* starts = a.starts.i32();
  Lane mine = lane;
  for (int64_t e = 0; e < a.experts(); ++e) {
    const int64_t rows = starts[e + 1] - starts[e];
    if (rows == 0) continue;
    body(e, int64_t{starts[e]}, rows, mine);
    mine.index = (mine.index + 1) % mine.count;
  }
}

// The product of rows [first, first + rows) of x with `w`.
LOOM_INLINE MatmulArgs expert_product(const ExpertMatmulArgs& a, int64_t first, int64_t rows,
                                      const Tensor& w) {
  MatmulArgs m;
  m.w = w;
  m.use_q8 = a.use_q8;
  m.x = plain_rows(a.x, first, rows);
  if (a.use_q8) {
    m.q8 = a.q8;
    m.q8.rows = rows;
    m.q8.codes += first * a.q8.padded_cols();
    m.q8.scales += first * a.q8.blocks;
    m.q8.sums += first * a.q8.blocks;
    m.q8.half_sums += first * a.q8.blocks;
  }
  return m;
}

// An expert that begins or ends inside of a group of sixteen rows: products with whole groups go to
// the scratch, and its columns from there to y.
inline void unaligned(const ExpertMatmulArgs& a, const R16& g, int64_t expert, int64_t first,
                      int64_t rows, const Lane& lane) {
  const int64_t n = a.y.cols(), begin = expert * n, end = begin + n;
  const int64_t low = begin / kR16Rows, high = (end + kR16Rows - 1) / kR16Rows;
  const LaneRange groups = lane.range(high - low);
  auto* const staged = reinterpret_cast<float*>(lane.scratch + kMatmulScratch);
  const Lane alone{0, 1, lane.scratch, kMatmulScratch};
  for (int64_t at = low + groups.begin; at < low + groups.end; at += kStagedGroups) {
    const int64_t stop =
        at + kStagedGroups < low + groups.end ? at + kStagedGroups : low + groups.end;
    const int64_t column = at * kR16Rows;
    const int64_t left = g.rows - column, width = (stop - at) * kR16Rows;
    const int64_t cols = left < width ? left : width;
    const int64_t most = kMatmulScratch / 4 / width;
    for (int64_t r = 0; r < rows; r += most) {
      const int64_t count = rows - r < most ? rows - r : most;
      MatmulArgs m = expert_product(a, first + r, count, packed_rows(a.w, g, column, cols));
      m.y = f32_matrix(staged, count, cols);
      matmul(m, alone);
      const int64_t from = begin > column ? begin - column : 0;
      const int64_t to = end - column < cols ? end - column : cols;
      for (int64_t i = 0; i < count; ++i) {
        std::memcpy(a.y.f32_row(first + r + i) + column + from - begin, staged + i * cols + from,
                    static_cast<size_t>(to - from) * 4);
      }
    }
  }
}

inline void expert_matmul(const ExpertMatmulArgs& a, const Lane& lane) {
  const R16 g = r16_geometry(a.w.dtype, a.w.shape[0], a.w.shape[1]);
  const int64_t n = a.y.cols();
  each_expert(a, lane, [&](int64_t e, int64_t first, int64_t rows, const Lane& mine) {
    if (n % kR16Rows != 0) return unaligned(a, g, e, first, rows, mine);
    MatmulArgs m = expert_product(a, first, rows, packed_rows(a.w, g, e * n, n));
    m.y = plain_rows(a.y, first, rows);
    matmul(m, mine);
  });
}

// Sums over the rows of an expert that begins inside of a group run in the reference.
inline void expert_matmul_dx(const ExpertMatmulDxArgs& a, const Lane& lane) {
  const R16 g = r16_geometry(a.w.dtype, a.w.shape[0], a.w.shape[1]);
  const int64_t n = a.dy.cols();
  if (n % kR16Rows != 0) return reference_ops().expert_matmul_dx(a, lane);
  each_expert(a, lane, [&](int64_t e, int64_t first, int64_t rows, const Lane& mine) {
    matmul_dx({plain_rows(a.dy, first, rows), packed_rows(a.w, g, e * n, n),
               plain_rows(a.dx, first, rows), a.accumulate},
              mine);
  });
}

inline void expert_matmul_dw(const ExpertMatmulDwArgs& a, const Lane& lane) {
  const int64_t n = a.dy.cols();
  for (int64_t e = 0; e < a.experts(); ++e) {
    const int64_t first = a.starts.i32()[e], rows = a.starts.i32()[e + 1] - first;
    gemm({plain_rows(a.dy, first, rows), plain_rows(a.x, first, rows), plain_rows(a.dw, e * n, n),
          true, false, a.accumulate},
         lane);
  }
}
