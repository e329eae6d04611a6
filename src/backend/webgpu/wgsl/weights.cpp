// The decode snippets. The text of a type is built from its row in dtypes.def: the location of its
// codes, their levels, and their multipliers. Offsets count words, not bytes. Types with planes,
// block zeros or super-blocks are in weights_blocks.cpp.
#include "backend/webgpu/wgsl/weights.hpp"

#include <array>
#include <string>

#include "backend/webgpu/wgsl/weights_blocks.hpp"
#include "base/text.hpp"
#include "dtype/r16/r16.hpp"

namespace loom::core::webgpu {
namespace {

// ---- multipliers of the levels of four rows at k: w_steps(base, lane, k), lane % 4 == 0 ----

constexpr std::string_view kStepsNone = R"(
fn w_steps(base: u32, lane: u32, k: u32) -> vec4<f32> { return vec4<f32>(1.0); }
)";

constexpr std::string_view kStepsRow = R"(
fn w_steps(base: u32, lane: u32, k: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>(w_words(base + lane));
}
)";

constexpr std::string_view kStepsF16 = R"(
fn w_steps(base: u32, lane: u32, k: u32) -> vec4<f32> {
  let words = w_pair(base + w_scales + k / w_span * 8u + lane / 2u);
  return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}
)";

// Steps in two moves: load their words, then convert them. Kernels that prefetch may not look at
// the loaded words.
constexpr std::string_view kLaterF16 = R"(
fn w_step_words(base: u32, lane: u32, k: u32) -> vec4<u32> {
  return w_words((base + w_scales + k / w_span * 8u + lane / 2u) / 4u * 4u);
}
fn w_steps_of(words: vec4<u32>, lane: u32) -> vec4<f32> {
  let pair = select(words.xy, words.zw, lane / 2u % 4u == 2u);
  return vec4<f32>(unpack2x16float(pair.x), unpack2x16float(pair.y));
}
)";

constexpr std::string_view kLater = R"(
fn w_step_words(base: u32, lane: u32, k: u32) -> vec4<u32> {
  return bitcast<vec4<u32>>(w_steps(base, lane, k));
}
fn w_steps_of(words: vec4<u32>, lane: u32) -> vec4<f32> { return bitcast<vec4<f32>>(words); }
)";

// 2^-127 is subnormal, and 255 is NaN, which becomes infinity.
constexpr std::string_view kStepsE8M0 = R"(
fn w_steps(base: u32, lane: u32, k: u32) -> vec4<f32> {
  let codes = unpack4xU8(w_word(base + w_scales + k / w_span * 4u + lane / 4u));
  let bits = select(codes << vec4<u32>(23u), vec4<u32>(0x00400000u), codes == vec4<u32>());
  return bitcast<vec4<f32>>(bits) * w_unit;
}
)";

constexpr std::string_view kStepsE4M3 = R"(
fn w_steps(base: u32, lane: u32, k: u32) -> vec4<f32> {
  return small_floats(w_word(base + w_scales + k / w_span * 4u + lane / 4u), 3u, 7u) *
         bitcast<vec4<f32>>(w_words(base + lane));
}
)";

constexpr std::string_view kStepsF32 = R"(
fn w_steps(base: u32, lane: u32, k: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>(w_words(base + w_scales + k / w_span * 16u + lane));
}
)";

std::string_view step_text(ScaleRule rule) {
  switch (rule) {
    case ScaleRule::none: return kStepsNone;
    case ScaleRule::f16: return kStepsF16;
    case ScaleRule::e8m0: return kStepsE8M0;
    case ScaleRule::e4m3: return kStepsE4M3;
    case ScaleRule::absmax64: return kStepsF32;
    default: return kStepsRow;
  }
}

// ---- k-groups: w_levels(codes), four at a time inside one word ----

// Codes of 8 bits become signed by their top bit; the offset accounts for it.
constexpr std::string_view kLevelsDirect = R"(
fn w_levels(codes: u32) -> u32 { return select(codes, codes ^ 0x80808080u, w_bits == 8u); }
)";

constexpr std::string_view kLevelsTwice = R"(
fn w_levels(codes: u32) -> u32 { return codes << 1u; }
)";

