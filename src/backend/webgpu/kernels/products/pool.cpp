// pool and pool_dx: an invocation makes one output, or one value of the gradient. It walks the taps
// of its window, or the outputs whose windows hold its value, in the order of the reference.
#include "backend/webgpu/kernels/kernels.hpp"
#include "ops/pooling.hpp"

namespace loom::core::webgpu::kernels {
namespace {

// Along axis `a`: the first position of window `o`, the number of taps inside of the input, and the
// number that an average counts.
constexpr std::string_view kSpans = R"(
const extents = vec3<i32>(i32(in0), i32(in1), i32(in2));
const outputs = vec3<i32>(i32(out0), i32(out1), i32(out2));
const kernels = vec3<i32>(i32(k0), i32(k1), i32(k2));
const strides = vec3<i32>(i32(s0), i32(s1), i32(s2));
const pads = vec3<i32>(i32(p0), i32(p1), i32(p2));
const steps = vec3<i32>(i32(d0), i32(d1), i32(d2));
const ends = vec3<i32>(i32(e0), i32(e1), i32(e2));
fn taps_below(room: i32, step: i32, kernel: i32) -> i32 {
  if (room <= 0) { return 0; }
  return min((room + step - 1) / step, kernel);
}
fn tap_step(step: i32) -> i32 {
  if (adaptive == 1u) { return 1; }
  return step;
}
struct Span { first: i32, count: i32, counted: i32 }
fn span_of(o: i32, in_: i32, out_: i32, kernel: i32, stride: i32, pad: i32, step: i32,
           end_: i32) -> Span {
  if (adaptive == 1u) {
    let first = o * in_ / out_;
    let count = ((o + 1) * in_ + out_ - 1) / out_ - first;
    return Span(first, count, count);
  }
  let start = o * stride - pad;
  let skipped = taps_below(-start, step, kernel);
  let count = max(taps_below(in_ - start, step, kernel), skipped) - skipped;
  return Span(start + skipped * step, count, taps_below(in_ + end_ - start, step, kernel));
}
fn span0(o: i32) -> Span {
  return span_of(o, extents.x, outputs.x, kernels.x, strides.x, pads.x, steps.x, ends.x);
}
fn span1(o: i32) -> Span {
  return span_of(o, extents.y, outputs.y, kernels.y, strides.y, pads.y, steps.y, ends.y);
}
fn span2(o: i32) -> Span {
  return span_of(o, extents.z, outputs.z, kernels.z, strides.z, pads.z, steps.z, ends.z);
}
fn divisor(a: Span, b: Span, c: Span) -> f32 {
  if (padded == 1u) { return f32(a.counted * b.counted * c.counted); }
  return f32(a.count * b.count * c.count);
}
)";

constexpr Kernel kPool{"pool", R"(
fn run(i: u32) {
  let outs = out0 * out1 * out2;
  let o = i32(i % outs);
  let plane = i / outs;
  let sample = plane / p.channels;
  let from_ = sample * p.x_row + plane % p.channels * in0 * in1 * in2;
  let to = plane % p.channels * outs + i % outs;
  let a = span0(o / outputs.z / outputs.y);
  let b = span1(o / outputs.z % outputs.y);
  let c = span2(o % outputs.z);
  var y = 0.0;
  var id = -1;
  for (var t0 = 0; t0 < a.count; t0++) {
    for (var t1 = 0; t1 < b.count; t1++) {
      let at0 = a.first + t0 * tap_step(steps.x);
      let row = (at0 * extents.y + b.first + t1 * tap_step(steps.y)) * extents.z;
      for (var t2 = 0; t2 < c.count; t2++) {
        let at = row + c.first + t2 * tap_step(steps.z);
        let x = x_at(from_ + u32(at));
        if (kind == 0u) {
          if (id < 0 || x > y || is_nan(x)) { y = x; id = at; }
        } else if (kind == 1u) {
          y += x;
        } else if (norm_p == 1u) {
          y += abs(x);
        } else {
          y += x * x;
        }
      }
    }
  }
  if (kind == 0u) {
    if (id < 0) { y = -infinity(); }
    if (has_ids) { ids_set(sample * p.ids_row + to, id); }
  } else if (kind == 1u) {
    let n = divisor(a, b, c);
    y = select(y / max(n, 1.0), 0.0, n == 0.0);
  } else if (norm_p == 2u) {
    y = sqrt(y);
  }
  y_set(sample * p.y_s + to, y);
}
)"};

// The outputs along an axis whose windows may hold position `at`: from x to y - 1. held() says
// whether one does.
constexpr Kernel kPoolDx{"pool_dx", R"(
fn reach(at: i32, in_: i32, out_: i32, kernel: i32, stride: i32, pad: i32, step: i32) -> vec2<i32> {
  if (adaptive == 1u) { return vec2(at * out_ / in_, ((at + 1) * out_ + in_ - 1) / in_); }
  let last = at + pad;
  let first = max(last - (kernel - 1) * step, 0);
  return vec2((first + stride - 1) / stride, min(last / stride + 1, out_));
}
fn held(at: i32, span: Span, step: i32) -> bool {
  let from_ = at - span.first;
  return from_ >= 0 && from_ % step == 0 && from_ / step < span.count;
}
fn run(i: u32) {
  let ins = in0 * in1 * in2;
  let outs = out0 * out1 * out2;
  let at = i32(i % ins);
  let plane = i / ins;
  let sample = plane / p.channels;
  let channel = plane % p.channels;
  let i0 = at / extents.z / extents.y;
  let i1 = at / extents.z % extents.y;
  let i2 = at % extents.z;
  let r0 = reach(i0, extents.x, outputs.x, kernels.x, strides.x, pads.x, steps.x);
  let r1 = reach(i1, extents.y, outputs.y, kernels.y, strides.y, pads.y, steps.y);
  let r2 = reach(i2, extents.z, outputs.z, kernels.z, strides.z, pads.z, steps.z);
  let x = x_at(sample * p.x_row + channel * ins + u32(at));
  var sum = 0.0;
  for (var o0 = r0.x; o0 < r0.y; o0++) {
    let a = span0(o0);
    if (!held(i0, a, tap_step(steps.x))) { continue; }
    for (var o1 = r1.x; o1 < r1.y; o1++) {
      let b = span1(o1);
      if (!held(i1, b, tap_step(steps.y))) { continue; }
      for (var o2 = r2.x; o2 < r2.y; o2++) {
        let c = span2(o2);
        if (!held(i2, c, tap_step(steps.z))) { continue; }
        let out_ = channel * outs + u32((o0 * outputs.y + o1) * outputs.z + o2);
        let dy = dy_at(sample * p.dy_row + out_);
        if (kind == 0u) {
          sum += select(0.0, dy, ids_at(sample * p.ids_row + out_) == at);
        } else if (kind == 1u) {
          sum += dy / divisor(a, b, c);
        } else if (norm_p == 1u) {
          sum += dy * sign(x);
        } else {
          let y = y_at(sample * p.y_row + out_);
          sum += select(dy * (x / y), 0.0, y == 0.0);
        }
      }
    }
  }
  dx_set(sample * p.dx_s + channel * ins + u32(at), sum);
}
)"};

template <class Args>
Call& pool_shape(Call& call, const Args& args) {
  static constexpr std::string_view kNames[][3] = {
      {"in0", "in1", "in2"}, {"out0", "out1", "out2"}, {"s0", "s1", "s2"}, {"p0", "p1", "p2"},
      {"d0", "d1", "d2"},    {"k0", "k1", "k2"},       {"e0", "e1", "e2"}};
  const ConvShape& s = args.shape;
  const bool adaptive = args.windows == PoolWindows::adaptive;
  for (size_t a = 0; a < 3; ++a) {
    call.constant(kNames[0][a], s.in[a]).constant(kNames[1][a], s.out[a]);
    call.constant(kNames[2][a], s.stride[a]).constant(kNames[3][a], s.pad[a]);
    call.constant(kNames[4][a], s.dilation[a]).constant(kNames[5][a], s.kernel[a]);
    call.constant(kNames[6][a], args.pad_end[a]);
  }
  return call.text(kSpans)
      .constant("adaptive", adaptive ? 1 : 0)
      .constant("padded", args.include_pad ? 1 : 0)
      .constant("kind", static_cast<int64_t>(args.kind))
      .constant("norm_p", args.p)
      .value("channels", s.channels);
}

// Positions and taps have 32 bits. With adaptive windows they are multiplied by extents.
template <class Args>
Status fits_words(const Args& args) {
  for (int a = 0; a < 3; ++a) {
    const ConvShape& s = args.shape;
    const int64_t reach = (s.out[a] + 1) * std::max(s.stride[a], s.in[a]) +
                          s.kernel[a] * s.dilation[a] + s.pad[a] + args.pad_end[a] + s.in[a];
    if (reach > INT32_MAX) return unsupported("pool: no kernel for extents this large");
  }
  return {};
}

}  // namespace

Status pool(Frame& frame, const PoolArgs& args) {
  LOOM_TRY(fits_words(args));
  Call call(frame, kPool);
  return pool_shape(call, args)
      .read("x", args.x)
      .write("y", args.y)
      .ids("ids", args.ids, Access::write)
      .value("x_row", args.x.row_stride)
      .value("ids_row", args.ids.row_stride)
      .items(args.y.shape.count());
}

Status pool_dx(Frame& frame, const PoolDxArgs& args) {
  LOOM_TRY(fits_words(args));
  Call call(frame, kPoolDx);
  return pool_shape(call, args)
      .read("dy", args.dy)
      .read("x", args.kind == PoolKind::lp ? args.x : Tensor{})
      .read("y", args.kind == PoolKind::lp ? args.y : Tensor{})
      .ids("ids", args.kind == PoolKind::max ? args.ids : Tensor{})
      .write("dx", args.dx)
      .value("dy_row", args.dy.row_stride)
      .value("x_row", args.x.row_stride)
      .value("y_row", args.y.row_stride)
      .value("ids_row", args.ids.row_stride)
      .items(args.dx.shape.count());
}

}  // namespace loom::core::webgpu::kernels
