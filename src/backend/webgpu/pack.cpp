// pack: f32 rows to R16 (src/dtype/r16.hpp), the bytes of the CPU. Scales first, by one workgroup
// per row or by two steps for the whole tensor, with the CPU's double precision in software; then
// scales of blocks; then codes. Every invocation makes whole words of the result, so that no two
// write into one word. With a list of rows, rows that share a word fall to the first of them.
#include "backend/webgpu/pack.hpp"

#include <algorithm>

#include "backend/webgpu/kernels.hpp"
#include "base/bits.hpp"
#include "base/checked.hpp"
#include "dtype/codec.hpp"

namespace loom::webgpu::kernels {
namespace {

// ---- scales of rows and of the tensor ----

// What a range holds of finite values: the largest magnitudes above and below zero, the smallest
// and the largest that is not zero, how many there are and the sum of their magnitudes.
constexpr std::string_view kRange = R"(
struct Range { above: u32, below: u32, least: u32, count: u32, sum: vec2<u32> }
fn no_range() -> Range { return Range(0u, 0u, 0x7f800000u, 0u, vec2(0u)); }
fn with_value(r: Range, bits: u32) -> Range {
  let a = bits & 0x7fffffffu;
  if (a >= 0x7f800000u) { return r; }
  var s = r;
  if (a == bits) { s.above = max(s.above, a); } else { s.below = max(s.below, a); }
  if (a != 0u) { s.least = min(s.least, a); }
  s.count += 1u;
  if (mean != 0u) { s.sum = f64_add(s.sum, f64_of(a)); }
  return s;
}
fn joined(a: Range, b: Range) -> Range {
  return Range(max(a.above, b.above), max(a.below, b.below), min(a.least, b.least),
               a.count + b.count, f64_add(a.sum, b.sum));
}
var<workgroup> parts: array<Range, lanes>;
fn group_range(lane: u32, r: Range) {
  parts[lane] = r;
  workgroupBarrier();
  for (var n = lanes / 2u; n > 0u; n /= 2u) {
    if (lane < n) { parts[lane] = joined(parts[lane], parts[lane + n]); }
    workgroupBarrier();
  }
}
)";

// One workgroup per stretch of the tensor: its range into `partial`, six words each.
constexpr Kernel kPartial{"pack_partial", R"(
fn run(part: u32, lane: u32) {
  var r = no_range();
  let begin = part * p.stretch;
  for (var i = begin + lane; i < min(begin + p.stretch, p.count); i += lanes) {
    r = with_value(r, bitcast<u32>(src_at(i)));
  }
  group_range(lane, r);
  if (lane == 0u) {
    let s = parts[0];
    partial_put(6u * part, s.above);
    partial_put(6u * part + 1u, s.below);
    partial_put(6u * part + 2u, s.least);
    partial_put(6u * part + 3u, s.count);
    partial_put(6u * part + 4u, s.sum.x);
    partial_put(6u * part + 5u, s.sum.y);
  }
}
)"};

// The scale of a row, or of the tensor from its parts, and what is held of it. rule: 0 the largest
// magnitude / top, 1 affine, 2 mean. wide: scales and zero points are f64.
constexpr Kernel kScales{"pack_scales", R"(
var<workgroup> step_bits: vec2<u32>;
var<workgroup> zero_bits: vec2<u32>;
fn negative_of(bits: u32) -> vec2<u32> { return f64_negate(f64_of(bits)); }
fn stored(step: vec2<u32>) -> vec2<u32> {
  if (wide != 0u) { return step; }
  return vec2(f64_bits(f64_multiply(step, f64_of(p.unit))), 0u);
}
// Whether `now` is at least (1 - band) of what is held.
fn near(now: vec2<u32>, held: vec2<u32>) -> bool {
  let least = f64_add(f64_of(0x3f800000u), negative_of(p.band));
  return !f64_less(now, f64_multiply(least, held));
}
fn choose_affine(range: Range, slot: u32) {
  var above = f64_of(range.above);
  var below = f64_of(range.below);
  if (has_held) {
    let lowest = bitcast<u32>(held_at(2u * slot));
    let highest = bitcast<u32>(held_at(2u * slot + 1u));
    let kept_below = negative_of(lowest);
    let kept_above = f64_of(highest);
    if (!f64_less(kept_below, below) && !f64_less(kept_above, above) &&
        near(f64_add(above, below), f64_add(kept_above, kept_below))) {
      below = kept_below;
      above = kept_above;
    } else {
      held_set(2u * slot, bitcast<f32>(select(range.below | 0x80000000u, 0u, range.below == 0u)));
      held_set(2u * slot + 1u, bitcast<f32>(range.above));
    }
  }
  let top = vec2(p.top_low, p.top_high);
  step_bits = stored(f64_divide(f64_add(above, below), top));
  var step = step_bits;
  if (wide == 0u) { step = f64_of(step_bits.x); }
  if (!f64_zero(step)) {
    var zero = f64_round(f64_divide(below, step));
    if (f64_less(top, zero)) { zero = top; }
    zero_bits = zero;
    if (wide == 0u) { zero_bits = vec2(f64_integer(zero).x, 0u); }
  }
}
fn choose(range: Range, slot: u32) {
  step_bits = vec2(0u);
  zero_bits = vec2(0u);
  if (rule == 1u) {
    choose_affine(range, slot);
    return;
  }
  let largest = max(range.above, range.below);
  var now = f64_of(largest);
  if (rule == 2u) {
    if (range.count != 0u) { now = f64_divide(range.sum, f64_of_integer(range.count)); }
    if (grids != 0u && largest != 0u && range.least == largest) { now = f64_of(largest); }
  }
  if (has_held) {
    let rounded = f64_bits(now);
    let held = bitcast<u32>(held_at(slot));
    if (rounded <= (held & 0x7fffffffu) && near(f64_of(rounded), f64_of(held))) {
      now = f64_of(held);
    } else {
      held_set(slot, bitcast<f32>(rounded));
    }
  }
  // The CPU takes the larger of max and -min: -0 where there are zeros only.
  if (rule == 0u && f64_zero(now)) { now.y = 0x80000000u; }
  if (rule == 0u) { now = f64_divide(now, vec2(p.top_low, p.top_high)); }
  step_bits = stored(now);
}
fn put(row: u32) {
  let group = row / 16u * p.group_words;
  let lane = row % 16u;
  let absent = row >= p.rows_all;
  let step = select(step_bits, vec2(0u), absent);
  let zero = select(zero_bits, vec2(0u), absent);
  if (wide == 0u) {
    w_put(group + lane, step.x);
    if (rule == 1u) { w_put(group + 16u + lane, zero.x); }
    return;
  }
  w_put(group + 2u * lane, step.x);
  w_put(group + 2u * lane + 1u, step.y);
  if (rule == 1u) {
    w_put(group + 32u + 2u * lane, zero.x);
    w_put(group + 32u + 2u * lane + 1u, zero.y);
  }
}
var<workgroup> listed: i32;
fn run(item: u32, lane: u32) {
  var r = no_range();
  var row = item;
  if (whole != 0u) {
    for (var i = lane; i < p.count; i += lanes) {
      let at = 6u * i;
      r = joined(r, Range(partial_word(at), partial_word(at + 1u), partial_word(at + 2u),
                          partial_word(at + 3u),
                          vec2(partial_word(at + 4u), partial_word(at + 5u))));
    }
  } else {
    if (has_list) {
      if (lane == 0u) { listed = list_at(item); }
      let named = workgroupUniformLoad(&listed);
      if (named < 0) { return; }
      row = u32(named);
    }
    if (row < p.rows_all) {
      for (var k = lane; k < p.cols; k += lanes) {
        r = with_value(r, bitcast<u32>(src_at(row * p.cols + k)));
      }
    }
  }
  group_range(lane, r);
  if (lane == 0u && (whole != 0u || row < p.rows_all)) {
    choose(parts[0], select(row, 0u, whole != 0u));
  }
  workgroupBarrier();
  if (whole != 0u) {
    for (var i = lane; i < p.rows_padded; i += lanes) { put(i); }
  } else if (lane == 0u) {
    put(row);
  }
}
)"};

// ---- words of scales of blocks, and of codes ----

// Which word of a section an invocation makes, and whose values are in it. A section holds, for
// every column, one number of each of the sixteen rows of a group, `per` of them to a word.
constexpr std::string_view kWords = R"(
struct Word { group: u32, column: u32, lane: u32, index: u32, mine: bool }
fn flagged(row: u32) -> bool { return !has_list || flags_word(row) != 0u; }
fn word_of(i: u32) -> Word {
  var w = Word(i / p.section, 0u, 0u, i % p.section, true);
  if (has_list) {
    let row = list_at(i / p.per_row);
    w.column = i % p.per_row;
    if (row < 0) {
      w.mine = false;
      return w;
    }
    w.group = u32(row) / 16u;
    w.lane = u32(row) % 16u / per * per;
    w.index = (w.column * 16u + w.lane) / per;
    for (var l = w.lane; per > 1u && l < u32(row) % 16u; l++) {
      if (flagged(w.group * 16u + l)) { w.mine = false; }
    }
    return w;
  }
  w.column = w.index * per / 16u;
  w.lane = w.index * per % 16u;
  return w;
}
fn here(w: Word, lane: u32) -> bool {
  let row = w.group * 16u + lane;
  return row < p.rows_all && (per == 1u || flagged(row));
}
fn source(row: u32, k: u32) -> u32 {
  if (row >= p.rows_all || k >= p.cols) { return 0u; }
  return bitcast<u32>(src_at(row * p.cols + k));
}
// The place of a word, and the word with the codes of those who are not here as they were.
fn put_word(w: Word, section: u32, made: u32, mask: u32) {
  let at = w.group * p.group_words + section + w.index;
  var v = made;
  if (has_list && mask != 0xffffffffu) { v = (made & mask) | (w_word(at) & ~mask); }
  w_put(at, v);
}
)";

