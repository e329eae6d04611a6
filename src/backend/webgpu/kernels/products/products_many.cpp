// Products of many rows of x by one matrix, or by up to three over the same x, and their epilogues:
// bias and activation, an addition, a gated unit and its quantized copy. Prompts make outputs of
// some hundred rows and columns. These have too few tiles to fill a large GPU with one sum per
// invocation. Their sums are too short to wait for memory at every step. So a tile is small: 4 tall
// x 32 wide outputs. Its 256 invocations form `slices` that share the sum, each with 4 x 4 wide
// outputs per invocation. Workgroup memory holds the data of one step for all slices, while the
// next step is loading. Slices are added in their order.
#include <algorithm>

#include "backend/webgpu/kernels/codes/quantize.hpp"
#include "backend/webgpu/kernels/products/products.hpp"
#include "backend/webgpu/wgsl/weights.hpp"
#include "base/numbers/checked.hpp"

namespace loom::core::webgpu {
namespace {

constexpr int64_t kLanes = 256, kWidth = 32;

// Columns of tile t: segments of 32, j counting. `part` is the matrix they belong to; the columns
// of a gated unit are adjacent.
constexpr std::string_view kTile = R"(
const slices: u32 = 32u / tall;
const units: u32 = 8u * slices;
const quads: u32 = 8u * wide;
var<workgroup> left: array<vec4<u32>, 256>;
var<workgroup> right: array<vec4<u32>, units * quads>;
fn left_slot(k: u32, q: u32) -> u32 { return k * tall + (q ^ (k % tall)); }
fn right_slot(k: u32, q: u32) -> u32 { return k * quads + (q ^ (k % 2u * 4u)); }

struct Columns { part: u32, n: u32 }
fn of_part(part: u32, a: u32, b: u32, c: u32) -> u32 {
  return select(select(a, b, part == 1u), c, part == 2u);
}
fn columns(t: u32, j: u32) -> Columns {
  if (paired == 1u) { return Columns(j, t * 32u); }
  if (parts == 1u) { return Columns(0u, (t * wide + j) * 32u); }
  let part = u32(t >= p.tiles1) + u32(t >= p.tiles2);
  return Columns(part, ((t - of_part(part, 0u, p.tiles1, p.tiles2)) * wide + j) * 32u);
}
fn cols_of(part: u32) -> u32 { return of_part(part, p.cols0, p.cols1, p.cols2); }
// Rows of w beyond the last are read there, and not stored.
struct Four { base: u32, lane: u32 }
fn four(c: Columns, n: u32) -> Four {
  let row = min(c.n + n, (cols_of(c.part) - 1u) / 4u * 4u);
  return Four(w_base(row) + of_part(c.part, p.shift0, p.shift1, p.shift2), row % 16u);
}
// Sums of an invocation: 4 x 4 in each segment. Everything is written out, arrays might be kept in
// memory.
struct Sums { a: mat4x4<f32>, b: mat4x4<f32> }
fn rows_from(row: u32) -> vec4<u32> {
  return min(vec4<u32>(row, row + 1u, row + 2u, row + 3u), vec4<u32>(p.rows - 1u));
}
)";

// Codes, four a word: a step is one block of 32 k for every slice. The integer sum of a block
// becomes a float by its bits: below 2^22 it is the fraction of 1.5 * 2^23 + sum. One of the next
// two texts defines the data of w and the use of the sums.
constexpr std::string_view kStepQ8 = R"(
const half: u32 = select(8u, 4u, w_span == 16u);
var<workgroup> left_scale: array<f32, 128>;
var<workgroup> left_sum: array<i32, select(1u, 128u, with_sums)>;
var<workgroup> right_step: array<vec4<f32>, slices * quads * 8u / half>;
struct Next { x: vec4<u32>, w: Right, scale: f32, sum: i32 }
fn fetch(step: u32, t: u32, row0: u32, lane: u32) -> Next {
  let b0 = step * slices;
  let last = p.blocks - 1u;
  let k = min(b0 * 8u + lane % units, last * 8u + 7u);
  let at = rows_from(row0 + lane / units * 4u) * (p.blocks * 8u) + k;
  var next: Next;
  next.x = vec4<u32>(a_word(at.x), a_word(at.y), a_word(at.z), a_word(at.w));
  next.w = fetch_right(b0, t, lane);
  if (lane < 128u) {
    let from_row = min(row0 + lane / slices, p.rows - 1u) * p.blocks;
    let block = from_row + min(b0 + lane % slices, last);
    next.scale = a_scales_at(block);
    if (with_sums) { next.sum = sums_of(block); }
  }
  return next;
}
// Levels, with what they are too large by taken off each byte where that fits.
fn folded(levels: u32) -> u32 {
  if (fold == 0u) { return levels; }
  return ((levels | 0x80808080u) - fold) ^ 0x80808080u;
}
fn put(next: Next, step: u32, t: u32, lane: u32) {
  left[left_slot(lane % units, lane / units)] = next.x;
  put_right(next.w, lane);
  if (lane < 128u) {
    let at = lane % slices * (4u * tall) + lane / slices;
    left_scale[at] = next.scale;
    if (with_sums) { left_sum[at] = next.sum; }
  }
}
struct Dots { a: vec4<i32>, b: vec4<i32>, c: vec4<i32>, d: vec4<i32> }
fn dots(a: u32, w: vec4<u32>) -> vec4<i32> {
  return vec4<i32>(dot4I8Packed(a, w.x), dot4I8Packed(a, w.y), dot4I8Packed(a, w.z),
                   dot4I8Packed(a, w.w));
}
fn add_dots(s: ptr<function, Dots>, x: vec4<u32>, w: vec4<u32>) {
  (*s).a += dots(x.x, w);
  (*s).b += dots(x.y, w);
  (*s).c += dots(x.z, w);
  (*s).d += dots(x.w, w);
}
fn number(sum: vec4<i32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(sum) - vec4<f32>(12582912.0);
}
fn all_scaled(s: ptr<function, Dots>, b: u32, t: u32, j: u32, high: u32, slice: u32, row: u32,
              col: u32) -> mat4x4<f32> {
  let q = slice * quads + j * 8u + col;
  let steps = right_step[high * slices * quads + q];
  let others = others_of(b, t, j, high, q, col);
  let at = slice * (4u * tall) + row * 4u;
  return mat4x4<f32>(scaled((*s).a, steps, others, at, high),
                     scaled((*s).b, steps, others, at + 1u, high),
                     scaled((*s).c, steps, others, at + 2u, high),
                     scaled((*s).d, steps, others, at + 3u, high));
}
fn multiply(sums: ptr<function, Sums>, step: u32, t: u32, slice: u32, row: u32, col: u32) {
  let b = step * slices + slice;
  if (b >= p.blocks) { return; }
  let zero = vec4<i32>(0x4b400000);
  for (var high = 0u; high < 8u / half; high++) {
    var s = Dots(zero, zero, zero, zero);
    var more = Dots(zero, zero, zero, zero);
    for (var i = 0u; i < half; i++) {
      let k = slice * 8u + high * half + i;
      let x = left[left_slot(k, row)];
      add_dots(&s, x, right[right_slot(k, col)]);
      if (wide == 2u) { add_dots(&more, x, right[right_slot(k, 8u + col)]); }
    }
    (*sums).a += all_scaled(&s, b, t, 0u, high, slice, row, col);
    if (wide == 2u) { (*sums).b += all_scaled(&more, b, t, 1u, high, slice, row, col); }
  }
}
)";

