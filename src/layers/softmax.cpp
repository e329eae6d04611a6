// Softmax in ten variants, each local to a row (the last axis), tau = temperature:
// - standard, temperature: softmax(x / tau).
// - grid: the row as [rows, cols]; each of its rows separately.
// - hierarchical: a tree of levels n1..nm. Each inner node has a softmax; a leaf is the product of
//   its path.
// - gumbel: softmax((x + G) / tau), G = -log(-log u), in training, or if noise is set. hard: the
//   maximum (the first among equals) is 1 and the others 0, with the gradient of the softmax
//   (straight-through, Jang, Gu and Poole, 2017).
// - masked: softmax over the kept positions, 0 elsewhere.
// - sparse: sparsemax (Martins and Astudillo, 2016).
// - entmax: alpha-entmax (Peters, Niculae and Martins, 2019); alpha 1 is softmax.
// - adaptive: tau_eff = tau (1 + kappa (target - H)) in [tau/4, 4 tau], H the entropy of softmax(x)
//   over log n. tau_eff is a constant in the gradient.
// - mixture: rows components of cols: y = sum_m softmax(pi)_m softmax(x_m). The last `rows` values
//   of the input are pi; without them pi is uniform.
#include "base/numbers/dmath.hpp"
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/shapes/largest.hpp"

namespace loom::core {
namespace {

using namespace fields::softmax;

enum class Variant : uint8_t {
  standard,
  grid,
  hierarchical,
  temperature,
  gumbel,
  masked,
  sparse,
  adaptive,
  mixture,
  entmax
};
constexpr std::string_view kNames[] = {"standard", "grid",   "hierarchical", "temperature",
                                       "gumbel",   "masked", "sparse",       "adaptive",
                                       "mixture",  "entmax"};

Result<Variant> variant_of(const LayerConfig& c) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (c.text(kVariant) == kNames[i]) return static_cast<Variant>(i);
  }
  return invalid(cat("Softmax: unknown variant '", printable(c.text(kVariant)),
                     "'; known are standard, grid, hierarchical, temperature, gumbel, masked, "
                     "sparse, adaptive, mixture, entmax"));
}

// Leaves of the tree, and values it consumes.
struct Tree {
  int64_t leaves = 1, values = 0;
};
Tree tree_of(const LayerConfig& c) {
  Tree t;
  for (int64_t n : c.list(kLevels)) {
    t.leaves *= n;
    t.values += t.leaves;
  }
  return t;
}

Result<Shape> infer_hierarchical(const LayerConfig& c, const Shape& in) {
  const Tree tree = tree_of(c);
  if (c.list(kLevels).empty() || (in.last() != tree.values && in.last() != tree.leaves)) {
    return invalid(cat("Softmax hierarchical: input ", in.str(), " must end in ", tree.values,
                       " (a value per node) or ", tree.leaves, " (the leaves)"));
  }
  Shape out = in;
  out[in.rank() - 1] = tree.leaves;
  return out;
}

Result<Shape> infer_mixture(const LayerConfig& c, const Shape& in) {
  const int64_t rows = c.integer(kRows), cols = c.integer(kCols);
  if (rows < 1 || cols < 1 || (in.last() != rows * cols && in.last() != rows * cols + rows)) {
    return invalid(cat("Softmax mixture: input ", in.str(), " must end in ", rows * cols,
                       " (rows x cols) or ", rows * cols + rows, " (and a gate per row)"));
  }
  Shape out = in;
  out[in.rank() - 1] = cols;
  return out;
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  LOOM_ASSIGN(const Variant variant, variant_of(c));
  if (in.rank() == 0 || in.last() < 1) {
    return invalid(cat("Softmax: input ", in.str(), " has no values to choose from"));
  }
  if (variant == Variant::hierarchical) return infer_hierarchical(c, in);
  if (variant == Variant::mixture) return infer_mixture(c, in);
  const int64_t cells = c.integer(kRows) * c.integer(kCols);
  if (variant == Variant::grid && cells > 0 && cells != in.last()) {
    return invalid(cat("Softmax grid: input ", in.str(), " must end in ", cells, " = ",
                       c.integer(kRows), " x ", c.integer(kCols)));
  }
  const int64_t mask = static_cast<int64_t>(c.list(kMask).size());
  if (variant == Variant::masked && mask > in.last()) {
    return invalid(
        cat("Softmax masked: the mask has ", mask, " values, the input ", in.str(), " fewer"));
  }
  return in;
}

