// The commands of a decoder layer for one token around its attention, run as a whole and command by
// command. Both must leave the same values in everything that is still read, and the same cache.
#include <cmath>
#include <cstring>

#include "base/text.hpp"
#include "conformance/support.hpp"
#include "dtype/codecs/codec.hpp"
#include "ops/recording/recorder.hpp"
#include "webgpu/distance.hpp"
#include "webgpu/gpu.hpp"
#include "webgpu/sample.hpp"

namespace loom::core::test {
namespace {

constexpr int64_t kFills = 4;

struct Case {
  DType dtype;
  ActivationMode mode;
  int64_t heads, kv_heads, width, first;
  int64_t window = 0, rotary_dim = 0;
  float soft_cap = 0.0f;
  int64_t dispatches = 2;
  bool keys_read = false;  // those that are rotated, after the list
  DType cache = DType::f32;
};

std::string name_of(const Case& c) {
  return cat(dtype_name(c.dtype), c.mode == ActivationMode::q8 ? " q8, " : ", ", c.heads, "/",
             c.kv_heads, " heads of ", c.width, ", position ", c.first, ", window ", c.window,
             ", rotary_dim ", c.rotary_dim, ", cap ", c.soft_cap);
}

// Queries, keys and values of one token; caches with what was before it.
class Token {
 public:
  explicit Token(const Case& c)
      : q(1, c.heads * c.width, 0, 1, Values::smooth),
        k(1, c.kv_heads * c.width, 0, 2, Values::smooth),
        v(1, c.kv_heads * c.width, 0, 3, Values::smooth),
        before(1, kOut, 0, 4, Values::smooth),
        cos(c.first + 1, half(c), 0, 5, Values::smooth),
        sin(c.first + 1, half(c), 0, 6, Values::smooth),
        wo(c.dtype, kOut, c.heads * c.width, 7),
        mixed(1, c.heads * c.width),
        out(1, kOut),
        sum(1, kOut),
        rotated(1, c.kv_heads * c.width),
        capacity(c.first / 16 * 16 + 32),
        keys(1, c.kv_heads * c.width * capacity, 0, 8, Values::smooth),
        values(1, c.kv_heads * c.width * capacity, 0, 9, Values::smooth) {
    cache = f32_cache(keys.tensor().f32(), values.tensor().f32(), c.kv_heads, c.width, capacity);
    cache.dtype = c.cache;
    if (c.cache == DType::f32) return;
    for (const Rows* side : {&keys, &values}) {
      c.cache == DType::q8_0 ? in_bytes(side->tensor()) : in_halves(side->tensor(), c.cache);
    }
  }

  std::vector<MemoryRange> ranges() const {
    std::vector<MemoryRange> all;
    for (const Rows* r :
         {&q, &k, &v, &before, &cos, &sin, &mixed, &out, &sum, &rotated, &keys, &values}) {
      all.push_back(range_of(r->tensor()));
    }
    all.push_back({wo.tensor().data, wo.tensor().end() - wo.tensor().data});
    return all;
  }

  // The fills represent the next layer, which overwrites dead values.
  Status record(Recorder& r, const Case& c) const {
    RopeArgs turn;
    turn.cos = cos.tensor();
    turn.sin = sin.tensor();
    turn.first = c.first;
    turn.rotary_dim = c.rotary_dim;
    for (const auto& [x, heads] : {std::pair{&q, c.heads}, {&k, c.kv_heads}}) {
      turn.x = turn.y = x->tensor();
      if (c.keys_read && x == &k) turn.y = rotated.tensor();
      turn.heads = heads;
      LOOM_TRY(r.rope(turn));
    }
    const Tensor keys_rotated = c.keys_read ? rotated.tensor() : k.tensor();
    LOOM_TRY(r.kv_write({keys_rotated, v.tensor(), cache, c.first}));
    AttentionArgs a;
    a.q = q.tensor();
    a.y = mixed.tensor();
    a.cache = cache;
    a.heads = c.heads;
    a.first = c.first;
    a.length = c.first + 1;
    a.window = c.window;
    a.scale = 1.0f / std::sqrt(static_cast<float>(c.width));
    a.soft_cap = c.soft_cap;
    LOOM_TRY(r.attention(a));
    LOOM_TRY(r.matmul({mixed.tensor(), wo.tensor(), {}, out.tensor()}));
    LOOM_TRY(r.binary({before.tensor(), out.tensor(), sum.tensor(), BinaryKind::add}));
    for (const Rows* gone : {&q, &k, &mixed, &out}) LOOM_TRY(r.fill({gone->tensor(), 0.0f}));
    return {};
  }

