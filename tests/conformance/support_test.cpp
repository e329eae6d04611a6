// What the conformance drivers share (support.hpp), and the one test per row of ops.def that runs
// its driver.
#include "conformance/support.hpp"

#include "backend/cpu/cpu.hpp"
#include "backend/reference/reference.hpp"
#include "base/bits.hpp"
#include "base/text.hpp"

namespace loom::test {
namespace {

constexpr uint32_t kPattern = 0x7b7b7b7b;  // a finite float no op produces by chance

float special(uint32_t pick, Values kind) {
  static const float kMixed[] = {0.0f, -0.0f, 1e-42f, -3e-39f, 1e-20f, -1e-12f,
                                 1e4f, -3e5f, 1.0f,   -1.0f,   127.5f, 0x1p-126f};
  static const float kWild[] = {__builtin_inff(), -__builtin_inff(), __builtin_nanf(""),
                                3.4e38f,          -3.4e38f,          1e-45f};
  if (kind == Values::wild && pick % 4 == 0) return kWild[pick / 4 % std::size(kWild)];
  return kMixed[pick / 4 % std::size(kMixed)];
}

}  // namespace

std::vector<float> make_values(uint64_t seed, int64_t count, Values kind) {
  const Rng rng(seed, 17);
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t bits = rng.bits(i);
    values[i] = static_cast<float>(bits >> 8) * 0x1p-22f - 2.0f;
    if (kind != Values::smooth && bits % 16 == 0) values[i] = special(bits >> 4, kind);
  }
  return values;
}

Rows::Rows(int64_t rows, int64_t cols, int64_t gap) {
  const int64_t stride = cols + gap;
  memory_.assign(static_cast<size_t>(rows > 0 ? (rows - 1) * stride + cols : 0),
                 f32_from_bits(kPattern));
  tensor_ = f32_matrix(memory_.data(), rows, cols);
  tensor_.row_stride = stride;
}

Rows::Rows(int64_t rows, int64_t cols, int64_t gap, uint64_t seed, Values kind)
    : Rows(rows, cols, gap) {
  const std::vector<float> values = make_values(seed, rows * cols, kind);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) at(r, c) = values[static_cast<size_t>(r * cols + c)];
  }
}

Ids::Ids(int64_t rows, int64_t cols) : values_(static_cast<size_t>(rows * cols), -1) {
  tensor_ = Tensor{DType::i32, Layout::plain, Shape{rows, cols}, cols,
                   reinterpret_cast<std::byte*>(values_.data())};
}

Ids some_rows(int64_t rows, int64_t places, uint64_t seed) {
  Ids list(1, places);
  std::vector<bool> taken(static_cast<size_t>(rows));
  for (int64_t i = 0; i < places && rows > 0; ++i) {
    const auto row = Rng(seed, 12).bits(static_cast<uint64_t>(i)) % static_cast<uint32_t>(rows);
    if (!taken[row]) list.values()[static_cast<size_t>(i)] = static_cast<int32_t>(row);
    taken[row] = true;
  }
  return list;
}

Packed::Packed(DType dtype, int64_t rows, int64_t cols, uint64_t seed, Values kind) {
  const R16 g = r16_geometry(dtype, rows, cols);
  memory_ = std::move(Buffer::allocate(g.bytes()).value());
  const std::vector<float> values = make_values(seed, rows * cols, kind);
  const TensorRange range = tensor_range(values.data(), rows * cols);
  r16_pack(g, values.data(), 0, rows, ScaleScope::per_row, range, memory_.data());
  tensor_ = r16_tensor(g, memory_.data());
}

Q8::Q8(int64_t rows, int64_t cols) {
  const int64_t blocks = (cols + 31) / 32;
  codes_.assign(static_cast<size_t>(rows * blocks * 32), 77);
  scales_.assign(static_cast<size_t>(rows * blocks), f32_from_bits(kPattern));
  sums_.assign(static_cast<size_t>(rows * blocks * 2), 77);
  q_ = Q8Rows{codes_.data(), scales_.data(), sums_.data(), sums_.data() + rows * blocks,
              rows,          cols,           blocks};
}

Q8::Q8(const Tensor& x) : Q8(x.rows(), x.cols()) {
  reference_ops().quantise_rows(QuantiseRowsArgs{x, q_}, Lane{});
}

void Image::add(const std::vector<float>& values) {
  for (float value : values) words_.push_back(value == value ? f32_bits(value) : 0x7fc00000u);
}

void Image::add_bytes(const void* data, int64_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  for (int64_t i = 0; i < bytes; i += 4) {
    uint32_t word = 0;
    std::memcpy(&word, p + i, static_cast<size_t>(bytes - i < 4 ? bytes - i : 4));
    words_.push_back(word);
  }
}

const Runner& reference_runner() {
  static const Runner runner(reference_ops(), 1, "reference");
  return runner;
}

const std::vector<Runner>& other_runners() {
  static const std::vector<Runner> runners = [] {
    std::vector<Runner> all = {Runner(reference_ops(), 3, "reference x 3")};
    for (Isa isa : available_isas()) {
      for (int lanes : {1, 3})
        all.emplace_back(cpu_ops(isa), lanes, cat(isa_name(isa), " x ", lanes));
    }
    return all;
  }();
  return runners;
}

void expect_same_bits(const std::string& what, const std::function<Image(const Runner&)>& body) {
  const Image expected = body(reference_runner());
  for (const Runner& runner : other_runners()) {
    const Image got = body(runner);
    if (got.words() == expected.words()) continue;
    ASSERT_EQ(got.words().size(), expected.words().size()) << what << ", " << runner.name();
    size_t i = 0;
    while (got.words()[i] == expected.words()[i]) ++i;
    ADD_FAILURE() << what << ", " << runner.name() << ": word " << i << " of " << got.words().size()
                  << " is " << f32_from_bits(got.words()[i]) << " (" << std::hex << got.words()[i]
                  << "), reference has " << f32_from_bits(expected.words()[i]) << " ("
                  << expected.words()[i] << ")";
    return;
  }
}

namespace {

// The driver of `op` did call it, on every backend and not only on some.
void expect_called_everywhere(OpId op) {
  const int runs = reference_runner().runs(op);
  EXPECT_GT(runs, 0);
  for (const Runner& runner : other_runners()) EXPECT_EQ(runner.runs(op), runs) << runner.name();
}

}  // namespace

#define LOOM_OP(op, Args)                                  \
  TEST(Conformance, op) {                                  \
    conform_##op();                                        \
    if (!HasFailure()) expect_called_everywhere(OpId::op); \
  }
#include "ops/ops.def"
#undef LOOM_OP

}  // namespace loom::test