float inverse_temperature(const LayerConfig& c) {
  return static_cast<float>(1.0 / c.real(kTemperature));
}

// Softmax of rows of `width`, whatever the shape of x.
Result<Tensor> rows_of(ForwardCall& call, const Tensor& x, int64_t width, float scale) {
  LOOM_ASSIGN(const Tensor y, call.like(x));
  const int64_t rows = x.shape.count() / width;
  LOOM_TRY(call.ops().softmax({as_matrix(x, rows, width), as_matrix(y, rows, width), scale}));
  return y;
}

// Columns of x as a matrix of its own.
Result<Tensor> columns(ForwardCall& call, const Tensor& x, int64_t first, int64_t count) {
  LOOM_ASSIGN(const Tensor copy, call.tensor(Shape{x.rows(), count}));
  LOOM_TRY(call.ops().unary({slice_cols(x, first, count), copy}));
  return copy;
}

Result<Tensor> hierarchical(ForwardCall& call, const Shape& shape) {
  const LayerConfig& c = call.config();
  const Tensor& x = call.x();
  const float scale = inverse_temperature(c);
  if (x.cols() == shape.last()) return rows_of(call, x, c.list(kLevels).back(), scale);
  Tensor path;
  int64_t first = 0, nodes = 1;
  for (int64_t children : c.list(kLevels)) {
    const int64_t count = nodes * children;
    LOOM_ASSIGN(const Tensor logits, columns(call, x, first, count));
    LOOM_ASSIGN(const Tensor p, rows_of(call, logits, children, scale));
    if (path.empty()) {
      path = p;
    } else {
      LOOM_ASSIGN(const Tensor next, call.like(p));
      const int64_t rows = x.rows() * nodes;
      LOOM_TRY(call.ops().binary({as_matrix(p, rows, children), as_matrix(path, rows, 1),
                                  as_matrix(next, rows, children), BinaryKind::mul}));
      path = next;
    }
    first += count;
    nodes = count;
  }
  Tensor y = path;
  y.shape = shape;
  return y;
}

Result<Tensor> combine(ForwardCall& call, const Tensor& a, const Tensor& b, BinaryKind kind) {
  LOOM_ASSIGN(const Tensor y, call.like(a));
  LOOM_TRY(call.ops().binary({a, b, y, kind}));
  return y;
}

// soft + (one-hot of its largest value - soft), the bracket without a gradient.
Result<Tensor> straight_through(ForwardCall& call, const Tensor& soft) {
  const Tensor y = as_matrix(soft, soft.rows(), soft.cols());
  LOOM_ASSIGN(const Tensor fixed, call.like(y));
  LOOM_TRY(call.ops().convert({y, fixed}));  // a copy that carries no gradient
  LOOM_ASSIGN(const Tensor one_hot, largest(call, fixed, 1));
  LOOM_ASSIGN(const Tensor change, combine(call, one_hot, fixed, BinaryKind::sub));
  return combine(call, y, change, BinaryKind::add);
}