constexpr std::string_view kRightGroups = R"(
const with_sums: bool = w_affine || (w_bias != 0 && fold == 0u);
const w_items: u32 = slices * quads * w_bits;
struct Right { w: vec4<u32>, more: vec4<u32>, step: vec4<u32>, high: vec4<u32> }
fn sums_of(block: u32) -> i32 { return bitcast<i32>(a_sums_word(block)); }
fn fetch_w(u: u32, b0: u32, t: u32) -> vec4<u32> {
  let group = u / (slices * w_bits * 4u);
  let v = u / 4u % (slices * w_bits);
  let f = four(columns(t, group / 2u), group % 2u * 16u + u % 4u * 4u);
  let b = min(b0 + v / w_bits, p.blocks - 1u);
  return w_words(w_line(f.base, f.lane, b * 32u + v % w_bits * 4u));
}
fn fetch_right(b0: u32, t: u32, lane: u32) -> Right {
  var next: Right;
  if (w_items >= 256u || lane < w_items) { next.w = fetch_w(lane, b0, t); }
  if (w_items > 256u) { next.more = fetch_w(lane + 256u, b0, t); }
  if (lane >= 128u && lane < 128u + slices * quads) {
    let q = lane % quads;
    let f = four(columns(t, q / 8u), q % 8u * 4u);
    let b = min(b0 + (lane - 128u) / quads, p.blocks - 1u);
    next.step = w_step_words(f.base, f.lane, b * 32u);
    if (w_span == 16u) { next.high = w_step_words(f.base, f.lane, b * 32u + 16u); }
  }
  return next;
}
fn level(word: u32, k: u32) -> u32 { return folded(w_levels(w_codes(word, k))); }
fn put_w(u: u32, words: vec4<u32>) {
  let q = u / (slices * w_bits * 4u) * 4u + u % 4u;
  let v = u / 4u % (slices * w_bits);
  for (var h = 0u; h < 8u / w_bits; h++) {
    let k = v % w_bits + h * w_bits;
    right[right_slot(v / w_bits * 8u + k, q)] =
        vec4<u32>(level(words.x, 4u * k), level(words.y, 4u * k), level(words.z, 4u * k),
                  level(words.w, 4u * k));
  }
}
fn put_right(next: Right, lane: u32) {
  if (w_items >= 256u || lane < w_items) { put_w(lane, next.w); }
  if (w_items > 256u) { put_w(lane + 256u, next.more); }
  if (lane >= 128u && lane < 128u + slices * quads) {
    right_step[lane - 128u] = w_steps_of(next.step, lane % 4u * 4u);
    if (w_span == 16u) {
      right_step[lane - 128u + slices * quads] = w_steps_of(next.high, lane % 4u * 4u);
    }
  }
}
fn others_of(b: u32, t: u32, j: u32, high: u32, q: u32, col: u32) -> vec4<i32> {
  if (!with_sums) { return vec4<i32>(); }
  let f = four(columns(t, j), col * 4u);
  return w_offsets(f.base, f.lane);
}
fn scaled(s: vec4<i32>, steps: vec4<f32>, offsets: vec4<i32>, at: u32, high: u32) -> vec4<f32> {
  var sum = s;
  if (with_sums) { sum -= offsets * left_sum[at]; }
  return number(sum) * (steps * left_scale[at]);
}
)";

