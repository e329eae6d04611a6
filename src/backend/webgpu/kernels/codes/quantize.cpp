// quantize_rows: eight invocations per block of 32 values, each with a word of four codes. Codes,
// scales and sums are those of the CPU: the largest magnitude is found on the bits, and the two
// quotients of a block are rounded by integer arithmetic.
#include "backend/webgpu/kernels/codes/quantize.hpp"
#include "backend/webgpu/kernels/kernels.hpp"
#include "base/numbers/checked.hpp"

namespace loom::core::webgpu {

constexpr std::string_view kQuantizeBlockText = R"(
var<workgroup> quantize_part: array<u32, lanes>;
// Subnormal values as integers, with their exponent, -149, in the bits of the other factor: devices
// may read 0, and compilers may join factors to one that is subnormal.
fn code_of(x: f32, inverse: f32) -> i32 {
  let bits = bitcast<u32>(x);
  let size = bits & 0x7fffffffu;
  var y = x * inverse;
  if (size < 0x800000u) {
    let other = bitcast<u32>(inverse);
    y = f32(size) * bitcast<f32>(select(0u, other - (149u << 23u), other >= (150u << 23u)));
    if (size != bits) { y = -y; }
  }
  return clamp(i32(round(y)), -127, 127);
}
fn quantize_block(x: vec4<f32>, block: u32, inside: bool, lane: u32) {
  let size = bitcast<vec4<u32>>(x) & vec4(0x7fffffffu);
  quantize_part[lane] = max(max(size.x, size.y), max(size.z, size.w));
  workgroupBarrier();
  let first = lane / 8u * 8u;
  var largest = 0u;
  for (var i = 0u; i < 8u; i++) { largest = max(largest, quantize_part[first + i]); }
  workgroupBarrier();
  // Blocks with an infinity or a NaN hold that as their scale; those too small to invert are zeros.
  var scale = select(0u, largest, largest >= 0x7f800000u);
  var inverse = 0u;
  if (largest != 0u && largest < 0x7f800000u) {
    inverse = divide_bits(0x42fe0000u, largest);
    if (inverse >= 0x7f800000u) { inverse = 0u; }
    if (inverse != 0u) { scale = divide_bits(largest, 0x42fe0000u); }
  }
  var codes = vec4(0);
  if (inverse != 0u) {
    let by = bitcast<f32>(inverse);
    codes = vec4(code_of(x.x, by), code_of(x.y, by), code_of(x.z, by), code_of(x.w, by));
  }
  quantize_part[lane] = u32(codes.x + codes.y + codes.z + codes.w);
  workgroupBarrier();
  if (inside) {
    let bytes = vec4<u32>(codes) & vec4(255u);
    codes_put(block * 8u + lane % 8u,
              bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u));
    if (lane == first) {
      let half = quantize_part[first] + quantize_part[first + 1u] + quantize_part[first + 2u] +
                 quantize_part[first + 3u];
      scales_put(block, scale);
      halves_put(block, half);
      sums_put(block, half + quantize_part[first + 4u] + quantize_part[first + 5u] +
                          quantize_part[first + 6u] + quantize_part[first + 7u]);
    }
  }
  workgroupBarrier();
}
)";
const std::string_view kQuantizeBlock = kQuantizeBlockText;

Call& quantized(Call& call, const Q8Rows& q) {
  return call.words("codes", q.codes, Access::write)
      .words("scales", q.scales, Access::write)
      .words("sums", q.sums, Access::write)
      .words("halves", q.half_sums, Access::write)
      .text(kQuantizeBlock);
}

namespace kernels {
namespace {

constexpr Kernel kQuantize{"quantize_rows", R"(
fn value_at(row: u32, k: u32) -> f32 {
  if (k >= p.cols) { return 0.0; }
  return x_at(row * p.x_s + k);
}
fn run(group: u32, lane: u32) {
  let block = group * (lanes / 8u) + lane / 8u;
  let inside = block < p.count;
  let row = block / p.blocks;
  let k = block % p.blocks * 32u + lane % 8u * 4u;
  var x = vec4(0.0);
  if (inside) {
    x = vec4(value_at(row, k), value_at(row, k + 1u), value_at(row, k + 2u), value_at(row, k + 3u));
  }
  quantize_block(x, block, inside, lane);
}
)"};

constexpr int kLanes = 64;

}  // namespace

Status quantize_rows(Frame& frame, const QuantizeRowsArgs& args) {
  const Q8Rows& q = args.q;
  const int64_t count = q.rows * q.blocks;
  if (count == 0) return {};
  Call call(frame, kQuantize);
  return quantized(call, q)
      .read("x", args.x)
      .value("cols", q.cols)
      .value("blocks", q.blocks)
      .value("count", count)
      .lanes(kLanes)
      .rows(ceil_div(count, int64_t{kLanes / 8}));
}

}  // namespace kernels
}  // namespace loom::core::webgpu
