// Rows of several sequences, each at a position of its own: random lists of a decoder layer's
// commands (rope, rope, kv_write, attention), against the reference. Bit for bit, one list of all
// rows gives the same results as one list per row.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

#include "backend/reference/reference.hpp"
#include "base/text.hpp"
#include "conformance/support.hpp"
#include "dtype/codecs/codec.hpp"
#include "ops/recording/recorder.hpp"
#include "webgpu/distance.hpp"
#include "webgpu/gpu.hpp"
#include "webgpu/sample.hpp"

namespace loom::core::test {
namespace {

struct PlacedCase {
  int64_t share, kv_heads, width, rotary_dim, window, sequences, capacity;
  float soft_cap;
  DType cache;
  bool paged;
  std::vector<RowPosition> rows;  // of a sequence in any order
  int64_t heads() const { return share * kv_heads; }
};

std::string name_of(const PlacedCase& c) {
  return cat(dtype_name(c.cache), c.paged ? " in pages, " : ", ", c.heads(), "/", c.kv_heads,
             " heads of ", c.width, ", ", c.rows.size(), " rows of ", c.sequences, " x ",
             c.capacity, ", window ", c.window, ", rotary_dim ", c.rotary_dim, ", cap ",
             c.soft_cap);
}

PlacedCase random_case(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint32_t>(n));
  };
  constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::q8_0};
  constexpr int64_t kWidths[] = {32, 64, 96, 8, 20, 80, 272};
  PlacedCase c;
  c.cache = kTypes[below(4)];
  c.width = kWidths[below(dtype_info(c.cache).block > 0 ? 3 : 7)];
  c.share = 1 + below(4);
  c.kv_heads = 1 + below(3);
  c.rotary_dim = below(3) == 0 ? c.width / 2 : 0;
  c.window = below(3) == 0 ? 1 + below(90) : 0;
  c.soft_cap = below(4) == 0 ? 2.0f : 0.0f;
  c.sequences = 1 + below(4);
  c.capacity = 16 * (1 + below(40));
  c.paged = below(3) > 0;
  for (int32_t s = 0; s < c.sequences; ++s) {
    const int64_t count = std::min(below(9), c.capacity);
    const int64_t first = below(c.capacity - count + 1);
    for (int64_t i = 0; i < count; ++i) c.rows.push_back({s, static_cast<int32_t>(first + i)});
  }
  if (c.rows.empty()) c.rows.push_back({0, static_cast<int32_t>(below(c.capacity))});
  // Not shuffle(): its order depends on the standard library.
  for (size_t i = c.rows.size(); i > 1; --i)
    std::swap(c.rows[i - 1], c.rows[static_cast<size_t>(below(static_cast<int64_t>(i)))]);
  return c;
}

// Memory of a layer, and the rows of a case.
struct Layer {
  explicit Layer(const PlacedCase& of)
      : c(of),
        q(count(), c.heads() * c.width, 0, 1, Values::smooth),
        k(count(), c.kv_heads * c.width, 0, 2, Values::smooth),
        v(count(), c.kv_heads * c.width, 0, 3, Values::smooth),
        cos(c.capacity, half(), 0, 4, Values::smooth),
        sin(c.capacity, half(), 0, 5, Values::smooth) {
    const int64_t all = c.capacity * (c.paged ? c.sequences : 1) + (c.paged ? 48 : 0);
    cache = KvCache{nullptr, nullptr, c.kv_heads, c.width, all, c.paged ? 1 : c.sequences, c.cache};
    keys.resize(static_cast<size_t>(cache.bytes()));
    values.resize(keys.size());
    cache.keys = keys.data();
    cache.values = values.data();
    fill();
  }
  int64_t count() const { return static_cast<int64_t>(c.rows.size()); }
  int64_t half() const { return (c.rotary_dim > 0 ? c.rotary_dim : c.width) / 2; }

  std::vector<int32_t> places_of(std::span<const RowPosition> rows) const {
    const int64_t pages = c.capacity / 16;
    std::vector<int32_t> out;
    for (const RowPosition& row : rows) {
      out.insert(out.end(), {c.paged ? 0 : row.sequence, row.position});
      // In arbitrary order, each once.
      const int64_t all = pages * c.sequences + 3, step = all % 37 == 0 ? 41 : 37;
      for (int64_t i = 0; c.paged && i < pages; ++i)
        out.push_back(static_cast<int32_t>(((row.sequence * pages + i) * step + 5) % all));
    }
    return out;
  }
  static Tensor as_indices(std::vector<int32_t>& numbers, int64_t rows) {
    const int64_t width = static_cast<int64_t>(numbers.size()) / rows;
    Tensor t = f32_matrix(reinterpret_cast<float*>(numbers.data()), rows, width);
    t.dtype = DType::i32;
    return t;
  }
  // The earlier contents: a value at every position.
  void fill() {
    std::vector<RowPosition> all;
    for (int32_t s = 0; s < c.sequences; ++s) {
      for (int32_t p = 0; p < c.capacity; ++p) all.push_back({s, p});
    }
    const auto rows = static_cast<int64_t>(all.size());
    const Rows before(rows, c.kv_heads * c.width, 0, 6, Values::smooth);
    std::vector<int32_t> row_positions = places_of(all);
    std::vector<std::byte> scratch(1 << 20);
    reference_ops().kv_write(
        {before.tensor(), before.tensor(), cache, 0, as_indices(row_positions, rows)},
        Lane{0, 1, scratch.data(), static_cast<int64_t>(scratch.size())});
  }

  PlacedCase c;
  Rows q, k, v, cos, sin;
  KvCache cache;
  std::vector<std::byte> keys, values;
};

