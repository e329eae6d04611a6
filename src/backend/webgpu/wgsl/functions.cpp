// WGSL functions that kernels share: elementary functions with the polynomials of ops/fmath.hpp,
// activations and their derivatives, sums over a workgroup, random numbers.
#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {
namespace {

struct Function {
  std::string_view name;
  std::string_view text;
  std::string_view in_subgroups = {};  // variant for lanes that can exchange registers
};

constexpr Function kFunctions[] = {
    {"infinity", R"(
fn infinity() -> f32 { var b = 0x7f800000u; return bitcast<f32>(b); }
)"},
    {"not_a_number", R"(
fn not_a_number() -> f32 { var b = 0x7fc00000u; return bitcast<f32>(b); }
)"},
    // By the bits: compilers may assume that there are no NaNs.
    {"is_nan", R"(
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
)"},
    {"is_finite", R"(
fn is_finite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u; }
)"},
    // An integer in the order of the values. NaN comes before every number; both zeros are equal.
    {"key_of", R"(
fn key_of(v: f32) -> u32 {
  let b = bitcast<u32>(v);
  if ((b & 0x7fffffffu) > 0x7f800000u) { return 0u; }
  if (b == 0x80000000u) { return 0x80000000u; }
  return select(b | 0x80000000u, ~b, b >= 0x80000000u);
}
)"},
    {"exp2_int", R"(
fn exp2_int(n: i32) -> f32 { return bitcast<f32>(u32(n + 127) << 23u); }
)"},
    // A code of 8 bits: sign, exponent with `bias`, `mantissa` bits. NaN has all bits set (e4m3),
    // or all of the exponent's (e5m2).
    {"small_float", R"(
fn small_float(code: u32, mantissa: u32, bias: u32) -> f32 {
  let field = code & 127u;
  let e = field >> mantissa;
  let below = f32(field) * exp2_int(1 - i32(bias) - i32(mantissa));
  let special = select(e == 31u, field == 127u, mantissa == 3u);
  var bits = ((e + 127u - bias) << 23u) | ((field << (23u - mantissa)) & 0x007fffffu);
  bits = select(bits, bitcast<u32>(below), e == 0u);
  bits = select(bits, bits | 0x7f800000u, special);
  return bitcast<f32>(bits | ((code & 128u) << 24u));
}
)"},
    {"small_floats", R"(
fn small_floats(codes: u32, mantissa: u32, bias: u32) -> vec4<f32> {
  return vec4<f32>(small_float(codes, mantissa, bias), small_float(codes >> 8u, mantissa, bias),
                   small_float(codes >> 16u, mantissa, bias),
                   small_float(codes >> 24u, mantissa, bias));
}
)"},
    // The bits of an f64 (low word, high word) rounded to a narrower float, nearest even,
    // subnormals kept: integers only, so it is the same everywhere.
    {"narrow_f64", R"(
fn narrow_f64(v: vec2<u32>, mantissa: u32, bias: u32) -> u32 {
  let infinite = (2u * bias + 1u) << mantissa;
  let sign = (v.y >> 31u) * ((2u * bias + 2u) << mantissa);
  var e = i32((v.y >> 20u) & 0x7ffu);
  let fraction = (v.y & 0xfffffu) | v.x;
  if (e == 0x7ff) { return sign | infinite | select(0u, 1u << (mantissa - 1u), fraction != 0u); }
  if (e == 0) { return sign; }
  // 31 bits of the significand; the last one also stands for all below it.
  let m = (1u << 30u) | ((v.y & 0xfffffu) << 10u) | (v.x >> 22u) | u32((v.x & 0x3fffffu) != 0u);
  e += i32(bias) - 1023;
  var shift = 30u - mantissa;
  if (e < 1) {
    shift += u32(1 - e);
    if (shift > 31u) { return sign; }
  }
  let rest = m & ((1u << shift) - 1u);
  let half = 1u << (shift - 1u);
  var q = m >> shift;
  q += u32(rest > half || (rest == half && (q & 1u) == 1u));
  if (e >= i32(2u * bias + 1u)) { return sign | infinite; }
  return sign | select(q, (u32(max(e, 1) - 1) << mantissa) + q, e >= 1);
}
)"},
    // The bits of a narrower float as those of an f64.
    {"widen_f64", R"(
fn widen_f64(code: u32, mantissa: u32, bias: u32) -> vec2<u32> {
  let width = mantissa + countOneBits(2u * bias + 1u);
  let sign = ((code >> width) & 1u) << 31u;
  var e = (code >> mantissa) & (2u * bias + 1u);
  var m = code & ((1u << mantissa) - 1u);
  if (e == 0u) {
    if (m == 0u) { return vec2<u32>(0u, sign); }
    let lead = 31u - countLeadingZeros(m);
    e = 1024u - bias - mantissa + lead;
    m = (m << (mantissa - lead)) & ((1u << mantissa) - 1u);
  } else {
    e = select(e + 1023u - bias, 0x7ffu, e == 2u * bias + 1u);
  }
  let top = m << (23u - mantissa);
  return vec2<u32>(top << 29u, sign | (e << 20u) | (top >> 3u));
}
)"},
    // An f64 that is an integer of 0 .. 2^63, as (low word, high word).
    {"integer_of_f64", R"(
fn integer_of_f64(v: vec2<u32>) -> vec2<u32> {
  let e = (v.y >> 20u) & 0x7ffu;
  if (e < 1023u) { return vec2<u32>(); }
  let hi = (v.y & 0xfffffu) | 0x100000u;
  if (e >= 1075u) {
    let s = min(e - 1075u, 11u);
    return vec2<u32>(v.x << s, (hi << s) | ((v.x >> 1u) >> (31u - s)));
  }
  let s = 1075u - e;
  if (s >= 32u) { return vec2<u32>(hi >> (s - 32u), 0u); }
  return vec2<u32>((v.x >> s) | ((hi << 1u) << (31u - s)), hi >> s);
}
)"},
    // x times the f64 with these bits. Its exponent is applied in halves: steps of wide integers
    // are below the range of f32.
    {"times_f64", R"(
fn times_f64(x: f32, v: vec2<u32>) -> f32 {
  let field = (v.y >> 20u) & 0x7ffu;
  if (field == 0u) { return 0.0; }
  let m = (((v.y & 0xfffffu) | 0x100000u) << 3u) | (v.x >> 29u);
  let e = clamp(i32(field) - 1023, -250, 250);
  let half = e >> 1u;
  return ((x * (f32(m + ((v.x >> 28u) & 1u)) * exp2_int(-23))) * exp2_int(half)) *
         exp2_int(e - half);
}
)"},
    // e^r - 1 for |r| up to 0.36, and the rest of x after n logarithms of 2.
    {"expm1_reduced", R"(
fn expm1_reduced(r: f32) -> f32 {
  var q = 1.9875691500e-4;
  q = q * r + 1.3981999507e-3;
  q = q * r + 8.3334519073e-3;
  q = q * r + 4.1665795894e-2;
  q = q * r + 1.6666665459e-1;
  q = q * r + 5.0000001201e-1;
  return q * (r * r) + r;
}
fn less_logs_of_2(x: f32, n: f32) -> f32 { return (x - n * 0.693359375) - n * -2.12194440e-4; }
)"},
    // v * 2^n, rounded once if 2^n is out of range.
    {"scale_2", R"(
fn scale_2(v: f32, n: i32) -> f32 { return (v * exp2_int(n >> 1u)) * exp2_int(n - (n >> 1u)); }
)"},
    {"loom_exp", R"(
fn loom_exp(x: f32) -> f32 {
  let y = clamp(x, -104.0, 89.0);
  let n = round(y * 1.44269504088896341);
  let result = scale_2(expm1_reduced(less_logs_of_2(y, n)) + 1.0, i32(n));
  return select(result, x, is_nan(x));
}
)"},
    // e^x - 1 for x <= 0, as in ops/fmath.hpp.
    {"expm1_negative", R"(
fn expm1_negative(x: f32) -> f32 {
  let y = max(x, -32.0);
  let n = round(y * 1.44269504088896341);
  let power = exp2_int(i32(n));
  let result = power * expm1_reduced(less_logs_of_2(y, n)) + (power - 1.0);
  return select(result, x, is_nan(x));
}
)"},
    // e^(-x^2 / 2), its square in two parts, as in ops/fmath.hpp.
    {"exp_half_square", R"(
fn exp_half_square(x: f32) -> f32 {
  let a = min(abs(x), 14.5);
  let h = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
  let high = (h * h) * -0.5;
  let low = ((a - h) * (a + h)) * -0.5;
  let n = round((high + low) * 1.44269504088896341);
  let result = scale_2(expm1_reduced(less_logs_of_2(high, n) + low) + 1.0, i32(n));
  return select(result, x, is_nan(x));
}
)"},
    // log((1 + m) 2^ef) for 1 + m between sqrt(1/2) and sqrt(2).
    {"log_1p_reduced", R"(
fn log_1p_reduced(m: f32, ef: f32) -> f32 {
  let z = m * m;
  var q = 7.0376836292e-2;
  q = q * m - 1.1514610310e-1;
  q = q * m + 1.1676998740e-1;
  q = q * m - 1.2420140846e-1;
  q = q * m + 1.4249322787e-1;
  q = q * m - 1.6668057665e-1;
  q = q * m + 2.0000714765e-1;
  q = q * m - 2.4999993993e-1;
  q = q * m + 3.3333331174e-1;
  var y = (q * m) * z;
  y = y + ef * -2.12194440e-4;
  y = y - z * 0.5;
  return (m + y) + ef * 0.693359375;
}
)"},
    {"loom_log", R"(
fn loom_log(x: f32) -> f32 {
  let subnormal = x < 1.17549435e-38;
  let scaled = select(x, x * 8388608.0, subnormal);
  let i = bitcast<u32>(scaled);
  var e = i32((i >> 23u) & 255u) - 126 - select(0, 23, subnormal);
  var m = bitcast<f32>((i & 0x007fffffu) | 0x3f000000u);
  if (m < 0.707106781186547524) { e -= 1; m = m + m; }
  var result = log_1p_reduced(m - 1.0, f32(e));
  let b = bitcast<u32>(x);
  if (b == 0x7f800000u || is_nan(x)) { result = x; }
  if ((b & 0x7fffffffu) == 0u) { result = -infinity(); }
  if (b > 0x80000000u && !is_nan(x)) { result = not_a_number(); }
  return result;
}
)"},
    // log(1 + t) for t in [0, 1], precise near 0.
    {"log1p_unit", R"(
fn log1p_unit(t: f32) -> f32 {
  if (t > 0.414213562373095049) { return log_1p_reduced((t - 1.0) * 0.5, 1.0); }
  return log_1p_reduced(t, 0.0);
}
)"},
    // The product of two words, low word first.
    {"multiply_wide", R"(
fn multiply_wide(a: u32, b: u32) -> vec2<u32> {
  let a0 = a & 0xffffu;
  let a1 = a >> 16u;
  let b0 = b & 0xffffu;
  let b1 = b >> 16u;
  let low = a0 * b0;
  let middle = a1 * b0 + (low >> 16u);
  let other = a0 * b1 + (middle & 0xffffu);
  return vec2(a * b, a1 * b1 + (middle >> 16u) + (other >> 16u));
}
)"},
    // base/numbers/rng.hpp; every argument low word first.
    {"philox", R"(
fn philox(seed: vec2<u32>, stream: vec2<u32>, index: vec2<u32>) -> vec4<u32> {
  var c = vec4(index, stream);
  var key = seed;
  for (var round = 0; round < 10; round++) {
    let a = multiply_wide(0xD2511F53u, c.x);
    let b = multiply_wide(0xCD9E8D57u, c.z);
    c = vec4(b.y ^ c.y ^ key.x, b.x, a.y ^ c.w ^ key.y, a.x);
    key += vec2(0x9E3779B9u, 0xBB67AE85u);
  }
  return c;
}
)"},
    // a / b for finite positive floats, as bits, rounded to nearest even. WGSL's own division is
    // not exact. Supports subnormal operands and results; infinity if the quotient is too large.
    {"divide_bits", R"(
fn divide_bits(a: u32, b: u32) -> u32 {
  if (a == 0u) { return 0u; }
  // Mantissas of 24 bits, subnormal ones shifted up to that.
  let za = select(0u, countLeadingZeros(a) - 8u, a < 0x800000u);
  let zb = select(0u, countLeadingZeros(b) - 8u, b < 0x800000u);
  let ma = select((a & 0x7fffffu) | 0x800000u, a << za, a < 0x800000u);
  let mb = select((b & 0x7fffffu) | 0x800000u, b << zb, b < 0x800000u);
  var e = i32(max(a >> 23u, 1u)) - i32(za) - i32(max(b >> 23u, 1u)) + i32(zb) + 127;
  var rest = ma;
  if (ma < mb) {
    rest = ma << 1u;
    e -= 1;
  }
  // 26 bits: 24 that are kept, one to round by, and the rest as one.
  var q = 0u;
  for (var i = 0; i < 25; i++) {
    q = q << 1u;
    if (rest >= mb) {
      rest -= mb;
      q |= 1u;
    }
    rest = rest << 1u;
  }
  q = (q << 1u) | select(0u, 1u, rest != 0u);
  if (e >= 255) { return 0x7f800000u; }
  var drop = 2u;
  if (e < 1) { drop = min(2u + u32(1 - e), 31u); }
  let odd = (q >> drop) & 1u;
  let kept = (q + (1u << (drop - 1u)) - 1u + odd) >> drop;
  return select(kept + (u32(max(e, 1)) - 1u) * 0x800000u, kept, e < 1);
}
)"},
    {"loom_sqrt", R"(
fn loom_sqrt(x: f32) -> f32 { return sqrt(x); }
)"},
    {"loom_sigmoid", R"(
fn loom_sigmoid(x: f32) -> f32 { return 1.0 / (1.0 + loom_exp(-x)); }
)"},
    {"loom_tanh", R"(
fn loom_tanh(x: f32) -> f32 {
  let a = abs(x);
  if (a < 0.625) {
    let z = x * x;
    var q = -5.70498872745e-3;
    q = q * z + 2.06390887954e-2;
    q = q * z - 5.37397155531e-2;
    q = q * z + 1.33314422036e-1;
    q = q * z - 3.33332819422e-1;
    return (q * z) * x + x;
  }
  let large = 1.0 - 2.0 / (loom_exp(a + a) + 1.0);
  return select(select(large, -large, x < 0.0), x, is_nan(x));
}
)"},
    // The normal distribution, (1 + erf(x / sqrt(2))) / 2, precise in its lower tail.
    {"normal_cdf", R"(
fn normal_cdf(x: f32) -> f32 {
  let u = x * 0.70710678118654752;
  let a = abs(u);
  if (a < 1.0) {
    let z = u * u;
    var t = 7.853861353153693e-5;
    t = t * z - 8.010193625184903e-4;
    t = t * z + 5.188327685732524e-3;
    t = t * z - 2.685381193529856e-2;
    t = t * z + 1.128358514861418e-1;
    t = t * z - 3.761262582423300e-1;
    t = t * z + 1.128379165726710;
    return 0.5 + 0.5 * (u * t);
  }
  let q = 1.0 / a;
  let y = q * q;
  var r = 2.326819970068386e-2;
  if (a < 2.0) {
    r = r * y - 1.387039388740657e-1;
    r = r * y + 3.687424674597105e-1;
    r = r * y - 5.824733027278666e-1;
    r = r * y + 6.210004621745983e-1;
    r = r * y - 4.944515323274145e-1;
    r = r * y + 3.404879937665872e-1;
    r = r * y - 2.741127028184656e-1;
    r = r * y + 5.638259427386472e-1;
  } else {
    r = -1.047766399936249e1;
    r = r * y + 1.297719955372516e1;
    r = r * y - 7.495518717768503;
    r = r * y + 2.921019019210786;
    r = r * y - 1.015265279202700;
    r = r * y + 4.218463358204948e-1;
    r = r * y - 2.820767439740514e-1;
    r = r * y + 5.641895067754075e-1;
  }
  let tail = 0.5 * ((exp_half_square(x) * q) * r);
  return select(select(1.0 - tail, tail, x < 0.0), x, is_nan(x));
}
)"},
    {"activate", R"(
fn activate(kind: u32, x: f32) -> f32 {
  switch (kind) {
    case 1u: { return select(0.0, x, x > 0.0); }
    case 2u: { return select(x, x * 0.01, x < 0.0); }
    case 3u: { return select(0.0, x * x, x > 0.0); }
    case 4u: { return x / (1.0 + loom_exp(-x)); }
    case 5u: {
      return x / (1.0 + loom_exp(-1.59576912160573071 * (x + 0.044715 * ((x * x) * x))));
    }
    case 6u: { return x * normal_cdf(x); }
    case 7u: { return loom_tanh(x); }
    case 8u: { return loom_sigmoid(x); }
    case 9u: {
      let w = loom_exp(select(x, 20.0, x > 20.0));
      let n = w * (w + 2.0);
      return x * (n / (n + 2.0));
    }
    case 10u: { return max(x, 0.0) + log1p_unit(loom_exp(-abs(x))); }
    case 11u: { return select(expm1_negative(min(x, 0.0)), x, x > 0.0); }
    case 12u: { return x * (clamp(x + 3.0, 0.0, 6.0) / 6.0); }
    default: { return x; }
  }
}
)"},
    // The value of the lane whose number differs by the bit n. n is below `subgroup`, the number of
    // adjacent lanes that can exchange values (1 means none). Every invocation calls.
    {"swap_lanes", R"(
fn swap_lanes(v: f32, n: u32) -> f32 { return v; }
)",
     R"(
fn swap_lanes(v: f32, n: u32) -> f32 { return subgroupShuffleXor(v, n); }
)"},
    {"swap_four", R"(
fn swap_four(v: vec4<f32>, n: u32) -> vec4<f32> { return v; }
)",
     R"(
