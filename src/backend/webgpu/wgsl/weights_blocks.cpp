// Everything is read in two moves, load and convert, because kernels that prefetch may not look at
// the loaded words. There are words of codes, and words `around` them, from which the scales of a
// block of 32 k come. Whole vectors are read, of which a lane may need a part; adjacent lanes need
// the rest.
#include "backend/webgpu/wgsl/weights_blocks.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "dtype/r16/r16.hpp"

namespace loom::core::webgpu {
namespace {

constexpr std::string_view kCodes = R"(
const w_high: u32 = max(w_bits - w_low, 1u);
struct Codes { low: vec4<u32>, high: vec4<u32> }
fn w_fetch(base: u32, lane: u32, k: u32) -> Codes {
  let at = base + p.w_codes + k / 32u * (16u * w_bits) + lane;
  let quad = k % 32u / 4u;
  var high = vec4<u32>();
  if (w_low < w_bits) { high = w_words(at + (w_low + quad % w_high) * 16u); }
  return Codes(w_words(at + quad % w_low * 16u), high);
}
fn w_codes_of(codes: Codes, k: u32) -> vec4<u32> {
  let quad = k % 32u / 4u;
  let low = (codes.low >> vec4<u32>(quad / w_low * w_low)) & vec4<u32>(w_low_mask);
  if (w_low == w_bits) { return low; }
  let high = (codes.high >> vec4<u32>(quad / w_high * w_high)) & vec4<u32>(w_high_mask);
  return low | (high << vec4<u32>(w_low));
}
)";

constexpr std::string_view kTile = R"(
fn w_tile_in(span: Span, words: Codes, k: u32) -> mat4x4<f32> {
  let codes = w_codes_of(words, k);
  let zero = span.zero + vec4<f32>(w_bias);
  var rows = mat4x4<f32>(byte_values(codes.x, zero.x) * span.scale.x,
                         byte_values(codes.y, zero.y) * span.scale.y,
                         byte_values(codes.z, zero.z) * span.scale.z,
                         byte_values(codes.w, zero.w) * span.scale.w);
  if (w_shifts) {
    rows += mat4x4<f32>(vec4<f32>(span.shift.x), vec4<f32>(span.shift.y),
                        vec4<f32>(span.shift.z), vec4<f32>(span.shift.w));
  }
  var columns = transpose(rows);
  if (w_ragged == 0u) { return columns; }
  for (var j = 0u; j < 4u; j++) {
    columns[j] = select(vec4<f32>(), columns[j], k + j < p.w_cols);
  }
  return columns;
}
struct Packed { codes: Codes, around: Around }
fn w_packed(base: u32, lane: u32, k: u32) -> Packed {
  return Packed(w_fetch(base, lane, k), w_around(base, lane, k));
}
fn w_tile_of(packed: Packed, base: u32, lane: u32, k: u32) -> mat4x4<f32> {
  return w_tile_in(w_span_of(packed.around, lane, k), packed.codes, k);
}
fn w_tile(base: u32, lane: u32, k: u32) -> mat4x4<f32> {
  return w_tile_of(w_packed(base, lane, k), base, lane, k);
}
fn w_at(row: u32, k: u32) -> f32 {
  let base = w_base(row);
  let lane = row % 16u / 4u * 4u;
  let span = w_span_of(w_around(base, lane, k), lane, k);
  let four = w_codes_of(w_fetch(base, lane, k), k)[row % 4u];
  let code = f32((four >> (k % 4u * 8u)) & 255u) - w_bias - span.zero[row % 4u];
  return code * span.scale[row % 4u] + span.shift[row % 4u];
}
)";

// ---- data around the codes: (code - w_bias - zero) * scale + shift ----

constexpr std::string_view kParts = R"(
struct Span { zero: vec4<f32>, scale: vec4<f32>, shift: vec4<f32> }
fn w_record(base: u32, k: u32) -> u32 { return base + p.w_scales + k / w_span * w_record_words; }
// The half floats of four rows, in the vector of words that holds those of eight.
fn w_eight(at: u32, lane: u32) -> vec4<u32> { return w_words(at + lane / 8u * 4u); }
fn w_halves(words: vec4<u32>, lane: u32) -> vec4<f32> {
  let pair = select(words.xy, words.zw, lane % 8u == 4u);
  return vec4<f32>(unpack2x16float(pair.x), unpack2x16float(pair.y));
}
// The bytes of four rows, in the vector that holds those of sixteen.
fn w_bytes(words: vec4<u32>, lane: u32) -> u32 {
  let pair = select(words.xy, words.zw, lane >= 8u);
  return select(pair.x, pair.y, lane % 8u == 4u);
}
)";

constexpr std::string_view kRow = R"(
struct Around { scale: vec4<u32> }
fn w_around(base: u32, lane: u32, k: u32) -> Around { return Around(w_words(base + lane)); }
fn w_span_of(a: Around, lane: u32, k: u32) -> Span {
  return Span(vec4<f32>(), bitcast<vec4<f32>>(a.scale), vec4<f32>());
}
)";

