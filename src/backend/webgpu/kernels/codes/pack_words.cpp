// Kernels of pack, second part: scales of blocks, and codes. An invocation makes one word of the
// result (src/dtype/r16/r16.hpp), which may hold codes of several rows.
#include "backend/webgpu/kernels/codes/pack.hpp"

namespace loom::core::webgpu {

// The word of a section that an invocation makes, and the rows in it. For every column, a section
// holds one number of each of the sixteen rows of a group, `per` of them to a word.
const std::string_view kWords = R"(
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
const std::string_view kBlockScale = R"(
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

const Kernel kBlockScales{"pack_block_scales", R"(
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
const Kernel kWideCodes{"pack_wide", R"(
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
const Kernel kWideCodes64{"pack_wide64", R"(
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

// K-groups: a word holds 32 / bits codes of one row, and its bytes hold four adjacent k.
const Kernel kGroupCodes{"pack_groups", R"(
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

// Marks the rows of a table that a list names.
const Kernel kClear{"pack_clear", "fn run(i: u32) { flags_put(i, 0u); }\n"};
const Kernel kMark{"pack_mark", R"(
fn run(i: u32) {
  let row = list_at(i);
  if (row >= 0) { flags_put(u32(row), 1u); }
}
)"};

}  // namespace loom::core::webgpu