// stored: 0 f32, 1 the power of two of MX, 2 e4m3 under the tensor's scale, 3 f16 of q4_0, 4 f16
// of q8_0.
constexpr std::string_view kBlockScale = R"(
struct Largest { bits: u32, first: u32 }
fn largest_of(row: u32, k0: u32) -> Largest {
  var largest = Largest(0u, 0u);
  for (var k = k0; k < k0 + block; k++) {
    let x = source(row, k);
    let a = x & 0x7fffffffu;
    if (a < 0x7f800000u && a > largest.bits) { largest = Largest(a, x); }
  }
  return largest;
}
// d of a GGUF block, before it is rounded to f16.
fn gguf_scale(largest: Largest) -> u32 {
  if (stored_as == 4u) { return divide_bits(largest.bits, 0x42fe0000u); }
  return divide_bits(largest.bits, 0x41000000u) | (~largest.first & 0x80000000u);
}
)";

constexpr Kernel kBlockScales{"pack_block_scales", R"(
fn half_bits(x: u32) -> u32 {
  let q = ratio_of(x, 0x3f800000u);
  let e = max(q.e, -14);
  let field = min((u32(clamp(e, -14, 30) + 14) << 10u) + nearest(q, 10 - e), 0x7bffu);
  return field | select(0u, 0x8000u, q.negative);
}
fn e4m3_bits(largest: u32, tensor: u32) -> u32 {
  if ((tensor & 0x7fffffffu) == 0u || largest == 0u) { return 0u; }
  // The CPU divides by 6 and then by twice the tensor's scale: 12 changes no bit.
  let q = f64_divide(f64_divide(f64_of(largest), f64_of(0x41400000u)), f64_of(tensor));
  let m = shift_right(shift_left(f64_mantissa(q), 11u), 32u).x;
  let e = f64_exponent(q) - 1023;
  if (e > 8) { return 0x7eu; }
  let lowest = max(e, -6);
  return min((u32(lowest + 6) << 3u) + nearest(Ratio(m, e, false, false), 3 - lowest), 0x7eu);
}
fn scale_bits(row: u32, column: u32) -> u32 {
  let largest = largest_of(row, column * block);
  if (stored_as == 0u) { return largest.bits; }
  if (stored_as == 1u) {
    if (largest.bits == 0u) { return 127u; }
    return u32(max(ratio_of(largest.bits, 0x3f800000u).e - 2, -127) + 127);
  }
  if (stored_as == 2u) {
    return e4m3_bits(largest.bits, w_word(row / 16u * p.group_words + row % 16u));
  }
  return half_bits(gguf_scale(largest));
}
fn run(i: u32) {
  let w = word_of(i);
  if (!w.mine) { return; }
  var made = 0u;
  var mask = 0u;
  let ones = 0xffffffffu >> (32u - 32u / per);
  for (var l = 0u; l < per; l++) {
    if (has_list && !here(w, w.lane + l)) { continue; }
    mask |= ones << (32u / per * l);
    if (w.column < p.columns) {
      made |= scale_bits(w.group * 16u + w.lane + l, w.column) << (32u / per * l);
    }
  }
  put_word(w, p.scales_w, made, mask);
}
)"};

