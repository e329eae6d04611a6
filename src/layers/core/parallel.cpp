// Parallel: every child gets the same input. Their results, n_i values per sample, are combined:
//   concat        joined: [B, sum n_i].
//   add, avg      sum, or mean.
//   grid_scatter  [B, rows, cols, n], child i at the cell targets[2i], targets[2i+1], zeros
//                 elsewhere. Without rows and cols it is concat.
//   filter        mixture of experts: y = sum w_i y_i, w = softmax(gate(x)); the gate is the last
//                 child. top_k > 0 keeps the k largest weights of each sample, renormalized;
//                 among equal ones the first branches win. Host sessions run an expert only for
//                 the samples that keep it, with the same bits as running all. Elsewhere every
//                 expert runs, and dropped ones count 0 times. balance adds the loss of Shazeer
//                 et al. (2017) as in the Switch Transformer: N sum_i f_i P_i. f is the share of
//                 samples for which an expert is kept, P its mean weight.
//   mixed         y = sum w_i y_i, w = softmax(alpha); alpha are parameters of the layer itself.
//                 This is an undecided cell of architecture search (Liu, Simonyan, Yang, 2019).
// A disabled child is the identity.
#include <algorithm>

#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/shapes/largest.hpp"

namespace loom::core {
namespace {

using namespace fields::parallel;

bool has_gate(const LayerConfig& c) {
  return c.text(kCombine) == "filter";
}
size_t branches(const LayerConfig& c) {
  return c.children.size() - (has_gate(c) ? 1 : 0);
}
bool mixes(const LayerConfig& c) {
  return c.text(kCombine) == "mixed";
}
bool scatters(const LayerConfig& c) {
  return c.text(kCombine) == "grid_scatter" && c.integer(kRows) * c.integer(kCols) > 0;
}
bool joins(const LayerConfig& c) {
  return c.text(kCombine) == "concat" || (c.text(kCombine) == "grid_scatter" && !scatters(c));
}

Result<Shape> child_shape(const LayerConfig& c, size_t i, const Shape& in) {
  Result<Shape> out = infer_after(c.children[i], in, in);
  if (out.ok()) return out;
  Error error = out.error();
  error.message = cat("child ", i, " of Parallel: ", error.message);
  return error;
}

Status check_fields(const LayerConfig& c) {
  const std::string_view mode = c.text(kCombine);
  if (mode != "concat" && mode != "add" && mode != "avg" && mode != "grid_scatter" &&
      mode != "filter" && mode != "mixed") {
    return invalid(cat("Parallel: unknown combine '", printable(mode),
                       "'; known are concat, add, avg, grid_scatter, filter, mixed"));
  }
  if (c.children.size() < (has_gate(c) ? 2u : 1u)) {
    return invalid(cat("Parallel ", mode, " needs at least ",
                       has_gate(c) ? "a branch and the gate as its last child" : "one child"));
  }
  if (has_gate(c) && c.integer(kTopK) > static_cast<int64_t>(branches(c))) {
    return invalid(
        cat("Parallel: top_k ", c.integer(kTopK), " is more than its ", branches(c), " branches"));
  }
  if (!scatters(c)) return {};
  const std::vector<int64_t>& targets = c.list(kTargets);
  if (targets.size() != 2 * branches(c)) {
    return invalid(cat("Parallel: targets has ", targets.size(), " numbers, must have ",
                       2 * branches(c), ": a row and a column per child"));
  }
  for (size_t i = 0; i < branches(c); ++i) {
    if (targets[2 * i] >= c.integer(kRows) || targets[2 * i + 1] >= c.integer(kCols)) {
      return invalid(cat("Parallel: child ", i, " goes to cell (", targets[2 * i], ", ",
                         targets[2 * i + 1], "), outside ", c.integer(kRows), " x ",
                         c.integer(kCols)));
    }
    for (size_t j = 0; j < i; ++j) {
      if (targets[2 * i] == targets[2 * j] && targets[2 * i + 1] == targets[2 * j + 1]) {
        return invalid(cat("Parallel: children ", j, " and ", i, " go to the same cell (",
                           targets[2 * i], ", ", targets[2 * i + 1], ")"));
      }
    }
  }
  return {};
}

Status check_gate(const LayerConfig& c, const Shape& in) {
  LOOM_ASSIGN(const Shape gate, child_shape(c, branches(c), in));
  if (in[0] > 0 && gate.count() == in[0] * static_cast<int64_t>(branches(c))) return {};
  return invalid(cat("Parallel: the gate gives ", gate.str(), ", must give ", branches(c),
                     " values per sample, one per branch"));
}

void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  if (mixes(c)) out.push_back({"alpha", Shape{static_cast<int64_t>(branches(c))}, Init::zeros});
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  LOOM_TRY(check_fields(c));
  if (in.rank() == 0 || in[0] < 1) return invalid("Parallel: the input has no samples");
  Shape first;
  int64_t sum = 0;
  for (size_t i = 0; i < branches(c); ++i) {
    LOOM_ASSIGN(const Shape out, child_shape(c, i, in));
    if (out[0] != in[0]) {
      return invalid(cat("Parallel: child ", i, " turns ", in[0], " samples into ", out[0]));
    }
    if (i == 0) first = out;
    if (!joins(c) && out.count() != first.count()) {
      return invalid(cat("Parallel ", c.text(kCombine), ": child ", i, " gives ", out.str(),
                         ", child 0 ", first.str(), "; they must be as large"));
    }
    sum += out.count() / in[0];
  }
  if (has_gate(c)) LOOM_TRY(check_gate(c, in));
  if (joins(c)) return Shape{in[0], sum};
  if (scatters(c)) return Shape{in[0], c.integer(kRows), c.integer(kCols), first.count() / in[0]};
  return first;
}

Result<std::vector<Tensor>> run_branches(ForwardCall& call) {
  std::vector<Tensor> out;
  const int64_t samples = call.x().shape[0];
  for (size_t i = 0; i < branches(call.config()); ++i) {
    LOOM_ASSIGN(const LayerOutputs made, call.child(i, call.inputs().first(1)));
    out.push_back(as_matrix(made[0], samples, made[0].shape.count() / samples));
  }
  return out;
}

// Copies each branch into its columns of y.
Status write_parts(ForwardCall& call, const std::vector<Tensor>& parts, const Tensor& y) {
  const LayerConfig& c = call.config();
  const Tensor flat = as_matrix(y, y.shape[0], y.shape.count() / y.shape[0]);
  int64_t first = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t width = parts[i].cols();
    if (scatters(c)) {
      first = (c.list(kTargets)[2 * i] * c.integer(kCols) + c.list(kTargets)[2 * i + 1]) * width;
    }
    LOOM_TRY(call.ops().unary({parts[i], slice_cols(flat, first, width)}));
    first += width;
  }
  return {};
}

