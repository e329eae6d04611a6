// Shared parts of the conformance drivers (support.hpp) on every backend: inputs, images, running
// one op on a device.
#include "conformance/support.hpp"

#include <algorithm>

#include "backend/reference/reference.hpp"
#include "base/numbers/bits.hpp"
#include "ops/recording/device.hpp"
#include "ops/recording/visit.hpp"

namespace loom::core::test {
namespace {

float special(uint32_t pick, Values kind) {
  // WGSL makes no guarantees for subnormals, infinities and NaN. A few large values would hide
  // errors of the others.
  static const float kTame[] = {0.0f, -0.0f, 1e-20f, -1e-12f, 1.0f, -1.0f, 2.0f, -0.5f};
  if (tame_values()) return kTame[pick / 4 % std::size(kTame)];
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

Ids some_rows(int64_t rows, int64_t positions, uint64_t seed) {
  Ids list(1, positions);
  std::vector<bool> taken(static_cast<size_t>(rows));
  for (int64_t i = 0; i < positions && rows > 0; ++i) {
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
  reference_ops().quantize_rows(QuantizeRowsArgs{x, q_}, Lane{});
}

void Image::add(const std::vector<float>& values) {
  for (float value : values) words_.push_back(value == value ? f32_bits(value) : 0x7fc00000u);
  floats_.resize(words_.size(), true);
}

void Image::add_bytes(const void* data, int64_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  for (int64_t i = 0; i < bytes; i += 4) {
    uint32_t word = 0;
    std::memcpy(&word, p + i, static_cast<size_t>(bytes - i < 4 ? bytes - i : 4));
    words_.push_back(word);
  }
  floats_.resize(words_.size(), false);
}

namespace {

struct Span {
  std::byte* begin;
  std::byte* end;
};

// The memory that a command names; overlapping ranges are merged.
std::vector<Span> spans_of(Command& command) {
  std::vector<Span> spans;
  const auto add = [&](const void* begin, int64_t bytes) {
    auto* p = static_cast<std::byte*>(const_cast<void*>(begin));
    if (bytes > 0) spans.push_back({p, p + bytes});
  };
  with_args(command, [&](auto& args) {
    visit(args, [&](Tensor& t, Access) {
      if (!t.empty()) add(t.data, t.end() - t.data);
    });
    visit_memory(args, [&](const std::byte* begin, int64_t bytes, Access) { add(begin, bytes); });
  });
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<Span> merged;
  for (const Span& span : spans) {
    if (!merged.empty() && span.begin < merged.back().end) {
      merged.back().end = std::max(merged.back().end, span.end);
    } else {
      merged.push_back(span);
    }
  }
  return merged;
}

}  // namespace

void run_on_device(const Ops& ops, Command& command) {
  std::vector<MemoryRange> ranges;
  const std::vector<Span> spans = spans_of(command);
  for (const Span& span : spans) ranges.push_back({span.begin, span.end - span.begin});
  const Result<Attached> attached = Attached::attach(ops.device, ranges, MemoryUse::scratch, true);
  ASSERT_TRUE(attached.ok()) << attached.error().str();
  const Status status = ops.device->execute({&command, 1});
  ASSERT_TRUE(status.ok()) << op_name(command.op) << ": " << status.error().str();
  const Status read = ops.device->download(ranges);
  ASSERT_TRUE(read.ok()) << read.error().str();
}

}  // namespace loom::core::test