// Types of spans. The factors of the sum of a row of x are stored with the steps. Spans of 16 read
// them on use, because workgroup memory is too small for them.
constexpr std::string_view kRightSpans = R"(
const with_sums: bool = w_shifts || w_zeros;
const near: bool = with_sums && w_span != 16u;
const items: u32 = slices * quads / 32u;
var<workgroup> right_shift: array<vec4<f32>, select(1u, slices * quads, near)>;
struct Right { first: Codes, second: Codes, around: Around }
// Of spans of 16 those of both halves.
fn sums_of(block: u32) -> i32 {
  let sum = bitcast<i32>(a_sums_word(block));
  if (w_span != 16u) { return sum; }
  let low = bitcast<i32>(a_halves_word(block));
  return (low & 0xffff) | ((sum - low) << 16u);
}
fn fetch_codes(u: u32, b0: u32, t: u32) -> Codes {
  let q = u / (units * 4u) * 4u + u % 4u;
  let v = u / 4u % units;
  let f = four(columns(t, q / 8u), q % 8u * 4u);
  return w_fetch(f.base, f.lane, min(b0 + v / 8u, p.blocks - 1u) * 32u + v % 8u * 4u);
}
fn fetch_right(b0: u32, t: u32, lane: u32) -> Right {
  var next: Right;
  next.first = fetch_codes(lane, b0, t);
  if (items == 2u) { next.second = fetch_codes(lane + 256u, b0, t); }
  if (lane >= 128u && lane < 128u + slices * quads) {
    let q = lane % quads;
    let f = four(columns(t, q / 8u), q % 8u * 4u);
    let b = min(b0 + (lane - 128u) / quads, p.blocks - 1u);
    next.around = w_around(f.base, f.lane, b * 32u);
  }
  return next;
}
fn put_codes(u: u32, words: Codes) {
  let v = u / 4u % units;
  let codes = w_codes_of(words, v % 8u * 4u);
  right[right_slot(v, u / (units * 4u) * 4u + u % 4u)] =
      vec4<u32>(folded(codes.x), folded(codes.y), folded(codes.z), folded(codes.w));
}
fn put_right(next: Right, lane: u32) {
  put_codes(lane, next.first);
  if (items == 2u) { put_codes(lane + 256u, next.second); }
  if (lane >= 128u && lane < 128u + slices * quads) {
    let span = w_span_of(next.around, lane % 4u * 4u, 0u);
    right_step[lane - 128u] = span.scale;
    if (near) { right_shift[lane - 128u] = span.shift - span.zero * span.scale; }
    if (w_span == 16u) {
      right_step[lane - 128u + slices * quads] =
          w_span_of(next.around, lane % 4u * 4u, 16u).scale;
    }
  }
}
fn others_of(b: u32, t: u32, j: u32, high: u32, q: u32, col: u32) -> vec4<f32> {
  if (!with_sums) { return vec4<f32>(); }
  if (near) { return right_shift[q]; }
  let f = four(columns(t, j), col * 4u);
  return w_span_of(w_around(f.base, f.lane, b * 32u), f.lane, high * 16u).shift;
}
fn scaled(s: vec4<i32>, steps: vec4<f32>, shifts: vec4<f32>, at: u32, high: u32) -> vec4<f32> {
  var sum = number(s) * steps;
  if (with_sums) {
    var ones = left_sum[at];
    if (w_span == 16u) { ones = (ones << (16u - high * 16u)) >> 16u; }
    sum += shifts * f32(ones);
  }
  return sum * left_scale[at];
}
)";

