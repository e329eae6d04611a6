// gather_rows and convert: rows of tables, packed or plain, as f32; floats of one type as another
// type. Conversions use integer arithmetic, so that their bits equal those of the reference.
#include "backend/webgpu/kernels/kernels.hpp"
#include "backend/webgpu/wgsl/weights.hpp"
#include "base/numbers/checked.hpp"
#include "base/text.hpp"

namespace loom::core::webgpu::kernels {
namespace {

// One invocation per value; adjacent invocations have adjacent values of a row.
constexpr Kernel kGatherPacked{"gather_packed", R"(
fn run(i: u32) {
  let r = i / p.cols;
  let c = i % p.cols;
  y_set(r * p.y_s + c, w_at(u32(ids_at(r)), c));
}
)"};

constexpr Kernel kGatherPlain{"gather_plain", R"(
fn run(i: u32) {
  let r = i / p.cols;
  let c = i % p.cols;
  y_set(r * p.y_s + c, table_at(u32(ids_at(r)) * p.table_s + c));
}
)"};

constexpr Kernel kUnpack{"unpack", R"(
fn run(i: u32) {
  let c = i % p.cols;
  var row = i32(i / p.cols);
  if (has_rows) { row = rows_at(u32(row)); }
  if (row >= 0) { y_set(u32(row) * p.y_s + c, w_at(u32(row), c)); }
}
)"};

// Every float is exact in f64, so its f64 bits are the intermediate form.
constexpr std::string_view kLoad = R"(
fn load(i: u32) -> vec2<u32> {
  if (from_bits == 64u) { return vec2<u32>(x_word(2u * i), x_word(2u * i + 1u)); }
  if (from_bits == 32u) { return widen_f64(x_word(i), from_mantissa, from_bias); }
  return widen_f64((x_word(i / 2u) >> (i % 2u * 16u)) & 0xffffu, from_mantissa, from_bias);
}
)";

constexpr Kernel kConvert{"convert", R"(
fn run(i: u32) {
  let c = i % p.cols;
  var row = i32(i / p.cols);
  if (has_rows) { row = rows_at(u32(row)); }
  if (row < 0) { return; }
  let v = load(u32(row) * p.x_row + c);
  let to = u32(row) * p.y_row + c;
  if (to_bits == 64u) {
    y_put(2u * to, v.x);
    y_put(2u * to + 1u, v.y);
  } else {
    y_put(to, narrow_f64(v, to_mantissa, to_bias));
  }
}
)"};

// Two values of 16 bits share a word, which one invocation writes. Without a list of rows,
// invocation i makes word i of all that y spans and preserves the gaps between rows. With a list,
// it makes a word of a row, and each row begins at a word.
constexpr Kernel kConvertHalves{"convert_halves", R"(
fn run(i: u32) {
  var first = 2u * i;
  if (has_rows) {
    let row = rows_at(i / p.words);
    if (row < 0) { return; }
    first = u32(row) * p.y_row + i % p.words * 2u;
  }
  var word = y_word(first / 2u);
  for (var half = 0u; half < 2u; half++) {
    let row = (first + half) / p.y_row;
    let c = (first + half) % p.y_row;
    if (row < p.rows && c < p.cols) {
      let v = narrow_f64(load(row * p.x_row + c), to_mantissa, to_bias);
      word = (word & (0xffff0000u >> (half * 16u))) | (v << (half * 16u));
    }
  }
  y_put(first / 2u, word);
}
)"};

struct Format {
  int64_t bits = 0, mantissa = 0, bias = 0;
};

Format format_of(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  if (info.kind != NumberKind::ieee) return {};
  if (info.bits == 64) return {64, 52, 1023};
  if (info.bits == 32) return {32, 23, 127};
  return dtype == DType::bf16 ? Format{16, 7, 127} : Format{16, 10, 15};
}

bool on_word(const Tensor& t) {
  return reinterpret_cast<uintptr_t>(t.data) % 4 == 0;
}

Status convert_plain(Frame& frame, const ConvertArgs& args) {
  const Tensor &x = args.x, &y = args.y;
  const Format from = format_of(x.dtype), to = format_of(y.dtype);
  const bool all = args.rows.empty();
  const bool split = to.bits == 16 && !all && y.row_stride % 2 != 0;
  if (from.bits == 0 || to.bits == 0 || !on_word(x) || !on_word(y) || split) {
    return unsupported(cat("convert: no kernel from ", dtype_name(x.dtype), " to ",
                           dtype_name(y.dtype), " for these rows"));
  }
  const int64_t cols = x.cols();
  const int64_t rows = all ? x.rows() : args.rows.shape.count();
  if (rows == 0 || cols == 0) return {};
  Call call(frame, to.bits == 16 ? kConvertHalves : kConvert);
  call.words("x", x.data)
      .words("y", y.data, to.bits == 16 ? Access::update : Access::write)
      .ids("rows", args.rows)
      .text(kLoad)
      .value("cols", cols)
      .value("x_row", x.row_stride)
      .value("y_row", y.row_stride)
      .constant("from_bits", from.bits)
      .constant("from_mantissa", from.mantissa)
      .constant("from_bias", from.bias)
      .constant("to_bits", to.bits)
      .constant("to_mantissa", to.mantissa)
      .constant("to_bias", to.bias);
  if (to.bits != 16) return call.items(rows * cols);
  const int64_t words = ceil_div(cols, int64_t{2});
  const int64_t span = (rows - 1) * y.row_stride + cols;
  return call.value("words", words)
      .value("rows", x.rows())
      .items(all ? ceil_div(span, int64_t{2}) : rows * words);
}

}  // namespace

Status gather_rows(Frame& frame, const GatherRowsArgs& args) {
  if (args.y.shape.count() == 0) return {};
  const bool packed = args.table.layout == Layout::r16;
  Call call(frame, packed ? kGatherPacked : kGatherPlain);
  if (packed) {
    weights(call, args.table);
  } else {
    call.read("table", args.table);
  }
  return call.ids("ids", args.ids)
      .write("y", args.y)
      .value("cols", args.y.cols())
      .items(args.y.shape.count());
}

Status convert(Frame& frame, const ConvertArgs& args) {
  if (args.x.layout != Layout::r16) return convert_plain(frame, args);
  const int64_t rows = args.rows.empty() ? args.x.rows() : args.rows.shape.count();
  if (rows == 0 || args.x.shape.count() == 0) return {};
  Call call(frame, kUnpack);
  return weights(call, args.x)
      .ids("rows", args.rows)
      .write("y", args.y)
      .value("cols", args.x.cols())
      .items(rows * args.x.cols());
}

}  // namespace loom::core::webgpu::kernels