// Wide types: the codes of `per` rows at one k. With 8 bytes per code (coder 7, 8) an invocation
// makes two words.
constexpr Kernel kWideCodes{"pack_wide", R"(
fn run(i: u32) {
  let w = word_of(i);
  if (!w.mine) { return; }
  var made = 0u;
  var mask = 0u;
  let ones = 0xffffffffu >> (32u - 32u / per);
  for (var l = 0u; l < per; l++) {
    let row = w.group * 16u + w.lane + l;
    if (!here(w, w.lane + l)) {
      if (!has_list) { mask |= ones << (32u / per * l); }
      continue;
    }
    mask |= ones << (32u / per * l);
    if (w.column >= p.cols) { continue; }
    let step = select(0u, w_word(w.group * p.group_words + w.lane + l), scaled != 0u);
    var zero = 0;
    if (affine != 0u) { zero = i32(w_word(w.group * p.group_words + 16u + w.lane + l)); }
    let code = code_of(source(row, w.column), step, 0, zero, row * p.cols + w.column);
    made |= (code & ones) << (32u / per * l);
  }
  put_word(w, p.codes_w, made, mask);
}
)"};

// The same with f64 steps: f64 itself, integers of 32 and 64 bits. A 64-bit code is two words.
constexpr Kernel kWideCodes64{"pack_wide64", R"(
fn header(w: Word, word: u32) -> vec2<u32> {
  let at = w.group * p.group_words + word + 2u * w.lane;
  return vec2(w_word(at), w_word(at + 1u));
}
fn of_f64(bits: u32) -> vec2<u32> {
  if ((bits & 0x7f800000u) != 0x7f800000u) { return f64_of(bits); }
  let quiet = select(0u, 0x80000u, (bits & 0x7fffffu) != 0u);
  let m = bits & 0x7fffffu;
  return vec2(m << 29u, (bits & 0x80000000u) | 0x7ff00000u | quiet | (m >> 3u));
}
fn integer_of(bits: u32, w: Word) -> vec2<u32> {
  var step = header(w, 0u);
  var zero = vec2(0u);
  if (affine != 0u) { zero = header(w, 32u); }
  if (f64_zero(step)) { step = f64_of(0x3f800000u); }
  var q = vec2(0u);
  let a = bits & 0x7fffffffu;
  if (a == 0x7f800000u) { q = vec2(0u, 0x60000000u | (bits & 0x80000000u)); }
  if (a < 0x7f800000u) { q = f64_divide(f64_of(bits), step); }
  let low = f64_add(vec2(p.low_low, p.low_high), f64_negate(zero));
  let high = f64_add(vec2(p.top_low, p.top_high), f64_negate(zero));
  if (f64_less(q, low)) { q = low; }
  if (f64_less(high, q)) { q = high; }
  let sum = f64_add(f64_round(q), zero);
  let n = f64_integer(sum);
  if (f64_sign(sum) != 0u) { return subtract_pair(vec2(0u), n); }
  return n;
}
fn run(i: u32) {
  let w = word_of(i);
  if (!w.mine) { return; }
  let row = w.group * 16u + w.lane;
  var code = vec2(0u);
  if (row < p.rows_all && w.column < p.cols) {
    let bits = source(row, w.column);
    if (coder == 7u) { code = of_f64(bits); } else { code = integer_of(bits, w); }
  }
  let at = w.group * p.group_words + p.codes_w + w.index * words;
  w_put(at, code.x);
  if (words == 2u) { w_put(at + 1u, code.y); }
}
)"};

