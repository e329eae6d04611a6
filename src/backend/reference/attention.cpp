// rope, kv_write and attention: positions, the KV cache, and reading it back. The cache is f32, and
// with it the ops that use it.
// Scores and weighted sums are chains under rule 2 of docs/numerics.md (chunks of 256, for the
// weighted sum counted from the first visible position), the softmax follows rule 4. No visible
// position gives zeros. D head width, P positions; keys [G][P/16][D][16], values [G][P][D].
#include "backend/reference/chain.hpp"
#include "backend/reference/kernels.hpp"
#include "ops/fmath.hpp"

namespace loom::core::reference {
namespace {

int64_t key_index(const KvCache& cache, int64_t kv_head, int64_t position, int64_t d) {
  const int64_t group = kv_head * (cache.capacity / 16) + position / 16;
  return (group * cache.head_dim + d) * 16 + position % 16;
}

int64_t value_index(const KvCache& cache, int64_t kv_head, int64_t position, int64_t d) {
  return (kv_head * cache.capacity + position) * cache.head_dim + d;
}

// Positions row `row` may look at.
struct Visible {
  int64_t begin, end;
};
Visible visible(const AttentionArgs& args, int64_t row) {
  const int64_t after = args.first + row + 1;
  int64_t end = args.causal ? after : args.length;
  if (!args.causal && args.window > 0 && after - 1 + args.window < end) {
    end = after - 1 + args.window;
  }
  const int64_t begin = args.window > 0 && after > args.window ? after - args.window : 0;
  return {begin < end ? begin : end, end};
}

void attend(const AttentionArgs& args, int64_t row, int64_t head, float* scores) {
  const KvCache& cache = args.cache;
  const int64_t width = cache.head_dim;
  const int64_t kv_head = head / (args.heads / cache.kv_heads);
  const Visible seen = visible(args, row);
  const int64_t n = seen.end - seen.begin;
  const float* q = args.q.f32_row(row) + head * width;
  for (int64_t i = 0; i < n; ++i) {
    scores[i] = chunked_dot<float>(q, width, [&](int64_t d0, int64_t count, float* out) {
      for (int64_t d = 0; d < count; ++d)
        out[d] = cache.keys[key_index(cache, kv_head, seen.begin + i, d0 + d)];
    });
  }
  float scale = args.scale;
  if (args.soft_cap > 0) {
    const float cap = args.soft_cap;
    for (int64_t i = 0; i < n; ++i) scores[i] = fmath::tanh<float>(scores[i] * scale / cap) * cap;
    scale = 1.0f;
  }
  softmax_row<float>(scores, scale, n, scores);
  float* y = args.y.f32_row(row) + head * width;
  for (int64_t d = 0; d < width; ++d) {
    y[d] = chunked_dot<float>(scores, n, [&](int64_t i0, int64_t count, float* out) {
      for (int64_t i = 0; i < count; ++i) {
        out[i] = cache.values[value_index(cache, kv_head, seen.begin + i0 + i, d)];
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
    const int64_t position = args.first + (args.length > 0 ? r % args.length : r);
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
  const KvCache& cache = args.cache;
  const LaneRange rows = lane.range(args.k.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    for (int64_t head = 0; head < cache.kv_heads; ++head) {
      for (int64_t d = 0; d < cache.head_dim; ++d) {
        const int64_t from = head * cache.head_dim + d;
        cache.keys[key_index(cache, head, args.first + r, d)] = args.k.f32_row(r)[from];
        cache.values[value_index(cache, head, args.first + r, d)] = args.v.f32_row(r)[from];
      }
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