fn swap_four(v: vec4<f32>, n: u32) -> vec4<f32> { return subgroupShuffleXor(v, n); }
)"},
    // Sums over the invocations with the same lane % 4, as values 0 .. 15; a lane gets value
    // lane_output(lane). One barrier: the next call writes the other half. The order of a sum does
    // not depend on subgroups: among 32 lanes those 4 apart, 8 apart, 16 apart, then the next 32.
    // It uses little workgroup memory, because kernels that read much need it as cache.
    {"lane_sums", R"(
const lane_sums_subgroup = clamp(subgroup, 4u, 32u);
const lane_sums_folds = 32u / lane_sums_subgroup;
const lane_sums_parts = lanes / lane_sums_subgroup * 4u;
var<workgroup> lane_sums_part: array<vec4<f32>, lane_sums_parts * 2u>;
var<private> lane_sums_half: u32;
fn lane_output(lane: u32) -> u32 { return lane % 16u; }
fn lane_sums(mine: vec4<f32>, lane: u32) -> f32 {
  let half = lane_sums_half;
  lane_sums_half = lane_sums_parts - half;
  var sum = mine;
  for (var n = 4u; n < lane_sums_subgroup; n *= 2u) { sum += swap_four(sum, n); }
  if (lane % lane_sums_subgroup < 4u) {
    lane_sums_part[half + lane / lane_sums_subgroup * 4u + lane % 4u] = sum;
  }
  workgroupBarrier();
  var total = vec4<f32>();
  for (var first = half + lane % 16u / 4u; first < half + lane_sums_parts;
       first += lane_sums_folds * 4u) {
    var sums: array<vec4<f32>, lane_sums_folds>;
    for (var k = 0u; k < lane_sums_folds; k++) { sums[k] = lane_sums_part[first + k * 4u]; }
    for (var n = 1u; n < lane_sums_folds; n *= 2u) {
      for (var k = 0u; k < lane_sums_folds; k += 2u * n) { sums[k] += sums[k + n]; }
    }
    total += sums[0];
  }
  return total[lane % 4u];
}
)"},
    // Sums and maxima over the invocations of a workgroup (a multiple of 16). Every invocation
    // calls and gets the same value. WGSL does not know it to be uniform; uniform_value makes it
    // so. Two barriers: 16 invocations join the parts, then all join the 16. The next call may
    // follow at once, because it writes nothing that others may still read. Sums of 32 lanes have
    // the order of rule 4 of docs/numerics.md.
    {"group_sum", R"(
var<workgroup> group_sum_part: array<f32, lanes>;
var<workgroup> group_sum_joined: array<f32, 16>;
fn group_sum(lane: u32, v: f32) -> f32 {
  group_sum_part[lane] = v;
  workgroupBarrier();
  if (lane < 16u) {
    var low = 0.0;
    var high = 0.0;
    for (var i = lane; i < lanes; i += 32u) {
      low += group_sum_part[i];
      if (i + 16u < lanes) { high += group_sum_part[i + 16u]; }
    }
    group_sum_joined[lane] = low + high;
  }
  workgroupBarrier();
  let a = vec4<f32>(group_sum_joined[0], group_sum_joined[1], group_sum_joined[2],
    group_sum_joined[3]);
  let b = vec4<f32>(group_sum_joined[4], group_sum_joined[5], group_sum_joined[6],
    group_sum_joined[7]);
  let c = vec4<f32>(group_sum_joined[8], group_sum_joined[9], group_sum_joined[10],
    group_sum_joined[11]);
  let d = vec4<f32>(group_sum_joined[12], group_sum_joined[13], group_sum_joined[14],
    group_sum_joined[15]);
  let four = (a + c) + (b + d);
  let two = four.xy + four.zw;
  return two.x + two.y;
}
)",
     // The same order. One barrier: the next call writes the other half.
     R"(
