// Codes of a packed type: the quotient of a value and a step as an exact ratio, and the code
// nearest to it (src/dtype/elements.hpp). The CPU rounds the quotient to 53 bits, yet both
// quotients have the same nearest code. No quotient of two f32 is that close to the middle of two
// codes without being on it.
#include "backend/webgpu/kernels/codes/pack.hpp"

namespace loom::core::webgpu {

// Constants: coder (see pack.cpp); dithered: 0, 1, or 2 if there is a step; values: see
// with_coder() in pack.cpp. Needs kFloat64 before it.
const std::string_view kCodes = R"(
// m / 2^31 * 2^e, the last bit of m being set when what follows it is not zero; m 0: zero.
struct Ratio { m: u32, e: i32, negative: bool, nan: bool }
fn ratio_of(x: u32, step: u32) -> Ratio {
  var q = Ratio(0u, -10000, (x >> 31u) == 1u, false);
  let a = x & 0x7fffffffu;
  if (a == 0u) { return q; }
  if (a >= 0x7f800000u) {
    q.nan = a > 0x7f800000u;
    q.m = 0x80000000u;
    q.e = 10000;
    return q;
  }
  let za = select(0u, countLeadingZeros(a) - 8u, a < 0x800000u);
  let zb = select(0u, countLeadingZeros(step) - 8u, step < 0x800000u);
  var rest = select((a & 0x7fffffu) | 0x800000u, a << za, a < 0x800000u);
  let by = select((step & 0x7fffffu) | 0x800000u, step << zb, step < 0x800000u);
  q.e = i32(max(a >> 23u, 1u)) - i32(za) - i32(max(step >> 23u, 1u)) + i32(zb);
  if (rest < by) {
    rest = rest << 1u;
    q.e -= 1;
  }
  if (step == 0x3f800000u) {
    q.m = rest << 8u;
    return q;
  }
  for (var i = 0; i < 31; i++) {
    q.m = q.m << 1u;
    if (rest >= by) {
      rest -= by;
      q.m |= 1u;
    }
    rest = rest << 1u;
  }
  q.m = (q.m << 1u) | select(0u, 1u, rest != 0u);
  return q;
}
// The integer nearest to |q| 2^scale, ties to even; large ones become 2^31.
fn nearest(q: Ratio, scale: i32) -> u32 {
  let s = 31 - q.e - scale;
  if (q.m == 0u || s > 32) { return 0u; }
  if (s <= 0) { return 0x80000000u; }
  if (s == 32) { return select(0u, 1u, q.m > 0x80000000u); }
  let half = 1u << u32(s - 1);
  let kept = q.m >> u32(s);
  let rest = q.m & (2u * half - 1u);
  return kept + select(0u, 1u, rest > half || (rest == half && (kept & 1u) == 1u));
}
// Floats of `mantissa` bits from 2^lowest on; above the largest: that, or infinity (p.top).
fn float_code(q: Ratio, x: u32) -> u32 {
  if (q.nan) {
    return select(p.nan, p.nan_negative, q.negative) | ((x & 0x7fffffu) >> p.nan_shift);
  }
  let lowest = bitcast<i32>(p.lowest);
  let e = max(q.e, lowest);
  var field = p.top;
  if (e < 200) {
    field = min((u32(e - lowest) << p.mantissa) + nearest(q, i32(p.mantissa) - e), p.top);
  }
  return field | select(0u, p.sign, q.negative);
}
fn integer_code(q: Ratio, zero: i32) -> u32 {
  if (q.nan) { return u32(zero) + p.bias; }
  let limit = select(bitcast<i32>(p.top) - zero, zero - bitcast<i32>(p.bottom), q.negative);
  let n = i32(min(nearest(q, 0), u32(limit)));
  return u32(select(zero + n, zero - n, q.negative)) + p.bias;
}
// Twice the middles of NF4 levels, by 2^29; an odd number lies between two of them.
const kMiddles = array<i32, 15>(-910636576, -655662112, -493916160, -364728016, -251907784,
  -148081596, -48882116, 42724348, 129123092, 218529280, 313547400, 418021152, 538656992,
  690187200, 925005408);
fn nf4_code(q: Ratio) -> u32 {
  if (q.nan) { return 7u; }
  var v = 0u;
  if (q.e > 0) { v = 0x7fffffffu; } else if (q.e > -30) {
    let s = u32(2 - q.e);
    v = ((q.m >> s) << 1u) | select(0u, 1u, (q.m & ((1u << s) - 1u)) != 0u);
  }
  let at = select(i32(v), -i32(v), q.negative);
  var middles = kMiddles;
  var code = 0u;
  for (var half = 8u; half > 0u; half /= 2u) {
    let below = code + half - 1u;
    if (at > middles[below] || (at == middles[below] && (below & 1u) != 0u)) { code += half; }
  }
  return code;
}
// GGUF multiplies by the inverse in f32; the product is kept apart from the sum that follows.
fn gguf_code(x: u32, inverse: u32) -> u32 {
  let a = x & 0x7fffffffu;
  let negative = ((x ^ inverse) >> 31u) == 1u;
  let whole = (inverse & 0x7fffffffu) >= 0x7f800000u;
  if (a > 0x7f800000u || (whole && a == 0u)) { return p.bias; }
  if (a == 0x7f800000u || whole) {
    if (inverse == 0u) { return p.bias; }
    return select(2u * p.bias - 1u, 0u, negative);
  }
  let product = bitcast<f32>(x) * bitcast<f32>(inverse);
  let t = bitcast<f32>(bitcast<u32>(product) ^ p.none);
  if (coder == 4u) { return u32(clamp(t + 8.5, 0.0, 15.0)); }
  let c = clamp(t, -128.0, 127.0);
  let n = i32(c);
  let rest = c - f32(n);
  return u32(n + select(0, 1, rest >= 0.5) - select(0, 1, rest <= -0.5) + 128);
}

var<private> drawn_block: u32 = 0xffffffffu;
var<private> drawn: vec4<u32>;
// x plus a uniform number from half a spacing of the type below to half above; `index` is that of
// the value in the matrix.
fn dither(x: u32, step: u32, index: u32) -> u32 {
  if ((x & 0x7f800000u) == 0x7f800000u) { return x; }
  if (drawn_block != index / 4u) {
    drawn_block = index / 4u;
    drawn = philox(vec2(p.seed_low, p.seed_high), vec2(p.stream_low, p.stream_high),
                   vec2(drawn_block, u32(at_at(0u)) << 6u));
  }
  let by = f64_of(step);
  var q = f64_of(x);
  if (dithered == 2u) { q = f64_divide(q, by); }
  var spacing = 0;
  if (coder == 1u) {
    spacing = max(f64_exponent(q) - 1023, bitcast<i32>(p.lowest)) - i32(p.mantissa);
  }
  let n = i32(drawn[index % 4u] >> 8u) - 0x800000;
  let noise = f64_normal(select(0u, 0x80000000u, n < 0), 1062 + spacing, vec2(u32(abs(n)), 0u));
  return f64_bits(f64_multiply(f64_add(q, noise), by));
}

// `step`: bits of an f32; quotients by it are taken times 2^unit. 0 counts as 1.
fn code_of(value: u32, step: u32, unit: i32, zero: i32, index: u32) -> u32 {
  if (coder == 6u) { return value; }
  if (coder == 4u || coder == 5u) { return gguf_code(value, step); }
  let none = (step & 0x7fffffffu) == 0u;
  let by = select(step, 0x3f800000u, none);
  var x = value;
  if (dithered != 0u) { x = dither(value, by, index); }
  if (coder == 2u) {
    let a = x & 0x7fffffffu;
    return select(1u, 0u, x > 0x80000000u && a <= 0x7f800000u);
  }
  var q = ratio_of(x, by);
  if (!none) { q.e += unit; }
  if (coder == 0u) { return integer_code(q, zero); }
  if (coder == 3u) { return nf4_code(q); }
  return float_code(q, x);
}
)";

}  // namespace loom::core::webgpu
