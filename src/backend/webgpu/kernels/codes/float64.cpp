// Double precision for devices without it: add, multiply, divide, compare and convert. Results
// round to nearest even as in IEEE 754, so that packed weights equal those of the CPU. Its use is
// limited to scales and stochastic rounding of f32 weights: results below 2^-1022 become 0, and
// infinities and NaN are not supported.
#include "backend/webgpu/kernels/codes/pack.hpp"

namespace loom::core::webgpu {

const std::string_view kFloat64 = R"(
fn shift_left(a: vec2<u32>, n: u32) -> vec2<u32> {
  if (n == 0u) { return a; }
  if (n >= 32u) { return vec2(0u, a.x << (n - 32u)); }
  return vec2(a.x << n, (a.y << n) | (a.x >> (32u - n)));
}
// What falls out on the right leaves a one in the last place.
fn shift_right(a: vec2<u32>, n: u32) -> vec2<u32> {
  if (n == 0u) { return a; }
  if (n >= 64u) { return vec2(select(0u, 1u, (a.x | a.y) != 0u), 0u); }
  var kept = vec2(a.y, 0u);
  var lost = a.x;
  let m = n & 31u;
  if (n < 32u) {
    kept = a;
    lost = 0u;
  }
  if (m != 0u) {
    lost |= kept.x << (32u - m);
    kept = vec2((kept.x >> m) | (kept.y << (32u - m)), kept.y >> m);
  }
  kept.x |= select(0u, 1u, lost != 0u);
  return kept;
}
fn add_pair(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2(low, a.y + b.y + select(0u, 1u, low < a.x));
}
fn subtract_pair(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}
fn less_pair(a: vec2<u32>, b: vec2<u32>) -> bool {
  return a.y < b.y || (a.y == b.y && a.x < b.x);
}
fn f64_sign(a: vec2<u32>) -> u32 { return a.y & 0x80000000u; }
fn f64_exponent(a: vec2<u32>) -> i32 { return i32((a.y >> 20u) & 0x7ffu); }
fn f64_mantissa(a: vec2<u32>) -> vec2<u32> {
  return vec2(a.x, (a.y & 0xfffffu) | 0x100000u);
}
fn f64_zero(a: vec2<u32>) -> bool { return (a.y & 0x7ff00000u) == 0u; }
fn f64_negate(a: vec2<u32>) -> vec2<u32> { return vec2(a.x, a.y ^ 0x80000000u); }
// m / 2^63 * 2^(e - 1023), rounded; m may begin with zeros.
fn f64_normal(sign: u32, e: i32, m: vec2<u32>) -> vec2<u32> {
  var z = countLeadingZeros(m.y);
  if (m.y == 0u) { z = 32u + countLeadingZeros(m.x); }
  let exponent = e - i32(z);
  if (z == 64u || exponent <= 0) { return vec2(0u, sign); }
  let n = shift_left(m, z);
  let rest = n.x & 0x7ffu;
  let q = vec2((n.x >> 11u) | (n.y << 21u), n.y >> 11u);
  let up = rest > 0x400u || (rest == 0x400u && (q.x & 1u) == 1u);
  let rounded = add_pair(q, vec2(select(0u, 1u, up), 0u));
  return vec2(rounded.x, (rounded.y + (u32(exponent - 1) << 20u)) | sign);
}
// Of a finite f32, given as bits.
fn f64_of(bits: u32) -> vec2<u32> {
  let a = bits & 0x7fffffffu;
  let m = select(a & 0x7fffffu, (a & 0x7fffffu) | 0x800000u, a >= 0x800000u);
  return f64_normal(bits & 0x80000000u, i32(max(a >> 23u, 1u)) + 896, vec2(0u, m << 8u));
}
fn f64_of_integer(n: u32) -> vec2<u32> { return f64_normal(0u, 1086, vec2(n, 0u)); }
// The nearest f32 as bits.
fn f64_bits(a: vec2<u32>) -> u32 {
  if (f64_zero(a)) { return f64_sign(a); }
  let e = f64_exponent(a) - 896;
  if (e >= 255) { return f64_sign(a) | 0x7f800000u; }
  let q = shift_right(f64_mantissa(a), u32(clamp(27 + max(1 - e, 0), 27, 64))).x;
  let kept = (q + 1u + ((q >> 2u) & 1u)) >> 2u;
  return f64_sign(a) | select(kept + (u32(max(e, 1) - 1) << 23u), kept, e < 1);
}
fn f64_add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if (f64_zero(a) && f64_zero(b)) { return vec2(0u, a.y & b.y); }
  if (f64_zero(a)) { return b; }
  if (f64_zero(b)) { return a; }
  let swap = less_pair(vec2(a.x, a.y & 0x7fffffffu), vec2(b.x, b.y & 0x7fffffffu));
  let large = select(a, b, swap);
  let small = select(b, a, swap);
  let m = shift_left(f64_mantissa(large), 10u);
  let by = f64_exponent(large) - f64_exponent(small);
  let n = shift_right(shift_left(f64_mantissa(small), 10u), u32(by));
  if (f64_sign(a) == f64_sign(b)) {
    return f64_normal(f64_sign(a), f64_exponent(large) + 1, add_pair(m, n));
  }
  let d = subtract_pair(m, n);
  if ((d.x | d.y) == 0u) { return vec2(0u); }
  return f64_normal(f64_sign(large), f64_exponent(large) + 1, d);
}
fn f64_less(a: vec2<u32>, b: vec2<u32>) -> bool {
  let d = f64_add(a, f64_negate(b));
  return f64_sign(d) != 0u && !f64_zero(d);
}
fn f64_multiply(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let sign = f64_sign(a) ^ f64_sign(b);
  if (f64_zero(a) || f64_zero(b)) { return vec2(0u, sign); }
  let m = shift_left(f64_mantissa(a), 11u);
  let n = shift_left(f64_mantissa(b), 11u);
  let low = multiply_wide(m.x, n.x);
  let cross0 = multiply_wide(m.x, n.y);
  let cross1 = multiply_wide(m.y, n.x);
  let middle = add_pair(add_pair(vec2(low.y, 0u), vec2(cross0.x, 0u)), vec2(cross1.x, 0u));
  var high = multiply_wide(m.y, n.y);
  high = add_pair(high, vec2(cross0.y, 0u));
  high = add_pair(high, vec2(cross1.y, 0u));
  high = add_pair(high, vec2(middle.y, 0u));
  high.x |= select(0u, 1u, (low.x | middle.x) != 0u);
  return f64_normal(sign, f64_exponent(a) + f64_exponent(b) - 1022, high);
}
fn f64_divide(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let sign = f64_sign(a) ^ f64_sign(b);
  if (f64_zero(a)) { return vec2(0u, sign); }
  let by = f64_mantissa(b);
  var rest = f64_mantissa(a);
  var q = vec2(0u);
  for (var i = 0; i < 56; i++) {
    q = vec2(q.x << 1u, (q.y << 1u) | (q.x >> 31u));
    if (!less_pair(rest, by)) {
      rest = subtract_pair(rest, by);
      q.x |= 1u;
    }
    rest = vec2(rest.x << 1u, (rest.y << 1u) | (rest.x >> 31u));
  }
  q = shift_left(q, 8u);
  q.x |= select(0u, 1u, (rest.x | rest.y) != 0u);
  return f64_normal(sign, f64_exponent(a) - f64_exponent(b) + 1023, q);
}
// The integer nearest to |a|, below 2^62.
fn f64_integer(a: vec2<u32>) -> vec2<u32> {
  let e = f64_exponent(a);
  if (e < 1022) { return vec2(0u); }
  if (e >= 1075) { return shift_left(f64_mantissa(a), u32(e - 1075)); }
  let q = shift_right(shift_left(f64_mantissa(a), 2u), u32(1075 - e));
  let odd = (q.x >> 2u) & 1u;
  let up = add_pair(q, vec2(1u + odd, 0u));
  return vec2((up.x >> 2u) | (up.y << 30u), up.y >> 2u);
}
// To nearest even; what becomes 0 is +0.
fn f64_round(a: vec2<u32>) -> vec2<u32> {
  if (f64_exponent(a) >= 1075) { return a; }
  let n = f64_integer(a);
  if ((n.x | n.y) == 0u) { return n; }
  return f64_normal(f64_sign(a), 1086, n);
}
)";

}  // namespace loom::core::webgpu
