// A lane has blocks of `unit` k, of four rows. It loads the words of the next block before it uses
// those of the current one. Sums are in the order of k, whatever the pieces are. The text of a
// block is generated for its type, without loops and arrays. A compiler that keeps arrays in memory
// would make a kernel that streams weights several times slower.
#include "backend/webgpu/kernels/products/row_share.hpp"

#include <array>
#include <string>

#include "backend/webgpu/wgsl/weights.hpp"
#include "base/text.hpp"

namespace loom::core::webgpu {
namespace {

// Every 32 values are followed by four unused ones. Lanes read 32 values apart, which would be the
// same bank of memory.
constexpr std::string_view kFloats = R"(
var<workgroup> staged: array<f32, piece + piece / 8u>;
fn staged_four(quad: u32) -> vec4<f32> {
  let i = (quad + quad / 8u) * 4u;
  return vec4<f32>(staged[i], staged[i + 1u], staged[i + 2u], staged[i + 3u]);
}
)";

constexpr std::string_view kCodes = R"(
var<workgroup> a_codes: array<u32, piece / 4u>;
var<workgroup> a_scales: array<f32, piece / 32u>;
var<workgroup> a_sums: array<i32, piece / 32u>;
fn dots(a: u32, w: vec4<u32>) -> vec4<i32> {
  return vec4<i32>(dot4I8Packed(a, w.x), dot4I8Packed(a, w.y), dot4I8Packed(a, w.z),
                   dot4I8Packed(a, w.w));
}
)";

constexpr std::string_view kLevels = R"(
fn levels_of(words: vec4<u32>, k: u32) -> vec4<u32> {
  return vec4<u32>(w_levels(w_codes(words.x, k)), w_levels(w_codes(words.y, k)),
                   w_levels(w_codes(words.z, k)), w_levels(w_codes(words.w, k)));
}
)";

constexpr std::string_view kOne = R"(
struct Sums { s0: vec4<f32>, s1: vec4<f32> }
fn products(base0: u32, base1: u32, first: bool, lane: u32) -> Sums {
  let four = lane % 4u * 4u;
  var now = fetch(base0, four, lane / 4u);
  let own = fixed_of(base0, four);
  var sum = vec4<f32>();
  begin_pieces(lane);
  var b = lane / 4u;
  for (var part = 0u; part < pieces; part++) {
    if (part > 0u) { workgroupBarrier(); }
    stage(first, part * piece, lane);
    let end = min((part + 1u) * piece, depth) / unit;
    let gone = part * (piece / unit);
    for (; b < end; b += lanes / 4u) {
      let next = fetch(base0, four, b + lanes / 4u);
      sum += block_product(base0, four, b, b - gone, now, own);
      now = next;
    }
  }
  return Sums(sum, vec4<f32>());
}
)";

constexpr std::string_view kTwo = R"(
struct Sums { s0: vec4<f32>, s1: vec4<f32> }
fn products(base0: u32, base1: u32, first: bool, lane: u32) -> Sums {
  let four = lane % 4u * 4u;
  var now0 = fetch(base0, four, lane / 4u);
  var now1 = fetch(base1, four, lane / 4u);
  let own0 = fixed_of(base0, four);
  let own1 = fixed_of(base1, four);
  var sum0 = vec4<f32>();
  var sum1 = vec4<f32>();
  begin_pieces(lane);
  var b = lane / 4u;
  for (var part = 0u; part < pieces; part++) {
    if (part > 0u) { workgroupBarrier(); }
    stage(first, part * piece, lane);
    let end = min((part + 1u) * piece, depth) / unit;
    let gone = part * (piece / unit);
    for (; b < end; b += lanes / 4u) {
      let next0 = fetch(base0, four, b + lanes / 4u);
      sum0 += block_product(base0, four, b, b - gone, now0, own0);
      now0 = next0;
      let next1 = fetch(base1, four, b + lanes / 4u);
      sum1 += block_product(base1, four, b, b - gone, now1, own1);
      now1 = next1;
    }
  }
  return Sums(sum0, sum1);
}
)";

