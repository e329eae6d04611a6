// Attention of one query row over a cache (a token of a language model). A workgroup has one head
// and 64 positions, or several rounds of 64. For the scores, 64 lanes are positions and the four
// lanes of each share the values of a key. For the sum, lanes are values and share the positions.
// Partial results of several workgroups are joined as in attention.cpp.
#include "backend/webgpu/kernels/attention/attend_one.hpp"

#include <algorithm>

#include "backend/webgpu/kernels/attention/attend.hpp"
#include "backend/webgpu/kernels/attention/cache.hpp"
#include "backend/webgpu/kernels/products/row_products.hpp"

namespace loom::core::webgpu {
namespace {

constexpr int64_t kLanes = 256;
// 64 positions a round. A joining dispatch costs about three rounds.
constexpr int64_t kMaxRounds = 4;

constexpr Kernel kAttendOne{"attend_one", R"(
var<workgroup> query: array<f32, width>;
var<workgroup> newest_key: array<f32, width>;
fn run(row: u32, lane: u32) {
  let head = row / p.splits;
  let kv_head = head / p.share;
  let one = lane % 64u;
  let slice = lane / 64u;
  let first = slice * (width / 4u);
  let last = max(p.cached, 1u) - 1u;
  var newest_value: array<f32, chunks>;
  var acc: array<f32, chunks>;
  let slope = slopes_at(head);
  let sink = has_sinks && row % p.splits == 0u;
  var largest = select(lowest, sinks_at(head), sink);
  var sum = select(0.0, 1.0, sink);
  for (var round = 0u; round < p.rounds; round++) {
    let start = p.begin + (row % p.splits * p.rounds + round) * 64u;
    let position = start + one;
    // All of it is asked for before anything waits.
    let x = min(position, last);
    let key = (kv_head * (p.capacity / 16u) + x / 16u) * width * 16u + x % 16u;
    var key_part: array<f32, width / 4u>;
    for (var d = 0u; d < width / 4u; d++) { key_part[d] = key_number(key + (first + d) * 16u); }
    var value_part: array<f32, 16u * chunks>;
    for (var c = 0u; c < chunks; c++) {
      let d = min(c * 64u + one, width - 1u);
      for (var j = 0u; j < 16u; j++) {
        let at = min(start + slice * 16u + j, last);
        value_part[c * 16u + j] = value_number((kv_head * p.capacity + at) * width + d);
      }
    }
    if (round == 0u) {
      for (var c = 0u; c < chunks; c++) {
        newest_value[c] = as_kept(value_of_newest(kv_head, min(c * 64u + one, width - 1u)));
      }
      for (var d = lane; d < width; d += lanes) {
        query[d] = query_of(head, d);
        newest_key[d] = as_kept(key_of_newest(kv_head, d));
      }
    }
    workgroupBarrier();
    var dot = 0.0;
    for (var d = 0u; d < width / 4u; d++) {
      dot += query[first + d] * select(key_part[d], newest_key[first + d], position == p.newest);
    }
    partial[lane] = dot;
    workgroupBarrier();
    let seen = slice == 0u && position >= p.seen_begin && position < p.seen_end;
    var score = lowest;
    if (seen) { score = score_of(four_parts(one), slope, f32(p.query_at) - f32(position)); }
    let most = max(largest, group_max(lane, score));
    let e = select(0.0, loom_exp(score - most), seen);
    if (slice == 0u) { weight[one] = e; }
    let shrink = loom_exp(largest - most);
    sum = sum * shrink + group_sum(lane, e);
    largest = most;
    for (var c = 0u; c < chunks; c++) {
      var v = 0.0;
      for (var j = 0u; j < 16u; j++) {
        let at = start + slice * 16u + j;
        var of_at = value_part[c * 16u + j];
        if (at >= p.cached) { of_at = select(0.0, newest_value[c], at == p.newest); }
        v += weight[slice * 16u + j] * of_at;
      }
      acc[c] = acc[c] * shrink + v;
    }
  }
  for (var c = 0u; c < chunks; c++) {
    workgroupBarrier();
    partial[lane] = acc[c];
    workgroupBarrier();
    let d = c * 64u + one;
    if (slice == 0u && d < width) {
      if (has_part) {
        part_set(row * line + d, four_parts(one));
      } else {
        y_set(head * width + d, select(0.0, four_parts(one) / sum, sum > 0.0));
      }
    }
  }
  if (has_part && lane == 0u) {
    part_set(row * line + line - 4u, largest);
    part_set(row * line + line - 3u, sum);
  }
  if (head % p.share == 0u && row % p.splits == p.splits - 1u) { keep_newest(kv_head, lane); }
}
)"};

// Query and cache, unchanged.
constexpr std::string_view kAsTheyAre = R"(
fn query_of(head: u32, d: u32) -> f32 { return q_at(head * width + d); }
fn key_of_newest(kv_head: u32, d: u32) -> f32 { return 0.0; }
fn value_of_newest(kv_head: u32, d: u32) -> f32 { return 0.0; }
fn keep_newest(kv_head: u32, lane: u32) {}
)";

// Rotates the query and the newest key, and writes the newest position to the cache. The last split
// of the first head that reads the position writes it; the cache copy is not read here.
constexpr std::string_view kWithNewest = R"(
fn rotated_value(a: f32, b: f32, j: u32, second: bool) -> f32 {
  let cosine = cos_at(p.turn * p.cos_s + j);
  let sine = p.sign * sin_at(p.turn * p.sin_s + j);
  return select(a * cosine - b * sine, a * sine + b * cosine, second);
}
fn query_of(head: u32, d: u32) -> f32 {
  let begin = head * width;
  if (d >= 2u * p.half) { return q_at(begin + d); }
  let j = d % p.half;
  return rotated_value(q_at(begin + j), q_at(begin + j + p.half), j, d >= p.half);
}
fn key_of_newest(kv_head: u32, d: u32) -> f32 {
  let begin = kv_head * width;
  if (d >= 2u * p.half) { return k_at(begin + d); }
  let j = d % p.half;
  return rotated_value(k_at(begin + j), k_at(begin + j + p.half), j, d >= p.half);
}
fn value_of_newest(kv_head: u32, d: u32) -> f32 { return v_at(kv_head * width + d); }
fn keep_newest(kv_head: u32, lane: u32) {
  let group = kv_head * (p.capacity / 16u) + p.newest / 16u;
  for (var d = lane; d < width; d += lanes) {
    keep_key((group * width + d) * 16u + p.newest % 16u, newest_key[d]);
    if (has_kept) { kept_set(kv_head * width + d, key_of_newest(kv_head, d)); }
  }
  for (var d = 2u * lane; d < width; d += 2u * lanes) {
    let own = kv_head * width + d;
    keep_values((kv_head * p.capacity + p.newest) * width + d, v_at(own), v_at(own + 1u));
  }
}
)";

