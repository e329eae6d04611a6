// The R16 layout for every type and awkward shapes: sizes, code locations, level * step against
// decode, simulate against pack and unpack, harmless padding, and bytes that depend only on the
// values.
#include "samples.hpp"

namespace loom::core {
namespace {

using test::same;

struct Shape {
  int64_t rows, cols;
};
const Shape kShapes[] = {{1, 1}, {15, 31}, {16, 32}, {17, 33}, {33, 100}, {48, 64}, {18, 290}};

// Ordinary values with some difficult ones.
std::vector<float> matrix(Shape s, uint64_t seed, bool specials) {
  auto x = test::normal_samples(static_cast<size_t>(s.rows * s.cols), seed);
  const float rare[] = {0.0f,
                        -0.0f,
                        1e-45f,
                        -1e-39f,
                        1e-20f,
                        -70000.f,
                        3e38f,
                        -std::numeric_limits<float>::infinity(),
                        std::numeric_limits<float>::quiet_NaN()};
  for (size_t i = 0; specials && i < x.size(); i += 7) x[i] = rare[(i / 7) % std::size(rare)];
  return x;
}

struct Packed {
  R16 g;
  std::vector<float> x;
  std::vector<std::byte> data;
  ScaleScope scope;
};

Packed pack(DType dtype, Shape s, ScaleScope scope, bool specials = false,
            std::byte fill = std::byte{0xa5}) {
  Packed p{r16_geometry(dtype, s.rows, s.cols), matrix(s, 9, specials), {}, scope};
  p.data.assign(static_cast<size_t>(p.g.bytes()), fill);
  const TensorRange range = tensor_range(p.x.data(), s.rows * s.cols);
  r16_pack(p.g, p.x.data(), 0, s.rows, scope, range, p.data.data());
  return p;
}

// Packing f64 equals packing the values rounded to f32, and for f64 weights it is exact.
TEST(R16, TakesDoubles) {
  for (const DTypeInfo& info : dtype_table()) {
    for (const Shape& s : kShapes) {
      for (ScaleScope scope : {ScaleScope::per_row, ScaleScope::per_tensor}) {
        std::vector<double> wide;
        for (float x : matrix(s, 21, true)) wide.push_back(static_cast<double>(x) * (1 + 0x1p-30));
        const std::vector<float> rounded(wide.begin(), wide.end());
        const R16 g = r16_geometry(info.dtype, s.rows, s.cols);
        std::vector<std::byte> got(static_cast<size_t>(g.bytes()), std::byte{1});
        std::vector<std::byte> expected(got.size(), std::byte{2});
        r16_pack(g, wide.data(), 0, s.rows, scope, tensor_range(wide.data(), s.rows * s.cols),
                 got.data());
        r16_pack(g, rounded.data(), 0, s.rows, scope, tensor_range(rounded.data(), s.rows * s.cols),
                 expected.data());
        if (info.dtype != DType::f64) {
          ASSERT_EQ(got, expected) << info.name;
          continue;
        }
        for (int64_t r = 0; r < s.rows; ++r) {
          std::vector<double> row(static_cast<size_t>(s.cols));
          r16_decode_f64(g, got.data(), r, 0, s.cols, row.data());
          for (int64_t k = 0; k < s.cols; ++k) {
            const double x = wide[static_cast<size_t>(r * s.cols + k)];
            const double y = row[static_cast<size_t>(k)];
            ASSERT_TRUE(y == x || (x != x && y != y)) << x;
          }
        }
      }
    }
  }
}

struct Case {
  Shape shape;
  ScaleScope scope;
};

void PrintTo(const Case& c, std::ostream* os) {
  *os << c.shape.rows << "x" << c.shape.cols
      << (c.scope == ScaleScope::per_row ? " per row" : " per tensor");
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const Shape& shape : kShapes) {
    out.push_back({shape, ScaleScope::per_row});
    out.push_back({shape, ScaleScope::per_tensor});
  }
  return out;
}

class R16Test : public testing::TestWithParam<DType> {
 protected:
  DType dtype() const { return GetParam(); }
  const DTypeInfo& info() const { return dtype_info(dtype()); }
};
class R16Levels : public R16Test {};  // integer-path types only

TEST_P(R16Test, SectionsAreAlignedAndInOrder) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::PrintToString(c));
    const R16 g = r16_geometry(dtype(), c.shape.rows, c.shape.cols);
    for (const int64_t offset :
         {g.row_scales, g.zeros, g.super_scales, g.block_scales, g.codes, g.group_bytes}) {
      EXPECT_EQ(offset % 64, 0);
    }
    EXPECT_LE(g.row_scales, g.zeros);
    EXPECT_LE(g.zeros, g.super_scales);
    EXPECT_LE(g.super_scales, g.block_scales);
    EXPECT_LE(g.block_scales, g.codes);
    EXPECT_EQ(g.groups, (c.shape.rows + 15) / 16);
    const int64_t k = g.wide ? c.shape.cols : (c.shape.cols + 31) / 32 * 32;
    EXPECT_EQ(g.group_bytes - g.codes, round_up(16 * k * info().bits / 8, 64));
  }
}