  std::vector<const Rows*> results() const { return {&sum, &keys, &values, &rotated}; }

  // The values of a result: codes times steps in caches of q8_0.
  std::vector<float> numbers(const Rows& r) const {
    if (cache.dtype != DType::q8_0 || (&r != &keys && &r != &values)) return r.memory();
    const std::byte* bytes = r.tensor().data;
    const int64_t count = r.tensor().shape.count();
    std::vector<float> decoded;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t step = &r == &keys ? i / 512 * 16 + i % 16 : i / 32;
      uint16_t code = 0;
      std::memcpy(&code, bytes + count + 2 * step, 2);
      decoded.push_back(static_cast<float>(static_cast<int8_t>(bytes[i])) * f32_from_f16(code));
    }
    return decoded;
  }

 private:
  static constexpr int64_t kOut = 40;
  // All data is then in the first half of the memory.
  static void in_halves(const Tensor& side, DType dtype) {
    std::vector<uint16_t> codes;
    for (int64_t i = 0; i < side.shape.count(); ++i)
      codes.push_back(static_cast<uint16_t>(encode_value(dtype, side.f32()[i])));
    std::memset(side.data, 0, codes.size() * sizeof(float));
    std::memcpy(side.data, codes.data(), codes.size() * sizeof(uint16_t));
  }
  // Codes, followed by steps, in the first part of the memory.
  static void in_bytes(const Tensor& side) {
    const int64_t count = side.shape.count();
    for (int64_t i = 0; i < count; ++i)
      side.data[i] = static_cast<std::byte>(static_cast<int8_t>(i * 37 % 255 - 127));
    for (int64_t i = 0; i < count / 32; ++i) {
      const uint16_t step = static_cast<uint16_t>(0x2000 + i % 7 * 64);
      std::memcpy(side.data + count + 2 * i, &step, 2);
    }
    std::memset(side.data + count + count / 16, 0, static_cast<size_t>(count * 3 - count / 16));
  }
  static int64_t half(const Case& c) { return (c.rotary_dim > 0 ? c.rotary_dim : c.width) / 2; }
  Rows q, k, v, before, cos, sin;
  Packed wo;
  Rows mixed, out, sum, rotated;
  int64_t capacity;
  Rows keys, values;
  KvCache cache;
};

int64_t dispatches_of(Recorder& recorder, int64_t begin, int64_t end) {
  const int64_t before = gpu()->counts().dispatches;
  Status status = recorder.run(begin, end);
  if (status.ok()) status = gpu()->wait();
  EXPECT_TRUE(status.ok()) << status.error().str();
  return gpu()->counts().dispatches - before;
}

// The results after the list ran, as a whole or command by command; and the number of dispatches,
// without the fills.
std::vector<std::vector<float>> run(const Case& c, bool whole, int64_t* dispatches) {
  const Ops& ops = gpu()->ops();
  ThreadPool pool(1);
  const Token token(c);
  const auto attached = Attached::attach(ops.device, token.ranges(), MemoryUse::scratch, true);
  EXPECT_TRUE(attached.ok());
  Recorder recorder(ops, pool, c.mode);
  EXPECT_TRUE(recorder.reserve(64, 1, c.heads * c.width, c.first + 1).ok());
  EXPECT_TRUE(token.record(recorder, c).ok());
  const int64_t commands = recorder.commands();
  *dispatches = 0;
  for (int64_t i = 0; i < commands && !whole; ++i) dispatches_of(recorder, i, i + 1);
  if (whole) *dispatches = dispatches_of(recorder, 0, commands);
  *dispatches -= dispatches_of(recorder, commands - kFills, commands);
  std::vector<std::vector<float>> all;
  for (const Rows* r : token.results()) {
    EXPECT_TRUE(to_host(ops, {r->tensor()}).ok());
    all.push_back(token.numbers(*r));
  }
  return all;
}

constexpr auto kQ8 = ActivationMode::q8, kF32 = ActivationMode::f32;
constexpr Case kCases[] = {
    {DType::q4_0, kF32, 9, 3, 64, 0},
    {DType::q4_0, kF32, 9, 3, 64, 1},
    {DType::q4_0, kF32, 9, 3, 64, 63},
    {DType::q4_0, kF32, 9, 3, 64, 64},
    {DType::q4_0, kF32, 9, 3, 64, 200},
    {DType::q4_0, kF32, 9, 3, 64, 1023},
    // Two rounds, the last split has one.
    {DType::q4_0, kF32, 9, 3, 64, 1024},
    {DType::q8_0, kF32, 2, 1, 32, 1900},
    // Too many splits for every workgroup to join; then too many for a join.
    {DType::q4_0, kF32, 2, 1, 32, 4096, 0, 0, 0.0f, 3},
    {DType::q4_0, kF32, 2, 1, 32, 17000, 0, 0, 0.0f, 3},
    {DType::q4_0, kQ8, 4, 2, 32, 130},
    {DType::f32, kF32, 4, 1, 96, 90},
    {DType::bf16, kF32, 2, 2, 256, 70},
    {DType::q4_0, kF32, 4, 2, 32, 150, 40},
    {DType::q4_0, kF32, 4, 2, 32, 75, 0, 16},
    {DType::q4_0, kF32, 4, 2, 64, 75, 0, 0, 0.5f},
    {DType::q4_0, kF32, 4, 2, 32, 75, 0, 0, 0.0f, 2, true},
    {DType::q4_0, kF32, 4, 2, 32, 20, 0, 0, 0.0f, 2, true},
    {DType::q4_0, kF32, 9, 3, 64, 0, 0, 0, 0.0f, 2, false, DType::f16},
    {DType::q4_0, kF32, 9, 3, 64, 63, 0, 0, 0.0f, 2, false, DType::f16},
    {DType::q4_0, kF32, 9, 3, 64, 64, 0, 0, 0.0f, 2, false, DType::bf16},
    {DType::q8_0, kF32, 2, 1, 32, 1900, 0, 0, 0.0f, 2, false, DType::f16},
    {DType::q4_0, kF32, 4, 2, 32, 151, 40, 16, 0.0f, 2, true, DType::bf16},
    // With four positions per word, queries and keys are rotated and the cache is written first.
    {DType::q4_0, kF32, 9, 3, 64, 0, 0, 0, 0.0f, 3, false, DType::q8_0},
    {DType::q4_0, kF32, 9, 3, 64, 63, 0, 0, 0.0f, 3, false, DType::q8_0},
    {DType::q4_0, kF32, 9, 3, 64, 65, 0, 0, 0.0f, 3, false, DType::q8_0},
    {DType::q8_0, kF32, 2, 1, 32, 1902, 0, 0, 0.0f, 3, false, DType::q8_0},
    {DType::q4_0, kF32, 4, 2, 96, 151, 40, 16, 0.5f, 3, true, DType::q8_0},
};

TEST(GpuFusedAttention, ATokenLeavesWhatItsCommandsLeave) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  for (const Case& c :
       sampled("GpuFusedAttention", std::vector<Case>(std::begin(kCases), std::end(kCases)))) {
    int64_t dispatches = 0;
    const auto expected = run(c, false, &dispatches);
    const auto got = run(c, true, &dispatches);
    EXPECT_EQ(dispatches, c.dispatches) << name_of(c);
    for (size_t i = 0; i < expected.size(); ++i) {
      // Rounding may turn single codes of quantized rows.
      const double bound = c.mode == kQ8 && i == 0 ? 2e-3 : 1e-6;
      EXPECT_LE(distance(expected[i], got[i]), bound) << name_of(c) << ", value " << i;
    }
  }
}

TEST(GpuFusedAttention, RunsRepeatToTheBit) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  int64_t dispatches = 0;
  for (const Case& c : sampled("GpuFusedAttention", std::vector{kCases[4], kCases[7]})) {
    const auto first = run(c, true, &dispatches);
    EXPECT_EQ(first, run(c, true, &dispatches)) << name_of(c);
  }
}

}  // namespace
}  // namespace loom::core::test