// Floats: a step is eight k for every slice, with a separate sum, because long chains lose bits.
constexpr std::string_view kStepFloats = R"(
struct Next { x: vec4<f32>, w: Packed }
fn fetch(step: u32, t: u32, row0: u32, lane: u32) -> Next {
  let k0 = step * units;
  let k = min(k0 + lane % units, p.depth - 1u);
  let at = rows_from(row0 + lane / units * 4u) * p.x_s + k;
  var next: Next;
  next.x = vec4<f32>(x_at(at.x), x_at(at.y), x_at(at.z), x_at(at.w));
  if (lane < 2u * slices * quads) {
    let group = lane / units;
    let f = four(columns(t, group / 2u), group % 2u * 16u + lane % 4u * 4u);
    let from_k = min(k0 + lane % units / 4u * 4u, (p.depth - 1u) / 4u * 4u);
    next.w = w_packed(f.base, f.lane, from_k);
  }
  return next;
}
fn put(next: Next, step: u32, t: u32, lane: u32) {
  let from_k = step * units + lane % units / 4u * 4u;
  var x = next.x;
  if (step * units + lane % units >= p.depth) { x = vec4<f32>(); }
  left[left_slot(lane % units, lane / units)] = bitcast<vec4<u32>>(x);
  if (lane < 2u * slices * quads) {
    let group = lane / units;
    let f = four(columns(t, group / 2u), group % 2u * 16u + lane % 4u * 4u);
    var w = w_tile_of(next.w, f.base, f.lane, from_k);
    if (from_k >= p.depth) { w = mat4x4<f32>(); }
    let q = group * 4u + lane % 4u;
    let k = lane % units / 4u * 4u;
    right[right_slot(k, q)] = bitcast<vec4<u32>>(w[0]);
    right[right_slot(k + 1u, q)] = bitcast<vec4<u32>>(w[1]);
    right[right_slot(k + 2u, q)] = bitcast<vec4<u32>>(w[2]);
    right[right_slot(k + 3u, q)] = bitcast<vec4<u32>>(w[3]);
  }
}
fn terms(x: vec4<f32>, w: vec4<f32>) -> mat4x4<f32> {
  return mat4x4<f32>(x.x * w, x.y * w, x.z * w, x.w * w);
}
fn multiply(sums: ptr<function, Sums>, step: u32, t: u32, slice: u32, row: u32, col: u32) {
  var s = mat4x4<f32>();
  var more = mat4x4<f32>();
  for (var k = slice * 8u; k < slice * 8u + 8u; k++) {
    let x = bitcast<vec4<f32>>(left[left_slot(k, row)]);
    s += terms(x, bitcast<vec4<f32>>(right[right_slot(k, col)]));
    if (wide == 2u) { more += terms(x, bitcast<vec4<f32>>(right[right_slot(k, 8u + col)])); }
  }
  (*sums).a += s;
  if (wide == 2u) { (*sums).b += more; }
}
)";