TEST_P(R16Levels, DecodeGivesLevelTimesStepPlusOffset) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::PrintToString(c));
    const Packed p = pack(dtype(), c.shape, c.scope, true);
    const int64_t block = info().block > 0 ? info().block : 32;
    std::vector<float> row(static_cast<size_t>(c.shape.cols));
    for (int64_t r = 0; r < c.shape.rows; ++r) {
      r16_decode(p.g, p.data.data(), r, 0, c.shape.cols, row.data());
      for (int64_t k = 0; k < c.shape.cols; ++k) {
        const auto level = static_cast<float>(r16_level(p.g, p.data.data(), r, k));
        const float step = r16_step(p.g, p.data.data(), r, k / block);
        const float offset = r16_offset(p.g, p.data.data(), r, k / block);
        const float want = info().shifted() ? level * step + offset : level * step;
        ASSERT_TRUE(same(row[static_cast<size_t>(k)], want)) << r << " " << k;
      }
    }
  }
}

TEST_P(R16Test, SimulateEqualsPackAndUnpackBitForBit) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::PrintToString(c));
    const Packed p = pack(dtype(), c.shape, c.scope, true);
    const int64_t cols = c.shape.cols;
    const int64_t block = info().block;
    std::vector<double> row(static_cast<size_t>(cols));
    const Scale all_rows = choose_scale(dtype(), p.x.data(), c.shape.rows * cols);
    for (int64_t r = 0; r < c.shape.rows; ++r) {
      r16_decode_f64(p.g, p.data.data(), r, 0, cols, row.data());
      const float* x = p.x.data() + r * cols;
      Scale scale = c.scope == ScaleScope::per_tensor ? all_rows : choose_scale(dtype(), x, cols);
      for (int64_t k = 0; k < cols; ++k) {
        if (block > 0 && k % block == 0) {
          scale = choose_scale(dtype(), x + k, std::min(block, cols - k));
          if (dtype() == DType::nvfp4) {  // its blocks depend on the whole tensor
            const float step = r16_step(p.g, p.data.data(), r, k / block);
            scale.step = static_cast<double>(step) / info().level_unit;
          }
          if (info().super_block > 0) {  // and these depend on their super-block
            scale = Scale{static_cast<double>(r16_step(p.g, p.data.data(), r, k / block))};
            scale.offset = static_cast<double>(r16_offset(p.g, p.data.data(), r, k / block));
          }
        }
        const double want = simulate(dtype(), static_cast<double>(x[k]), scale);
        ASSERT_TRUE(same(row[static_cast<size_t>(k)], want))
            << r << " " << k << ": " << x[k] << " -> " << row[static_cast<size_t>(k)] << " not "
            << want;
      }
    }
  }
}

TEST_P(R16Test, DecodeIsTheFloat64DecodeRoundedOnce) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::PrintToString(c));
    const Packed p = pack(dtype(), c.shape, c.scope, true);
    std::vector<float> narrow(static_cast<size_t>(c.shape.cols));
    std::vector<double> exact(static_cast<size_t>(c.shape.cols));
    for (int64_t r = 0; r < c.shape.rows; ++r) {
      r16_decode(p.g, p.data.data(), r, 0, c.shape.cols, narrow.data());
      r16_decode_f64(p.g, p.data.data(), r, 0, c.shape.cols, exact.data());
      for (size_t k = 0; k < narrow.size(); ++k) {
        ASSERT_TRUE(same(narrow[k], static_cast<float>(exact[k])));
      }
    }
  }
}