// Magnitudes 0 1 2 3 4 6 8 12: the low two bits count double if bit 2 is set. Bytes with bit 3 are
// negated, except zeros: their carry would reach the next byte.
constexpr std::string_view kLevelsE2M1 = R"(
fn w_levels(codes: u32) -> u32 {
  let high = ((codes >> 2u) & 0x01010101u) * 3u;
  let more = codes & high;
  let m = (codes & 0x07070707u) + more + ((more & (more >> 1u) & 0x01010101u) << 1u);
  let some = (codes | (codes >> 1u) | (codes >> 2u)) & (codes >> 3u) & 0x01010101u;
  return (m ^ (some * 255u)) + some;
}
)";

// Magnitudes 0 and 2^(m - 1): each bit of m shifts a one further; the result is halved.
constexpr std::string_view kLevelsE3M0 = R"(
fn w_levels(codes: u32) -> u32 {
  var x = 0x01010101u;
  x += x & ((codes & 0x01010101u) * 255u);
  x += (x & (((codes >> 1u) & 0x01010101u) * 255u)) * 3u;
  x += (x & (((codes >> 2u) & 0x01010101u) * 255u)) * 15u;
  let m = (x >> 1u) & 0x7f7f7f7fu;
  let some = (codes | (codes >> 1u) | (codes >> 2u)) & (codes >> 3u) & 0x01010101u;
  return (m ^ (some * 255u)) + some;
}
)";

constexpr std::string_view kValuesOfLevels = R"(
fn w_values(codes: u32, offset: i32) -> vec4<f32> {
  return vec4<f32>(unpack4xI8(w_levels(codes)) - vec4<i32>(offset));
}
)";

// Four bytes as numbers, minus `offset`, an integer below 2^22. Bytes become the last bits of 2^23.
// Exact, and without a conversion: some GPUs convert slowly.
constexpr std::string_view kByteValues = R"(
fn byte_values(bytes: u32, offset: f32) -> vec4<f32> {
  let b = (vec4<u32>(bytes, bytes >> 8u, bytes >> 16u, bytes >> 24u) & vec4<u32>(255u)) |
          vec4<u32>(0x4b000000u);
  return bitcast<vec4<f32>>(b) - vec4<f32>(8388608.0 + offset);
}
)";

// Levels that equal their codes.
constexpr std::string_view kValuesOfCodes = R"(
fn w_values(codes: u32, offset: i32) -> vec4<f32> {
  return byte_values(codes, f32(offset + select(0, 128, w_bits == 8u)));
}
)";

constexpr std::string_view kValuesNF4 = R"(
const w_table = array<f32, 16>(
  -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
  -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
  0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
  0.7229568362236023, 1.0);
fn w_value(code: u32) -> f32 { var table = w_table; return table[code & 15u]; }
fn w_values(codes: u32, offset: i32) -> vec4<f32> {
  return vec4<f32>(w_value(codes), w_value(codes >> 8u), w_value(codes >> 16u),
                   w_value(codes >> 24u));
}
)";

constexpr std::string_view kOffsets = R"(
fn w_offsets(base: u32, lane: u32) -> vec4<i32> { return vec4<i32>(w_bias); }
)";

constexpr std::string_view kOffsetsAffine = R"(
fn w_offsets(base: u32, lane: u32) -> vec4<i32> {
  return vec4<i32>(w_bias) + bitcast<vec4<i32>>(w_words(base + 16u + lane));
}
)";