constexpr std::string_view kWide = R"(
const unit = 4u;
struct Fixed { none: u32 }
fn fixed_of(base: u32, four: u32) -> Fixed { return Fixed(0u); }
struct Ahead { w0: vec4<u32>, w1: vec4<u32>, w2: vec4<u32>, w3: vec4<u32> }
fn fetch(base: u32, four: u32, block: u32) -> Ahead {
  let k = min(block, depth / unit - 1u) * unit;
  return Ahead(w_raw(base, four, k), w_raw(base, four, k + 1u), w_raw(base, four, k + 2u),
               w_raw(base, four, k + 3u));
}
fn block_product(base: u32, four: u32, b: u32, at: u32, now: Ahead, own: Fixed) -> vec4<f32> {
  let x = staged_four(at);
  return w_of_raw(now.w0, base, four) * x.x + w_of_raw(now.w1, base, four) * x.y +
         w_of_raw(now.w2, base, four) * x.z + w_of_raw(now.w3, base, four) * x.w;
}
)";

constexpr std::string_view kBlockHead =
    "fn block_product(base: u32, four: u32, b: u32, at: u32, now: Ahead, own: Fixed) -> vec4<f32> "
    "{\n";

// Codes of four rows at one k, as numbers times the weight of their bit position in the word. They
// become the last bits of 2^23, which is then subtracted together with the level offset. Exact, and
// without a conversion.
constexpr std::string_view kCodesAt = R"(
fn codes_at(words: vec4<u32>, mask: u32, less: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>((words & vec4<u32>(mask)) | vec4<u32>(0x4b000000u)) - less;
}
)";

// The structs of a type with `words` quads a block, and their fetch. They also hold the data around
// the codes, or for k-groups the data of a step.
std::string fetch_text(int words, bool spans) {
  std::string members, reads;
  for (int v = 0; v < words; ++v) {
    members += cat("w", v, ": vec4<u32>, ");
    reads += cat("w_words(line + ", 16 * v, "u), ");
  }
  return cat("const unit = 32u;\nstruct Ahead { ", members,
             spans ? "around: Around }\n" : "steps: vec4<u32> }\n",
             "fn fetch(base: u32, four: u32, block: u32) -> Ahead {\n"
             "  let b = min(block, depth / unit - 1u);\n"
             "  let line = base + p.w_codes + b * (16u * w_bits) + four;\n"
             "  return Ahead(",
             reads, spans ? "w_around" : "w_step_words", "(base, four, b * 32u));\n}\n",
             spans ? "struct Fixed { none: u32 }\n"
                     "fn fixed_of(base: u32, four: u32) -> Fixed { return Fixed(0u); }\n"
                   : "struct Fixed { offsets: vec4<i32> }\n"
                     "fn fixed_of(base: u32, four: u32) -> Fixed {\n"
                     "  return Fixed(w_offsets(base, four));\n}\n");
}

// Adds to `sum` the products of one quad of x with codes at `shift` of each byte of `low` and
// `high`. `high` is `low` shifted right by 16; `zero` is the level offset.
std::string quad_terms(std::string_view sum, int quad, std::string_view low, std::string_view high,
                       int shift, int bits, std::string_view zero) {
  const uint32_t mask = ((1U << bits) - 1) << shift;
  const int64_t unit = int64_t{1} << shift;
  std::string out =
      cat("  let x", quad, " = staged_four(at * 8u + ", quad, "u) * vec4<f32>(1.0 / ", unit,
          ".0, 1.0 / ", 256 * unit, ".0, 1.0 / ", unit, ".0, 1.0 / ", 256 * unit, ".0);\n");
  constexpr std::string_view kParts[] = {"x", "y", "z", "w"};
  for (int j = 0; j < 4; ++j) {
    const int64_t scale = j % 2 == 0 ? unit : 256 * unit;
    out += cat("  ", sum, " += codes_at(", j < 2 ? low : high, ", ", j % 2 == 0 ? mask : mask << 8,
               "u, vec4<f32>(8388608.0) + ", zero, " * ", scale, ".0) * x", quad, ".", kParts[j],
               ";\n");
  }
  return out;
}

