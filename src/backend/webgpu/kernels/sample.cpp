// sample: a workgroup per row. Its invocations share the weights. One invocation computes the sums
// over at most 256 integers.
#include "ops/gradients/sampling.hpp"

#include "backend/webgpu/kernels/kernels.hpp"

namespace loom::core::webgpu::kernels {
namespace {

constexpr Kernel kSample{"sample", R"(
var<workgroup> weights: array<u32, most>;
// Of two values that draw takes for the same: NaN counts as -inf.
fn sample_key(v: f32) -> u32 { return max(key_of(v), 0x007fffffu); }
fn weight(v: f32, best: f32) -> u32 {
  if (sample_key(v) == sample_key(best)) { return one; }
  if (!is_finite(v) || !is_finite(best)) { return 0u; }
  return u32(min(loom_exp((v - best) / p.temperature) * f32(one) + 0.5, f32(one)));
}
fn drawn(row: u32) -> u32 {
  var total = 0u;
  for (var i = 0u; i < p.k; i++) { total += weights[i]; }
  let product = multiply_wide(p.share, total);
  let enough = ((product.y << 1u) | (product.x >> 31u)) + u32((product.x << 1u) != 0u);
  var mass = weights[0];
  var kept = 1u;
  while (kept < p.k && mass < enough && weights[kept] >= p.least) {
    mass += weights[kept];
    kept++;
  }
  let index = p.index_low + row;
  let u = philox(vec2(p.seed_low, p.seed_high), vec2<u32>(),
                 vec2(index, p.index_high + u32(index < row))).x;
  let goal = multiply_wide(u, mass).y;
  var i = 0u;
  var sum = weights[0];
  while (sum <= goal && i + 1u < kept) {
    i++;
    sum += weights[i];
  }
  return i;
}
fn run(row: u32, lane: u32) {
  let best = values_at(row * p.values_s);
  for (var i = lane; i < p.k; i += lanes) {
    weights[i] = weight(values_at(row * p.values_s + i), best);
  }
  workgroupBarrier();
  if (lane == 0u) { next_set(row, ids_at(row * p.ids_s + drawn(row))); }
}
)"};

}  // namespace

Status sample(Frame& frame, const SampleArgs& args) {
  return Call(frame, kSample)
      .read("values", args.values)
      .read("ids", args.ids)
      .write("next", args.next)
      .value("k", args.values.cols())
      .value("temperature", args.temperature)
      .value("share", int64_t{sample_share(args.top_p)})
      .value("least", int64_t{sample_least(args.min_p)})
      .value("seed_low", low_word(args.seed))
      .value("seed_high", high_word(args.seed))
      .value("index_low", low_word(args.index))
      .value("index_high", high_word(args.index))
      .constant("one", kDrawOne)
      .constant("most", SampleArgs::kMax)
      .rows(args.values.rows());
}

}  // namespace loom::core::webgpu::kernels