// After the steps, the invocations exchange two rows at a time. An invocation adds the slices of
// four adjacent outputs in each of its segments.
constexpr Kernel kProducts{"products_many", R"(
struct Made { a: vec4<f32>, b: vec4<f32> }
fn exchange(first: vec4<f32>, second: vec4<f32>, lane: u32) -> vec4<f32> {
  left[lane] = bitcast<vec4<u32>>(first);
  right[lane] = bitcast<vec4<u32>>(second);
  workgroupBarrier();
  var v = vec4<f32>();
  for (var s = 0u; s < slices; s++) {
    let at = s * 8u * tall + lane % (8u * tall);
    if (lane / (8u * tall) % 2u == 0u) {
      v += bitcast<vec4<f32>>(left[at]);
    } else {
      v += bitcast<vec4<f32>>(right[at]);
    }
  }
  workgroupBarrier();
  return v;
}
fn joined(m: mat4x4<f32>, lane: u32) -> vec4<f32> {
  let low = exchange(m[0], m[1], lane);
  let high = exchange(m[2], m[3], lane);
  return select(low, high, lane / (16u * tall) % 2u == 1u);
}
fn run(group: vec3<u32>, lane: u32) {
  let row0 = group.y * 4u * tall;
  let slice = lane / (8u * tall);
  var sums: Sums;
  var next = fetch(0u, group.x, row0, lane);
  for (var step = 0u; step < p.steps; step++) {
    put(next, step, group.x, lane);
    workgroupBarrier();
    if (step + 1u < p.steps) { next = fetch(step + 1u, group.x, row0, lane); }
    multiply(&sums, step, group.x, slice, lane / 8u % tall, lane % 8u);
    workgroupBarrier();
  }
  var made: Made;
  made.a = joined(sums.a, lane);
  if (wide == 2u) { made.b = joined(sums.b, lane); }
  let row = row0 + lane % (8u * tall) / 8u * 4u + lane / (8u * tall) % 4u;
  store(made, group.x, row, lane % 8u * 4u, lane < 32u * tall && row < p.rows, lane);
}
)"};

constexpr std::string_view kOnePart = R"(
fn biased(part: u32, n: u32, v: f32) -> f32 { return select(v, v + bias0_at(n), has_bias0); }
fn part_set(part: u32, row: u32, n: u32, v: f32) { y0_set(row * p.y0_s + n, v); }
)";

constexpr std::string_view kTwoParts = R"(
fn biased(part: u32, n: u32, v: f32) -> f32 {
  if (part == 0u && has_bias0) { return v + bias0_at(n); }
  if (part == 1u && has_bias1) { return v + bias1_at(n); }
  return v;
}
fn part_set(part: u32, row: u32, n: u32, v: f32) {
  if (part == 0u) { y0_set(row * p.y0_s + n, v); } else { y1_set(row * p.y1_s + n, v); }
}
)";

constexpr std::string_view kThreeParts = R"(
fn biased(part: u32, n: u32, v: f32) -> f32 {
  if (part == 0u && has_bias0) { return v + bias0_at(n); }
  if (part == 1u && has_bias1) { return v + bias1_at(n); }
  if (part == 2u && has_bias2) { return v + bias2_at(n); }
  return v;
}
fn part_set(part: u32, row: u32, n: u32, v: f32) {
  if (part == 0u) {
    y0_set(row * p.y0_s + n, v);
  } else if (part == 1u) {
    y1_set(row * p.y1_s + n, v);
  } else {
    y2_set(row * p.y2_s + n, v);
  }
}
)";