// Types whose levels are their codes. Their offset, `zero`, may differ from row to row.
std::string direct_text(const DTypeInfo& info) {
  std::string out = cat(kCodesAt, kBlockHead,
                        "  var terms0 = vec4<f32>();\n  var terms1 = vec4<f32>();\n"
                        "  let zero = vec4<f32>(own.offsets + vec4<i32>(",
                        info.bits == 8 ? 128 : 0, "));\n");
  const bool halves = info.block == 16;
  for (int v = 0; v < info.bits; ++v) {
    const std::string low = cat("now.w", v), high = cat("high", v);
    out += cat("  let ", high, " = ", low, " >> vec4<u32>(16u);\n");
    for (int h = 0; h < 8 / info.bits; ++h) {
      const int quad = v + h * info.bits;
      out += quad_terms(halves && quad >= 4 ? "terms1" : "terms0", quad, low, high, h * info.bits,
                        info.bits, "zero");
    }
  }
  return out;
}

// Other types: levels through a table or arithmetic, one word of one row at a time.
std::string made_text(const DTypeInfo& info) {
  std::string out = cat(kBlockHead, "  var terms0 = vec4<f32>();\n  var terms1 = vec4<f32>();\n");
  for (int v = 0; v < info.bits; ++v) {
    for (int h = 0; h < 8 / info.bits; ++h) {
      const int quad = v + h * info.bits, k = quad * 4;
      const std::string_view sum = info.block == 16 && quad >= 4 ? "terms1" : "terms0";
      out += cat("  ", sum, " += staged_four(at * 8u + ", quad, "u) * mat4x4<f32>(");
      constexpr std::string_view kParts[] = {"x", "y", "z", "w"};
      for (int r = 0; r < 4; ++r) {
        out += cat(r > 0 ? ", " : "", "w_values(w_codes(now.w", v, ".", kParts[r], ", ", k,
                   "u), own.offsets.", kParts[r], ")");
      }
      out += ");\n";
    }
  }
  return out;
}

std::string group_end(const DTypeInfo& info) {
  if (info.block == 16) {
    return "  return terms0 * w_steps(base, four, b * 32u) + "
           "terms1 * w_steps(base, four, b * 32u + 16u);\n}\n";
  }
  return "  return terms0 * w_steps_of(now.steps, four);\n}\n";
}

// A row of codes: the sum of a block is an exact integer.
std::string quantized_text(const DTypeInfo& info) {
  std::string out =
      cat(kLevels, kBlockHead, "  var terms0 = vec4<i32>();\n  var terms1 = vec4<i32>();\n");
  for (int v = 0; v < info.bits; ++v) {
    for (int h = 0; h < 8 / info.bits; ++h) {
      const int quad = v + h * info.bits;
      out += cat("  ", info.block == 16 && quad >= 4 ? "terms1" : "terms0",
                 " += dots(a_codes[at * 8u + ", quad, "u], levels_of(now.w", v, ", ", quad * 4,
                 "u));\n");
    }
  }
  out +=
      "  let scale = a_scales[at];\n"
      "  if (w_affine || w_bias != 0) { terms0 -= own.offsets * a_sums[at]; }\n";
  if (info.block == 16) {
    return out +
           "  return vec4<f32>(terms0) * (w_steps(base, four, b * 32u) * scale) +\n"
           "         vec4<f32>(terms1) * (w_steps(base, four, b * 32u + 16u) * scale);\n}\n";
  }
  return out + "  return vec4<f32>(terms0) * (w_steps_of(now.steps, four) * scale);\n}\n";
}

// ---- types of spans ----

// The codes of a quad of k, which both kinds of rows multiply. They are in one plane or in two.
class SpanText {
 public:
  explicit SpanText(const DTypeInfo& info) : info_(info) {}

