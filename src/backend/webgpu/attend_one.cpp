// Attention of one query row over a cache (a token of a language model): a workgroup has one head
// and 64 positions. For the scores 64 lanes stand for positions and the four of each share the
// values of a key; for the sum they stand for values and share the positions. What several
// workgroups have of a head is joined as in attention.cpp.
#include "backend/webgpu/attend_one.hpp"
#include "backend/webgpu/attend.hpp"

namespace loom::webgpu {
namespace {

constexpr int64_t kLanes = 256;

constexpr Kernel kAttendOne{"attend_one", R"(
var<workgroup> query: array<f32, width>;
var<workgroup> weight: array<f32, 64>;
var<workgroup> partial: array<f32, 256>;
fn run(row: u32, lane: u32) {
  let head = row / p.splits;
  let start = p.begin + row % p.splits * 64u;
  let kv_head = head / p.share;
  let one = lane % 64u;
  let slice = lane / 64u;
  for (var d = lane; d < width; d += lanes) { query[d] = q_at(head * width + d); }
  workgroupBarrier();

  let position = start + one;
  let x = min(position, p.length - 1u);
  let key = (kv_head * (p.capacity / 16u) + x / 16u) * width * 16u + x % 16u;
  let first = slice * (width / 4u);
  var dot = 0.0;
  for (var d = 0u; d < width / 4u; d++) {
    dot += query[first + d] * keys_at(key + (first + d) * 16u);
  }
  partial[lane] = dot;
  workgroupBarrier();
  let seen = slice == 0u && position >= p.seen_begin && position < p.seen_end;
  var score = lowest;
  if (seen) {
    score = ((partial[one] + partial[one + 64u]) + (partial[one + 128u] + partial[one + 192u])) *
            p.scale;
    if (p.soft_cap > 0.0) { score = loom_tanh(score / p.soft_cap) * p.soft_cap; }
  }
  let largest = group_max(lane, score);
  let e = select(0.0, loom_exp(score - largest), seen);
  if (slice == 0u) { weight[one] = e; }
  let sum = group_sum(lane, e);

  let values = kv_head * p.capacity;
  for (var d0 = 0u; d0 < width; d0 += 64u) {
    let d = d0 + one;
    var v = 0.0;
    if (d < width) {
      for (var j = 0u; j < 16u; j++) {
        let at = slice * 16u + j;
        v += weight[at] * values_at((values + min(start + at, p.length - 1u)) * width + d);
      }
    }
    workgroupBarrier();
    partial[lane] = v;
    workgroupBarrier();
    if (slice == 0u && d < width) {
      let total = (partial[one] + partial[one + 64u]) + (partial[one + 128u] + partial[one + 192u]);
      if (has_part) {
        part_set(row * (width + 2u) + d, total);
      } else {
        y_set(head * width + d, select(0.0, total / sum, sum > 0.0));
      }
    }
  }
  if (has_part && lane == 0u) {
    part_set(row * (width + 2u) + width, largest);
    part_set(row * (width + 2u) + width + 1u, sum);
  }
}
)"};

constexpr std::string_view kLowest = "const lowest = -3.4e38;\n";

}  // namespace

bool attends_one(const AttentionArgs& args, int64_t positions) {
  const int64_t width = args.cache.head_dim;
  return args.q.rows() == 1 && width % 4 == 0 && width <= 1024 && positions > 0 &&
         positions <= kAttendLanes * kAttendLanes - kAttendLanes;
}

Status attend_one(Frame& frame, const AttentionArgs& args, int64_t begin, int64_t splits,
                  const Place& part) {
  const KvCache& cache = args.cache;
  const int64_t after = args.first + 1;
  const int64_t end = args.causal ? after : args.length;
  Call call(frame, kAttendOne);
  call.text(kLowest).read("q", args.q);
  call.floats("keys", cache.keys).floats("values", cache.values).write("y", args.y);
  splits > 1 ? call.floats("part", part, Access::write) : call.write("part", Tensor{});
  const bool far = args.window > 0 && !args.causal;
  return call.value("splits", splits)
      .value("begin", begin)
      .value("share", args.heads / cache.kv_heads)
      .value("length", args.length)
      .value("capacity", cache.capacity)
      .value("seen_begin", args.window > 0 ? std::max<int64_t>(after - args.window, 0) : int64_t{0})
      .value("seen_end", far ? std::min(end, args.first + args.window) : std::min(end, args.length))
      .value("scale", args.scale)
      .value("soft_cap", args.soft_cap)
      .constant("width", cache.head_dim)
      .lanes(kLanes)
      .rows(args.heads * splits);
}

}  // namespace loom::webgpu
