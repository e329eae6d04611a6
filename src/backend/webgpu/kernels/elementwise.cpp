// unary, binary, gated, fill: an invocation makes one value, or sixteen in large tensors. The
// sixteen are one workgroup width apart, so that every read of a workgroup is contiguous. All are
// read before the first is written, so their latencies overlap. Tensors without gaps between their
// rows (flat) are indexed without a division.
#include "backend/webgpu/kernels/elementwise.hpp"

#include "backend/webgpu/kernels/kernels.hpp"

namespace loom::core::webgpu {

const std::string_view kFlat = R"(
fn place(n: u32, stride: u32) -> u32 {
  if (flat == 1u) { return n; }
  return n / p.cols * stride + n % p.cols;
}
)";

constexpr Kernel kCopyWords{"copy_words", R"(
fn run(i: u32) { to_put(i, from_word(i)); }
)"};

Status copy_words(Frame& frame, const BufferSlice& from, const BufferSlice& to, int64_t count) {
  return Call(frame, kCopyWords)
      .words("from", from, Access::read)
      .words("to", to, Access::write)
      .beside()
      .items(count);
}

// A workgroup has one stretch: its source, its target and its length.
constexpr Kernel kMoveWords{"move_words", R"(
fn run(i: u32, lane: u32) {
  let first = table_word(3u * i);
  let to = table_word(3u * i + 1u);
  let count = table_word(3u * i + 2u);
  for (var j = lane; j < count; j += lanes) { to_put(to + j, from_word(first + j)); }
}
)"};

Status move_words(Frame& frame, std::span<const WordsMove> moves) {
  constexpr size_t kMax = 4096;  // of a dispatch
  const auto all_words = [](const BufferSlice& s) {
    return BufferSlice{s.buffer, s.buffer_bytes, 0, s.buffer_bytes};
  };
  std::vector<uint32_t> table;
  for (size_t i = 0; i < moves.size(); ++i) {
    const WordsMove& m = moves[i];
    for (const int64_t word : {m.from.offset / 4, m.to.offset / 4, m.words})
      table.push_back(static_cast<uint32_t>(word));
    const bool ends = i + 1 == moves.size() || table.size() / 3 == kMax ||
                      moves[i + 1].from.buffer != m.from.buffer ||
                      moves[i + 1].to.buffer != m.to.buffer;
    if (!ends) continue;
    LOOM_ASSIGN(const BufferSlice slice, frame.table(table));
    LOOM_TRY(Call(frame, kMoveWords)
                 .words("table", slice, Access::read)
                 .words("from", all_words(m.from), Access::read)
                 .words("to", all_words(m.to), Access::write)
                 .rows(static_cast<int64_t>(table.size() / 3)));
    table.clear();
  }
  return {};
}

namespace kernels {
namespace {

constexpr Kernel kUnary{"unary", R"(
fn run(i: u32) {
  var x: array<f32, each>;
  for (var j = 0u; j < each; j++) { x[j] = x_at(place(spot(i, j), p.x_s)); }
  for (var j = 0u; j < each; j++) {
    if (here(i, j)) { y_set(place(spot(i, j), p.y_s), unary_value(kind, x[j])); }
  }
}
)"};

// b is a whole tensor (0), one row (1), one column (2) or one value (3).
constexpr Kernel kBinary{"binary", R"(
fn place_b(n: u32) -> u32 {
  switch (b_form) {
    case 0u: { return place(n, p.b_s); }
    case 1u: { return n % p.cols; }
    case 2u: { return n / p.cols * p.b_s; }
    default: { return 0u; }
  }
}
fn run(i: u32) {
  var a: array<f32, each>;
  var b: array<f32, each>;
  for (var j = 0u; j < each; j++) {
    a[j] = a_at(place(spot(i, j), p.a_s));
    b[j] = b_at(place_b(spot(i, j)));
  }
  for (var j = 0u; j < each; j++) {
    if (here(i, j)) { y_set(place(spot(i, j), p.y_s), binary_value(kind, a[j], b[j])); }
  }
}
)"};

constexpr Kernel kGated{"gated", R"(
fn run(i: u32) {
  var gate: array<f32, each>;
  var up: array<f32, each>;
  for (var j = 0u; j < each; j++) {
    gate[j] = gate_at(place(spot(i, j), p.gate_s));
    up[j] = up_at(place(spot(i, j), p.up_s));
  }
  for (var j = 0u; j < each; j++) {
    if (here(i, j)) { y_set(place(spot(i, j), p.y_s), activate(kind, gate[j]) * up[j]); }
  }
}
)"};

constexpr Kernel kFill{"fill", R"(
fn run(i: u32) {
  for (var j = 0u; j < each; j++) {
    if (here(i, j)) { y_set(place(spot(i, j), p.y_s), p.v); }
  }
}
)"};

}  // namespace

Status unary(Frame& frame, const UnaryArgs& args) {
  Call call(frame, kUnary);
  return flat(call, {&args.x, &args.y})
      .read("x", args.x)
      .write("y", args.y)
      .constant("kind", static_cast<int64_t>(args.kind))
      .spread(args.y.shape.count());
}

Status binary(Frame& frame, const BinaryArgs& args) {
  const int64_t one_row = args.b.rows() == 1 && args.a.rows() != 1 ? 1 : 0;
  const int64_t one_col = args.b.cols() == 1 && args.a.cols() != 1 ? 2 : 0;
  const int64_t b_form = one_row + one_col;
  Call call(frame, kBinary);
  return flat(call, {&args.a, b_form == 0 ? &args.b : &args.a, &args.y})
      .read("a", args.a)
      .read("b", args.b)
      .write("y", args.y)
      .constant("b_form", b_form)
      .constant("kind", static_cast<int64_t>(args.kind))
      .spread(args.y.shape.count());
}

Status gated(Frame& frame, const GatedArgs& args) {
  Call call(frame, kGated);
  return flat(call, {&args.gate, &args.up, &args.y})
      .read("gate", args.gate)
      .read("up", args.up)
      .write("y", args.y)
      .constant("kind", static_cast<int64_t>(args.activation))
      .spread(args.y.shape.count());
}

Status fill(Frame& frame, const FillArgs& args) {
  Call call(frame, kFill);
  return flat(call, {&args.y})
      .write("y", args.y)
      .value("v", args.value)
      .spread(args.y.shape.count());
}

}  // namespace kernels

Call& flat(Call& call, std::initializer_list<const Tensor*> tensors) {
  bool gapless = true;
  int64_t cols = 0;
  for (const Tensor* t : tensors) {
    cols = t->cols();
    gapless = gapless && (t->rows() <= 1 || t->row_stride == cols);
  }
  return call.value("cols", cols).constant("flat", gapless ? 1 : 0).text(kFlat);
}

}  // namespace loom::core::webgpu
