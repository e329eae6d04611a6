// rope of queries and of keys and the cache write, for any number of rows. There is one invocation
// per rotated pair, per stored value and per value that is only copied.
#include "backend/webgpu/kernels/attention/rope_write.hpp"

#include "backend/webgpu/fusion/fuse.hpp"
#include "backend/webgpu/kernels/attention/cache.hpp"
#include "backend/webgpu/kernels/attention/kv_write.hpp"
#include "backend/webgpu/kernels/places.hpp"

namespace loom::core::webgpu {
namespace {

constexpr Kernel kRopeWrite{"rope_kv_write", R"(
fn key_set(row: u32, c: u32, v: f32) {
  if (has_kept) { kept_set(row * p.kept_row + c, v); }
  let position = kept_position(row);
  let group = c / p.head_width * (p.capacity / 16u) + group_of(row, position / 16u);
  keys_set(base_of(row) + (group * p.head_width + c % p.head_width) * 16u + position % 16u, v);
}
fn run(i: u32) {
  let query_items = p.heads * p.units;
  let row = i / (query_items + p.key_items + p.value_items);
  var j = i % (query_items + p.key_items + p.value_items);
  if (j >= query_items + p.key_items) {
    let c = j - query_items - p.key_items;
    let kept = kept_position(row);
    let place = c / p.head_width * p.capacity + group_of(row, kept / 16u) * 16u + kept % 16u;
    values_set(base_of(row) + place * p.head_width + c % p.head_width, v_at(row * p.v_s + c));
    return;
  }
  let key = j >= query_items;
  if (key) { j -= query_items; }
  let c = j / p.units * p.head_width + j % p.units;
  let one = j % p.units >= p.half;
  let to = c + select(0u, p.half, one);
  if (one) {
    if (key) {
      key_set(row, to, k_at(row * p.k_s + to));
    } else {
      y_set(row * p.y_s + to, q_at(row * p.q_s + to));
    }
    return;
  }
  let position = position_of(row);
  let cosine = cos_at(position * p.cos_s + j % p.units);
  let sine = p.sign * sin_at(position * p.sin_s + j % p.units);
  if (key) {
    let a = k_at(row * p.k_s + c);
    let b = k_at(row * p.k_s + c + p.half);
    key_set(row, c, a * cosine - b * sine);
    key_set(row, c + p.half, a * sine + b * cosine);
  } else {
    let a = q_at(row * p.q_s + c);
    let b = q_at(row * p.q_s + c + p.half);
    y_set(row * p.y_s + c, a * cosine - b * sine);
    y_set(row * p.y_s + c + p.half, a * sine + b * cosine);
  }
}
)"};

constexpr std::string_view kInOrder = R"(
fn kept_position(row: u32) -> u32 { return p.position + row; }
)";
constexpr std::string_view kAtPlaces = R"(
fn kept_position(row: u32) -> u32 { return position_of(row); }
)";

int64_t rotary_dim_of(const RopeArgs& r) {
  return r.rotary_dim > 0 ? r.rotary_dim : r.x.cols() / r.heads;
}

bool alike(const RopeArgs& q, const RopeArgs& k) {
  return q.row_positions.data == k.row_positions.data &&
         q.x.cols() / q.heads == k.x.cols() / k.heads && rotary_dim_of(q) == rotary_dim_of(k) &&
         q.first == k.first && q.length == k.length && q.inverse == k.inverse &&
         q.cos.data == k.cos.data && q.sin.data == k.sin.data && q.x.rows() == k.x.rows();
}

}  // namespace

bool take_rope_write(const Frame& frame, std::span<const Command> rest, RopeWrite& run) {
  const auto* q = args_at<RopeArgs>(rest, 0);
  const auto* k = args_at<RopeArgs>(rest, 1);
  const auto* write = args_at<KvWriteArgs>(rest, 2);
  if (q == nullptr || k == nullptr || write == nullptr || !alike(*q, *k)) return false;
  if (write->row_positions.data != q->row_positions.data || !reads_cache(write->cache))
    return false;
  run = {q, k, write, !frame.rows_alone() && dead(rest.subspan(3), k->y) ? Tensor{} : k->y};
  return write->k.data == k->y.data && write->k.rows() == k->y.rows() && k->x.rows() > 0 &&
         write->cache.head_dim == k->x.cols() / k->heads;
}

namespace {

// With narrow types several positions share a word, which several invocations would write.
Result<int64_t> rope_into_words(Frame& frame, const RopeWrite& run) {
  const RopeArgs& q = *run.q;
  const bool together = q.first == run.write->first && (q.length == 0 || q.length == q.x.rows());
  if (q.heads % run.k->heads != 0 || run.k->heads != run.write->cache.kv_heads || !together) {
    return 0;
  }
  LOOM_TRY(kv_write_shared(frame, *run.write, &run));
  return 3;
}

}  // namespace

Result<int64_t> fuse_rope(Frame& frame, std::span<const Command> rest) {
  RopeWrite run;
  if (!take_rope_write(frame, rest, run)) return 0;
  const auto& [q, k, write, kept] = run;
  for (const Tensor* input : {&q->x, &k->x, &write->v}) {
    const bool same =
        input == &q->x && q->y.data == q->x.data && q->y.row_stride == q->x.row_stride;
    if (overlap(q->y, *input) && !same) return 0;
    if (overlap(kept, *input)) return 0;
  }
  if (write->cache.dtype != DType::f32) return rope_into_words(frame, run);
  const int64_t width = q->x.cols() / q->heads,
                rotary_dim = q->rotary_dim > 0 ? q->rotary_dim : width;
  const int64_t units = rotary_dim / 2 + width - rotary_dim;
  const int64_t items = q->heads * units + k->heads * units + write->v.cols();
  Call call(frame, kRopeWrite);
  call.text(write->row_positions.empty() ? kInOrder : kAtPlaces);
  LOOM_TRY(at_positions(call, write->row_positions, q->first, q->length, &write->cache)
               .read("q", q->x)
               .read("k", k->x)
               .read("v", write->v)
               .read("cos", q->cos)
               .read("sin", q->sin)
               .write("y", q->y)
               .write("kept", kept)
               .floats("keys", write->cache.f32_keys(), Access::write)
               .floats("values", write->cache.f32_values(), Access::write)
               .value("kept_row", kept.row_stride)
               .value("heads", q->heads)
               .value("units", units)
               .value("half", rotary_dim / 2)
               .value("head_width", width)
               .value("key_items", k->heads * units)
               .value("value_items", write->v.cols())
               .value("sign", q->inverse ? -1.0f : 1.0f)
               .value("position", write->first)
               .value("capacity", write->cache.capacity)
               .items(q->x.rows() * items));
  return 3;
}

}  // namespace loom::core::webgpu