AttentionArgs attention_of(const Layer& layer, const Tensor& q, const Tensor& y,
                           const Tensor& row_positions) {
  AttentionArgs a{q, y, layer.cache, layer.c.heads(), 0, layer.c.capacity, layer.c.window, 0.2f};
  a.soft_cap = layer.c.soft_cap;
  a.row_positions = row_positions;
  return a;
}

// Runs rows [first, first + count) through `ops`; returns their outputs. If `writes` is false, the
// cache is unchanged.
std::vector<float> run(const Ops& ops, Layer& layer, int64_t first, int64_t count,
                       bool writes = true) {
  const auto small = [&](const Rows& r) { return r.tensor().slice_rows(first, count); };
  std::vector<int32_t> numbers = layer.places_of(
      std::span(layer.c.rows).subspan(static_cast<size_t>(first), static_cast<size_t>(count)));
  const Tensor row_positions = Layer::as_indices(numbers, count);
  const Rows q_turned(count, layer.c.heads() * layer.c.width),
      k_turned(count, layer.c.kv_heads * layer.c.width), y(count, layer.c.heads() * layer.c.width);
  std::vector<MemoryRange> ranges;
  const Rows* const all[] = {&layer.q,   &layer.k,  &layer.v,  &layer.cos,
                             &layer.sin, &q_turned, &k_turned, &y};
  for (const Rows* r : all) ranges.push_back(range_of(r->tensor()));
  ranges.push_back(range_of(row_positions));
  for (const std::vector<std::byte>* side : {&layer.keys, &layer.values})
    ranges.push_back({side->data(), static_cast<int64_t>(side->size())});
  const auto attached = Attached::attach(ops.device, ranges, MemoryUse::scratch, true);
  EXPECT_TRUE(attached.ok());
  ThreadPool pool(1);
  Recorder recorder(ops, pool, ActivationMode::f32);
  recorder.keep_rows_alone();
  const auto record = [&]() -> Status {
    RopeArgs turn;
    turn.cos = layer.cos.tensor();
    turn.sin = layer.sin.tensor();
    turn.rotary_dim = layer.c.rotary_dim;
    turn.row_positions = row_positions;
    turn.x = small(layer.q);
    turn.y = q_turned.tensor();
    turn.heads = layer.c.heads();
    LOOM_TRY(recorder.rope(turn));
    turn.x = small(layer.k);
    turn.y = k_turned.tensor();
    turn.heads = layer.c.kv_heads;
    if (writes) {
      LOOM_TRY(recorder.rope(turn));
      LOOM_TRY(
          recorder.kv_write({k_turned.tensor(), small(layer.v), layer.cache, 0, row_positions}));
    }
    LOOM_TRY(recorder.attention(attention_of(layer, q_turned.tensor(), y.tensor(), row_positions)));
    return recorder.flush();
  };
  const Status status = record();
  EXPECT_TRUE(status.ok()) << status.error().str();
  if (ops.device != nullptr) {
    EXPECT_TRUE(ops.device->download(std::span(ranges).subspan(5)).ok());
  }
  return y.memory();
}

int cases() {
  const char* which = std::getenv("LOOM_GPU_CASES");
  if (which != nullptr && std::string_view(which) == "all") return 300;
  return gpu()->adapter().software ? 16 : 100;
}

TEST(GpuPlaces, RandomRowsAreThoseOfTheReferenceAndOfEachRowAlone) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  const int64_t fallbacks = gpu()->counts().total_fallbacks();
  for (int seed = 0; seed < cases(); ++seed) {
    if (!has_turn("GpuPlaces", static_cast<size_t>(seed), kOneIn)) continue;
    const PlacedCase c = random_case(static_cast<uint32_t>(seed));
    SCOPED_TRACE(cat(seed, ": ", name_of(c)));
    Layer got(c), expected(c), alone(c);
    const std::vector<float> y = run(gpu()->ops(), got, 0, got.count());
    // One ulp of a key may change a code, so the reference attends over the cache of the device.
    run(reference_ops(), expected, 0, expected.count());
    EXPECT_EQ(got.values, expected.values);
    if (c.cache == DType::f32) {
      const auto floats = [](const Layer& l) {
        return std::span(reinterpret_cast<const float*>(l.keys.data()), l.keys.size() / 4);
      };
      EXPECT_LE(distance(floats(expected), floats(got)), 1e-6);
    }
    size_t same = 0;
    for (size_t i = 0; i < got.keys.size(); ++i) same += got.keys[i] == expected.keys[i] ? 1 : 0;
    if (c.cache != DType::f32) {
      EXPECT_GE(same + same / 1000 + 2, got.keys.size());
    }
    expected.keys = got.keys;
    expected.cache.keys = expected.keys.data();
    EXPECT_LE(distance(run(reference_ops(), expected, 0, expected.count(), false), y), 2e-6);
    // In the order of positions, each row finds the ones before it.
    std::vector<size_t> order(c.rows.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](size_t i) { return c.rows[i].position; });
    const size_t cols = y.size() / c.rows.size();
    for (const size_t i : order) {
      const std::vector<float> mine = run(gpu()->ops(), alone, static_cast<int64_t>(i), 1);
      EXPECT_EQ(std::memcmp(mine.data(), y.data() + i * cols, cols * 4), 0) << "row " << i;
    }
    EXPECT_EQ(alone.keys, got.keys);
    EXPECT_EQ(alone.values, got.values);
  }
  EXPECT_EQ(gpu()->counts().total_fallbacks(), fallbacks);
}

}  // namespace
}  // namespace loom::core::test