constexpr std::string_view kStore = R"(
fn other_of(row: u32, n: u32) -> f32 { return other_at(row * p.other_row + n); }
fn one(c: Columns, row: u32, n: u32, biased: f32, other: f32) {
  if (n >= cols_of(c.part)) { return; }
  let v = activate(p.activation, biased);
  part_set(c.part, row, n, v);
  if (has_other) { added_set(row * p.added_row + n, other + v); }
}
fn four_of(t: u32, j: u32, row: u32, col: u32, v: vec4<f32>) {
  let c = columns(t, j);
  let n = c.n + col;
  // Read before anything is written: a read behind a write waits for memory on its own.
  let at = min(vec4(n, n + 1u, n + 2u, n + 3u), vec4(cols_of(c.part) - 1u));
  let b = vec4(biased(c.part, at.x, v.x), biased(c.part, at.y, v.y), biased(c.part, at.z, v.z),
               biased(c.part, at.w, v.w));
  let other = vec4(other_of(row, at.x), other_of(row, at.y), other_of(row, at.z),
                   other_of(row, at.w));
  one(c, row, n, b.x, other.x);
  one(c, row, n + 1u, b.y, other.y);
  one(c, row, n + 2u, b.z, other.z);
  one(c, row, n + 3u, b.w, other.w);
}
fn store(made: Made, t: u32, row: u32, col: u32, inside: bool, lane: u32) {
  if (!inside) { return; }
  four_of(t, 0u, row, col, made.a);
  if (wide == 2u) { four_of(t, 1u, row, col, made.b); }
}
)";

constexpr std::string_view kStoreGated = R"(
fn one(row: u32, n: u32, inside: bool, a: f32, b: f32) -> f32 {
  if (!inside || n >= p.cols0) { return 0.0; }
  let gate = biased(0u, n, a);
  let up = biased(1u, n, b);
  part_set(0u, row, n, gate);
  part_set(1u, row, n, up);
  let v = activate(p.activation, gate) * up;
  mixed_set(row * p.mixed_s + n, v);
  return v;
}
fn store(made: Made, t: u32, row: u32, col: u32, inside: bool, lane: u32) {
  let n = t * 32u + col;
  let x = vec4<f32>(one(row, n, inside, made.a.x, made.b.x),
                    one(row, n + 1u, inside, made.a.y, made.b.y),
                    one(row, n + 2u, inside, made.a.z, made.b.z),
                    one(row, n + 3u, inside, made.a.w, made.b.w));
  quantize_row(x, row, t, inside, lane);
}
)";

constexpr std::string_view kNoCodes = R"(
fn quantize_row(x: vec4<f32>, row: u32, t: u32, inside: bool, lane: u32) {}
)";

constexpr std::string_view kCodes = R"(
fn quantize_row(x: vec4<f32>, row: u32, t: u32, inside: bool, lane: u32) {
  quantize_block(x, row * p.mixed_blocks + t, inside, lane);
}
)";

struct TileSize {
  int64_t tall = 8, wide = 1;
};

// Tiles one invocation row tall are for outputs that would leave most of a large GPU idle.
TileSize tile_size(const Products& m) {
  constexpr int64_t kEnough = 132, kMany = 528;
  if (m.gated) return {8, 2};
  int64_t columns = 0;
  for (int i = 0; i < m.count; ++i) columns += ceil_div(m.parts[i].y.cols(), kWidth);
  const int64_t rows = m.parts[0].y.rows(), count = ceil_div(rows, int64_t{32}) * columns;
  if (count < kEnough || rows <= 16) return {4, 1};
  return {8, count >= kMany ? 2 : 1};
}

// The amount to subtract from the bytes of levels to get the levels of the type. 0 means that the
// sums do it.
int64_t level_fold(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  const int64_t bias = info.levels == Levels::twice ? 1 : info.code_bias;
  return info.affine() || info.bits >= 8 ? 0 : bias * 0x01010101;
}