constexpr std::string_view kGroups = R"(
fn w_line(base: u32, lane: u32, k: u32) -> u32 {
  return base + p.w_codes + k / 32u * (16u * w_bits) + k % 32u / 4u % w_bits * 16u + lane;
}
fn w_codes(word: u32, k: u32) -> u32 {
  return (word >> (k % 32u / 4u / w_bits * w_bits)) & w_mask;
}
fn w_at(row: u32, k: u32) -> f32 {
  let base = w_base(row);
  let four = row % 16u / 4u * 4u;
  let one = row % 4u;
  let codes = w_codes(w_word(w_line(base, four + one, k)), k);
  return w_values(codes, w_offsets(base, four)[one])[k % 4u] * w_steps(base, four, k)[one];
}
fn w_tile(base: u32, lane: u32, k: u32) -> mat4x4<f32> {
  let words = w_words(w_line(base, lane, k));
  let offsets = w_offsets(base, lane);
  let steps = w_steps(base, lane, k);
  return transpose(mat4x4<f32>(w_values(w_codes(words.x, k), offsets.x) * steps.x,
                               w_values(w_codes(words.y, k), offsets.y) * steps.y,
                               w_values(w_codes(words.z, k), offsets.z) * steps.z,
                               w_values(w_codes(words.w, k), offsets.w) * steps.w));
}
struct Packed { words: vec4<u32>, steps: vec4<u32> }
fn w_packed(base: u32, lane: u32, k: u32) -> Packed {
  return Packed(w_words(w_line(base, lane, k)), w_step_words(base, lane, k));
}
fn w_tile_of(packed: Packed, base: u32, lane: u32, k: u32) -> mat4x4<f32> {
  let offsets = w_offsets(base, lane);
  let steps = w_steps_of(packed.steps, lane);
  return transpose(mat4x4<f32>(w_values(w_codes(packed.words.x, k), offsets.x) * steps.x,
                               w_values(w_codes(packed.words.y, k), offsets.y) * steps.y,
                               w_values(w_codes(packed.words.z, k), offsets.z) * steps.z,
                               w_values(w_codes(packed.words.w, k), offsets.w) * steps.w));
}
)";

std::string_view levels_text(Levels levels) {
  switch (levels) {
    case Levels::twice: return kLevelsTwice;
    case Levels::e2m1: return kLevelsE2M1;
    case Levels::e3m0: return kLevelsE3M0;
    default: return kLevelsDirect;
  }
}

std::string_view values_text(Levels levels) {
  if (levels == Levels::none) return kValuesNF4;
  const bool made = levels == Levels::twice || levels == Levels::e2m1 || levels == Levels::e3m0;
  return made ? kValuesOfLevels : kValuesOfCodes;
}

// ---- wide: w_rows(base, lane, k), four rows at one k; lane % 4 == 0 ----

// In two moves: load the words, then convert them.
constexpr std::string_view kRows32 = R"(
fn w_raw(base: u32, lane: u32, k: u32) -> vec4<u32> {
  return w_words(base + p.w_codes + k * 16u + lane);
}
fn w_of_raw(raw: vec4<u32>, base: u32, lane: u32) -> vec4<f32> { return bitcast<vec4<f32>>(raw); }
)";

constexpr std::string_view kRows16 = R"(
fn w_raw(base: u32, lane: u32, k: u32) -> vec4<u32> {
  return vec4<u32>(w_pair(base + p.w_codes + k * 8u + lane / 2u), 0u, 0u);
}
fn w_of_raw(raw: vec4<u32>, base: u32, lane: u32) -> vec4<f32> {
  return w_unpack(raw.xy, base, lane);
}
)";

constexpr std::string_view kUnpackF16 = R"(
fn w_unpack(words: vec2<u32>, base: u32, lane: u32) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}
)";

constexpr std::string_view kUnpackBF16 = R"(
fn w_unpack(words: vec2<u32>, base: u32, lane: u32) -> vec4<f32> {
  return bitcast<vec4<f32>>(vec4<u32>(words.x << 16u, words.x & 0xffff0000u, words.y << 16u,
                                      words.y & 0xffff0000u));
}
)";

constexpr std::string_view kUnpackI16 = R"(
fn w_unpack(words: vec2<u32>, base: u32, lane: u32) -> vec4<f32> {
  let i = bitcast<vec2<i32>>(words);
  let codes = vec4<i32>((i.x << 16u) >> 16u, i.x >> 16u, (i.y << 16u) >> 16u, i.y >> 16u);
  return vec4<f32>(codes) * bitcast<vec4<f32>>(w_words(base + lane));
}
)";

constexpr std::string_view kUnpackU16 = R"(
fn w_unpack(words: vec2<u32>, base: u32, lane: u32) -> vec4<f32> {
  let codes = vec4<u32>(words.x & 0xffffu, words.x >> 16u, words.y & 0xffffu, words.y >> 16u);
  let levels = bitcast<vec4<i32>>(codes - w_words(base + 16u + lane));
  return vec4<f32>(levels) * bitcast<vec4<f32>>(w_words(base + lane));
}
)";