Result<Tensor> gumbel(ForwardCall& call) {
  const LayerConfig& c = call.config();
  const Tensor& x = call.x();
  const auto finish = [&](const Tensor& z) -> Result<Tensor> {
    LOOM_ASSIGN(const Tensor soft, rows_of(call, z, z.cols(), inverse_temperature(c)));
    return c.flag(kHard) ? straight_through(call, soft) : soft;
  };
  if (!call.training() && !c.flag(kNoise)) return finish(x);
  LOOM_ASSIGN(const Tensor noise, call.like(x));
  LOOM_ASSIGN(const Tensor sum, call.like(x));
  const Noise source = call.noise();
  LOOM_TRY(call.ops().random({noise, source.step, source.seed, source.stream, RandomKind::gumbel}));
  LOOM_TRY(call.ops().binary({x, noise, sum, BinaryKind::add}));
  return finish(sum);
}

Result<Tensor> masked(ForwardCall& call) {
  const LayerConfig& c = call.config();
  const Tensor& x = call.x();
  LOOM_ASSIGN(const Tensor bias, call.tensor(Shape{1, x.cols()}));
  LOOM_ASSIGN(const Tensor sum, call.like(x));
  LOOM_TRY(call.ops().fill({bias, 0.0f}));
  const std::vector<int64_t>& mask = c.list(kMask);
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] != 0) continue;
    LOOM_TRY(call.ops().fill({slice_cols(bias, static_cast<int64_t>(i), 1), -__builtin_inff()}));
  }
  LOOM_TRY(call.ops().binary({x, bias, sum, BinaryKind::add}));
  return rows_of(call, sum, x.cols(), inverse_temperature(c));
}

Result<Tensor> entmax(ForwardCall& call, float alpha) {
  LOOM_ASSIGN(const Tensor y, call.like(call.x()));
  LOOM_TRY(call.ops().entmax({call.x(), y, inverse_temperature(call.config()), alpha}));
  return y;
}

// One number per row of x, as a column.
Result<Tensor> constant(ForwardCall& call, int64_t rows, double value) {
  LOOM_ASSIGN(const Tensor t, call.tensor(Shape{rows, 1}));
  LOOM_TRY(call.ops().fill({t, static_cast<float>(value)}));
  return t;
}