// K-groups: a word holds 32 / bits codes of one row, four neighbouring k to a place of its bytes.
constexpr Kernel kGroupCodes{"pack_groups", R"(
struct Step { bits: u32, unit: i32 }
// What values of a block are divided by; for GGUF what they are multiplied by.
fn step_of(w: Word, k: u32) -> Step {
  let at = w.group * p.group_words;
  let lane = w.lane;
  if (blocked == 0u) { return Step(w_word(at + lane), bitcast<i32>(p.unit_exponent)); }
  if (stored_as >= 3u) {
    let d = gguf_scale(largest_of(w.group * 16u + lane, k / block * block));
    if ((d & 0x7fffffffu) == 0u) { return Step(0u, 0); }
    return Step(divide_bits(0x3f800000u, d & 0x7fffffffu) | (d & 0x80000000u), 0);
  }
  let number = k / block * 16u + lane;
  if (stored_as == 0u) { return Step(w_word(at + p.scales_w + number), 0); }
  let byte = (w_word(at + p.scales_w + number / 4u) >> (number % 4u * 8u)) & 255u;
  if (stored_as == 1u) { return Step(select(byte << 23u, 0x400000u, byte == 0u), 0); }
  // e4m3 of the block times f32 of the tensor, rounded once; a step is twice that.
  let field = byte & 0x7fu;
  var e4m3 = f32(8u | (field & 7u)) * exp2_int(i32(field >> 3u) - 10);
  if (field < 8u) { e4m3 = f32(field) * 0.001953125; }
  let product = e4m3 * bitcast<f32>(w_word(at + lane));
  return Step(bitcast<u32>(product), -1);
}
fn run(i: u32) {
  let w = word_of(i);
  if (!w.mine) { return; }
  let row = w.group * 16u + w.lane;
  let b = w.column / bits;
  let vector = w.column % bits;
  var zero = 0;
  if (affine != 0u) { zero = i32(w_word(w.group * p.group_words + 16u + w.lane)); }
  var made = 0u;
  var step = Step(0u, 0);
  for (var high = 0u; high < 8u / bits; high++) {
    let k0 = b * 32u + 4u * (vector + high * bits);
    // A block of scales has 16 values or more: all of it, or starts at one of these.
    if (high == 0u || (blocked != 0u && k0 / block != (k0 - 4u * bits) / block)) {
      step = step_of(w, k0);
    }
    for (var j = 0u; j < 4u; j++) {
      let k = k0 + j;
      var code = code_of(source(row, k), step.bits, step.unit, zero, row * p.cols + k);
      if (coder == 2u && k >= p.cols) { code = 0u; }
      made |= code << (8u * j + bits * high);
    }
  }
  put_word(w, p.codes_w, made, 0xffffffffu);
}
)"};

