// Matrix products for training and layers, besides matmul: Y[rows, cols] (+)= L[rows, depth] .
// R[depth, cols]. All follow rule 2 of docs/numerics.md and use the tiles of matmul_float. A Right
// makes panels of sixteen columns, [k][16], with zeros past the last column. A Left lays out its
// rows in one of the two forms of matmul_float.inl.
//
//   Left:  using Form; LeftView view(int64_t row, int64_t rows, int64_t first, int64_t n,
//          float* copy)
//   Right: void panel(int64_t group, int64_t first, int64_t n, float* to)

// Rows of a Left, in the scratch or in place.
struct LeftView {
  const float* x;
  int64_t group_stride;  // LaneRows: floats between sixteen rows and the next
};

// Sums that are added to y after the last chunk: rows, and groups of columns at a time.
constexpr int64_t kHeldRows = 96;
constexpr int64_t kHeldGroups = 16;
static_assert(kPanelFloats + kHeldRows * kCopyStride + kHeldRows * kHeldGroups * 16 <=
              kMatmulScratch / 4);
constexpr int64_t kLaneCopyRows = (kMatmulScratch / 4 - kPanelFloats) / (kChunk * 16) * 16;

template <class Left, class Right>
struct Product {
  Left left;
  Right right;
  int64_t depth, cols;
  float* y;
  int64_t y_stride;
  bool accumulate;
  float* scratch;

  static constexpr int kHeight = Left::Form::kHeight;

  float* panel() const { return scratch; }
  float* copy() const { return scratch + kPanelFloats; }
  float* held() const { return copy() + kHeldRows * kCopyStride; }

  // One tile of rows from `row` and `width` columns from `column`.
  void tile(PanelTile t, int64_t height, int64_t count, int64_t column) const {
    const PanelTileFn fn = kPanelTiles<LoadF32, typename Left::Form>.of[count > 1][height - 1];
    const int64_t columns = cols - column < count * 16 ? cols - column : count * 16;
    if (columns == count * 16 || t.y_stride == kHeldGroups * 16) return fn(t);
    ragged_tile(fn, t, height, columns);
  }

  // All tiles of [row, row + rows) against the panel of `count` groups. t.y belongs to the first
  // row.
  void tiles(LeftView view, int64_t rows, PanelTile t, int64_t count, int64_t column) const {
    float* const y_first = t.y;
    for (int64_t row = 0; row < rows;) {
      const int64_t run = Left::Form::kLanes && rows - row > 16 ? 16 : rows - row;
      const int64_t parts = (run + kHeight - 1) / kHeight;
      for (int64_t i = 0; i < parts; ++i) {
        const LaneRange part = lane_range(run, 1, static_cast<int>(i), static_cast<int>(parts));
        t.x = view.x + Left::Form::at(part.begin);
        t.y = y_first + (row + part.begin) * t.y_stride;
        tile(t, part.end - part.begin, count, column);
      }
      row += run;
      view.x += view.group_stride;
    }
  }

  // One chunk of a block of rows. Sums go to `to`, whose first column is that of groups.begin.
  void chunk(LaneRange rows, LaneRange groups, int64_t first, float* to, int64_t stride) const {
    const int64_t n = depth - first < kChunk ? depth - first : kChunk;
    const int64_t count = rows.end - rows.begin;
    const LeftView view = left.view(rows.begin, count, first, n, copy());
    PanelTile t{};
    t.panel = t.ahead = reinterpret_cast<const std::byte*>(panel());
    t.panel_stride = kChunk * 16 * 4;
    t.n = n;
    t.y_stride = stride;
    t.add = first > 0 || (accumulate && to == y_of(rows, groups));
    int64_t step = kFloatTileGroups;
    for (int64_t group = groups.begin; group < groups.end; group += step) {
      if (groups.end - group < step) step = 1;
      for (int64_t g = 0; g < step; ++g)
        right.panel(group + g, first, n, panel() + g * kChunk * 16);
      t.y = to + (group - groups.begin) * 16;
      tiles(view, count, t, step, group * 16);
    }
  }

  float* y_of(LaneRange rows, LaneRange groups) const {
    return y + rows.begin * y_stride + groups.begin * 16;
  }

  // All chunks of a block of rows and a strip of groups.
  void strip(LaneRange rows, LaneRange groups) const {
    const bool hold = accumulate && depth > kChunk;
    float* const to = hold ? held() : y_of(rows, groups);
    const int64_t stride = hold ? kHeldGroups * 16 : y_stride;
    for (int64_t first = 0; first < depth; first += kChunk) chunk(rows, groups, first, to, stride);
    if (!hold) return;
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      for (int64_t c = groups.begin * 16; c < groups.end * 16; c += 16) {
        float* const out = y + r * y_stride + c;
        const float* sum = to + (r - rows.begin) * stride + (c - groups.begin * 16);
        store16_n(out, add16(load16_n(out, cols - c), load16(sum)), cols - c);
      }
    }
  }

  void run(LaneRange rows, LaneRange groups) const {
    const bool hold = accumulate && depth > kChunk;
    const int64_t most = hold ? kHeldRows : Left::Form::kLanes ? kLaneCopyRows : kCopyRows;
    const int64_t width = hold ? kHeldGroups : kStripGroups;
    const int64_t count = rows.end - rows.begin;
    const int64_t blocks = (count + most - 1) / most;
    for (int64_t b = 0; b < blocks; ++b) {
      const LaneRange part = lane_range(count, Left::Form::kLanes ? 16 : 1, static_cast<int>(b),
                                        static_cast<int>(blocks));
      const LaneRange block = {rows.begin + part.begin, rows.begin + part.end};
      if (depth <= kChunk) {
        strip(block, groups);
        continue;
      }
      for (int64_t group = groups.begin; group < groups.end; group += width)
        strip(block, {group, groups.end - group < width ? groups.end : group + width});
    }
  }
};

