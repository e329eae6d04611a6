#include "backend/webgpu/kernels/products/conv_shape.hpp"

#include "backend/webgpu/wgsl/weights.hpp"

namespace loom::core::webgpu {
namespace {

// Positions and taps hold their offsets on the three axes and, for x, in memory. So the location of
// a value is a sum of two. The shape is constant in a kernel: divisions by runtime numbers would be
// most of the work.
constexpr std::string_view kAxes = R"(
const nowhere = vec4<i32>(0, -1073741824, 0, 0);
const inputs = in0 * in1 * in2;
const outputs = out0 * out1 * out2;
fn input_offset(at: vec3<i32>) -> i32 { return (at.x * i32(in1) + at.y) * i32(in2) + at.z; }
fn output_offset(at: vec3<i32>) -> i32 { return (at.x * i32(out1) + at.y) * i32(out2) + at.z; }
fn tap_offsets(tap: u32) -> vec3<u32> {
  return vec3(tap / k2 / k1 * d0, tap / k2 % k1 * d1, tap % k2 * d2);
}
)";

// place.yzw + term.yzw, zeros outside. It has no branch, so many reads can be in flight.
constexpr std::string_view kSeenText = R"(
fn output_place(n: u32, count: u32, group: u32) -> vec4<i32> {
  if (n >= count) { return nowhere; }
  let o = n % outputs;
  let at = vec3<i32>(vec3(o / out2 / out1 * s0, o / out2 % out1 * s1, o % out2 * s2)) -
           vec3<i32>(vec3(p0, p1, p2));
  return vec4(i32(n / outputs * p.x_row + group * p.channels * inputs) + input_offset(at), at);
}
fn patch_term(k: u32, count: u32) -> vec4<i32> {
  if (k >= count) { return nowhere; }
  let at = vec3<i32>(tap_offsets(k % taps));
  return vec4(i32(k / taps * inputs) + input_offset(at), at);
}
fn seen(place: vec4<i32>, term: vec4<i32>) -> f32 {
  let at = vec3<u32>(place.yzw + term.yzw);
  let inside = all(at < vec3(in0, in1, in2));
  return select(0.0, x_at(select(0u, u32(place.x + term.x), inside)), inside);
}
)";

constexpr std::string_view kReachedText = R"(
fn input_place(n: u32, count: u32, group: u32) -> vec4<i32> {
  if (n >= count) { return nowhere; }
  let i = n % inputs;
  let at = vec3<i32>(vec3(i / in2 / in1 + p0, i / in2 % in1 + p1, i % in2 + p2));
  let begin = i32(n / inputs * p.dy_row + group * p.filters * outputs);
  return vec4(begin + select(output_offset(at), 0, strided == 1u), at);
}
fn tap_term(k: u32, count: u32) -> vec4<i32> {
  if (k >= count) { return -nowhere; }
  let at = vec3<i32>(tap_offsets(k / p.filters));
  return vec4(i32(k % p.filters * outputs) - select(output_offset(at), 0, strided == 1u), at);
}
fn reached(place: vec4<i32>, term: vec4<i32>) -> f32 {
  let from_tap = place.yzw - term.yzw;
  var at = vec3<u32>(from_tap);
  var offset = place.x + term.x;
  var inside = all(from_tap >= vec3(0));
  if (strided == 1u) {
    let stride = vec3(s0, s1, s2);
    at /= stride;
    inside = inside && all(at * stride == vec3<u32>(from_tap));
    offset += output_offset(vec3<i32>(at));
  }
  inside = inside && all(at < vec3(out0, out1, out2));
  return select(0.0, dy_at(select(0u, u32(offset), inside)), inside);
}
)";

int64_t strided(const ConvShape& s) {
  return s.stride[0] > 1 || s.stride[1] > 1 || s.stride[2] > 1 ? 1 : 0;
}

}  // namespace

const std::string_view kConvSeen = kSeenText;
const std::string_view kConvReached = kReachedText;

Call& conv_shape(Call& call, const ConvShape& s, const ConvProduct& product) {
  static constexpr std::string_view kNames[][3] = {{"in0", "in1", "in2"},
                                                   {"out0", "out1", "out2"},
                                                   {"s0", "s1", "s2"},
                                                   {"p0", "p1", "p2"},
                                                   {"d0", "d1", "d2"}};
  for (size_t a = 0; a < 3; ++a) {
    call.constant(kNames[0][a], s.in[a]).constant(kNames[1][a], s.out[a]);
    call.constant(kNames[2][a], s.stride[a]).constant(kNames[3][a], s.pad[a]);
    call.constant(kNames[4][a], s.dilation[a]);
  }
  return call.text(kAxes)
      .constant("k1", s.kernel[1])
      .constant("k2", s.kernel[2])
      .constant("taps", s.taps())
      .value("rows", product.rows)
      .value("columns", product.columns)
      .value("terms", product.terms);
}

Call& conv_operands(Call& call, const ConvArgs& args, const ConvProduct& product) {
  const ConvShape& s = args.shape;
  call.read("x", args.x).read("bias", args.bias).write("y", args.y);
  return conv_shape(weights(call, args.w), s, product)
      .text(kConvSeen)
      .value("x_row", args.x.row_stride)
      .value("channels", s.channels / s.groups)
      .value("groups", s.groups)
      .constant("kind", static_cast<int64_t>(args.activation));
}

Call& conv_dx_operands(Call& call, const ConvDxArgs& args, const ConvProduct& product) {
  const ConvShape& s = args.shape;
  call.read("dy", args.dy).read("bias", args.bias).update("dx", args.dx);
  return conv_shape(weights(call, args.w), s, product)
      .text(kConvReached)
      .value("dy_row", args.dy.row_stride)
      .value("filters", s.filters / s.groups)
      .value("groups", s.groups)
      .constant("strided", strided(s))
      .constant("accumulate", args.accumulate ? 1 : 0)
      .constant("kind", static_cast<int64_t>(args.activation));
}

Call& conv_dw_operands(Call& call, const ConvDwArgs& args, const ConvProduct& product) {
  const ConvShape& s = args.shape;
  call.read("x", args.x).read("dy", args.dy).update("dw", args.dw);
  return conv_shape(call, s, product)
      .text(kConvSeen)
      .value("x_row", args.x.row_stride)
      .value("dy_row", args.dy.row_stride)
      .value("channels", s.channels / s.groups)
      .value("groups", s.groups)
      .constant("accumulate", args.accumulate ? 1 : 0);
}

}  // namespace loom::core::webgpu
