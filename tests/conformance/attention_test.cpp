// kv_write and attention: head groupings, widths on and off the fast path, windows, causal or not,
// ALiBi slopes and sinks. Positions around the groups of 16 and the chunks of 256, rows of several
// sequences, caches of every type. Memory that no position may read holds NaN.
#include "base/numbers/bits.hpp"
#include "base/text.hpp"
#include "conformance/support.hpp"
#include "dtype/codecs/codec.hpp"

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

// Slopes of ALiBi and sinks of each head; `which`: bit 0, bit 1.
struct PerHead {
  PerHead(int64_t heads, uint64_t which, uint64_t seed)
      : slopes(which & 1 ? heads : 0), sinks(which & 2 ? heads : 0) {
    for (size_t h = 0; h < slopes.size(); ++h) slopes[h] = 0.01f * static_cast<float>(h + seed % 5);
    for (size_t h = 0; h < sinks.size(); ++h)
      sinks[h] = 0.7f * static_cast<float>((h + seed) % 7) - 1.5f;
  }
  static Tensor tensor(std::vector<float>& values) {
    return values.empty() ? Tensor{}
                          : f32_vector(values.data(), static_cast<int64_t>(values.size()));
  }
  template <class Args>
  void put(Args& args) {
    args.slopes = tensor(slopes);
    args.sinks = tensor(sinks);
  }
  std::vector<float> slopes, sinks;
};

