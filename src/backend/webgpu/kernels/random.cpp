// random: one invocation per block of Philox, whose four words serve four values. The words are
// exact. The values are computed in f32 here, and in f64 rounded once on the CPU. Logarithms and
// angles come directly from the integers, so nothing is lost near a logarithm of 0.
#include "backend/webgpu/kernels/kernels.hpp"
#include "base/numbers/checked.hpp"

namespace loom::core::webgpu::kernels {
namespace {

constexpr Kernel kRandom{"random", R"(
// log((2 w + 1) / 2^33), or with `whole` log((w + 1) / 2^32): of the fraction behind the leading
// one of a number of 33 bits, whose distance from 1 is exact.
fn log_of(w: u32, whole: bool) -> f32 {
  if (whole && w == 0xffffffffu) { return 0.0; }
  let v = select(w, w + 1u, whole);
  let z = countLeadingZeros(v);
  var fraction = 0u;
  if (v != 0u) { fraction = ((v << z) << 1u) | select(1u << z, 0u, whole); }
  var e = -1 - i32(z);
  var m = f32(fraction) * 0x1p-32;
  if (fraction > 0x6a09e667u) {
    e += 1;
    m = -f32(0u - fraction) * 0x1p-33;
  }
  return log_1p_reduced(m, f32(e));
}
// Cosine and sine of 2 pi w / 2^32: of the distance from the nearest quarter turn.
fn turn(w: u32) -> vec2<f32> {
  let quarter = (w + 0x20000000u) >> 30u;
  let x = f32(bitcast<i32>(w - (quarter << 30u))) * 1.462918079267160e-9;
  let z = x * x;
  var s = -1.9515295891e-4;
  s = s * z + 8.3321608736e-3;
  s = s * z - 1.6666654611e-1;
  s = s * z * x + x;
  var c = 2.443315711809948e-5;
  c = c * z - 1.388731625493765e-3;
  c = c * z + 4.166664568298827e-2;
  c = c * z * z - 0.5 * z + 1.0;
  switch (quarter & 3u) {
    case 0u: { return vec2(c, s); }
    case 1u: { return vec2(-s, c); }
    case 2u: { return vec2(-c, -s); }
    default: { return vec2(s, -c); }
  }
}
fn pair(w0: u32, w1: u32) -> vec2<f32> {
  switch (kind) {
    case 0u: { return vec2(f32(w0 >> 8u), f32(w1 >> 8u)) * 0x1p-24; }
    case 1u: { return sqrt(-2.0 * log_of(w0, true)) * turn(w1); }
    default: { return vec2(-loom_log(-log_of(w0, false)), -loom_log(-log_of(w1, false))); }
  }
}
fn put(i: u32, v: f32) {
  if (i < p.count) { y_set(i / p.cols * p.y_s + i % p.cols, v); }
}
fn run(block: u32) {
  var step = 0u;
  if (has_at) {
    let s = at_at(0u);
    if (s >= 0.0 && s < 16777216.0) { step = u32(s); }
  }
  let w = philox(vec2(p.seed_low, p.seed_high), vec2(p.stream_low, p.stream_high),
                 vec2(block, step << 8u));
  let a = pair(w.x, w.y);
  let b = pair(w.z, w.w);
  put(4u * block, a.x);
  put(4u * block + 1u, a.y);
  put(4u * block + 2u, b.x);
  put(4u * block + 3u, b.y);
}
)"};

}  // namespace

Status random(Frame& frame, const RandomArgs& args) {
  const int64_t count = args.y.shape.count();
  return Call(frame, kRandom)
      .write("y", args.y)
      .read("at", args.step)
      .value("cols", args.y.cols())
      .value("count", count)
      .value("seed_low", low_word(args.seed))
      .value("seed_high", high_word(args.seed))
      .value("stream_low", low_word(args.stream))
      .value("stream_high", high_word(args.stream))
      .constant("kind", static_cast<int64_t>(args.kind))
      .items(ceil_div(count, int64_t{4}));
}

}  // namespace loom::core::webgpu::kernels
