// pack: f32 rows to R16 (src/dtype/r16/r16.hpp), with the same bytes as the CPU. First come scales,
// by one workgroup per row or by two steps for the whole tensor, in emulated double precision. Then
// come scales of blocks, then codes. Every invocation makes whole words, so no two write one word.
// With a list of rows, the first row of a word writes for all rows in it.
#include "backend/webgpu/kernels/codes/pack.hpp"

#include <algorithm>

#include "backend/webgpu/kernels/kernels.hpp"
#include "backend/webgpu/wgsl/weights.hpp"
#include "base/numbers/bits.hpp"
#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "dtype/codecs/codec.hpp"

namespace loom::core::webgpu::kernels {
namespace {

Call& wide_value(Call& call, std::string_view low_name, std::string_view high_name, double v) {
  const auto bits = bit_cast<uint64_t>(v);
  return call.value(low_name, low_word(bits)).value(high_name, high_word(bits));
}

// The conversion of values to codes.
enum class Coder : uint8_t { integer, floating, binary, nf4, q4, q8, f32, f64, integer64 };

// One pack op: the parameters of its kernels.
struct Job {
  Frame& frame;
  const PackArgs& args;
  R16 g;
  const DTypeInfo& info;
  Coder coder = Coder::integer;
  int64_t stored_as = 0;
  double largest = 0, smallest = 0;  // value of the codes at both ends
  BufferSlice scratch;

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

// The values that code_of() reads. For a float type they are its codes of 1, 2, the largest and
// NaN.
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
      .value("top", floats     ? code(1e300)
                    : integers ? static_cast<int64_t>(largest)
                               : 0)
      .value("bottom", integers ? static_cast<int64_t>(smallest) : 0)
      .value("sign", int64_t{1} << (info.bits < 32 ? info.bits - 1 : 31))
      .value("bias", int64_t{info.code_bias})
      .value("nan", floats ? code(nan) : 0)
      .value("nan_negative", floats ? code(-nan) : 0)
      .value("nan_shift", int64_t{info.kind == NumberKind::ieee ? 23 - mantissa : 31})
      .value("none", int64_t{0})
      .value("seed_low", low_word(args.seed))
      .value("seed_high", high_word(args.seed))
      .value("stream_low", low_word(args.stream))
      .value("stream_high", high_word(args.stream))
      .read("at", args.step)
      .text(kFloat64)
      .text(kCodes);
}

// A section of words: `per` rows share one word, with `per_row` words in each row.
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
  BufferSlice partial;
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
  // nvfp4: half of the largest magnitude divided by the largest e4m3 and the largest e2m1.
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
      .constant("rule", info.affine() ? 1
                        : mean        ? 2
                                      : 0)
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
  if (!packs(args.w.dtype)) return unsupported(cat("pack: no kernel for ", job.info.name));
  job.coder = coder_of(job.info);
  job.stored_as = stored_as(job.info);
  job.largest = decode_value(args.w.dtype, encode_value(args.w.dtype, 1e300));
  job.smallest = decode_value(args.w.dtype, encode_value(args.w.dtype, -1e300));
  if (job.g.has_row_scale) LOOM_TRY(job.scales());
  if (job.g.scale_block_bytes > 0) LOOM_TRY(job.block_scales());
  return job.g.wide ? job.wide_codes() : job.group_codes();
}

}  // namespace loom::core::webgpu::kernels