struct CacheMemory {
  CacheMemory(const Heads& h, int64_t positions, float unseen = __builtin_nanf(""))
      : capacity((positions + 15) / 16 * 16 + 16),
        keys(static_cast<size_t>(h.kv_heads * h.width * capacity), unseen),
        values(keys) {
    cache = f32_cache(keys.data(), values.data(), h.kv_heads, h.width, capacity);
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
  PerHead per_head(h.heads, seed % 4, seed);
  per_head.put(args);
  const std::string what =
      cat(h.heads, "/", h.kv_heads, " heads of ", h.width, ", ", span.rows, " rows from ",
          span.first, ", window ", span.window, span.causal ? ", causal" : "", ", cap ", soft_cap,
          args.slopes.empty() ? "" : ", slopes", args.sinks.empty() ? "" : ", sinks");
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

// Rows of several sequences, each at a position of its own. The reads, writes and results of each
// equal those with a separate cache of its sequence.
struct RaggedRow {
  int32_t sequence, position;
};
constexpr RaggedRow kRagged[] = {{2, 300}, {0, 0}, {3, 17}, {0, 1}, {1, 255}, {2, 301}, {1, 256}};

Ids ragged_positions() {
  Ids row_positions(std::size(kRagged), 2);
  size_t at = 0;
  for (const RaggedRow& row : kRagged) {
    row_positions.values()[at++] = row.sequence;
    row_positions.values()[at++] = row.position;
  }
  return row_positions;
}

// The memory of a cache with its own type; unwritten rows are zeros. Paged: one memory, from which
// each sequence has pages in arbitrary order.
struct TypedCache {
  TypedCache(const Heads& h, int64_t capacity, int64_t sequences, DType dtype, bool paged = false) {
    const int64_t spare = paged ? 48 : 0;
    cache = KvCache{nullptr,
                    nullptr,
                    h.kv_heads,
                    h.width,
                    capacity * (paged ? sequences : 1) + spare,
                    paged ? 1 : sequences,
                    dtype};
    keys.resize(static_cast<size_t>(cache.bytes()));
    values.resize(keys.size());
    cache.keys = keys.data();
    cache.values = values.data();
  }
  KvCache cache;
  std::vector<std::byte> keys, values;
};

Ids paged_positions(int64_t capacity, int64_t sequences) {
  const int64_t pages = capacity / 16, all = pages * sequences + 3;
  Ids row_positions(std::size(kRagged), 2 + pages);
  size_t at = 0;
  for (const RaggedRow& row : kRagged) {
    row_positions.values()[at++] = 0;
    row_positions.values()[at++] = row.position;
    for (int64_t i = 0; i < pages; ++i)
      row_positions.values()[at++] =
          static_cast<int32_t>(((row.sequence * pages + i) * 37 + 5) % all);
  }
  return row_positions;
}

// Numbers after rounding to a type.
std::vector<float> as_stored(DType dtype, const std::vector<float>& x) {
  std::vector<float> out = x;
  for (size_t i = 0; dtype_info(dtype).block > 0 && i + 32 <= x.size(); i += 32) {
    std::byte block[34];
    const bool narrow = dtype_info(dtype).bits == 4;
    (narrow ? encode_block_q4_0 : encode_block_q8_0)(x.data() + i, block);
    (narrow ? decode_block_q4_0 : decode_block_q8_0)(block, out.data() + i);
  }
  for (size_t i = 0; dtype_info(dtype).block == 0 && i < x.size(); ++i)
    out[i] = static_cast<float>(simulate(dtype, static_cast<double>(x[i]), {}));
  return out;
}

// One sequence in order, with a type of the cache's own. Checks the stored bits, and the attention
// over them after rows from `first` on were written after others.
void conform_typed(const Heads& h, const Span& span, DType dtype, uint64_t seed) {
  const int64_t cols = h.kv_heads * h.width, length = span.first + span.rows;
  const Rows before(span.first, cols, 0, seed, Values::smooth);
  const Rows k(span.rows, cols, 1, seed + 1, Values::smooth),
      v(span.rows, cols, 0, seed + 2, Values::smooth);
  const Rows q(span.rows, h.heads * h.width, 0, seed + 3, Values::smooth);
  const int64_t capacity = (length + 15) / 16 * 16 + 16;
  const std::string what = cat(dtype_name(dtype), ", ", h.heads, "/", h.kv_heads, " heads of ",
                               h.width, ", ", span.rows, " rows from ", span.first);
  expect_same_bits(what, [&](const Runner& run) {
    TypedCache memory(h, capacity, 1, dtype);
    const Rows y(span.rows, h.heads * h.width, 1);
    run(&Ops::kv_write, KvWriteArgs{before.tensor(), before.tensor(), memory.cache, 0});
    run(&Ops::kv_write, KvWriteArgs{k.tensor(), v.tensor(), memory.cache, span.first});
    AttentionArgs args{q.tensor(), y.tensor(),  memory.cache, h.heads,    span.first,
                       length,     span.window, 0.125f,       span.causal};
    run(&Ops::attention, args, length);
    Image image;
    image.add_bytes(memory.keys.data(), static_cast<int64_t>(memory.keys.size()));
    image.add_bytes(memory.values.data(), static_cast<int64_t>(memory.values.size()));
    image.add(y.memory());
    return image;
  });
}

void conform_ragged(const Heads& h, int64_t window, uint64_t seed, DType dtype) {
  constexpr auto kRows = static_cast<int64_t>(std::size(kRagged));
  constexpr int64_t kSequences = 4, kCapacity = 320;
  const int64_t cols = h.kv_heads * h.width;
  const Ids in_order = ragged_positions(), in_pages = paged_positions(kCapacity, kSequences);
  const Rows k(kRows, cols, 0, seed, Values::smooth), v(kRows, cols, 0, seed + 1, Values::smooth);
  const Rows q(kRows, h.heads * h.width, 3, seed + 2, Values::smooth);
  const std::string what = cat("ragged, ", dtype_name(dtype), ", ", h.heads, "/", h.kv_heads,
                               " heads of ", h.width, ", window ", window);
  PerHead per_head(h.heads, seed / 7 % 4, seed);
  std::vector<float> whole, paged;  // results of attention, of all rows at once
  const auto of_all = [&](const Runner& run, bool pages, std::vector<float>& found) {
    TypedCache memory(h, kCapacity, kSequences, dtype, pages);
    const Ids& row_positions = pages ? in_pages : in_order;
    run(&Ops::kv_write,
        KvWriteArgs{k.tensor(), v.tensor(), memory.cache, 0, row_positions.tensor()});
    const Rows y(kRows, h.heads * h.width, 1);
    AttentionArgs args{q.tensor(), y.tensor(), memory.cache, h.heads, 0, kCapacity, window, 0.125f};
    args.row_positions = row_positions.tensor();
    per_head.put(args);
    run(&Ops::attention, args, kCapacity);
    found = y.memory();
    Image image;
    image.add_bytes(memory.keys.data(), static_cast<int64_t>(memory.keys.size()));
    image.add_bytes(memory.values.data(), static_cast<int64_t>(memory.values.size()));
    image.add(y.memory());
    return image;
  };
  expect_same_bits(what, [&](const Runner& run) { return of_all(run, false, whole); });
  expect_same_bits(what + ", paged", [&](const Runner& run) { return of_all(run, true, paged); });
  if (whole.size() == paged.size()) {
    EXPECT_EQ(paged, whole) << what;  // both are empty if a case is skipped
  }
  if (tame_values()) return;  // bits of a device are its own
  // Each row alone, over a cache in f32 of the rounded numbers.
  std::vector<float> stored_k = as_stored(dtype, k.memory()),
                     stored_v = as_stored(dtype, v.memory());
  TypedCache memory(h, kCapacity, kSequences, DType::f32);
  const Rows y(kRows, h.heads * h.width, 1);
  const Runner run = reference_runner();
  for (int64_t r = 0; r < kRows; ++r) {
    const RaggedRow& row = kRagged[r];
    run(&Ops::kv_write, KvWriteArgs{f32_matrix(stored_k.data() + r * cols, 1, cols),
                                    f32_matrix(stored_v.data() + r * cols, 1, cols),
                                    memory.cache.sequence(row.sequence), row.position});
    AttentionArgs args{q.tensor().slice_rows(r, 1),
                       y.tensor().slice_rows(r, 1),
                       memory.cache.sequence(row.sequence),
                       h.heads,
                       row.position,
                       row.position + 1,
                       window,
                       0.125f};
    per_head.put(args);
    run(&Ops::attention, args, kCapacity);
  }
  EXPECT_EQ(y.memory(), whole) << what;
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
  for (const Heads& h : kHeads) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0}) {
      if (dtype_info(dtype).block > 0 && h.width % dtype_info(dtype).block != 0) continue;
      if (dtype == DType::q4_0 && tame_values()) continue;  // devices have no kernel for it
      for (const Span& span : kSpans) {
        if (span.rows > 0 && dtype != DType::f32) conform_typed(h, span, dtype, seed += 7);
      }
      conform_ragged(h, 0, seed += 7, dtype);
      conform_ragged(h, 30, seed += 7, dtype);
    }
  }
  // More rows than positions: some windows are empty.
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