// Which rows of a table a list names.
constexpr Kernel kClear{"pack_clear", "fn run(i: u32) { flags_put(i, 0u); }\n"};
constexpr Kernel kMark{"pack_mark", R"(
fn run(i: u32) {
  let row = list_at(i);
  if (row >= 0) { flags_put(u32(row), 1u); }
}
)"};

int64_t low(uint64_t v) {
  return static_cast<int64_t>(v & 0xffffffffU);
}
int64_t high(uint64_t v) {
  return static_cast<int64_t>(v >> 32);
}
Call& wide_value(Call& call, std::string_view low_name, std::string_view high_name, double v) {
  const auto bits = bit_cast<uint64_t>(v);
  return call.value(low_name, low(bits)).value(high_name, high(bits));
}

// How values become codes.
enum class Coder : uint8_t { integer, floating, binary, nf4, q4, q8, f32, f64, integer64 };

// One pack op: what its kernels are told.
struct Job {
  Frame& frame;
  const PackArgs& args;
  R16 g;
  const DTypeInfo& info;
  Coder coder = Coder::integer;
  int64_t stored_as = 0;
  double largest = 0, smallest = 0;  // value of the codes at both ends
  Place scratch;

  Status scales();
  Status block_scales();
  Status wide_codes();
  Status group_codes();
  Status mark(int64_t bytes);
  Call& with_words(Call& call, int64_t section, int64_t per_row, int per);
  Call& with_coder(Call& call);
  int64_t count(int64_t section, int64_t per_row) const {
    return args.rows.empty() ? g.groups * section : args.rows.shape.count() * per_row;
  }
};

Coder coder_of(const DTypeInfo& info) {
  if (info.scale == ScaleRule::f16) return info.bits == 4 ? Coder::q4 : Coder::q8;
  const bool wide = info.bits == 64;
  switch (info.kind) {
    case NumberKind::ieee:
      return wide ? Coder::f64 : info.bits == 32 ? Coder::f32 : Coder::floating;
    case NumberKind::fp: return Coder::floating;
    case NumberKind::binary: return Coder::binary;
    case NumberKind::codebook: return Coder::nf4;
    default: return info.compute == ComputeType::f64 ? Coder::integer64 : Coder::integer;
  }
}

int64_t stored_as(const DTypeInfo& info) {
  switch (info.scale) {
    case ScaleRule::e8m0: return 1;
    case ScaleRule::e4m3: return 2;
    case ScaleRule::f16: return info.bits == 4 ? 3 : 4;
    default: return 0;
  }
}

