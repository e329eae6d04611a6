// rope, kv_write, attention, attend. Scores never reach memory: a workgroup keeps the largest score
// and the sum of every query while it walks over the positions (Milakov and Gimelshein, 2018; Dao
// et al., 2022). Queries are (row, head) pairs that share keys and values, row by row. D head
// width.
#include "backend/webgpu/attend_text.hpp"
#include "backend/webgpu/kernels.hpp"

namespace loom::webgpu::kernels {
namespace {

// One invocation per pair that is turned, and per value that is kept.
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
  let position = p.first + select(r, r % p.run_length, p.run_length > 0u);
  let c = cos_at(position * p.cos_s + j);
  let s = p.sign * sin_at(position * p.sin_s + j);
  let a = x_at(x + j);
  let b = x_at(x + j + p.half);
  y_set(y + j, a * c - b * s);
  y_set(y + j + p.half, a * s + b * c);
}
)"};

constexpr Kernel kKvWrite{"kv_write", R"(
fn run(i: u32) {
  let r = i / p.cols;
  let c = i % p.cols;
  let head = c / p.head_width;
  let d = c % p.head_width;
  let position = p.first + r;
  let group = head * (p.capacity / 16u) + position / 16u;
  keys_set((group * p.head_width + d) * 16u + position % 16u, k_at(r * p.k_s + c));
  values_set((head * p.capacity + position) * p.head_width + d, v_at(r * p.v_s + c));
}
)"};

// Where keys and values are: in a cache, or in rows of their own with a mask. For the cache lanes
// read 16 neighbouring positions of a key at once.
constexpr std::string_view kFromCache = R"(
fn key_at(at: Place, position: u32, d: u32) -> f32 {
  let x = min(position, p.length - 1u);
  let group = at.kv_head * (p.capacity / 16u) + x / 16u;
  return keys_at((group * p.head_width + d) * 16u + x % 16u);
}
fn value_at(at: Place, position: u32, d: u32) -> f32 {
  return values_at((at.kv_head * p.capacity + position) * p.head_width + d);
}
fn hidden(at: Place, position: u32) -> bool { return false; }
)";
constexpr std::string_view kFromRows = R"(
fn key_at(at: Place, position: u32, d: u32) -> f32 {
  let row = at.sequence * p.rows + min(position, p.length - 1u);
  return k_at(row * p.k_s + at.kv_head * p.head_width + d);
}
fn value_at(at: Place, position: u32, d: u32) -> f32 {
  return v_at((at.sequence * p.rows + position) * p.v_s + at.kv_head * p.head_width + d);
}
fn hidden(at: Place, position: u32) -> bool {
  return has_mask && position < p.length && mask_at(at.sequence * p.mask_row + position) == 0.0;
}
)";