constexpr std::string_view kF16 = R"(
struct Around { scale: vec4<u32> }
fn w_around(base: u32, lane: u32, k: u32) -> Around {
  return Around(w_eight(w_record(base, k), lane));
}
fn w_span_of(a: Around, lane: u32, k: u32) -> Span {
  return Span(vec4<f32>(), w_halves(a.scale, lane), vec4<f32>());
}
)";

constexpr std::string_view kF16Offset = R"(
struct Around { scale: vec4<u32>, shift: vec4<u32> }
fn w_around(base: u32, lane: u32, k: u32) -> Around {
  let record = w_record(base, k);
  return Around(w_eight(record, lane), w_eight(record + 8u, lane));
}
fn w_span_of(a: Around, lane: u32, k: u32) -> Span {
  return Span(vec4<f32>(), w_halves(a.scale, lane), w_halves(a.shift, lane));
}
)";

constexpr std::string_view kF16Zero = R"(
struct Around { scale: vec4<u32>, zeros: vec4<u32> }
fn w_around(base: u32, lane: u32, k: u32) -> Around {
  let record = w_record(base, k);
  return Around(w_eight(record, lane), w_words(record + 8u));
}
fn w_span_of(a: Around, lane: u32, k: u32) -> Span {
  return Span(byte_values(w_bytes(a.zeros, lane), 0.0), w_halves(a.scale, lane), vec4<f32>());
}
)";

// Small integers of a block of 32 k: two vectors, each for sixteen rows. They are the scales of two
// halves of 16 k or, for spans of 32, scales and least values.
constexpr std::string_view kSmall = R"(
struct Around { first: vec4<u32>, second: vec4<u32>, scale: vec4<u32> }
fn w_around(base: u32, lane: u32, k: u32) -> Around {
  let record = w_record(base, k / 32u * 32u);
  return Around(w_words(record), w_words(record + 4u), w_eight(base + k / w_super * 8u, lane));
}
fn w_span_of(a: Around, lane: u32, k: u32) -> Span {
  let words = select(a.first, a.second, k % 32u >= 16u);
  let small = byte_values(w_bytes(words, lane) ^ 0x80808080u, 128.0);
  return Span(vec4<f32>(), w_halves(a.scale, lane) * small, vec4<f32>());
}
)";

constexpr std::string_view kSmallLeast = R"(
struct Around {
  first: vec4<u32>, second: vec4<u32>, scale: vec4<u32>, least: vec4<u32>
}
fn w_around(base: u32, lane: u32, k: u32) -> Around {
  let record = w_record(base, k / 32u * 32u);
  let halves = base + k / w_super * 16u;
  return Around(w_words(record), w_words(record + 4u), w_eight(halves, lane),
                w_eight(halves + 8u, lane));
}
fn w_span_of(a: Around, lane: u32, k: u32) -> Span {
  var small = w_bytes(a.first, lane);
  var least = w_bytes(a.second, lane);
  if (w_span == 16u) {
    small = select(small, least, k % 32u >= 16u);
    least = (small >> 4u) & 0x0f0f0f0fu;
    small &= 0x0f0f0f0fu;
  }
  return Span(vec4<f32>(), w_halves(a.scale, lane) * byte_values(small, 0.0),
              -(w_halves(a.least, lane) * byte_values(least, 0.0)));
}
)";

std::string_view around_text(const DTypeInfo& info) {
  if (info.super_block > 0) return info.shifted() ? kSmallLeast : kSmall;
  if (info.block == 0) return kRow;
  if (info.zero == ZeroRule::code) return kF16Zero;
  return info.shifted() ? kF16Offset : kF16;
}

uint32_t byte_mask(int bits) {
  return 0x01010101U * ((1U << bits) - 1);
}

}  // namespace

bool in_blocks(const DTypeInfo& info) {
  const bool block_zero = info.zero != ZeroRule::none && !info.affine();
  return info.low_bits < info.bits || info.super_block > 0 || block_zero;
}

std::string block_text(const DTypeInfo& info) {
  const R16 g = r16_geometry(info.dtype, 16, 32);
  return cat("const w_low: u32 = ", info.low_bits,
             "u;\nconst w_low_mask: u32 = ", byte_mask(info.low_bits),
             "u;\nconst w_high_mask: u32 = ", byte_mask(info.bits - info.low_bits),
             "u;\nconst w_bias: f32 = ", info.code_bias,
             ".0;\nconst w_span: u32 = ", info.block > 0 ? info.block : 32,
             "u;\nconst w_super: u32 = ", std::max(info.super_block, 1),
             "u;\nconst w_record_words: u32 = ", g.scale_block_bytes / 4,
             "u;\nconst w_shifts: bool = ", info.shifted() ? "true" : "false",
             ";\nconst w_zeros: bool = ", info.zero == ZeroRule::code ? "true" : "false", ";\n",
             kParts, around_text(info), kCodes, kTile);
}

}  // namespace loom::core::webgpu