// The numbers that code_of() reads; of a float type from its codes of 1, 2, the largest and NaN.
Call& Job::with_coder(Call& call) {
  const auto code = [&](double v) { return static_cast<int64_t>(encode_value(info.dtype, v)); };
  const bool floats = coder == Coder::floating, integers = coder == Coder::integer;
  int mantissa = 0;
  while (floats && (int64_t{1} << mantissa) < code(2.0) - code(1.0)) ++mantissa;
  const int64_t lowest = floats ? 1 - (code(1.0) >> mantissa) : 0;
  const double nan = __builtin_nan("");
  const bool noisy = args.stochastic;
  return call.constant("coder", static_cast<int64_t>(coder))
      .constant("dithered", noisy ? (g.has_row_scale ? 2 : 1) : 0)
      .value("mantissa", int64_t{mantissa})
      .value("lowest", lowest)
      .value("top", floats ? code(1e300) : integers ? static_cast<int64_t>(largest) : 0)
      .value("bottom", integers ? static_cast<int64_t>(smallest) : 0)
      .value("sign", int64_t{1} << (info.bits < 32 ? info.bits - 1 : 31))
      .value("bias", int64_t{info.code_bias})
      .value("nan", floats ? code(nan) : 0)
      .value("nan_negative", floats ? code(-nan) : 0)
      .value("nan_shift", int64_t{info.kind == NumberKind::ieee ? 23 - mantissa : 31})
      .value("none", int64_t{0})
      .value("seed_low", low(args.seed))
      .value("seed_high", high(args.seed))
      .value("stream_low", low(args.stream))
      .value("stream_high", high(args.stream))
      .read("at", args.step)
      .text(kFloat64)
      .text(kCodes);
}

// A section of words of which `per` rows share one, `per_row` words in each row.
Call& Job::with_words(Call& call, int64_t section, int64_t per_row, int per) {
  if (per > 1 && !args.rows.empty()) {
    call.words("flags", scratch, Access::read);
  } else {
    call.words("flags", nullptr);
  }
  return call.read("src", args.src)
      .words("w", args.w.data, Access::update)
      .ids("list", args.rows)
      .value("section", section)
      .value("per_row", per_row)
      .value("group_words", g.group_bytes / 4)
      .value("rows_all", g.rows)
      .value("cols", g.cols)
      .value("scales_w", g.block_scales / 4)
      .value("codes_w", g.codes / 4)
      .constant("per", per)
      .text(kWords);
}

constexpr int64_t kParts = 1024, kPartBytes = 24;

Status Job::scales() {
  const bool whole = args.scope == ScaleScope::per_tensor || info.scale == ScaleRule::e4m3;
  const bool mean = info.scale == ScaleRule::absmean || info.scale == ScaleRule::meanabs;
  const int64_t values = g.rows * g.cols;
  const int64_t stretch = std::max<int64_t>(round_up(ceil_div(values, kParts), 64), 1024);
  const int64_t parts = ceil_div(values, stretch);
  Place partial;
  if (whole) {
    LOOM_ASSIGN(partial, frame.temporary(kParts * kPartBytes));
    LOOM_TRY(Call(frame, kPartial)
                 .read("src", args.src)
                 .words("partial", partial, Access::write)
                 .value("stretch", stretch)
                 .value("count", values)
                 .constant("mean", mean ? 1 : 0)
                 .text(kFloat64)
                 .text(kRange)
                 .lanes(128)
                 .rows(parts));
  }
  // nvfp4: half of the largest magnitude by the largest e4m3 and the largest e2m1.
  const bool of_tensor = info.scale == ScaleRule::e4m3;
  const double top = of_tensor ? 448.0 * 6.0 * 2.0 : largest;
  const float unit = of_tensor ? 1.0f : info.level_unit;
  Call call(frame, kScales);
  if (whole) {
    call.words("partial", partial, Access::read);
  } else {
    call.words("partial", nullptr);
  }
  call.read("src", args.src)
      .words("w", args.w.data, Access::update)
      .update("held", args.ranges)
      .ids("list", args.rows)
      .value("group_words", g.group_bytes / 4)
      .value("rows_all", g.rows)
      .value("rows_padded", g.groups * kR16Rows)
      .value("cols", g.cols)
      .value("count", parts)
      .value("unit", int64_t{bit_cast<uint32_t>(unit)})
      .value("band", int64_t{bit_cast<uint32_t>(args.band)})
      .constant("rule", info.affine() ? 1 : mean ? 2 : 0)
      .constant("mean", mean ? 1 : 0)
      .constant("grids", info.scale == ScaleRule::absmean ? 1 : 0)
      .constant("wide", info.compute == ComputeType::f64 ? 1 : 0)
      .constant("whole", whole ? 1 : 0)
      .text(kFloat64)
      .text(kRange);
  wide_value(call, "top_low", "top_high", top);
  if (whole) return call.lanes(128).rows(1);
  return call.lanes(64).rows(args.rows.empty() ? g.groups * kR16Rows : args.rows.shape.count());
}