// Clears cells of a grid that no child writes.
Status clear_rest(ForwardCall& call, const Tensor& y) {
  const LayerConfig& c = call.config();
  const int64_t cells = c.integer(kRows) * c.integer(kCols), width = y.shape.last();
  const Tensor flat = as_matrix(y, y.shape[0], cells * width);
  std::vector<bool> taken(static_cast<size_t>(cells));
  for (size_t i = 0; i < branches(c); ++i) {
    taken[static_cast<size_t>(c.list(kTargets)[2 * i] * c.integer(kCols) +
                              c.list(kTargets)[2 * i + 1])] = true;
  }
  for (int64_t cell = 0; cell < cells; ++cell) {
    if (taken[static_cast<size_t>(cell)]) continue;
    LOOM_TRY(call.ops().fill({slice_cols(flat, cell * width, width), 0.0f}));
  }
  return {};
}

Result<Tensor> binary(ForwardCall& call, const Tensor& a, const Tensor& b, BinaryKind kind) {
  LOOM_ASSIGN(const Tensor y, call.tensor(Shape{a.rows(), a.cols()}));
  LOOM_TRY(call.ops().binary({a, b, y, kind}));
  return y;
}

// balance * N sum_i f_i P_i over the samples of this batch, B: column sums give B f and B P.
Status balance_loss(ForwardCall& call, const Tensor& p, const Tensor& kept) {
  const int64_t experts = p.cols(), samples = p.rows();
  LOOM_ASSIGN(const Tensor share, call.tensor(Shape{1, experts}));
  LOOM_ASSIGN(const Tensor weight, call.tensor(Shape{1, experts}));
  LOOM_ASSIGN(const Tensor loss, call.tensor(Shape{1, 1}));
  LOOM_TRY(call.ops().reduce_cols({kept, share}));
  LOOM_TRY(call.ops().reduce_cols({p, weight}));
  LOOM_ASSIGN(const Tensor terms, binary(call, weight, share, BinaryKind::mul));
  LOOM_TRY(call.ops().reduce({terms, loss, ReduceKind::sum}));
  const double scale = static_cast<double>(experts) / static_cast<double>(samples * samples);
  return call.add_loss(loss, static_cast<float>(call.config().real(kBalance) * scale));
}