TEST_P(R16Test, AnyPartOfARowDecodesAsTheWholeRowDoes) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::PrintToString(c));
    const Packed p = pack(dtype(), c.shape, c.scope);
    const int64_t cols = c.shape.cols;
    std::vector<float> all_rows(static_cast<size_t>(cols)), part(static_cast<size_t>(cols));
    r16_decode(p.g, p.data.data(), c.shape.rows - 1, 0, cols, all_rows.data());
    for (int64_t k0 = 0; k0 <= cols; k0 += 5) {
      for (int64_t n = 0; n <= cols - k0; n += 3) {
        part.assign(part.size(), -77.0f);
        r16_decode(p.g, p.data.data(), c.shape.rows - 1, k0, n, part.data());
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(part[static_cast<size_t>(i)], all_rows[static_cast<size_t>(k0 + i)])
              << k0 << " " << n;
        }
        if (n < cols) {
          ASSERT_EQ(part[static_cast<size_t>(n)], -77.0f);
        }
      }
    }
  }
}

TEST_P(R16Test, PaddingIsWorthNothingAndIsNeverNan) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::PrintToString(c));
    const Packed p = pack(dtype(), c.shape, c.scope, true);
    const int64_t rows = p.g.groups * 16, cols = p.g.wide ? p.g.cols : p.g.blocks * 32;
    std::vector<double> row(static_cast<size_t>(cols));
    for (int64_t r = 0; r < rows; ++r) {
      r16_decode_f64(p.g, p.data.data(), r, 0, cols, row.data());
      for (int64_t k = r < c.shape.rows ? c.shape.cols : 0; k < cols; ++k) {
        const double v = row[static_cast<size_t>(k)];
        if (info().kind == NumberKind::binary && r < c.shape.rows) {
          ASSERT_EQ(v, -static_cast<double>(r16_step(p.g, p.data.data(), r, 0)));
        } else if (info().shifted()) {  // code 0
          ASSERT_EQ(v, static_cast<double>(r16_offset(p.g, p.data.data(), r, k / info().block)));
        } else {
          ASSERT_EQ(v, 0.0) << r << " " << k;
        }
      }
    }
  }
}

TEST_P(R16Test, PackingWritesEveryByteAndNothingElse) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::PrintToString(c));
    const Packed a = pack(dtype(), c.shape, c.scope, true, std::byte{0x00});
    const Packed b = pack(dtype(), c.shape, c.scope, true, std::byte{0xff});
    EXPECT_EQ(a.data, b.data);
    std::vector<std::byte> guarded(a.data.size() + 64, std::byte{0x5a});
    const TensorRange range = tensor_range(a.x.data(), c.shape.rows * c.shape.cols);
    r16_pack(a.g, a.x.data(), 0, c.shape.rows, c.scope, range, guarded.data());
    for (size_t i = a.data.size(); i < guarded.size(); ++i) ASSERT_EQ(guarded[i], std::byte{0x5a});
  }
}

TEST_P(R16Test, PackingByGroupsEqualsPackingAtOnce) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::PrintToString(c));
    const Packed p = pack(dtype(), c.shape, c.scope);
    std::vector<std::byte> parts(p.data.size());
    const TensorRange range = tensor_range(p.x.data(), c.shape.rows * c.shape.cols);
    for (int64_t first = (c.shape.rows - 1) / 16 * 16; first >= 0; first -= 16) {
      const int64_t count = std::min<int64_t>(16, c.shape.rows - first);
      r16_pack(p.g, p.x.data() + first * c.shape.cols, first, count, c.scope, range, parts.data());
    }
    EXPECT_EQ(parts, p.data);
  }
}

