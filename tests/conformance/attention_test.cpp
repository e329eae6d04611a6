// kv_write and attention: head groupings, widths on and off the fast path, windows, causal or not,
// positions around the groups of 16 and the chunks of 256. Memory that no position may see holds
// NaN.
#include "base/bits.hpp"
#include "base/text.hpp"
#include "conformance/support.hpp"

namespace loom::core::test {
namespace {

struct Heads {
  int64_t heads, kv_heads, width;
};
constexpr Heads kHeads[] = {{1, 1, 16}, {4, 1, 64}, {3, 3, 80}, {9, 3, 64},
                            {8, 2, 32}, {10, 2, 8}, {2, 1, 20}, {5, 1, 272}};

struct Span {
  int64_t rows, first, window;
  bool causal;
};
constexpr Span kSpans[] = {{0, 0, 0, true},   {1, 0, 0, true},    {1, 15, 0, true},
                           {1, 16, 0, true},  {3, 0, 0, true},    {13, 5, 0, true},
                           {33, 0, 0, true},  {1, 254, 0, true},  {2, 255, 0, true},
                           {1, 300, 0, true}, {2, 530, 0, true},  {1, 40, 1, true},
                           {5, 3, 4, true},   {13, 20, 16, true}, {2, 300, 257, true},
                           {3, 0, 0, false},  {13, 0, 0, false},  {3, 20, 7, false}};

struct CacheMemory {
  CacheMemory(const Heads& h, int64_t positions, float unseen = __builtin_nanf(""))
      : capacity((positions + 15) / 16 * 16 + 16),
        keys(static_cast<size_t>(h.kv_heads * h.width * capacity), unseen),
        values(keys) {
    cache = KvCache{keys.data(), values.data(), h.kv_heads, h.width, capacity};
  }
  int64_t capacity;
  std::vector<float> keys, values;
  KvCache cache;
};

void conform_attention_of(const Heads& h, const Span& span, Values kind, uint64_t seed,
                          float soft_cap = 0.0f) {
  const int64_t length = span.first + span.rows;
  CacheMemory memory(h, length);
  const Rows k(length, h.kv_heads * h.width, 0, seed, kind),
      v(length, h.kv_heads * h.width, 0, seed + 1, kind);
  KvWriteArgs write{k.tensor(), v.tensor(), memory.cache, 0};
  reference_runner()(&Ops::kv_write, write);
  const Rows q(span.rows, h.heads * h.width, seed % 2 == 0 ? 0 : 3, seed + 2, kind);
  AttentionArgs args;
  args.q = q.tensor();
  args.cache = memory.cache;
  args.heads = h.heads;
  args.first = span.first;
  args.length = length;
  args.window = span.window;
  args.causal = span.causal;
  args.scale = 0.125f;
  args.soft_cap = soft_cap;
  const std::string what =
      cat(h.heads, "/", h.kv_heads, " heads of ", h.width, ", ", span.rows, " rows from ",
          span.first, ", window ", span.window, span.causal ? ", causal" : "", ", cap ", soft_cap);
  expect_same_bits(what, [&](const Runner& run) {
    const Rows y(span.rows, h.heads * h.width, 1);
    AttentionArgs mine = args;
    mine.y = y.tensor();
    run(&Ops::attention, mine, length);
    Image image;
    image.add(y.memory());
    return image;
  });
}

}  // namespace

void conform_kv_write() {
  uint64_t seed = 10;
  for (const Heads& h : kHeads) {
    for (const auto& span :
         {std::pair<int64_t, int64_t>{0, 3}, {1, 0}, {1, 15}, {2, 15}, {33, 7}}) {
      const int64_t rows = span.first, first = span.second;
      const Rows k(rows, h.kv_heads * h.width, 2, seed++, Values::wild);
      const Rows v(rows, h.kv_heads * h.width, 0, seed++, Values::wild);
      expect_same_bits(cat(rows, " rows at ", first), [&](const Runner& run) {
        // Images with NaN are not compared on devices.
        CacheMemory memory(h, first + rows, f32_from_bits(kPattern));
        run(&Ops::kv_write, KvWriteArgs{k.tensor(), v.tensor(), memory.cache, first});
        Image image;
        image.add(memory.keys);
        image.add(memory.values);
        return image;
      });
    }
  }
}

void conform_attention() {
  uint64_t seed = 60;
  for (const Heads& h : kHeads) {
    for (const Span& span : kSpans) {
      conform_attention_of(h, span, Values::smooth, seed);
      conform_attention_of(h, span, Values::mixed, seed + 3);
      conform_attention_of(h, span, Values::mixed, seed + 4, seed % 2 == 0 ? 50.0f : 0.3f);
      seed += 7;
    }
  }
  conform_attention_of({4, 2, 16}, {3, 14, 0, true}, Values::wild, 5);
  conform_attention_of({4, 2, 16}, {3, 0, 0, true}, Values::wild, 6);
  conform_attention_of({4, 2, 16}, {3, 14, 0, true}, Values::wild, 7, 2.0f);
  // More rows to look than there are positions: some windows are empty.
  for (int64_t window : {0, 2}) {
    const Heads h{2, 1, 16};
    CacheMemory memory(h, 0);
    const Rows q(6, 32, 0, 9, Values::smooth);
    expect_same_bits(cat("empty cache, window ", window), [&](const Runner& run) {
      const Rows y(6, 32);
      AttentionArgs args{q.tensor(), y.tensor(), memory.cache, 2, 0, 0, window, 1.0f, false};
      run(&Ops::attention, args);
      Image image;
      image.add(y.memory());
      return image;
    });
  }
}

}  // namespace loom::core::test