constexpr std::string_view kFourSlicesText = R"(
const lowest = -3.4e38;
const chunks: u32 = (width + 63u) / 64u;
var<workgroup> weight: array<f32, 64>;
var<workgroup> partial: array<f32, 256>;
fn four_parts(one: u32) -> f32 {
  return (partial[one] + partial[one + 64u]) + (partial[one + 128u] + partial[one + 192u]);
}
fn score_of(dot: f32, slope: f32, distance: f32) -> f32 {
  var score = dot * p.scale;
  if (p.soft_cap > 0.0) { score = loom_tanh(score / p.soft_cap) * p.soft_cap; }
  return select(score, score - slope * abs(distance), has_slopes);
}
)";

void with_newest(Call& call, const RopeWrite& run) {
  const RopeArgs& q = *run.q;
  const KvCache& cache = run.write->cache;
  const int64_t rotary_dim = q.rotary_dim > 0 ? q.rotary_dim : cache.head_dim;
  cache_numbers(call, cache, Access::update)
      .text(kWithNewest)
      .read("q", q.x)
      .read("k", run.k->x)
      .read("v", run.write->v)
      .read("cos", q.cos)
      .read("sin", q.sin)
      .write("kept", run.kept)
      .value("half", rotary_dim / 2)
      .value("turn", q.first)
      .value("sign", q.inverse ? -1.0f : 1.0f);
}

}  // namespace

const std::string_view kFourSlices = kFourSlicesText;

OneRow one_row(const AttentionArgs& args) {
  const int64_t width = args.cache.head_dim, after = args.first + 1;
  OneRow row;
  if (args.window > 0 && after > args.window) row.begin = (after - args.window) / 16 * 16;
  const int64_t positions = args.length - row.begin;
  // At most as many splits as the products after the attention join themselves.
  const int64_t all = std::max<int64_t>(ceil_div(positions, kAttendLanes), 1);
  row.rounds = std::min(ceil_div(all, kMaxJoined), kMaxRounds);
  row.rounds = std::max(row.rounds, ceil_div(all, kAttendLanes));
  row.splits = ceil_div(all, row.rounds);
  row.fits = args.q.rows() == 1 && width % 4 == 0 && width <= 256 && positions > 0;
  return row;
}

Status attend_one(Frame& frame, const AttentionArgs& args, const OneRow& row,
                  const BufferSlice& part, const RopeWrite* run) {
  const KvCache& cache = args.cache;
  const int64_t after = args.first + 1;
  const int64_t end = args.causal ? after : args.length;
  Call call(frame, kAttendOne);
  call.text(kFourSlices);
  if (run != nullptr) {
    with_newest(call, *run);
  } else {
    cache_numbers(call, cache).text(kAsTheyAre).read("q", args.q);
  }
  if (row.splits > 1) {
    call.write("y", Tensor{}).floats("part", part, Access::write);
  } else {
    call.write("y", args.y).write("part", Tensor{});
  }
  const bool far = args.window > 0 && !args.causal;
  call.read("slopes", args.slopes).read("sinks", args.sinks).value("query_at", args.first);
  return call.value("splits", row.splits)
      .value("rounds", row.rounds)
      .value("begin", row.begin)
      .value("share", args.heads / cache.kv_heads)
      .value("cached", run != nullptr ? args.length - 1 : args.length)
      .value("newest", run != nullptr ? args.length - 1 : int64_t{UINT32_MAX})
      .value("capacity", cache.capacity)
      .value("seen_begin", args.window > 0 ? std::max<int64_t>(after - args.window, 0) : int64_t{0})
      .value("seen_end", far ? std::min(end, args.first + args.window) : std::min(end, args.length))
      .value("scale", args.scale)
      .value("soft_cap", args.soft_cap)
      .constant("width", cache.head_dim)
      .constant("line", join_line(cache.head_dim))
      .lanes(kLanes)
      .rows(args.heads * row.splits);
}

}  // namespace loom::core::webgpu
