// Attention of rows at positions of their own, in the manner of attend_one.cpp: 64 positions at a
// time. For the scores, 64 lanes are positions and the four lanes of each share the values of a
// key. For the sum, lanes are values and share the positions.
#include <algorithm>

#include "backend/webgpu/kernels/attention/attend.hpp"
#include "backend/webgpu/kernels/attention/attend_one.hpp"
#include "backend/webgpu/kernels/attention/cache.hpp"
#include "backend/webgpu/kernels/places.hpp"

namespace loom::core::webgpu {
namespace {

// Rounds of 64 positions in a stretch: a chunk of rule 2 of docs/numerics.md. There are more if a
// row would otherwise have more stretches than the lanes that join them.
constexpr int64_t kRounds = 4;

constexpr Kernel kAttendPlaced{"attend_placed", R"(
const quarter: u32 = (width + 3u) / 4u;
var<workgroup> stands: u32;
var<workgroup> query: array<f32, 4u * quarter>;
fn run(i: u32, lane: u32) {
  let split = i % p.splits;
  let head = i / p.splits % p.heads;
  let row = i / p.splits / p.heads;
  let kv_head = head / p.share;
  let one = lane % 64u;
  let slice = lane / 64u;
  let head_group = kv_head * (p.capacity / 16u);
  if (lane == 0u) { stands = position_of(row); }
  for (var d = lane; d < 4u * quarter; d += lanes) {
    query[d] = select(0.0, q_at(row * p.q_s + head * width + min(d, width - 1u)), d < width);
  }
  let position = workgroupUniformLoad(&stands);
  cache_base = base_of(row);
  let seen_begin = select(0u, position + 1u - p.window,
                          p.window > 0u && position + 1u > p.window);
  let begin = max(seen_begin / 64u * 64u, split * p.span);
  let end = min(position + 1u, (split + 1u) * p.span);
  var acc: array<f32, chunks>;
  let slope = slopes_at(head);
  let sink = has_sinks && split == 0u;
  var largest = select(lowest, sinks_at(head), sink);
  var sum = select(0.0, 1.0, sink);
  for (var start = begin; start < end; start += 64u) {
    // All of it is asked for before anything waits.
    let x = min(start + one, position);
    let key = (head_group + group_of(row, x / 16u)) * width * 16u + x % 16u;
    var key_part: array<f32, quarter>;
    for (var d = 0u; d < quarter; d++) {
      key_part[d] = key_number(key + min(slice * quarter + d, width - 1u) * 16u);
    }
    let group = min(start / 16u + slice, position / 16u);
    let value = (head_group + group_of(row, group)) * 16u;
    var value_part: array<f32, 16u * chunks>;
    for (var c = 0u; c < chunks; c++) {
      let d = min(c * 64u + one, width - 1u);
      for (var j = 0u; j < 16u; j++) {
        let at = min(start + slice * 16u + j, position) - group * 16u;
        value_part[c * 16u + j] = value_number((value + at) * width + d);
      }
    }
    var dot = 0.0;
    for (var d = 0u; d < quarter; d++) { dot += query[slice * quarter + d] * key_part[d]; }
    partial[lane] = dot;
    workgroupBarrier();
    let seen = slice == 0u && start + one >= seen_begin && start + one < end;
    var score = lowest;
    if (seen) { score = score_of(four_parts(one), slope, f32(position) - f32(start + one)); }
    let most = max(largest, group_max(lane, score));
    let e = select(0.0, loom_exp(score - most), seen);
    if (slice == 0u) { weight[one] = e; }
    let shrink = loom_exp(largest - most);
    sum = sum * shrink + group_sum(lane, e);
    largest = most;
    for (var c = 0u; c < chunks; c++) {
      var v = 0.0;
      for (var j = 0u; j < 16u; j++) { v += weight[slice * 16u + j] * value_part[c * 16u + j]; }
      acc[c] = acc[c] * shrink + v;
    }
  }
  let line_at = ((row * p.heads + head) * p.splits + split) * line;
  for (var c = 0u; c < chunks; c++) {
    workgroupBarrier();
    partial[lane] = acc[c];
    workgroupBarrier();
    let d = c * 64u + one;
    if (slice == 0u && d < width) {
      if (has_part) {
        part_set(line_at + d, four_parts(one));
      } else {
        y_set(row * p.y_row + head * width + d, select(0.0, four_parts(one) / sum, sum > 0.0));
      }
    }
  }
  if (has_part && lane == 0u) {
    part_set(line_at + line - 4u, largest);
    part_set(line_at + line - 3u, sum);
  }
}
)"};

struct Stretches {
  int64_t rounds, splits;
};

Status attend_rows(Frame& frame, const AttentionArgs& args, const Stretches& how) {
  const KvCache& cache = args.cache;
  const int64_t rows = args.q.rows(), splits = how.splits;
  BufferSlice part;
  if (splits > 1) {
    LOOM_ASSIGN(part, frame.temporary(join_bytes(args, splits)));
  }
  Call call(frame, kAttendPlaced);
  call.text(kFourSlices);
  at_positions(cache_numbers(call, cache), args.row_positions, 0, 0, &cache).read("q", args.q);
  call.read("slopes", args.slopes).read("sinks", args.sinks);
  if (splits > 1) {
    call.write("y", Tensor{}).floats("part", part, Access::write);
  } else {
    call.write("y", args.y).write("part", Tensor{});
  }
  LOOM_TRY(call.value("splits", splits)
               .value("heads", args.heads)
               .value("share", args.heads / cache.kv_heads)
               .value("capacity", cache.capacity)
               .value("span", how.rounds * 64)
               .value("window", std::min(args.window, int64_t{1} << 30))
               .value("scale", args.scale)
               .value("soft_cap", args.soft_cap)
               .value("y_row", args.y.row_stride)
               .constant("width", cache.head_dim)
               .constant("line", join_line(cache.head_dim))
               .lanes(256)
               .rows(rows * args.heads * splits));
  return splits > 1 ? join_splits(frame, args, splits, part) : Status{};
}

}  // namespace

// Takes as many rows at a time as keeps the memory of their stretches small.
Status attend_placed(Frame& frame, const AttentionArgs& args) {
  constexpr int64_t kMaxBytes = int64_t{32} << 20;
  const int64_t rows = args.q.rows();
  if (rows == 0 || args.length == 0) return {};
  const int64_t all = ceil_div(args.length, int64_t{64});
  Stretches how{std::max(kRounds, ceil_div(all, kAttendLanes)), 1};
  how.splits = ceil_div(all, how.rounds);
  const int64_t bytes = how.splits > 1 ? join_bytes(args, how.splits) / rows : 0;
  const int64_t most = bytes > 0 ? std::max<int64_t>(kMaxBytes / bytes, 1) : rows;
  for (int64_t row = 0; row < rows; row += most) {
    const int64_t count = std::min(most, rows - row);
    AttentionArgs some = args;
    some.q = args.q.slice_rows(row, count);
    some.y = args.y.slice_rows(row, count);
    some.row_positions = args.row_positions.slice_rows(row, count);
    LOOM_TRY(attend_rows(frame, some, how));
  }
  return {};
}

}  // namespace loom::core::webgpu