std::vector<DType> integer_path_dtypes() {
  std::vector<DType> out;
  for (const DTypeInfo& info : dtype_table()) {
    if (info.integer_path()) out.push_back(info.dtype);
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Types, R16Test, testing::ValuesIn(test::all_dtypes()),
                         test::dtype_test_name);
INSTANTIATE_TEST_SUITE_P(Types, R16Levels, testing::ValuesIn(integer_path_dtypes()),
                         test::dtype_test_name);

TEST(R16Geometry, OfQ4_0IsTheMeasuredLayout) {
  const R16 g = r16_geometry(DType::q4_0, 64, 576);
  EXPECT_EQ(g.blocks, 18);
  EXPECT_EQ(g.block_code_bytes(), 256);
  EXPECT_EQ(g.scale_block_bytes, 32);
  EXPECT_EQ(g.codes, 18 * 32);
  EXPECT_EQ(g.group_bytes, 18 * (32 + 256));
  EXPECT_EQ(g.bytes(), 64 * 576 * 9 / 16);
  EXPECT_FALSE(g.has_row_scale);
}

// Bytes of a row of 256, compared with GGUF.
TEST(R16Geometry, OfSuperBlocksIsWithinFivePercentOfGguf) {
  const struct {
    DType dtype;
    int64_t bytes, gguf;
  } rows[] = {{DType::q2_k, 84, 84},
              {DType::q3_k, 114, 110},
              {DType::q4_k, 148, 144},
              {DType::q5_k, 180, 176},
              {DType::q6_k, 210, 210}};
  for (const auto& row : rows) {
    EXPECT_EQ(r16_geometry(row.dtype, 64, 512).bytes(), row.bytes * 128) << dtype_name(row.dtype);
    EXPECT_LE(row.bytes * 100, row.gguf * 105) << dtype_name(row.dtype);
  }
}

TEST(R16Geometry, OfEmptyMatricesIsEmpty) {
  for (const DType dtype : test::all_dtypes()) {
    EXPECT_EQ(r16_geometry(dtype, 0, 100).bytes(), 0);
    const R16 g = r16_geometry(dtype, 5, 0);
    std::vector<std::byte> data(static_cast<size_t>(g.bytes()));
    r16_pack(g, static_cast<const float*>(nullptr), 0, 5, ScaleScope::per_row, {}, data.data());
    r16_decode(g, data.data(), 4, 0, 0, nullptr);
  }
}

TEST(R16Geometry, PutsScalesWhereTheHeaderSays) {
  const struct {
    DType dtype;
    bool row_scale;
    int64_t zeros, block_scales, codes, scale_block;
  } rows[] = {{DType::f32, false, 0, 0, 0, 0},      {DType::i8, true, 64, 64, 64, 0},
              {DType::u8, true, 64, 128, 128, 0},   {DType::i64, true, 128, 128, 128, 0},
              {DType::u32, true, 128, 256, 256, 0}, {DType::q8_0, false, 0, 0, 128, 32},
              {DType::mxfp4, false, 0, 0, 64, 16},  {DType::nvfp4, true, 64, 64, 192, 16},
              {DType::nf4, false, 0, 0, 128, 64},   {DType::f8e4m3, true, 64, 64, 64, 0},
              {DType::u16, true, 64, 128, 128, 0}};
  for (const auto& row : rows) {
    const R16 g = r16_geometry(row.dtype, 16, 100);
    EXPECT_EQ(g.has_row_scale, row.row_scale) << dtype_name(row.dtype);
    EXPECT_EQ(g.zeros, row.zeros) << dtype_name(row.dtype);
    EXPECT_EQ(g.block_scales, row.block_scales) << dtype_name(row.dtype);
    EXPECT_EQ(g.codes, row.codes) << dtype_name(row.dtype);
    EXPECT_EQ(g.scale_block_bytes, row.scale_block) << dtype_name(row.dtype);
  }
}

TEST(R16Slots, CoverEveryBitOfTheCodesOnce) {
  for (const DTypeInfo& info : dtype_table()) {
    const R16 g = r16_geometry(info.dtype, 16, 64);
    if (g.wide) continue;
    std::vector<int> used(static_cast<size_t>(g.group_bytes * 8), 0);
    for (int64_t lane = 0; lane < 16; ++lane) {
      for (int64_t k = 0; k < 64; ++k) {
        const R16Slot slot = r16_slot(g, lane, k);
        for (int bit = 0; bit < g.low_bits; ++bit)
          ++used[static_cast<size_t>(slot.byte * 8 + slot.shift + bit)];
        if (g.low_bits == g.bits) continue;
        const R16Slot high = r16_high_slot(g, lane, k);
        for (int bit = g.low_bits; bit < g.bits; ++bit)
          ++used[static_cast<size_t>(high.byte * 8 + high.shift + bit - g.low_bits)];
      }
    }
    for (size_t i = 0; i < used.size(); ++i) {
      ASSERT_EQ(used[i], static_cast<int64_t>(i) < g.codes * 8 ? 0 : 1)
          << info.name << " bit " << i;
    }
  }
}

TEST(R16Slots, PutNibblesJAndJPlus16OfQ4IntoOneByte) {
  const R16 g = r16_geometry(DType::i4, 16, 32);
  for (int64_t k = 0; k < 16; ++k) {
    EXPECT_EQ(r16_slot(g, 3, k).byte, r16_slot(g, 3, k + 16).byte);
    EXPECT_EQ(r16_slot(g, 3, k).byte, g.codes + k / 4 * 64 + 12 + k % 4);
    EXPECT_EQ(r16_slot(g, 3, k).shift, 0);
    EXPECT_EQ(r16_slot(g, 3, k + 16).shift, 4);
  }
}

TEST(R16Codes, AreTheCodesOfTheCodec) {
  for (const DType dtype :
       {DType::i8, DType::i4, DType::u4, DType::i2, DType::ternary, DType::f4}) {
    const Packed p = pack(dtype, {16, 32}, ScaleScope::per_row);
    for (int64_t k = 0; k < 32; ++k) {
      const float* row = p.x.data() + 5 * 32;
      const Scale s = choose_scale(dtype, row, 32);
      const R16Slot slot = r16_slot(p.g, 5, k);
      const auto byte = std::to_integer<uint64_t>(p.data[static_cast<size_t>(slot.byte)]);
      const uint64_t code = byte >> slot.shift & ((1u << p.g.bits) - 1);
      const double q = static_cast<double>(row[k]) / s.step;
      const bool affine = dtype_info(dtype).affine();
      const double rounded = affine ? std::nearbyint(q) + s.zero : q;
      EXPECT_EQ(code, encode_value(dtype, rounded)) << dtype_name(dtype) << " " << k;
    }
  }
}

TEST(R16Codes, OfWideTypesLieAtKTimesSixteenPlusLane) {
  const Packed p = pack(DType::bf16, {20, 5}, ScaleScope::per_row);
  for (int64_t row = 0; row < 20; ++row) {
    for (int64_t k = 0; k < 5; ++k) {
      const std::byte* at = p.data.data() + row / 16 * p.g.group_bytes + (k * 16 + row % 16) * 2;
      EXPECT_EQ(load_le<uint16_t>(at), bf16_from_f32(p.x[static_cast<size_t>(row * 5 + k)]));
    }
  }
}

TEST(R16Scope, PerTensorGivesEveryRowTheSameStep) {
  const Packed p = pack(DType::i8, {33, 100}, ScaleScope::per_tensor);
  const Scale s = choose_scale(DType::i8, p.x.data(), 3300);
  for (int64_t row = 0; row < 33; ++row) {
    EXPECT_EQ(static_cast<double>(r16_step(p.g, p.data.data(), row, 0)), s.step);
  }
}

TEST(TensorRangeTest, SpansZeroAndSkipsWhatIsNotFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {2.0f, 1.0f, inf, -inf, std::numeric_limits<float>::quiet_NaN()};
  const TensorRange r = tensor_range(x.data(), 5);
  EXPECT_EQ(r.min, 0.0f);
  EXPECT_EQ(r.max, 2.0f);
  EXPECT_EQ(r.mean_abs, 1.5);
  EXPECT_EQ(r.grid, 0.0f);
  EXPECT_EQ(tensor_range(x.data(), 1).grid, 2.0f);
  EXPECT_EQ(tensor_range(static_cast<const float*>(nullptr), 0).mean_abs, 0.0);
}

}  // namespace
}  // namespace loom::core
