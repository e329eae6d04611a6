// The end of a product's tile, shared by quantized and float products.

// Tiles of quantized products that fit the registers of this set: rows, groups of a panel, groups
// of few rows. One group of few rows reads memory in one stream.
#if LOOM_SIMD_WIDTH == 16
constexpr int kQ8TileRows = 6, kQ8TileGroups = 2, kQ8FewGroups = 2;
#elif LOOM_SIMD_WIDTH == 8
constexpr int kQ8TileRows = 4, kQ8TileGroups = 1, kQ8FewGroups = 1;
#elif defined(__aarch64__)
// 32 registers, which three rows of two groups fill: GCC 12 then spills (counted; no such processor
// measured it).
constexpr int kQ8TileRows = 2, kQ8TileGroups = 2, kQ8FewGroups = 2;
#else
// 16 registers of 128 bits (SSE2, WebAssembly): a second group spills, and costs code.
constexpr int kQ8TileRows = 2, kQ8TileGroups = 1, kQ8FewGroups = 1;
#endif

LOOM_INLINE float decode_step(ScaleRule rule, const R16& g, const std::byte* group, int64_t block,
                              int half, int lane) {
  return r16_step(g, group, lane, rule == ScaleRule::e4m3 ? block * 2 + half : block);
}

// Out of line: inlined into every tile it would be most of the code.
__attribute__((noinline)) void activate16(Activation kind, V16& x) {
  LOOM_EACH(i) x.v[i] = activate<Vf>(kind, x.v[i]);
}

// Stores sixteen outputs of row `row` from `column`. Bias and activation apply only to a complete
// sum.
LOOM_INLINE void finish_tile(const MatmulArgs& m, int64_t row, int64_t column, int64_t columns,
                             V16 total, bool last) {
  const int64_t n = columns - column;
  if (last) {
    if (!m.bias.empty()) total = add16(total, load16_n(m.bias.f32() + column, n));
    if (m.activation != Activation::linear) activate16(m.activation, total);
  }
  store16_n(m.y.f32_row(row) + column, total, n);
}