  std::string floats() const {
    std::string out = cat(kCodesAt, kBlockHead);
    for (int quad = 0; quad < 8; quad += quads()) out += begin(quad);
    out += two() ? of_two_planes() : of_one_plane();
    out += "  var sum = vec4<f32>();\n";
    for (int quad = 0; quad < 8; quad += quads()) out += end(quad);
    return out + "  return sum;\n}\n";
  }

  // A row of codes: the sum of a span is an exact integer.
  std::string codes() const {
    std::string out = cat(kBlockHead, "  var sum = vec4<f32>();\n");
    for (int quad = 0; quad < 8; ++quad) {
      const int first = quad / quads() * quads();
      if (quad == first) {
        out +=
            cat(span_of(quad), "  var terms", quad, " = vec4<i32>();\n  var row", quad, " = 0;\n");
      }
      out += cat(codes_of(quad, byte_mask(info_.bits)), "  let x", quad, " = a_codes[at * 8u + ",
                 quad, "u];\n  terms", first, " += dots(x", quad, ", codes", quad, ");\n  row",
                 first, " += dot4I8Packed(x", quad, ", 0x01010101u);\n");
      if (quad % quads() != quads() - 1) continue;
      const std::string row = cat("f32(row", first, ")"), span = cat("span", first);
      out += cat("  sum += (vec4<f32>(terms", first, ") - zero", first, " * ", row, ") * ", span,
                 ".scale;\n");
      if (info_.shifted()) out += cat("  sum += ", span, ".shift * ", row, ";\n");
    }
    return out + "  return sum * a_scales[at];\n}\n";
  }

 private:
  static uint32_t byte_mask(int bits) { return ((1U << bits) - 1) * 0x01010101U; }
  bool two() const { return info_.low_bits < info_.bits; }
  int quads() const { return info_.block > 0 && info_.block < 32 ? info_.block / 4 : 8; }
  int steps() const { return two() ? 1 : 8 / info_.bits; }
  // Left shifts of the codes of a quad, within their byte.
  int shift_of(int quad) const { return two() ? 0 : quad / info_.bits * info_.bits; }

  // Sums of floats are kept apart by the bit weight of their codes in a word, 2^shift. They are
  // combined at the end of a span, so x is not scaled for each.
  template <class F>
  void each_sum(int first, F f) const {
    int last = -1;
    for (int quad = first; quad < first + quads(); ++quad) {
      const int shift = shift_of(quad);
      if (shift == last) continue;
      f(shift);
      f(shift + 8);
      last = shift;
    }
  }

  static std::string span_of(int quad) {
    return cat("  let span", quad, " = w_span_of(now.around, four, ", quad * 4, "u);\n  let zero",
               quad, " = span", quad, ".zero + vec4<f32>(w_bias);\n");
  }

  std::string begin(int quad) const {
    std::string out = span_of(quad);
    if (info_.shifted()) out += cat("  var row", quad, " = vec4<f32>();\n");
    each_sum(quad,
             [&](int shift) { out += cat("  var terms", quad, "_", shift, " = vec4<f32>();\n"); });
    return out;
  }

  std::string end(int quad) const {
    std::string terms;
    each_sum(quad, [&](int shift) {
      terms += cat(terms.empty() ? "" : " + ", "terms", quad, "_", shift, " * (1.0 / ", 1 << shift,
                   ".0)");
    });
    std::string out = cat("  sum += (", terms, ") * span", quad, ".scale;\n");
    if (!info_.shifted()) return out;
    const std::string row = cat("row", quad);
    return out + cat("  sum += ((", row, ".x + ", row, ".z) + (", row, ".y + ", row, ".w)) * span",
                     quad, ".shift;\n");
  }