// A workgroup has a tile of queries and takes 64 positions at a time: lane j has the scores of
// position j, then value j of the sums (and j + 64, ...). The positions may be split over
// workgroups; then sums, largest score and sum of exponentials go to `part`.
constexpr Kernel kAttend{"attend", R"(
struct Place { sequence: u32, kv_head: u32, query: u32, start: u32 }
var<private> at: Place;
var<workgroup> origin: array<u32, size>;
var<workgroup> sees_from: array<vec4<u32>, quads>;
var<workgroup> sees_to: array<vec4<u32>, quads>;
var<workgroup> shut: array<u32, 64>;
var<workgroup> weight: array<vec4<f32>, 65u * quads>;
var<workgroup> partial: array<f32, 64>;
var<workgroup> largest: array<f32, size>;
var<workgroup> factor: array<f32, size>;
var<workgroup> sums: array<f32, size>;

fn tile_value(which: u32, i: u32, d: u32) -> f32 { return q_at(origin[i] + d); }
fn lane_value(which: u32, j: u32, d: u32) -> f32 { return key_at(at, at.start + j, d); }

// One lane per query, one per four of them.
fn begin_tile(lane: u32) {
  if (lane < size) {
    let query = min(at.query + lane, p.rows * p.share - 1u);
    let head = at.kv_head * p.share + query % p.share;
    origin[lane] = (at.sequence * p.rows + query / p.share) * p.q_s + head * p.head_width;
    largest[lane] = lowest;
    sums[lane] = 0.0;
  }
  if (lane < quads) {
    var begin: vec4<u32>;
    var end: vec4<u32>;
    for (var c = 0u; c < 4u; c++) {
      let row = (at.query + 4u * lane + c) / p.share;
      begin[c] = seen_begin(row);
      end[c] = select(0u, seen_end(row), row < p.rows);
    }
    sees_from[lane] = begin;
    sees_to[lane] = end;
  }
}

fn scores(lane: u32) -> array<vec4<f32>, quads> {
  var s = dots(0u, lane);
  let position = at.start + lane;
  let off = hidden(at, position);
  shut[lane] = u32(off);
  for (var v = 0u; v < quads; v++) {
    var x = s[v] * p.scale;
    if (p.soft_cap > 0.0) { x = tanh4(x / p.soft_cap) * p.soft_cap; }
    let on = (vec4(position) >= sees_from[v]) & (vec4(position) < sees_to[v]) & vec4(!off);
    s[v] = select(vec4(lowest), x, on);
    weight[v * 65u + lane] = s[v];
  }
  return s;
}

// Scores become weights under the largest score so far; factor: what older sums shrink by.
fn softmax_step(lane: u32) {
  var s = scores(lane);
  let q = lane % size;
  workgroupBarrier();
  var m = lowest;
  for (var j = lane / size; j < 64u; j += 64u / size) {
    m = max(m, weight[q / 4u * 65u + j][q % 4u]);
  }
  partial[lane] = m;
  workgroupBarrier();
  if (lane < size) {
    let old = largest[lane];
    m = old;
    for (var i = lane; i < 64u; i += size) { m = max(m, partial[i]); }
    largest[lane] = m;
    factor[lane] = loom_exp(old - m);
  }
  workgroupBarrier();
  for (var v = 0u; v < quads; v++) {
    let m4 = vec4(largest[4u * v], largest[4u * v + 1u], largest[4u * v + 2u],
                  largest[4u * v + 3u]);
    weight[v * 65u + lane] = select(exp4(s[v] - m4), vec4(0.0), s[v] <= vec4(lowest));
  }
  workgroupBarrier();
  var sum = 0.0;
  for (var j = lane / size; j < 64u; j += 64u / size) { sum += weight[q / 4u * 65u + j][q % 4u]; }
  partial[lane] = sum;
  workgroupBarrier();
  if (lane < size) {
    sum = 0.0;
    for (var i = lane; i < 64u; i += size) { sum += partial[i]; }
    sums[lane] = sums[lane] * factor[lane] + sum;
  }
}

fn store(i: u32, d: u32, split: u32, sum: f32) {
  let query = at.query + i;
  if (query >= p.rows * p.share) { return; }
  let row = at.sequence * p.rows + query / p.share;
  let head = at.kv_head * p.share + query % p.share;
  if (has_part) {
    let to = ((row * p.kv_heads * p.share + head) * p.splits + split) * (p.head_width + 2u);
    part_set(to + d, sum);
    if (d == 0u) {
      part_set(to + p.head_width, largest[i]);
      part_set(to + p.head_width + 1u, sums[i]);
    }
    return;
  }
  y_set(row * p.y_s + head * p.head_width + d, select(0.0, sum / sums[i], sums[i] > 0.0));
}

fn run(row: u32, lane: u32) {
  let split = row % p.splits;
  let first_query = row / p.splits % p.tiles * size;
  let head = row / p.splits / p.tiles;
  at = Place(head / p.kv_heads, head % p.kv_heads, first_query, 0u);
  begin_tile(lane);
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
      for (var j = first; j < last; j++) {
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

// Joins the splits of one query, at most 64, one per lane.
constexpr Kernel kJoin{"attention_join", R"(
var<workgroup> weight: array<f32, 64>;
fn run(row: u32, lane: u32) {
  let begin = row * p.splits * (p.head_width + 2u);
  let of_lane = begin + min(lane, p.splits - 1u) * (p.head_width + 2u);
  let sum = select(0.0, part_at(of_lane + p.head_width + 1u), lane < p.splits);
  let m = part_at(of_lane + p.head_width);
  let largest = group_max(lane, m);
  let f = select(0.0, loom_exp(m - largest), sum > 0.0);
  weight[lane] = f;
  let total = group_sum(lane, f * sum);
  for (var d = lane; d < p.head_width; d += lanes) {
    var x = 0.0;
    for (var s = 0u; s < p.splits; s++) {
      x += weight[s] * part_at(begin + s * (p.head_width + 2u) + d);
    }
    y_set(row / p.heads * p.y_s + row % p.heads * p.head_width + d,
          select(0.0, x / total, total > 0.0));
  }
}
)"};

// Work of an attention, as kAttend counts it.
struct Work {
  int64_t sequences, rows, heads, kv_heads, width;  // rows of a sequence
  int64_t first, length, window;
  bool causal;
  float scale, soft_cap;
  int64_t share() const { return heads / kv_heads; }
};

Call& describe(Call& call, const Work& work, const AttendTile& tile, int64_t tiles, bool staged) {
  constexpr int64_t kFar = int64_t{1} << 30;
  return call.text(kDots)
      .text(kSeen)
      .value("rows", work.rows)
      .value("head_width", work.width)
      .value("kv_heads", work.kv_heads)
      .value("share", work.share())
      .value("first", work.first)
      .value("length", work.length)
      .value("window", std::min(work.window, kFar))
      .value("scale", work.scale)
      .value("soft_cap", work.soft_cap)
      .value("tiles", tiles)
      .constant("causal", work.causal ? 1 : 0)
      .constant("quads", tile.quads)
      .constant("widths", tile.widths)
      .constant("depth", staged ? 16 : 64)
      .constant("staged", staged ? 1 : 0);
}

// Positions per workgroup: enough workgroups for a large device, the splits of a query no more than
// the lanes that join them. `groups`: workgroups without a split.
int64_t per_split(int64_t positions, int64_t groups) {
  constexpr int64_t kManyGroups = 128, kGroups = 2048, kStep = 64;
  if (groups >= kManyGroups || positions <= kStep) return std::max<int64_t>(positions, 1);
  const int64_t splits = std::min<int64_t>(kAttendLanes, kGroups / groups);
  return round_up(ceil_div(positions, splits), kStep);
}

}  // namespace

Status rope(Frame& frame, const RopeArgs& args) {
  const int64_t width = args.x.cols() / args.heads;
  const int64_t turned = args.turned > 0 ? args.turned : width;
  const int64_t units = turned / 2 + width - turned;
  return Call(frame, kRope)
      .read("x", args.x)
      .read("cos", args.cos)
      .read("sin", args.sin)
      .write("y", args.y)
      .value("units", units)
      .value("half", turned / 2)
      .value("heads", args.heads)
      .value("head_width", width)
      .value("first", args.first)
      .value("run_length", args.length)
      .value("sign", args.inverse ? -1.0f : 1.0f)
      .items(args.x.rows() * args.heads * units);
}

Status kv_write(Frame& frame, const KvWriteArgs& args) {
  if (args.k.rows() == 0) return {};
  const KvCache& cache = args.cache;
  return Call(frame, kKvWrite)
      .read("k", args.k)
      .read("v", args.v)
      .floats("keys", cache.keys, Access::write)
      .floats("values", cache.values, Access::write)
      .value("cols", args.k.cols())
      .value("head_width", cache.head_dim)
      .value("capacity", cache.capacity)
      .value("first", args.first)
      .items(args.k.rows() * args.k.cols());
}

Status attention(Frame& frame, const AttentionArgs& args) {
  const KvCache& cache = args.cache;
  const Work work{
      1,           args.q.rows(), args.heads,  cache.kv_heads, cache.head_dim, args.first,
      args.length, args.window,   args.causal, args.scale,     args.soft_cap};
  if (work.rows == 0) return {};
  const AttendTile tile(work.width, work.rows * work.share());
  const int64_t tiles = ceil_div(work.rows * work.share(), tile.size());
  const int64_t after = args.first + 1;
  const int64_t begin =
      args.window > 0 && after > args.window ? (after - args.window) / 16 * 16 : 0;
  const int64_t positions = std::max<int64_t>(args.length - begin, 0);
  const int64_t step = per_split(positions, tiles * work.kv_heads);
  const int64_t splits = std::max<int64_t>(ceil_div(positions, step), 1);
  Place part;
  if (splits > 1) {
    LOOM_ASSIGN(part, frame.temporary(work.rows * work.heads * splits * (work.width + 2) * 4));
  }
  Call call(frame, kAttend);
  call.text(kFromCache).read("q", args.q).read("mask", Tensor{});
  call.floats("keys", cache.keys).floats("values", cache.values);
  call.write("y", args.y);
  splits > 1 ? call.floats("part", part, Access::write) : call.write("part", Tensor{});
  LOOM_TRY(describe(call, work, tile, tiles, false)
               .value("capacity", cache.capacity)
               .value("begin", begin)
               .value("per_split", step)
               .value("splits", splits)
               .rows(splits * tiles * work.kv_heads));
  if (splits == 1) return {};
  return Call(frame, kJoin)
      .floats("part", part, Access::read)
      .write("y", args.y)
      .value("splits", splits)
      .value("head_width", work.width)
      .value("heads", work.heads)
      .rows(work.rows * work.heads);
}

Status attend(Frame& frame, const AttendArgs& args) {
  const int64_t length = args.q.rows() / args.sequences;
  const Work work{
      args.sequences, length,      args.heads, args.kv_heads, args.q.cols() / args.heads, 0, length,
      args.window,    args.causal, args.scale, args.soft_cap};
  if (length == 0) return {};
  const AttendTile tile(work.width, length * work.share());
  const int64_t tiles = ceil_div(length * work.share(), tile.size());
  Call call(frame, kAttend);
  call.text(kFromRows).read("q", args.q).read("k", args.k).read("v", args.v);
  call.read("mask", args.mask).write("y", args.y).write("part", Tensor{});
  return describe(call, work, tile, tiles, true)
      .value("mask_row", args.mask.row_stride)
      .value("begin", int64_t{0})
      .value("per_split", length)
      .value("splits", int64_t{1})
      .rows(tiles * work.kv_heads * work.sequences);
}

}  // namespace loom::webgpu::kernels