void bind_input(Call& call, const Products& m, int64_t depth, const TileSize& size) {
  const int64_t slices = 32 / size.tall;
  const Tensor& w = m.parts[0].w;
  if (m.use_q8) {
    call.words("a", m.q8.codes)
        .read("a_scales", f32_vector(m.q8.scales, m.q8.rows * m.q8.blocks))
        .words("a_sums", m.q8.sums)
        .value("blocks", m.q8.blocks)
        .value("steps", ceil_div(m.q8.blocks, slices))
        .constant("fold", level_fold(w.dtype));
    if (reads_spans(w.dtype)) call.words("a_halves", m.q8.half_sums);
    call.text(reads_spans(w.dtype) ? kRightSpans : kRightGroups).text(kStepQ8);
  } else {
    call.read("x", m.x)
        .value("depth", depth)
        .value("steps", ceil_div(depth, 8 * slices))
        .text(kStepFloats);
  }
}

}  // namespace

bool mergeable(const Frame& frame, const Tensor& a, const Tensor& b) {
  const DTypeInfo& info = dtype_info(a.dtype);
  if (a.dtype != b.dtype || a.shape[1] != b.shape[1] || info.compute == ComputeType::f64) {
    return false;
  }
  const BufferSlice first = frame.slice_of(a.data), second = frame.slice_of(b.data);
  return first.buffer != nullptr && first.buffer == second.buffer;
}

bool small_product(int64_t rows, int64_t cols) {
  return ceil_div(rows, int64_t{64}) * ceil_div(cols, int64_t{64}) < 60;
}

Status run_products(Frame& frame, const Products& m) {
  constexpr std::string_view kBias[] = {"bias0", "bias1", "bias2"}, kY[] = {"y0", "y1", "y2"},
                             kCols[] = {"cols0", "cols1", "cols2"};
  constexpr std::string_view kParts[] = {kOnePart, kTwoParts, kThreeParts};
  constexpr int64_t kFar = int64_t{1} << 30;
  if (m.use_q8 && !reads_levels(m.parts[0].w.dtype))
    return no_levels("products_many", m.parts[0].w.dtype);
  const TileSize size = tile_size(m);
  int first = 0;
  for (int i = 1; i < m.count; ++i) {
    const auto at = [&](int part) { return frame.slice_of(m.parts[part].w.data).offset; };
    if (at(i) < at(first)) first = i;
  }
  // Offsets are relative to the matrix with the lowest address, so distances are not negative.
  const auto distance = [&](int part) {
    return part >= m.count ? 0
                           : (frame.slice_of(m.parts[part].w.data).offset -
                              frame.slice_of(m.parts[first].w.data).offset) /
                                 4;
  };
  Call call(frame, kProducts);
  weights(call, m.parts[first].w, WeightView::quads).text(kTile);
  bind_input(call, m, m.parts[0].w.shape[1], size);
  int64_t tiles[4] = {};
  for (int i = 0; i < 3; ++i) {
    const bool there = i < m.count;
    call.value(kCols[i], there ? m.parts[i].y.cols() : 1);
    tiles[i + 1] = tiles[i] + (there ? ceil_div(m.parts[i].y.cols(), kWidth * size.wide) : 0);
    if (there) call.read(kBias[i], m.parts[i].bias).write(kY[i], m.parts[i].y);
  }
  call.value("rows", m.parts[0].y.rows())
      .value("shift0", distance(0))
      .value("shift1", distance(1))
      .value("shift2", distance(2))
      .value("tiles1", m.count > 1 ? tiles[1] : kFar)
      .value("tiles2", m.count > 2 ? tiles[2] : kFar)
      .value("activation", static_cast<int64_t>(m.activation))
      .constant("tall", size.tall)
      .constant("wide", size.wide)
      .constant("parts", m.count)
      .constant("paired", int64_t{m.gated})
      .lanes(kLanes);
  if (m.gated) {
    call.write("mixed", m.result).value("mixed_blocks", ceil_div(m.result.cols(), kWidth));
    if (m.codes != nullptr) quantized(call, *m.codes);
  } else {
    call.read("other", m.other).write("added", m.result);
    call.value("other_row", m.other.row_stride).value("added_row", m.result.row_stride);
  }
  const std::string_view codes = m.codes != nullptr ? kCodes : kNoCodes;
  call.text(kParts[m.count - 1]).text(m.gated ? kStoreGated : kStore);
  if (m.gated) call.text(codes);
  return call.groups(m.gated ? ceil_div(m.result.cols(), kWidth) : tiles[m.count],
                     ceil_div(m.parts[0].y.rows(), 4 * size.tall));
}

}  // namespace loom::core::webgpu
