// rope, kv_write and attention: positions, the KV cache, and reading it back. All values outside
// the cache are f32. The cache has its own type, and its values are decoded before use. Scores and
// weighted sums are chains under rule 2 of docs/numerics.md; the chunks of 256 of the weighted sum
// count from the first visible position. The softmax follows rule 4. A row without visible
// positions gives zeros. S sequences, D head width, P positions; keys [S][G][P/16][D][16], values
// [S][G][P][D].
#include <cstring>

#include "backend/reference/chain.hpp"
#include "backend/reference/kernels.hpp"
#include "base/numbers/bits.hpp"
#include "dtype/codecs/codec.hpp"
#include "ops/fmath.hpp"
#include "ops/recording/pages.hpp"

namespace loom::core::reference {
namespace {

// The location of the numbers of a position of one head, and of the steps of its blocks if it has
// any: the first, and the distance to the next. 4-bit numbers are counted in bytes of two: d and d
// + 16.
struct CacheLine {
  int64_t number, next_number, step, next_step;
};
int64_t columns(const KvCache& cache) {
  return dtype_info(cache.dtype).bits == 4 ? cache.head_dim / 2 : cache.head_dim;
}
CacheLine key_line(const KvCache& cache, const int32_t* pages, int64_t kv_head, int64_t position) {
  const int64_t group = kv_head * (cache.capacity / 16) + page_of(pages, position / 16);
  const int64_t lane = position % 16;
  return {group * columns(cache) * 16 + lane, 16, group * (cache.head_dim / 32) * 16 + lane, 16};
}
CacheLine value_line(const KvCache& cache, const int32_t* pages, int64_t kv_head,
                     int64_t position) {
  const int64_t page = page_of(pages, position / 16);
  const int64_t row = kv_head * cache.capacity + page * 16 + position % 16;
  return {row * columns(cache), 1, row * (cache.head_dim / 32), 1};
}

// The steps of one side of a sequence's cache follow its numbers.
std::byte* step_at(const KvCache& cache, std::byte* side, const CacheLine& line, int64_t d) {
  return side + plain_bytes(cache.dtype, Shape{cache.sequence_numbers()}) +
         (line.step + d / 32 * line.next_step) * 2;
}

float load_number(const KvCache& cache, std::byte* side, const CacheLine& line, int64_t d) {
  const DTypeInfo& info = dtype_info(cache.dtype);
  if (info.block > 0) {
    const int64_t column = info.bits == 4 ? d / 32 * 16 + d % 16 : d;
    const auto code = static_cast<uint8_t>(side[line.number + column * line.next_number]);
    const int level = info.bits == 4 ? (d % 32 < 16 ? code & 15 : code >> 4) - 8
                                     : static_cast<int>(static_cast<int8_t>(code));
    return static_cast<float>(level) *
           f32_from_f16(load_le<uint16_t>(step_at(cache, side, line, d)));
  }
  const int64_t at = line.number + d * line.next_number;
  if (info.bits == 32) return reinterpret_cast<const float*>(side)[at];
  const uint16_t code = load_le<uint16_t>(side + at * 2);
  return static_cast<float>(decode_value(cache.dtype, code));
}

// Writes the D numbers of one head at one position.
void store_head(const KvCache& cache, std::byte* side, const float* x, const CacheLine& line) {
  const DTypeInfo& info = dtype_info(cache.dtype);
  for (int64_t d = 0; info.block > 0 && d < cache.head_dim; d += info.block) {
    std::byte block[34];
    (info.bits == 4 ? encode_block_q4_0 : encode_block_q8_0)(x + d, block);
    std::memcpy(step_at(cache, side, line, d), block, 2);
    const int64_t bytes = info.block * info.bits / 8, first = d * info.bits / 8;
    for (int64_t i = 0; i < bytes; ++i)
      side[line.number + (first + i) * line.next_number] = block[2 + i];
  }
  if (info.block > 0) return;
  if (info.bits == 32) {
    float* to = reinterpret_cast<float*>(side) + line.number;
    for (int64_t d = 0; d < cache.head_dim; ++d) to[d * line.next_number] = x[d];
    return;
  }
  for (int64_t d = 0; d < cache.head_dim; ++d) {
    const auto code = static_cast<uint16_t>(encode_value(cache.dtype, static_cast<double>(x[d])));
    std::memcpy(side + (line.number + d * line.next_number) * 2, &code, 2);
  }
}

// Positions that a row at `position` may see.
struct Visible {
  int64_t begin, end;
};
Visible visible(const AttentionArgs& args, int64_t position) {
  const int64_t after = position + 1;
  int64_t end = args.causal ? after : args.length;
  if (!args.causal && args.window > 0 && after - 1 + args.window < end) {
    end = after - 1 + args.window;
  }
  const int64_t begin = args.window > 0 && after > args.window ? after - args.window : 0;
  return {begin < end ? begin : end, end};
}

// The input of the softmax, from q . k and the distance of the two positions.
float softmax_input(const AttentionArgs& args, int64_t head, float dot, int64_t distance) {
  float s = dot * args.scale;
  if (args.soft_cap > 0) s = fmath::tanh<float>(s / args.soft_cap) * args.soft_cap;
  if (args.slopes.empty()) return s;
  return s - args.slopes.f32()[head] * static_cast<float>(distance < 0 ? -distance : distance);
}

void attend(const AttentionArgs& args, int64_t row, int64_t head, float* scores) {
  const RowPosition row_position = place_of(args.row_positions, row, args.first);
  const KvCache cache = args.cache.sequence(row_position.sequence);
  const int32_t* pages = pages_of(args.row_positions, row);
  const int64_t width = cache.head_dim;
  const int64_t kv_head = head / (args.heads / cache.kv_heads);
  const Visible seen = visible(args, row_position.position);
  const int64_t n = seen.end - seen.begin;
  const float* q = args.q.f32_row(row) + head * width;
  for (int64_t i = 0; i < n; ++i) {
    const CacheLine key = key_line(cache, pages, kv_head, seen.begin + i);
    scores[i] = chunked_dot<float>(q, width, [&](int64_t d0, int64_t count, float* out) {
      for (int64_t d = 0; d < count; ++d) out[d] = load_number(cache, cache.keys, key, d0 + d);
    });
  }
  const bool has_sink = !args.sinks.empty();
  for (int64_t i = 0; i < n; ++i) {
    scores[i] = softmax_input(args, head, scores[i], row_position.position - (seen.begin + i));
  }
  if (has_sink) scores[n] = args.sinks.f32()[head];
  softmax_row<float>(scores, 1.0f, n + (has_sink ? 1 : 0), scores);
  float* y = args.y.f32_row(row) + head * width;
  for (int64_t d = 0; d < width; ++d) {
    y[d] = chunked_dot<float>(scores, n, [&](int64_t i0, int64_t count, float* out) {
      for (int64_t i = 0; i < count; ++i) {
        const CacheLine value = value_line(cache, pages, kv_head, seen.begin + i0 + i);
        out[i] = load_number(cache, cache.values, value, d);
      }
    });
  }
}

}  // namespace

template <class T>
void rope(const RopeArgs& args, const Lane& lane) {
  const int64_t width = args.x.cols() / args.heads;
  const int64_t rotary_dim = args.rotary_dim > 0 ? args.rotary_dim : width;
  const int64_t half = rotary_dim / 2;
  const LaneRange rows = lane.range(args.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t in_run = args.length > 0 ? r % args.length : r;
    const int64_t position = args.row_positions.empty()
                                 ? args.first + in_run
                                 : place_of(args.row_positions, r, 0).position;
    const float* cos = args.cos.row<float>(position);
    const float* sin = args.sin.row<float>(position);
    for (int64_t head = 0; head < args.heads; ++head) {
      const T* x = args.x.row<T>(r) + head * width;
      T* y = args.y.row<T>(r) + head * width;
      for (int64_t j = 0; j < half; ++j) {
        const T a = x[j], b = x[j + half];
        const T c = cos[j], s = args.inverse ? -sin[j] : sin[j];
        y[j] = a * c - b * s;
        y[j + half] = a * s + b * c;
      }
      for (int64_t j = rotary_dim; j < width; ++j) y[j] = x[j];
    }
  }
}
LOOM_REFERENCE_BODY(rope, RopeArgs);

template <class T>
void kv_write(const KvWriteArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.k.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const RowPosition row_position = place_of(args.row_positions, r, args.first);
    const KvCache cache = args.cache.sequence(row_position.sequence);
    const int32_t* pages = pages_of(args.row_positions, r);
    for (int64_t head = 0; head < cache.kv_heads; ++head) {
      const int64_t from = head * cache.head_dim;
      store_head(cache, cache.keys, args.k.f32_row(r) + from,
                 key_line(cache, pages, head, row_position.position));
      store_head(cache, cache.values, args.v.f32_row(r) + from,
                 value_line(cache, pages, head, row_position.position));
    }
  }
}
LOOM_REFERENCE_BODY_F32(kv_write, KvWriteArgs);

template <class T>
void attention(const AttentionArgs& args, const Lane& lane) {
  auto* scores = reinterpret_cast<float*>(lane.scratch);
  const LaneRange work = lane.range(args.q.rows() * args.heads);
  for (int64_t i = work.begin; i < work.end; ++i)
    attend(args, i / args.heads, i % args.heads, scores);
}
LOOM_REFERENCE_BODY_F32(attention, AttentionArgs);

}  // namespace loom::core::reference