// ---- rows ----

// Rows with contiguous k.
struct RowsOf {
  using Form = CopiedRows;
  const float* x;
  int64_t stride;
  LOOM_INLINE LeftView view(int64_t row, int64_t rows, int64_t first, int64_t n,
                            float* copy) const {
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(copy + r * kCopyStride, x + (row + r) * stride + first,
                  static_cast<size_t>(n) * 4);
    }
    return {copy, 0};
  }
};

// The columns of a matrix as rows, which are adjacent for each k.
struct ColumnsOf {
  using Form = LaneRows;
  const float* x;
  int64_t stride, count;
  LOOM_INLINE LeftView view(int64_t row, int64_t rows, int64_t first, int64_t n,
                            float* copy) const {
    for (int64_t k = 0; k < n; ++k) {
      const float* from = x + (first + k) * stride + row;
      for (int64_t r = 0; r < rows; r += 16)
        store16(copy + (r * kChunk + k * 16), load16_n(from + r, count - row - r));
    }
    return {copy, kChunk * 16};
  }
};

// ---- panels ----

// Columns of a matrix [depth, cols].
struct PlainPanels {
  const float* b;
  int64_t stride, cols;
  LOOM_INLINE void panel(int64_t group, int64_t first, int64_t n, float* to) const {
    const float* from = b + first * stride + group * 16;
    const int64_t left = cols - group * 16;
    for (int64_t k = 0; k < n; ++k) store16(to + k * 16, load16_n(from + k * stride, left));
  }
};

// Columns of the transpose of a matrix [cols, depth].
struct TransposedPanels {
  const float* b;
  int64_t stride, cols;
  LOOM_INLINE void panel(int64_t group, int64_t first, int64_t n, float* to) const {
    rows_to_lanes(b + group * 16 * stride + first, stride, cols - group * 16, n, to);
  }
};

// Columns of a packed matrix [depth, cols]; its lanes are its rows.
struct PackedPanels {
  const R16* w;
  const std::byte* data;
  LOOM_INLINE void panel(int64_t group, int64_t first, int64_t n, float* to) const {
    const int64_t column = group * 16;
    const int64_t count = w->cols - column < 16 ? w->cols - column : 16;
    for (int64_t row = 0; row < n; row += 16) {
      const int64_t source = (first + row) / 16;
      float block[256] = {};
      const float* from = block;
      if (w->dtype == DType::f32 && count == 16) {
        from =
            reinterpret_cast<const float*>(data + source * w->group_bytes + w->codes) + column * 16;
      } else {
        decode_chunk(*w, data, source, column, count, block);
      }
      transpose16(from, 16, to + row * 16, 16);
    }
  }
};

// ---- sharing ----

// Making a panel takes about as long as two rows use it.
constexpr int64_t kPanelRows = 2;

template <class Left, class Right>
void run_product(const Left& left, const Right& right, int64_t depth, const Tensor& y,
                 bool accumulate, const Lane& lane) {
  const TileShare share = tile_share(y.rows(), Left::Form::kLanes ? 16 : Left::Form::kHeight,
                                     (y.cols() + 15) / 16, kFloatTileGroups, kPanelRows, lane);
  const Product<Left, Right> product{
      left,    right,        depth,      y.cols(),
      y.f32(), y.row_stride, accumulate, reinterpret_cast<float*>(lane.scratch)};
  product.run(share.rows, share.groups);
}

template <class Left>
void gemm_of(const Left& left, int64_t depth, const GemmArgs& a, const Lane& lane) {
  if (a.b_transposed) {
    const TransposedPanels right{a.b.f32(), a.b.row_stride, a.y.cols()};
    return run_product(left, right, depth, a.y, a.accumulate, lane);
  }
  const PlainPanels right{a.b.f32(), a.b.row_stride, a.y.cols()};
  run_product(left, right, depth, a.y, a.accumulate, lane);
}

inline void gemm(const GemmArgs& a, const Lane& lane) {
  const int64_t depth = a.a_transposed ? a.a.rows() : a.a.cols();
  if (depth == 0) return reference_ops().gemm(a, lane);
  if (a.a_transposed)
    return gemm_of(ColumnsOf{a.a.f32(), a.a.row_stride, a.y.rows()}, depth, a, lane);
  gemm_of(RowsOf{a.a.f32(), a.a.row_stride}, depth, a, lane);
}

inline void matmul_dx(const MatmulDxArgs& a, const Lane& lane) {
  const R16 w = r16_geometry(a.w.dtype, a.w.shape[0], a.w.shape[1]);
  if (dtype_info(w.dtype).compute == ComputeType::f64 || w.rows == 0)
    return reference_ops().matmul_dx(a, lane);
  run_product(RowsOf{a.dy.f32(), a.dy.row_stride}, PackedPanels{&w, a.w.data}, w.rows, a.dx,
              a.accumulate, lane);
}
