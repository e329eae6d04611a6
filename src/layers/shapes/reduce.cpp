// Reduce: one value for all positions along some axes: their sum, mean, maximum, minimum, sum of
// squares, sum of magnitudes, or Euclidean length.
#include <algorithm>

#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "layers/spatial/axes.hpp"

namespace loom::core {
namespace {

using namespace fields::reduce;

// f = after(reduction(before(x))).
struct Function {
  std::string_view name;
  UnaryKind before;
  ReduceKind reduction;
  UnaryKind after;
};
constexpr Function kFunctions[] = {
    {"sum", UnaryKind::linear, ReduceKind::sum, UnaryKind::linear},
    {"mean", UnaryKind::linear, ReduceKind::mean, UnaryKind::linear},
    {"max", UnaryKind::linear, ReduceKind::max, UnaryKind::linear},
    {"min", UnaryKind::neg, ReduceKind::max, UnaryKind::neg},
    {"sum_squares", UnaryKind::linear, ReduceKind::sum_squares, UnaryKind::linear},
    {"l1", UnaryKind::abs, ReduceKind::sum, UnaryKind::linear},
    {"l2", UnaryKind::linear, ReduceKind::sum_squares, UnaryKind::sqrt}};

Result<Function> function_of(const LayerConfig& c) {
  std::vector<std::string> known;
  for (const Function& f : kFunctions) {
    if (f.name == c.text(kFunction)) return f;
    known.emplace_back(f.name);
  }
  return invalid(cat("Reduce: unknown function '", printable(c.text(kFunction)), "'; known are ",
                     join(known, ", ")));
}

Result<std::vector<int>> axes_of(const LayerConfig& c, int rank) {
  LOOM_ASSIGN(std::vector<int> axes, axes_from_front("Reduce", c.list(kAxes), rank));
  if (c.list(kAxes).empty()) axes.erase(axes.begin());
  return axes;
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  LOOM_TRY(function_of(c));
  LOOM_ASSIGN(const std::vector<int> axes, axes_of(c, in.rank()));
  std::vector<int64_t> out;
  for (int i = 0; i < in.rank(); ++i) {
    const bool gone = std::ranges::find(axes, i) != axes.end();
    if (!gone || c.flag(kKeep)) out.push_back(gone ? 1 : in[i]);
  }
  if (out.empty()) out.push_back(1);
  return shape_of(out);
}

Result<Tensor> apply(ForwardCall& call, const Tensor& x, UnaryKind kind) {
  if (kind == UnaryKind::linear) return x;
  LOOM_ASSIGN(const Tensor y, call.like(x));
  LOOM_TRY(call.ops().unary({x, y, kind}));
  return y;
}

// The maximum of each row of x [rows, width]. Training uses a pool, which stores the index of each
// maximum for its gradient: among equal values the first one wins.
Status largest_of_rows(ForwardCall& call, const Tensor& x, const Tensor& y, const Shape& shape) {
  const int64_t rows = x.rows(), width = x.cols();
  if (!call.training()) return call.ops().reduce({x, y, ReduceKind::max});
  PoolArgs args;
  args.shape.channels = args.shape.filters = args.shape.groups = 1;
  args.shape.in[2] = args.shape.kernel[2] = args.shape.stride[2] = width;
  args.x = x;
  args.y = y;
  LOOM_ASSIGN(const Tensor ids, call.ids(shape));
  args.ids = as_matrix(ids, rows, 1);
  return call.ops().pool(args);
}

// The reduced axes become the row.
Result<Tensor> forward(ForwardCall& call) {
  const LayerConfig& c = call.config();
  const Shape in = call.x().shape;
  LOOM_ASSIGN(const Shape shape, infer(c, in));
  LOOM_ASSIGN(const Function f, function_of(c));
  LOOM_ASSIGN(const std::vector<int> axes, axes_of(c, in.rank()));
  std::vector<int> order;
  for (int i = 0; i < in.rank(); ++i) {
    if (std::ranges::find(axes, i) == axes.end()) order.push_back(i);
  }
  const auto kept = static_cast<int>(order.size());
  order.insert(order.end(), axes.begin(), axes.end());
  Tensor x = call.x();
  if (!std::ranges::is_sorted(order)) {
    LOOM_ASSIGN(x, permuted(call, x, order));
  }
  int64_t width = 1;
  for (int i = kept; i < in.rank(); ++i) width *= in[order[static_cast<size_t>(i)]];
  LOOM_ASSIGN(const Tensor ready, apply(call, x, f.before));
  LOOM_ASSIGN(const Tensor sums, call.tensor(shape));
  const int64_t rows = shape.count();
  const Tensor from = as_matrix(ready, rows, width), to = as_matrix(sums, rows, 1);
  if (f.reduction == ReduceKind::max) {
    LOOM_TRY(largest_of_rows(call, from, to, shape));
  } else {
    LOOM_TRY(call.ops().reduce({from, to, f.reduction}));
  }
  return apply(call, sums, f.after);
}

LayerExample example() {
  return {Shape{3, 5},
          {sketch_dense(5, 7),
           {LayerKind::reduce, {{"function", "mean"}, {"axes", std::vector<int64_t>{1}}}},
           sketch_dense(7, 3)}};
}

}  // namespace

extern const LayerDef kReduce;
const LayerDef kReduce = {.kind = LayerKind::reduce,
                          .name = "Reduce",
                          .fields = kFields,
                          .infer = infer,
                          .forward = forward,
                          .example = example};

}  // namespace loom::core
