// Kernels of pack, first part: scales of rows and of the whole tensor, and the ranges that they
// derive from, in the CPU's double precision (float64.cpp).
#include "backend/webgpu/kernels/codes/pack.hpp"

namespace loom::core::webgpu {

// A range summarizes finite values: the largest magnitudes above and below zero, the smallest and
// the largest nonzero magnitude; the number of values and the sum of their magnitudes.
const std::string_view kRange = R"(
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

// One workgroup per stretch of the tensor. Writes its range to `partial`, six words each.
const Kernel kPartial{"pack_partial", R"(
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

// The scale of a row, or of the tensor from its parts, and the stored form. rule: 0 the largest
// magnitude / top, 1 affine, 2 mean. wide: scales and zero points are f64.
const Kernel kScales{"pack_scales", R"(
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

}  // namespace loom::core::webgpu