// The weight of every branch for every sample.
Result<Tensor> gate_weights(ForwardCall& call, int64_t experts) {
  const LayerConfig& c = call.config();
  const int64_t samples = call.x().shape[0];
  LOOM_ASSIGN(const LayerOutputs gate, call.child(branches(c), call.inputs().first(1)));
  LOOM_ASSIGN(const Tensor p, call.tensor(Shape{samples, experts}));
  LOOM_TRY(call.ops().softmax({as_matrix(gate[0], samples, experts), p, 1.0f}));
  if (c.integer(kTopK) == 0) return p;
  LOOM_ASSIGN(const Tensor kept, largest(call, p, c.integer(kTopK)));
  if (c.real(kBalance) > 0 && call.training()) LOOM_TRY(balance_loss(call, p, kept));
  LOOM_ASSIGN(const Tensor some, binary(call, p, kept, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor sums, call.tensor(Shape{samples, 1}));
  LOOM_TRY(call.ops().reduce({some, sums, ReduceKind::sum}));
  return binary(call, some, sums, BinaryKind::div);
}

// The sum of the branches, each times its column of `weights` (empty means 1), first branch first.
// Starts from `sum`, if there is one.
Result<Tensor> weighted_sum(ForwardCall& call, const std::vector<Tensor>& parts,
                            const Tensor& weights, Tensor sum = {}) {
  for (size_t i = 0; i < parts.size(); ++i) {
    Tensor term = parts[i];
    if (!weights.empty()) {
      const Tensor w = slice_cols(weights, static_cast<int64_t>(i), 1);
      LOOM_ASSIGN(term, binary(call, parts[i], w, BinaryKind::mul));
    }
    if (sum.empty()) {
      sum = term;
    } else {
      LOOM_ASSIGN(sum, binary(call, sum, term, BinaryKind::add));
    }
  }
  return sum;
}

// One weight per branch for all samples.
Result<Tensor> mixed_weights(ForwardCall& call, int64_t count) {
  LOOM_ASSIGN(const Tensor p, call.tensor(Shape{1, count}));
  LOOM_TRY(call.ops().softmax({as_matrix(call.param(0), 1, count), p, 1.0f}));
  return p;
}

// Whether a sample of the output depends only on the same sample of the input, so the layer can run
// on some of the samples.
bool goes_by_sample(const LayerConfig& c) {
  constexpr LayerKind kOfPictures[] = {LayerKind::cnn1, LayerKind::cnn2,    LayerKind::cnn3,
                                       LayerKind::pool, LayerKind::flatten, LayerKind::batch_norm};
  if (c.disabled) return true;
  const LayerDef& def = *c.def;
  const bool image = std::ranges::find(kOfPictures, def.kind) != std::end(kOfPictures);
  if (!(def.ragged || image) || def.state != nullptr || def.rope != nullptr || def.takes_ids)
    return false;
  return std::ranges::all_of(c.children, goes_by_sample);
}

// Whether experts that no sample keeps can be skipped.
bool leaves_out(ForwardCall& call) {
  const LayerConfig& c = call.config();
  const auto experts = static_cast<int64_t>(branches(c));
  if (!has_gate(c) || c.integer(kTopK) == 0 || c.integer(kTopK) >= experts) return false;
  return call.can_read_values() && call.x().dtype == DType::f32 &&
         std::all_of(c.children.begin(), c.children.end() - 1, goes_by_sample);
}

// Writes the rows of column `i` of weights that are not 0 to ids; returns their number.
int64_t keepers(const Tensor& weights, int64_t i, const Tensor& ids) {
  int64_t count = 0;
  for (int64_t r = 0; r < weights.rows(); ++r) {
    if (!(weights.f32_row(r)[i] == 0.0f)) ids.i32()[count++] = static_cast<int32_t>(r);
  }
  return count;
}

// The first `count` samples of t, or their rows.
Tensor first_of(const Tensor& t, int64_t count) {
  Tensor part = t;
  part.shape[0] = count;
  return part;
}

// Runs expert `i` on the samples that keep it, and adds its share to their rows of y. The ids are
// written here, at record time. All earlier commands have run, so nothing else uses their memory.
Status add_expert(ForwardCall& call, int64_t i, const Tensor& weights, const Tensor& y) {
  const int64_t samples = y.rows();
  const Shape& in = call.x().shape;
  LOOM_ASSIGN(const Tensor ids, call.ids(Shape{samples}));
  LOOM_ASSIGN(const Tensor x, call.tensor(in));
  LOOM_ASSIGN(const Tensor share, call.tensor(Shape{samples, 1}));
  LOOM_ASSIGN(const Tensor product, call.tensor(Shape{samples, y.cols()}));
  LOOM_ASSIGN(const bool values, call.synchronize());
  const int64_t count = values ? keepers(weights, i, ids) : samples;
  if (count == 0) return call.skip_child(static_cast<size_t>(i), x);
  const Tensor rows = first_of(ids, count), mine = first_of(x, count);
  const int64_t width = in.count() / samples;
  LOOM_TRY(call.ops().gather_rows(
      {as_matrix(call.x(), samples, width), rows, as_matrix(mine, count, width)}));
  LOOM_TRY(call.ops().gather_rows({slice_cols(weights, i, 1), rows, first_of(share, count)}));
  LOOM_ASSIGN(const LayerOutputs made, call.child(static_cast<size_t>(i), {&mine, 1}));
  LOOM_TRY(call.ops().binary({as_matrix(made[0], count, y.cols()), first_of(share, count),
                              first_of(product, count), BinaryKind::mul}));
  return call.ops().scatter_add_rows({first_of(product, count), rows, y, -1});
}

Result<Tensor> forward_chosen(ForwardCall& call, const Shape& shape) {
  const auto experts = static_cast<int64_t>(branches(call.config()));
  LOOM_ASSIGN(Tensor y, call.tensor(shape));
  LOOM_ASSIGN(const Tensor weights, gate_weights(call, experts));
  const Tensor flat = as_matrix(y, shape[0], shape.count() / shape[0]);
  LOOM_TRY(call.ops().fill({flat, 0.0f}));
  for (int64_t i = 0; i < experts; ++i) LOOM_TRY(add_expert(call, i, weights, flat));
  return y;
}

Result<Tensor> forward(ForwardCall& call) {
  const LayerConfig& c = call.config();
  LOOM_ASSIGN(const Shape shape, infer(c, call.x().shape));
  if (leaves_out(call)) return forward_chosen(call, shape);
  LOOM_ASSIGN(const std::vector<Tensor> parts, run_branches(call));
  Tensor y;
  if (joins(c) || scatters(c)) {
    LOOM_ASSIGN(y, call.tensor(shape));
    if (scatters(c)) LOOM_TRY(clear_rest(call, y));
    LOOM_TRY(write_parts(call, parts, y));
    return y;
  }
  Tensor weights;
  const auto all = static_cast<int64_t>(parts.size());
  if (has_gate(c)) {
    LOOM_ASSIGN(weights, gate_weights(call, all));
  } else if (mixes(c)) {
    LOOM_ASSIGN(weights, mixed_weights(call, all));
  }
  // Starts from +0, which no sum of zeros turns negative. So the bits equal those of skipped
  // experts.
  Tensor zeros;
  if (has_gate(c) && c.integer(kTopK) > 0 && c.integer(kTopK) < all) {
    LOOM_ASSIGN(zeros, call.tensor(Shape{parts[0].rows(), parts[0].cols()}));
    LOOM_TRY(call.ops().fill({zeros, 0.0f}));
  }
  LOOM_ASSIGN(y, weighted_sum(call, parts, weights, zeros));
  if (c.text(kCombine) == "avg") {
    LOOM_ASSIGN(const Tensor count, call.tensor(Shape{1, 1}));
    LOOM_TRY(call.ops().fill({count, static_cast<float>(parts.size())}));
    LOOM_ASSIGN(y, binary(call, y, count, BinaryKind::div));
  }
  y.shape = shape;
  y.row_stride = shape.last();
  return y;
}

LayerExample example() {
  return {Shape{5},
          {{LayerKind::parallel,
            {{"combine", "filter"}, {"top_k", 2}, {"balance", 0.01}},
            {sketch_dense(5, 4, "tanh"), sketch_dense(5, 4), sketch_dense(5, 4, "silu"),
             sketch_dense(5, 3)}}}};
}

}  // namespace

extern const LayerDef kParallel;
const LayerDef kParallel = {.kind = LayerKind::parallel,
                            .name = "Parallel",
                            .fields = kFields,
                            .container = true,
                            .params = params,
                            .infer = infer,
                            .forward = forward,
                            .example = example};

}  // namespace loom::core