constexpr std::string_view kRows8 = R"(
fn w_raw(base: u32, lane: u32, k: u32) -> vec4<u32> {
  return vec4<u32>(w_word(base + p.w_codes + k * 4u + lane / 4u), 0u, 0u, 0u);
}
fn w_of_raw(raw: vec4<u32>, base: u32, lane: u32) -> vec4<f32> {
  return small_floats(raw.x, w_mantissa, w_exponent) * bitcast<vec4<f32>>(w_words(base + lane));
}
)";

constexpr std::string_view kAtOfRows = R"(
fn w_rows(base: u32, lane: u32, k: u32) -> vec4<f32> {
  return w_of_raw(w_raw(base, lane, k), base, lane);
}
fn w_at(row: u32, k: u32) -> f32 {
  return w_rows(w_base(row), (row % 16u) & 12u, k)[row % 4u];
}
)";

// Types of the f64 path hold numbers that exceed f32. A level is an exact 64-bit integer; its zero
// point is subtracted before any rounding.
constexpr std::string_view kAtF64 = R"(
fn w_at(row: u32, k: u32) -> f32 {
  let i = w_base(row) + p.w_codes + (k * 16u + row % 16u) * 2u;
  return bitcast<f32>(narrow_f64(vec2<u32>(w_word(i), w_word(i + 1u)), 23u, 127u));
}
)";

constexpr std::string_view kAtIntegers = R"(
fn w_at(row: u32, k: u32) -> f32 {
  let base = w_base(row);
  let lane = row % 16u;
  let i = base + p.w_codes + (k * 16u + lane) * (w_bits / 32u);
  var lo = w_word(i);
  var hi = 0u;
  if (w_bits == 64u) { hi = w_word(i + 1u); } else if (!w_affine) { hi = u32(i32(lo) >> 31u); }
  if (w_affine) {
    let z = base + 32u + lane * 2u;
    let zero = integer_of_f64(vec2<u32>(w_word(z), w_word(z + 1u)));
    hi = hi - zero.y - u32(lo < zero.x);
    lo = lo - zero.x;
  }
  let negative = (hi >> 31u) == 1u;
  if (negative) {
    lo = ~lo + 1u;
    hi = ~hi + u32(lo == 0u);
  }
  let level = f32(hi) * 4294967296.0 + f32(lo);
  let s = base + lane * 2u;
  return times_f64(select(level, -level, negative), vec2<u32>(w_word(s), w_word(s + 1u)));
}
)";

constexpr std::string_view kRowsOfAt = R"(
fn w_rows(base: u32, lane: u32, k: u32) -> vec4<f32> {
  let row = base / p.w_group * 16u + lane;
  return vec4<f32>(w_at(row, k), w_at(row + 1u, k), w_at(row + 2u, k), w_at(row + 3u, k));
}
)";

constexpr std::string_view kWide = R"(
fn w_tile(base: u32, lane: u32, k: u32) -> mat4x4<f32> {
  if (w_ragged == 0u) {
    return mat4x4<f32>(w_rows(base, lane, k), w_rows(base, lane, k + 1u),
                       w_rows(base, lane, k + 2u), w_rows(base, lane, k + 3u));
  }
  let last = p.w_cols - 1u;
  var columns = mat4x4<f32>();
  for (var j = 0u; j < 4u; j++) {
    columns[j] = select(vec4<f32>(), w_rows(base, lane, min(k + j, last)), k + j <= last);
  }
  return columns;
}
struct Packed { tile: mat4x4<f32> }
fn w_packed(base: u32, lane: u32, k: u32) -> Packed { return Packed(w_tile(base, lane, k)); }
fn w_tile_of(packed: Packed, base: u32, lane: u32, k: u32) -> mat4x4<f32> { return packed.tile; }
)";

std::string wide_text(const DTypeInfo& info) {
  if (info.bits == 64 && info.kind == NumberKind::ieee) return cat(kAtF64, kRowsOfAt, kWide);
  if (info.compute == ComputeType::f64) return cat(kAtIntegers, kRowsOfAt, kWide);
  if (info.bits == 32) return cat(kRows32, kAtOfRows, kWide);
  if (info.bits == 8) {
    const bool e5m2 = info.dtype == DType::f8e5m2;
    return cat("const w_mantissa = ", e5m2 ? 2 : 3, "u;\nconst w_exponent = ", e5m2 ? 15 : 7,
               "u;\n", kRows8, kAtOfRows, kWide);
  }
  std::string_view unpack = info.dtype == DType::bf16 ? kUnpackBF16 : kUnpackF16;
  if (info.kind == NumberKind::sint) unpack = kUnpackI16;
  if (info.kind == NumberKind::uint) unpack = kUnpackU16;
  return cat(kRows16, unpack, kAtOfRows, kWide);
}