const group_sum_subgroup = min(subgroup, 32u);
const group_sum_folds = min(32u, lanes) / group_sum_subgroup;
var<workgroup> group_sum_part: array<f32, lanes * 2u>;
var<private> group_sum_half: u32;
fn group_sum(lane: u32, v: f32) -> f32 {
  var sum = v;
  if (lanes > group_sum_subgroup) {
    let half = group_sum_half;
    group_sum_half = lanes - half;
    group_sum_part[half + lane] = v;
    workgroupBarrier();
    var sums: array<f32, group_sum_folds>;
    for (var k = 0u; k < group_sum_folds; k++) {
      for (var i = lane % group_sum_subgroup + k * group_sum_subgroup; i < lanes; i += 32u) {
        sums[k] += group_sum_part[half + i];
      }
    }
    for (var n = group_sum_folds / 2u; n > 0u; n /= 2u) {
      for (var k = 0u; k < n; k++) { sums[k] += sums[k + n]; }
    }
    sum = sums[0];
  }
  for (var n = group_sum_subgroup / 2u; n > 0u; n /= 2u) { sum += swap_lanes(sum, n); }
  return sum;
}
)"},
    {"group_max", R"(
var<workgroup> group_max_part: array<f32, lanes>;
var<workgroup> group_max_joined: array<f32, 16>;
fn group_max(lane: u32, v: f32) -> f32 {
  group_max_part[lane] = v;
  workgroupBarrier();
  if (lane < 16u) {
    var most = v;
    for (var i = lane + 16u; i < lanes; i += 16u) { most = max(most, group_max_part[i]); }
    group_max_joined[lane] = most;
  }
  workgroupBarrier();
  var most = group_max_joined[0];
  for (var i = 1u; i < 16u; i++) { most = max(most, group_max_joined[i]); }
  return most;
}
)",
     R"(