  // The products of one quad of x with its codes; `high` is `low` shifted by 16.
  std::string terms(int quad, std::string_view low, std::string_view high) const {
    const int first = quad / quads() * quads();
    const uint32_t mask = (1U << info_.bits) - 1;
    std::string out = cat("  let x", quad, " = staged_four(at * 8u + ", quad, "u);\n");
    if (info_.shifted()) out += cat("  row", first, " += x", quad, ";\n");
    constexpr std::string_view kParts[] = {"x", "y", "z", "w"};
    for (int j = 0; j < 4; ++j) {
      const int shift = shift_of(quad) + (j % 2) * 8;
      out += cat("  terms", first, "_", shift, " += codes_at(", j < 2 ? low : high, ", ",
                 mask << shift, "u, vec4<f32>(8388608.0) + zero", first, " * ", 1 << shift,
                 ".0) * x", quad, ".", kParts[j], ";\n");
    }
    return out;
  }

  std::string of_one_plane() const {
    std::string out;
    for (int v = 0; v < info_.bits; ++v) {
      const std::string low = cat("now.w", v), high = cat("high", v);
      out += cat("  let ", high, " = ", low, " >> vec4<u32>(16u);\n");
      for (int step = 0; step < steps(); ++step) out += terms(v + step * info_.bits, low, high);
    }
    return out;
  }

  std::string of_two_planes() const {
    std::string out;
    for (int quad = 0; quad < 8; ++quad) {
      out += codes_of(quad, 0);
      out += terms(quad, cat("codes", quad), cat("(codes", quad, " >> vec4<u32>(16u))"));
    }
    return out;
  }

  static std::string moved(int word, int right) {
    if (right == 0) return cat("now.w", word);
    return cat("(now.w", word, right > 0 ? " >> " : " << ", "vec4<u32>(",
               right > 0 ? right : -right, "u))");
  }

  // Codes of a quad, a byte each. Bits of the high plane are moved above those of the low one.
  // Other bits are left, or masked off.
  std::string codes_of(int quad, uint32_t mask) const {
    const int low = info_.low_bits, high = info_.bits - low;
    const std::string masked = mask == 0 ? "" : cat(" & vec4<u32>(", mask, "u)");
    const std::string of_low = moved(quad % low, quad / low * low);
    if (!two()) return cat("  let codes", quad, " = ", of_low, masked, ";\n");
    return cat("  let above", quad, " = ", moved(low + quad % high, quad / high * high - low),
               ";\n  let codes", quad, " = (above", quad, " ^ ((", of_low, " ^ above", quad,
               ") & vec4<u32>(", byte_mask(low), "u)))", masked, ";\n");
  }

  const DTypeInfo& info_;
};

std::string share_text(const DTypeInfo& info, bool quantized) {
  if (reads_spans(info.dtype)) {
    const SpanText text(info);
    return fetch_text(info.bits, true) + (quantized ? text.codes() : text.floats());
  }
  if (reads_rows(info.dtype)) return std::string(kWide);
  if (quantized) return fetch_text(info.bits, false) + quantized_text(info);
  const bool direct = info.levels == Levels::direct;
  return cat(fetch_text(info.bits, false), direct ? direct_text(info) : made_text(info),
             group_end(info));
}

// Texts are identified by their addresses.
const std::string& share_text_of(DType dtype, bool quantized) {
  static const std::array<std::array<std::string, 2>, 256> texts = [] {
    std::array<std::array<std::string, 2>, 256> all;
    for (const DTypeInfo& info : dtype_table()) {
      if (info.compute != ComputeType::f32) continue;
      auto& of_type = all[static_cast<size_t>(info.dtype)];
      of_type[0] = share_text(info, false);
      if (reads_levels(info.dtype)) of_type[1] = share_text(info, true);
    }
    return all;
  }();
  return texts[static_cast<size_t>(dtype)][quantized ? 1 : 0];
}

}  // namespace

Call& share_row(Call& call, DType dtype, bool quantized, bool two) {
  return call.text(quantized ? kCodes : kFloats)
      .text(share_text_of(dtype, quantized))
      .text(two ? kTwo : kOne);
}

}  // namespace loom::core::webgpu