std::string group_text(const DTypeInfo& info) {
  const R16 g = r16_geometry(info.dtype, 16, 32);
  int bias = info.levels == Levels::twice ? 1 : info.code_bias;
  if (info.bits == 8) bias -= 128;
  return cat("const w_mask: u32 = ", 0x01010101u * ((1u << info.bits) - 1u),
             "u;\nconst w_span: u32 = ", info.block > 0 ? info.block : 32,
             "u;\nconst w_scales: u32 = ", g.block_scales / 4, "u;\nconst w_bias: i32 = ", bias,
             ";\nconst w_unit: f32 = ", info.levels == Levels::e2m1 ? "0.5" : "1.0", ";\n",
             step_text(info.scale), info.scale == ScaleRule::f16 ? kLaterF16 : kLater,
             levels_text(info.levels), kByteValues, values_text(info.levels),
             info.affine() ? kOffsetsAffine : kOffsets, kGroups);
}

constexpr std::string_view kBase = R"(
fn w_base(row: u32) -> u32 { return row / 16u * p.w_group; }
)";

constexpr std::string_view kBlock = R"(
fn w_block(row: u32, k: u32) -> mat4x4<f32> { return w_tile(w_base(row), row % 16u, k); }
)";

constexpr std::string_view kFromWords = R"(
fn w_pair(i: u32) -> vec2<u32> { return vec2<u32>(w_word(i), w_word(i + 1u)); }
fn w_words(i: u32) -> vec4<u32> {
  return vec4<u32>(w_word(i), w_word(i + 1u), w_word(i + 2u), w_word(i + 3u));
}
)";

constexpr std::string_view kFromQuads = R"(
fn w_pair(i: u32) -> vec2<u32> {
  let quad = w_quad(i / 4u);
  return select(quad.xy, quad.zw, i % 4u == 2u);
}
fn w_words(i: u32) -> vec4<u32> { return w_quad(i / 4u); }
)";

std::string text_of(const DTypeInfo& info) {
  if (in_blocks(info)) return cat(kByteValues, block_text(info));
  return r16_geometry(info.dtype, 16, 32).wide ? wide_text(info) : group_text(info);
}

const std::string& decode_text(DType dtype) {
  static const std::array<std::string, 256> texts = [] {
    std::array<std::string, 256> all;
    for (const DTypeInfo& info : dtype_table()) {
      all[static_cast<size_t>(info.dtype)] =
          cat("const w_bits: u32 = ", info.bits,
              "u;\nconst w_affine: bool = ", info.affine() ? "true" : "false", ";\n", kBase,
              text_of(info), kBlock);
    }
    return all;
  }();
  return texts[static_cast<size_t>(dtype)];
}

}  // namespace

bool reads_rows(DType dtype) {
  return r16_geometry(dtype, 1, 1).wide;
}

bool reads_spans(DType dtype) {
  return in_blocks(dtype_info(dtype));
}

bool reads_levels(DType dtype) {
  return dtype_info(dtype).integer_path();
}

bool packs(DType dtype) {
  return !in_blocks(dtype_info(dtype));
}

Error no_levels(std::string_view kernel, DType dtype) {
  return unsupported(cat(kernel, ": no kernel for quantized activations with ", dtype_name(dtype)));
}

Call& weights(Call& call, const Tensor& w, WeightView view) {
  const R16 g = r16_geometry(w.dtype, w.shape[0], w.shape[1]);
  if (view == WeightView::quads) {
    call.quads("w", w.data).text(kFromQuads);
  } else {
    call.words("w", w.data).text(kFromWords);
  }
  if (in_blocks(dtype_info(w.dtype))) call.value("w_scales", g.block_scales / 4);
  return call.value("w_group", g.group_bytes / 4)
      .value("w_codes", g.codes / 4)
      .value("w_cols", g.cols)
      .constant("w_ragged", g.cols % 4 != 0 ? 1 : 0)
      .text(decode_text(w.dtype));
}

}  // namespace loom::core::webgpu
