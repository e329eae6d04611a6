// rope, attention, attend. Scores never reach memory: a workgroup keeps the largest score
// and the sum of every query while it walks over the positions (Milakov and Gimelshein, 2018; Dao
// et al., 2022). Queries are (row, head) pairs that share keys and values, row by row. D head
// width.
#include "backend/webgpu/kernels/attention/attend.hpp"
#include "backend/webgpu/kernels/attention/attend_one.hpp"
#include "backend/webgpu/kernels/attention/cache.hpp"
#include "backend/webgpu/kernels/attention/kv_write.hpp"
#include "backend/webgpu/kernels/kernels.hpp"
#include "backend/webgpu/kernels/places.hpp"

namespace loom::core::webgpu {
namespace {

// Joins the splits of one query, at most 64, one per lane.
constexpr Kernel kJoin{"attention_join", R"(
var<workgroup> weight: array<f32, 64>;
fn run(row: u32, lane: u32) {
  let begin = row * p.splits * p.line;
  let last = begin + min(lane + 1u, p.splits) * p.line - 4u;
  let sum = select(0.0, part_at(last + 1u), lane < p.splits);
  let m = part_at(last);
  let largest = group_max(lane, m);
  let f = select(0.0, loom_exp(m - largest), sum > 0.0);
  weight[lane] = f;
  let total = group_sum(lane, f * sum);
  for (var d = lane; d < p.head_width; d += lanes) {
    var x = 0.0;
    for (var s = 0u; s < p.splits; s++) {
      x += weight[s] * part_at(begin + s * p.line + d);
    }
    y_set(row / p.heads * p.y_s + row % p.heads * p.head_width + d,
          select(0.0, x / total, total > 0.0));
  }
}
)"};

}  // namespace

int64_t join_bytes(const AttentionArgs& args, int64_t splits) {
  return args.q.rows() * args.heads * splits * join_line(args.cache.head_dim) * 4;
}

Status join_splits(Frame& frame, const AttentionArgs& args, int64_t splits,
                   const BufferSlice& part) {
  return Call(frame, kJoin)
      .floats("part", part, Access::read)
      .write("y", args.y)
      .value("splits", splits)
      .value("line", join_line(args.cache.head_dim))
      .value("head_width", args.cache.head_dim)
      .value("heads", args.heads)
      .rows(args.q.rows() * args.heads);
}

namespace kernels {
namespace {

// One invocation per rotated pair, and per value that is copied.
constexpr Kernel kRope{"rope", R"(
fn run(i: u32) {
  let r = i / p.units / p.heads;
  let head = i / p.units % p.heads * p.head_width;
  let j = i % p.units;
  let x = r * p.x_s + head;
  let y = r * p.y_s + head;
  if (j >= p.half) {
    y_set(y + j + p.half, x_at(x + j + p.half));
    return;
  }
  let position = position_of(r);
  let c = cos_at(position * p.cos_s + j);
  let s = p.sign * sin_at(position * p.sin_s + j);
  let a = x_at(x + j);
  let b = x_at(x + j + p.half);
  y_set(y + j, a * c - b * s);
  y_set(y + j + p.half, a * s + b * c);
}
)"};

// Reads keys and values from a cache: adjacent lanes read adjacent positions of a key.
constexpr std::string_view kFromCache = R"(
fn key_at(at: RowAt, position: u32, d: u32) -> f32 {
  let x = min(position, p.length - 1u);
  let group = at.kv_head * (p.capacity / 16u) + x / 16u;
  return key_number((group * p.head_width + d) * 16u + x % 16u);
}
fn value_at(at: RowAt, position: u32, d: u32) -> f32 {
  return value_number((at.kv_head * p.capacity + position) * p.head_width + d);
}
fn hidden(at: RowAt, position: u32) -> bool { return false; }
)";

// A workgroup has a tile of queries and takes 64 positions at a time. Lane j has the scores of
// position j, then value j of the sums (and j + 64, ...). The positions may be split over
// workgroups; then sums, largest score and sum of exponentials go to `part`.
constexpr Kernel kAttend{"attend", R"(
fn tile_value(which: u32, i: u32, d: u32) -> f32 {
  return q_at(origin[i].x * p.q_s + origin[i].y + d);
}
fn lane_value(which: u32, j: u32, d: u32) -> f32 { return key_at(at, at.start + j, d); }

fn store(i: u32, d: u32, split: u32, sum: f32) {
  let query = at.query + i;
  if (query >= p.rows * p.share) { return; }
  let row = at.sequence * p.rows + query / p.share;
  let head = at.kv_head * p.share + query % p.share;
  if (has_part) {
    let to = ((row * p.kv_heads * p.share + head) * p.splits + split) * p.line;
    part_set(to + d, sum);
    if (d == 0u) {
      part_set(to + p.line - 4u, largest[i]);
      part_set(to + p.line - 3u, sums[i]);
    }
    return;
  }
  y_set(row * p.y_s + head * p.head_width + d, select(0.0, sum / sums[i], sums[i] > 0.0));
}

fn run(row: u32, lane: u32) {
  let split = row % p.splits;
  let first_query = row / p.splits % p.tiles * size;
  let head = row / p.splits / p.tiles;
  at = RowAt(head / p.kv_heads, head % p.kv_heads, first_query, 0u);
  begin_tile(lane, split);
  let last_query = min(first_query + size, p.rows * p.share) - 1u;
  let begin = max(seen_begin(first_query / p.share), p.begin + split * p.per_split);
  let end = min(seen_end(last_query / p.share), p.begin + (split + 1u) * p.per_split);
  var acc = array<vec4<f32>, quads * widths>();
  for (var start = begin / 16u * 16u; start < end; start += 64u) {
    at.start = start;
    softmax_step(lane);
    let first = max(begin, start) - start;
    let last = min(end - start, 64u);
    for (var w = 0u; w < widths; w++) {
      let d = w * 64u + lane;
      if (d >= p.head_width) { continue; }
      var sum = array<vec4<f32>, quads>();  // compilers miss it without
      var j = first;
      for (; !has_mask && j + 8u <= last; j += 8u) {
        let from_j = start + j;
        let a = vec4(value_at(at, from_j, d), value_at(at, from_j + 1u, d),
                     value_at(at, from_j + 2u, d), value_at(at, from_j + 3u, d));
        let b = vec4(value_at(at, from_j + 4u, d), value_at(at, from_j + 5u, d),
                     value_at(at, from_j + 6u, d), value_at(at, from_j + 7u, d));
        for (var v = 0u; v < quads; v++) {
          let begin_v = v * 65u + j;
          sum[v] += a.x * weight[begin_v];
          sum[v] += a.y * weight[begin_v + 1u];
          sum[v] += a.z * weight[begin_v + 2u];
          sum[v] += a.w * weight[begin_v + 3u];
          sum[v] += b.x * weight[begin_v + 4u];
          sum[v] += b.y * weight[begin_v + 5u];
          sum[v] += b.z * weight[begin_v + 6u];
          sum[v] += b.w * weight[begin_v + 7u];
        }
      }
      for (; j < last; j++) {
        let x = select(value_at(at, start + j, d), 0.0, has_mask && shut[j] != 0u);
        for (var v = 0u; v < quads; v++) { sum[v] += x * weight[v * 65u + j]; }
      }
      for (var v = 0u; v < quads; v++) {
        let i = 4u * v;
        let f = vec4(factor[i], factor[i + 1u], factor[i + 2u], factor[i + 3u]);
        acc[w * quads + v] = acc[w * quads + v] * f + sum[v];
      }
    }
  }
  workgroupBarrier();
  for (var w = 0u; w < widths; w++) {
    let d = w * 64u + lane;
    if (d >= p.head_width) { continue; }
    for (var v = 0u; v < quads; v++) {
      let sum = acc[w * quads + v];
      for (var c = 0u; c < 4u; c++) { store(4u * v + c, d, split, sum[c]); }
    }
  }
}
)"};

// Positions per workgroup. There are enough workgroups for a large device, and at most as many
// splits of a query as lanes that join them. `groups` is the number of workgroups without a split.
int64_t per_split(int64_t positions, int64_t groups) {
  constexpr int64_t kManyGroups = 128, kGroups = 2048, kStep = 64;
  if (groups >= kManyGroups || positions <= kStep) return std::max<int64_t>(positions, 1);
  const int64_t splits = std::min<int64_t>(kAttendLanes, kGroups / groups);
  return round_up(ceil_div(positions, splits), kStep);
}

}  // namespace

Status rope(Frame& frame, const RopeArgs& args) {
  const int64_t width = args.x.cols() / args.heads;
  const int64_t rotary_dim = args.rotary_dim > 0 ? args.rotary_dim : width;
  const int64_t units = rotary_dim / 2 + width - rotary_dim;
  Call call(frame, kRope);
  return at_positions(call, args.row_positions, args.first, args.length, nullptr)
      .read("x", args.x)
      .read("cos", args.cos)
      .read("sin", args.sin)
      .write("y", args.y)
      .value("units", units)
      .value("half", rotary_dim / 2)
      .value("heads", args.heads)
      .value("head_width", width)
      .value("sign", args.inverse ? -1.0f : 1.0f)
      .items(args.x.rows() * args.heads * units);
}

Status attention(Frame& frame, const AttentionArgs& args) {
  LOOM_TRY(known_cache("attention", args.cache));
  if (!args.row_positions.empty()) return attend_placed(frame, args);
  const KvCache& cache = args.cache;
  const AttendWork work{
      1,           args.q.rows(), args.heads,  cache.kv_heads, cache.head_dim, args.first,
      args.length, args.window,   args.causal, args.scale,     args.soft_cap};
  if (work.rows == 0) return {};
  AttendTile tile(work.width, work.rows * work.share());
  tile.fill(work.rows * work.share(), work.kv_heads);
  const int64_t tiles = ceil_div(work.rows * work.share(), tile.size());
  const OneRow row = one_row(args);
  const int64_t positions = std::max<int64_t>(args.length - row.begin, 0);
  const int64_t step = per_split(positions, tiles * work.kv_heads);
  const int64_t splits = row.fits ? row.splits : std::max<int64_t>(ceil_div(positions, step), 1);
  BufferSlice part;
  if (splits > 1) {
    LOOM_ASSIGN(part, frame.temporary(join_bytes(args, splits)));
  }
  if (row.fits) {
    LOOM_TRY(attend_one(frame, args, row, part));
  } else {
    Call call(frame, kAttend);
    cache_numbers(call, cache).text(kQueries).text(kFromCache);
    call.read("q", args.q).read("mask", Tensor{});
    call.read("slopes", args.slopes).read("sinks", args.sinks);
    call.write("y", args.y);
    splits > 1 ? call.floats("part", part, Access::write) : call.write("part", Tensor{});
    LOOM_TRY(describe(call, work, tile, tiles, false)
                 .value("capacity", cache.capacity)
                 .value("begin", row.begin)
                 .value("per_split", step)
                 .value("splits", splits)
                 .value("line", join_line(work.width))
                 .rows(splits * tiles * work.kv_heads));
  }
  return splits > 1 ? join_splits(frame, args, splits, part) : Status{};
}

Status attend(Frame& frame, const AttendArgs& args) {
  if (!args.row_positions.empty()) return unsupported("attend: no kernel for rows of documents");
  const int64_t length = args.q.rows() / args.sequences;
  const AttendWork work{
      args.sequences, length,      args.heads, args.kv_heads, args.q.cols() / args.heads, 0, length,
      args.window,    args.causal, args.scale, args.soft_cap};
  if (length == 0) return {};
  const AttendTile tile(work.width, length * work.share());
  const int64_t tiles = ceil_div(length * work.share(), tile.size());
  Call call(frame, kAttend);
  call.text(kQueries).text(kFromRows).read("q", args.q).read("k", args.k).read("v", args.v);
  call.read("mask", args.mask).write("y", args.y).write("part", Tensor{});
  call.read("slopes", args.slopes).read("sinks", args.sinks);
  return describe(call, work, tile, tiles, true)
      .value("mask_row", args.mask.row_stride)
      .value("begin", int64_t{0})
      .value("per_split", length)
      .value("splits", int64_t{1})
      .value("line", int64_t{0})
      .rows(tiles * work.kv_heads * work.sequences);
}

}  // namespace kernels
}  // namespace loom::core::webgpu