var<workgroup> group_max_part: array<f32, lanes / subgroup * 2u>;
var<private> group_max_half: u32;
fn group_max(lane: u32, v: f32) -> f32 {
  var most = v;
  for (var n = subgroup / 2u; n > 0u; n /= 2u) { most = max(most, swap_lanes(most, n)); }
  if (lanes == subgroup) { return most; }
  let half = group_max_half;
  group_max_half = lanes / subgroup - half;
  if (lane % subgroup == 0u) { group_max_part[half + lane / subgroup] = most; }
  workgroupBarrier();
  most = group_max_part[half];
  for (var i = 1u; i < lanes / subgroup; i++) { most = max(most, group_max_part[half + i]); }
  return most;
}
)"},
    // A value that all invocations share, made uniform for conditions of barriers.
    {"uniform_value", R"(
var<workgroup> uniform_value_shared: f32;
fn uniform_value(lane: u32, v: f32) -> f32 {
  if (lane == 0u) { uniform_value_shared = v; }
  return workgroupUniformLoad(&uniform_value_shared);
}
)"},
    // Dispatches on UnaryKind and BinaryKind.
    {"unary_value", R"(
fn unary_value(kind: u32, x: f32) -> f32 {
  switch (kind) {
    case 13u: { return loom_exp(x); }
    case 14u: { return loom_log(x); }
    case 15u: { return sqrt(x); }
    case 16u: { return -x; }
    case 17u: { return abs(x); }
    case 18u: { return x * x; }
    case 19u: { return 1.0 / x; }
    case 20u: { return select(0.0, 1.0, x >= 0.0); }
    default: { return activate(kind, x); }
  }
}
)"},
    {"binary_value", R"(
fn binary_value(kind: u32, a: f32, b: f32) -> f32 {
  switch (kind) {
    case 0u: { return a + b; }
    case 1u: { return a - b; }
    case 2u: { return a * b; }
    case 3u: { return a / b; }
    case 4u: { return select(b, a, a > b); }
    default: { return select(b, a, a < b); }
  }
}
)"},
    // Mean (0 unless `layer`) and 1 / sqrt(variance + eps) of n values of x from x0 on. Every
    // invocation of the workgroup calls.
    {"row_moments", R"(
fn row_moments(layer: bool, x0: u32, n: u32, eps: f32, lane: u32) -> vec2<f32> {
  let count = f32(n);
  var mean = 0.0;
  if (layer) {
    var sum = 0.0;
    for (var c = lane; c < n; c += lanes) { sum += x_at(x0 + c); }
    mean = group_sum(lane, sum) / count;
  }
  var squares = 0.0;
  for (var c = lane; c < n; c += lanes) {
    let d = x_at(x0 + c) - mean;
    squares += d * d;
  }
  return vec2<f32>(mean, 1.0 / sqrt(group_sum(lane, squares) / count + eps));
}
)"},
};

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool calls(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if (end < text.size() && text[end] == '(' && (at == 0 || !is_word(text[at - 1]))) return true;
  }
  return false;
}

}  // namespace

std::string library_for(std::string_view text, bool subgroups) {
  std::string out;
  bool used[std::size(kFunctions)] = {};
  // Functions call only functions before them. Walking from last to first, all callers of a
  // function are known before it.
  for (size_t i = std::size(kFunctions); i-- > 0;) {
    used[i] = calls(text, kFunctions[i].name) || calls(out, kFunctions[i].name);
    const bool in_subgroups = subgroups && !kFunctions[i].in_subgroups.empty();
    if (used[i]) out += in_subgroups ? kFunctions[i].in_subgroups : kFunctions[i].text;
  }
  return out;
}

}  // namespace loom::core::webgpu