// Entropy of softmax(x) by row, negated: sum p log p. p = 0 counts as the smallest normal number.
Result<Tensor> negative_entropy(ForwardCall& call, const Tensor& x) {
  LOOM_ASSIGN(const Tensor p, rows_of(call, x, x.cols(), 1.0f));
  LOOM_ASSIGN(const Tensor tiny, constant(call, 1, 1.17549435e-38));
  LOOM_ASSIGN(const Tensor above, combine(call, p, tiny, BinaryKind::max));
  LOOM_ASSIGN(const Tensor logs, call.like(p));
  LOOM_TRY(call.ops().unary({above, logs, UnaryKind::log}));
  LOOM_ASSIGN(const Tensor terms, combine(call, p, logs, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor sums, call.tensor(Shape{x.rows(), 1}));
  LOOM_TRY(call.ops().reduce({terms, sums, ReduceKind::sum}));
  return sums;
}

Result<Tensor> adaptive(ForwardCall& call) {
  const LayerConfig& c = call.config();
  const Tensor x = as_matrix(call.x(), call.x().rows(), call.x().cols());
  const double tau = c.real(kTemperature);
  // Divided by log n, or by 1 if there is only one choice.
  const double scale = x.cols() > 1 ? dmath::log(static_cast<double>(x.cols())) : 1.0;
  LOOM_ASSIGN(const Tensor entropy, negative_entropy(call, x));
  // tau (1 + kappa (target + sum p log p / log n))
  LOOM_ASSIGN(const Tensor slope, constant(call, 1, tau * c.real(kKappa) / scale));
  LOOM_ASSIGN(const Tensor base,
              constant(call, 1, tau * (1 + c.real(kKappa) * c.real(kTargetEntropy))));
  LOOM_ASSIGN(const Tensor low, constant(call, 1, tau / 4));
  LOOM_ASSIGN(const Tensor high, constant(call, 1, tau * 4));
  LOOM_ASSIGN(Tensor t, combine(call, entropy, slope, BinaryKind::mul));
  LOOM_ASSIGN(t, combine(call, t, base, BinaryKind::add));
  LOOM_ASSIGN(t, combine(call, t, low, BinaryKind::max));
  LOOM_ASSIGN(t, combine(call, t, high, BinaryKind::min));
  LOOM_ASSIGN(const Tensor fixed, call.like(t));
  LOOM_TRY(call.ops().convert({t, fixed}));  // a copy that carries no gradient
  LOOM_ASSIGN(const Tensor z, combine(call, x, fixed, BinaryKind::div));
  return rows_of(call, z, x.cols(), 1.0f);
}

Result<Tensor> mixture(ForwardCall& call) {
  const LayerConfig& c = call.config();
  const Tensor& x = call.x();
  const int64_t components = c.integer(kRows), cols = c.integer(kCols);
  const float scale = inverse_temperature(c);
  LOOM_ASSIGN(const Tensor logits, columns(call, x, 0, components * cols));
  LOOM_ASSIGN(const Tensor p, rows_of(call, logits, cols, scale));
  Tensor gates;
  if (x.cols() > components * cols) {
    LOOM_ASSIGN(const Tensor pi, columns(call, x, components * cols, components));
    LOOM_ASSIGN(gates, rows_of(call, pi, components, scale));
  } else {
    LOOM_ASSIGN(gates, call.tensor(Shape{x.rows(), components}));
    LOOM_TRY(call.ops().fill({gates, 1.0f / static_cast<float>(components)}));
  }
  Tensor sum;
  for (int64_t m = 0; m < components; ++m) {
    LOOM_ASSIGN(const Tensor term, call.tensor(Shape{x.rows(), cols}));
    LOOM_TRY(call.ops().binary(
        {slice_cols(p, m * cols, cols), slice_cols(gates, m, 1), term, BinaryKind::mul}));
    if (sum.empty()) {
      sum = term;
    } else {
      LOOM_ASSIGN(sum, combine(call, sum, term, BinaryKind::add));
    }
  }
  return sum;
}

Result<Tensor> forward(ForwardCall& call) {
  const LayerConfig& c = call.config();
  LOOM_ASSIGN(const Shape shape, infer(c, call.x().shape));
  LOOM_ASSIGN(const Variant variant, variant_of(c));
  const int64_t width = call.x().cols();
  const auto alpha = static_cast<float>(c.real(kAlpha));
  const auto choose = [&]() -> Result<Tensor> {
    switch (variant) {
      case Variant::grid:
        return rows_of(call, call.x(),
                       c.integer(kRows) * c.integer(kCols) > 0 ? c.integer(kCols) : width,
                       inverse_temperature(c));
      case Variant::hierarchical: return hierarchical(call, shape);
      case Variant::gumbel: return gumbel(call);
      case Variant::masked: return masked(call);
      case Variant::sparse: return entmax(call, 2.0f);
      case Variant::entmax:
        if (alpha > 1.0f) return entmax(call, alpha);
        break;
      case Variant::adaptive: return adaptive(call);
      case Variant::mixture: return mixture(call);
      default: break;
    }
    return rows_of(call, call.x(), width, inverse_temperature(c));
  };
  LOOM_ASSIGN(Tensor y, choose());
  y.shape = shape;
  y.row_stride = shape.last();
  return y;
}

LayerExample example() {
  return {Shape{5},
          {sketch_dense(5, 6), {LayerKind::softmax, {{"variant", "entmax"}}}, sketch_dense(6, 3)}};
}

}  // namespace

extern const LayerDef kSoftmax;
const LayerDef kSoftmax = {.kind = LayerKind::softmax,
                           .name = "Softmax",
                           .fields = kFields,
                           .infer = infer,
                           .forward = forward,
                           .example = example};

}  // namespace loom::core