Status Job::block_scales() {
  const int64_t section = (g.codes - g.block_scales) / 4;
  const int64_t columns = ceil_div(g.blocks * kR16Block, int64_t{info.block});
  const auto per = static_cast<int>(4 * kR16Rows / g.scale_block_bytes);
  if (per > 1) LOOM_TRY(mark(g.rows * 4));
  Call call(frame, kBlockScales);
  with_coder(with_words(call, section, columns, per));
  return call.value("columns", columns)
      .constant("block", info.block)
      .constant("stored_as", stored_as)
      .text(kBlockScale)
      .items(count(section, columns));
}

Status Job::mark(int64_t bytes) {
  if (args.rows.empty()) return {};
  LOOM_ASSIGN(scratch, frame.temporary(bytes));
  LOOM_TRY(Call(frame, kClear).words("flags", scratch, Access::write).items(g.rows));
  return Call(frame, kMark)
      .ids("list", args.rows)
      .words("flags", scratch, Access::write)
      .items(args.rows.shape.count());
}

Status Job::wide_codes() {
  const int bytes = info.bits / 8;
  const int per = bytes < 4 ? 4 / bytes : 1;
  const int words = bytes == 8 ? 2 : 1;
  const int64_t section = (g.group_bytes - g.codes) / 4 / words;
  if (per > 1) LOOM_TRY(mark(g.rows * 4));
  if (coder == Coder::f64 || coder == Coder::integer64) {
    Call call(frame, kWideCodes64);
    with_words(call, section, g.cols, per);
    wide_value(call, "top_low", "top_high", largest);
    wide_value(call, "low_low", "low_high", smallest);
    return call.constant("coder", static_cast<int64_t>(coder))
        .constant("affine", info.affine() ? 1 : 0)
        .constant("words", words)
        .text(kFloat64)
        .items(count(section, g.cols));
  }
  Call call(frame, kWideCodes);
  with_coder(with_words(call, section, g.cols, per));
  return call.constant("scaled", g.has_row_scale ? 1 : 0)
      .constant("affine", info.affine() ? 1 : 0)
      .items(count(section, g.cols));
}

Status Job::group_codes() {
  const int64_t per_row = g.blocks * g.bits;
  Call call(frame, kGroupCodes);
  with_coder(with_words(call, per_row * kR16Rows, per_row, 1));
  const int64_t unit = info.level_unit == 0.25f ? -2 : info.level_unit == 0.5f ? -1 : 0;
  return call.value("unit_exponent", unit)
      .constant("bits", g.bits)
      .constant("blocked", info.block > 0 ? 1 : 0)
      .constant("block", std::max(info.block, 1))
      .constant("stored_as", stored_as)
      .constant("affine", info.affine() ? 1 : 0)
      .text(kBlockScale)
      .items(count(per_row * kR16Rows, per_row));
}

}  // namespace

Status pack(Frame& frame, const PackArgs& args) {
  if (args.src.dtype != DType::f32) return unsupported("pack: no kernel for src that is not f32");
  Job job{frame, args, r16_geometry(args.w.dtype, args.w.shape[0], args.w.shape[1]),
          dtype_info(args.w.dtype)};
  if (job.g.bytes() == 0) return {};
  job.coder = coder_of(job.info);
  job.stored_as = stored_as(job.info);
  job.largest = decode_value(args.w.dtype, encode_value(args.w.dtype, 1e300));
  job.smallest = decode_value(args.w.dtype, encode_value(args.w.dtype, -1e300));
  if (job.g.has_row_scale) LOOM_TRY(job.scales());
  if (job.g.scale_block_bytes > 0) LOOM_TRY(job.block_scales());
  return job.g.wide ? job.wide_codes() : job.group_codes();
}

}  // namespace loom::webgpu::kernels
