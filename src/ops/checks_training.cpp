// The checks of the ops that training adds: gradients, convolutions, whole-sequence attention,
// recurrent cells, losses and updates. In the order of checks.cpp.
#include <initializer_list>

#include "ops/activation_dx.hpp"
#include "ops/check_rules.hpp"
#include "ops/checks.hpp"

namespace loom::core {
namespace {

using rules::apart;
using rules::broken;
using rules::disagree;
using rules::in_place_or_apart;
using rules::like;
using rules::packed;
using rules::plain;
using rules::same_shape;

struct Named {
  std::string_view name;
  const Tensor& t;
};

// y shares no byte with any of the others; absent ones share nothing.
Status apart_from(std::string_view op, std::string_view y_name, const Tensor& y,
                  std::initializer_list<Named> others) {
  for (const Named& other : others) LOOM_TRY(apart(op, y_name, y, other.name, other.t));
  return {};
}

// Plain rows of `dtype` with exactly these extents.
Status matrix(std::string_view op, std::string_view name, const Tensor& t, int64_t rows,
              int64_t cols, DType dtype) {
  LOOM_TRY(plain(op, name, t, dtype));
  if (t.rows() == rows && t.cols() == cols) return {};
  return broken(op, name, " ", t.shape.str(), " must have ", rows, " rows of ", cols);
}
// The same, or absent.
Status matrix_or_absent(std::string_view op, std::string_view name, const Tensor& t, int64_t rows,
                        int64_t cols, DType dtype) {
  return t.empty() ? Status{} : matrix(op, name, t, rows, cols, dtype);
}

// A number an axis of a convolution may have: what is computed from them stays below 2^63.
bool in_range(int64_t value, int64_t least) {
  return value >= least && value < int64_t{1} << 31;
}

bool is_product(int64_t value, std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return false;
  }
  return product == value;
}

Status conv_shape(std::string_view op, const ConvShape& s) {
  bool sound = in_range(s.channels, 1) && in_range(s.filters, 1) && in_range(s.groups, 1);
  for (int a = 0; a < 3; ++a) {
    sound = sound && in_range(s.in[a], 0) && in_range(s.out[a], 0) && in_range(s.kernel[a], 1) &&
            in_range(s.stride[a], 1) && in_range(s.dilation[a], 1) && in_range(s.pad[a], 0);
  }
  if (!sound) {
    return broken(op,
                  "a number of its shape is out of range: positive, extents of the samples and "
                  "padding not negative, all below 2^31");
  }
  if (s.channels % s.groups == 0 && s.filters % s.groups == 0) return {};
  return broken(op, s.channels, " channels and ", s.filters, " filters cannot be cut into ",
                s.groups, " groups");
}

// Rows that are samples [count][extent...].
Status samples(std::string_view op, std::string_view name, const Tensor& t, std::string_view what,
               int64_t count, const int64_t (&extent)[3]) {
  if (is_product(t.cols(), {count, extent[0], extent[1], extent[2]})) return {};
  return broken(op, name, " ", t.shape.str(), " does not hold ", count, " ", what, " of [",
                extent[0], ", ", extent[1], ", ", extent[2], "] in a row");
}

// The weights, packed or their gradient, have one row per filter.
Status filters(std::string_view op, std::string_view name, const Tensor& w, const ConvShape& s) {
  const bool patch =
      is_product(w.cols(), {s.channels / s.groups, s.kernel[0], s.kernel[1], s.kernel[2]});
  if (patch && w.rows() == s.filters) return {};
  return broken(op, name, " ", w.shape.str(), " does not hold ", s.filters, " filters of ",
                s.channels / s.groups, " channels of [", s.kernel[0], ", ", s.kernel[1], ", ",
                s.kernel[2], "]");
}

// Samples in, samples out: as many rows of each.
Status convolved(std::string_view op, std::string_view in_name, const Tensor& in,
                 std::string_view out_name, const Tensor& out, const ConvShape& s) {
  LOOM_TRY(conv_shape(op, s));
  LOOM_TRY(samples(op, in_name, in, "channels", s.channels, s.in));
  LOOM_TRY(samples(op, out_name, out, "filters", s.filters, s.out));
  if (in.rows() == out.rows()) return {};
  return disagree(op, in_name, in, out_name, out, "both must have the same number of rows");
}

// What attend and attend_dx have in common.
template <class Args>
Status sequences(std::string_view op, const Args& args) {
  const auto& [q, k, v, mask] = std::tie(args.q, args.k, args.v, args.mask);
  LOOM_TRY(plain(op, "q", q));
  LOOM_TRY(plain(op, "k", k, q.dtype));
  LOOM_TRY(plain(op, "v", v, q.dtype));
  LOOM_TRY(same_shape(op, "k", k, "v", v));
  if (args.sequences < 1 || q.rows() % args.sequences != 0) {
    return broken(op, "q ", q.shape.str(), " cannot be cut into ", args.sequences,
                  " sequences: the first extent must divide");
  }
  if (args.kv_heads < 1 || args.heads < 1 || args.heads % args.kv_heads != 0) {
    return broken(op, args.heads, " heads do not divide among ", args.kv_heads, " kv heads");
  }
  const int64_t width = q.cols() / args.heads;
  if (q.cols() % args.heads != 0 || k.rows() != q.rows() || k.cols() != width * args.kv_heads) {
    return disagree(
        op, "q", q, "k", k,
        cat("as many rows, ", args.heads, " and ", args.kv_heads, " heads of one width"));
  }
  if (args.window < 0) return broken(op, "window is ", args.window, ": it must not be negative");
  LOOM_TRY(rules::soft_cap(op, args.soft_cap));
  return matrix_or_absent(op, "mask", mask, args.sequences, q.rows() / args.sequences, q.dtype);
}

bool uses_m(OptimizerKind kind) {
  return kind != OptimizerKind::sgd && kind != OptimizerKind::rmsprop;
}
bool uses_v(OptimizerKind kind) {
  return kind == OptimizerKind::rmsprop || kind == OptimizerKind::adam ||
         kind == OptimizerKind::adamw;
}

// A moment of the optimizer: it must be there when the kind has it.
Status moment(std::string_view name, const Tensor& t, bool used, const OptimiseArgs& args) {
  if (t.empty()) {
    if (!used || args.p.shape.count() == 0) return {};
    return broken("optimise", name, " is missing: this kind of update needs it");
  }
  LOOM_TRY(plain("optimise", name, t, args.p.dtype));
  LOOM_TRY(same_shape("optimise", "p", args.p, name, t));
  return apart_from("optimise", name, t,
                    {{"p", args.p}, {"g", args.g}, {"hyper", args.hyper}, {"scale", args.scale}});
}

}  // namespace

Status check(const GemmArgs& args) {
  const auto& [a, b, y, a_transposed, b_transposed, accumulate] = args;
  LOOM_TRY(plain("gemm", "a", a));
  LOOM_TRY(plain("gemm", "b", b, a.dtype));
  const int64_t m = a_transposed ? a.cols() : a.rows();
  const int64_t k = a_transposed ? a.rows() : a.cols();
  const int64_t n = b_transposed ? b.rows() : b.cols();
  const int64_t b_k = b_transposed ? b.cols() : b.rows();
  if (k != b_k) {
    return disagree("gemm", "a", a, "b", b, cat("their inner extents are ", k, " and ", b_k));
  }
  LOOM_TRY(matrix("gemm", "y", y, m, n, a.dtype));
  return apart_from("gemm", "y", y, {{"a", a}, {"b", b}});
}

Status check(const MatmulDxArgs& args) {
  const auto& [dy, w, dx, accumulate] = args;
  LOOM_TRY(plain("matmul_dx", "dy", dy));
  LOOM_TRY(packed("matmul_dx", "w", w));
  if (dy.cols() != w.rows()) {
    return disagree("matmul_dx", "dy", dy, "w", w, "dy must be as wide as w has rows");
  }
  LOOM_TRY(matrix("matmul_dx", "dx", dx, dy.rows(), w.cols(), dy.dtype));
  return apart_from("matmul_dx", "dx", dx, {{"dy", dy}, {"w", w}});
}

Status check(const ReduceColsArgs& args) {
  LOOM_TRY(plain("reduce_cols", "x", args.x));
  LOOM_TRY(rules::vector("reduce_cols", "y", args.y, args.x.cols(), args.x.dtype));
  return apart("reduce_cols", "y", args.y, "x", args.x);
}

Status check(const ScatterAddRowsArgs& args) {
  const auto& [dy, ids, table, skip] = args;
  LOOM_TRY(plain("scatter_add_rows", "dy", dy));
  LOOM_TRY(plain("scatter_add_rows", "table", table, dy.dtype));
  LOOM_TRY(rules::vector("scatter_add_rows", "ids", ids, dy.rows(), DType::i32));
  if (dy.cols() != table.cols()) {
    return disagree("scatter_add_rows", "dy", dy, "table", table,
                    "both must have the same last extent");
  }
  return apart_from("scatter_add_rows", "table", table, {{"dy", dy}, {"ids", ids}});
}

Status check(const UnaryDxArgs& args) {
  const auto& [x, dy, dx, kind, from_output] = args;
  LOOM_TRY(plain("unary_dx", "x", x));
  LOOM_TRY(plain("unary_dx", "dy", dy, x.dtype));
  LOOM_TRY(same_shape("unary_dx", "x", x, "dy", dy));
  LOOM_TRY(like("unary_dx", "dx", dx, "x", x));
  if (from_output && !has_dx_from_output(kind)) {
    return broken("unary_dx", "kind ", static_cast<int>(kind),
                  " has no derivative from its output: x must hold the input");
  }
  return in_place_or_apart("unary_dx", "dx", dx, "dy", dy);
}

Status check(const GatedDxArgs& args) {
  const auto& [gate, up, dy, dgate, dup, activation] = args;
  LOOM_TRY(plain("gated_dx", "gate", gate));
  for (const Named& in : {Named{"up", up}, Named{"dy", dy}}) {
    LOOM_TRY(plain("gated_dx", in.name, in.t, gate.dtype));
    LOOM_TRY(same_shape("gated_dx", "gate", gate, in.name, in.t));
  }
  for (const Named& out : {Named{"dgate", dgate}, Named{"dup", dup}}) {
    LOOM_TRY(like("gated_dx", out.name, out.t, "gate", gate));
    LOOM_TRY(in_place_or_apart("gated_dx", out.name, out.t, "up", up));
    LOOM_TRY(in_place_or_apart("gated_dx", out.name, out.t, "dy", dy));
  }
  return apart("gated_dx", "dgate", dgate, "dup", dup);
}

Status check(const NormDxArgs& args) {
  const auto& [x, gamma, dy, dx, scaled, eps, kind, segments] = args;
  LOOM_TRY(plain("norm_dx", "x", x));
  LOOM_TRY(plain("norm_dx", "dy", dy, x.dtype));
  LOOM_TRY(same_shape("norm_dx", "x", x, "dy", dy));
  LOOM_TRY(rules::segments("norm_dx", x, segments, eps));
  LOOM_TRY(rules::norm_parameter("norm_dx", "gamma", gamma, x, segments));
  for (const Named& out : {Named{"dx", dx}, Named{"scaled", scaled}}) {
    if (out.name == "scaled" && scaled.empty()) continue;
    LOOM_TRY(like("norm_dx", out.name, out.t, "x", x));
    LOOM_TRY(in_place_or_apart("norm_dx", out.name, out.t, "dy", dy));
    LOOM_TRY(apart("norm_dx", out.name, out.t, "gamma", gamma));
  }
  return apart("norm_dx", "dx", dx, "scaled", scaled);
}

Status check(const SoftmaxDxArgs& args) {
  const auto& [y, dy, dx, scale] = args;
  LOOM_TRY(plain("softmax_dx", "y", y));
  LOOM_TRY(plain("softmax_dx", "dy", dy, y.dtype));
  LOOM_TRY(same_shape("softmax_dx", "y", y, "dy", dy));
  LOOM_TRY(like("softmax_dx", "dx", dx, "y", y));
  return in_place_or_apart("softmax_dx", "dx", dx, "dy", dy);
}

Status check(const EntmaxArgs& args) {
  LOOM_TRY(plain("entmax", "x", args.x));
  LOOM_TRY(like("entmax", "y", args.y, "x", args.x));
  if (args.alpha > 1.0f) return {};
  return broken("entmax", "alpha is ", args.alpha, ": it must be above 1");
}

Status check(const EntmaxDxArgs& args) {
  const auto& [y, dy, dx, scale, alpha] = args;
  LOOM_TRY(plain("entmax_dx", "y", y));
  LOOM_TRY(plain("entmax_dx", "dy", dy, y.dtype));
  LOOM_TRY(same_shape("entmax_dx", "y", y, "dy", dy));
  LOOM_TRY(like("entmax_dx", "dx", dx, "y", y));
  LOOM_TRY(in_place_or_apart("entmax_dx", "dx", dx, "dy", dy));
  if (alpha > 1.0f) return {};
  return broken("entmax_dx", "alpha is ", alpha, ": it must be above 1");
}

Status check(const ConvArgs& args) {
  const auto& [x, w, bias, y, shape, activation] = args;
  LOOM_TRY(plain("conv", "x", x));
  LOOM_TRY(packed("conv", "w", w));
  LOOM_TRY(plain("conv", "y", y, x.dtype));
  LOOM_TRY(convolved("conv", "x", x, "y", y, shape));
  LOOM_TRY(filters("conv", "w", w, shape));
  if (!bias.empty()) LOOM_TRY(rules::vector("conv", "bias", bias, shape.filters, x.dtype));
  return apart_from("conv", "y", y, {{"x", x}, {"w", w}, {"bias", bias}});
}

Status check(const ConvDxArgs& args) {
  const auto& [dy, w, bias, dx, shape, activation, accumulate] = args;
  LOOM_TRY(plain("conv_dx", "dy", dy));
  LOOM_TRY(packed("conv_dx", "w", w));
  LOOM_TRY(plain("conv_dx", "dx", dx, dy.dtype));
  LOOM_TRY(convolved("conv_dx", "dx", dx, "dy", dy, shape));
  LOOM_TRY(filters("conv_dx", "w", w, shape));
  if (!bias.empty()) LOOM_TRY(rules::vector("conv_dx", "bias", bias, shape.channels, dy.dtype));
  if (accumulate && (!bias.empty() || activation != Activation::linear)) {
    return broken("conv_dx", "what accumulates takes neither bias nor activation");
  }
  return apart_from("conv_dx", "dx", dx, {{"dy", dy}, {"w", w}, {"bias", bias}});
}

Status check(const ConvDwArgs& args) {
  const auto& [x, dy, dw, shape, accumulate] = args;
  LOOM_TRY(plain("conv_dw", "x", x));
  LOOM_TRY(plain("conv_dw", "dy", dy, x.dtype));
  LOOM_TRY(plain("conv_dw", "dw", dw, x.dtype));
  LOOM_TRY(convolved("conv_dw", "x", x, "dy", dy, shape));
  LOOM_TRY(filters("conv_dw", "dw", dw, shape));
  return apart_from("conv_dw", "dw", dw, {{"x", x}, {"dy", dy}});
}

Status check(const AttendArgs& args) {
  const auto& [q, k, v, y, mask, n, heads, kv_heads, window, scale, causal, cap] = args;
  LOOM_TRY(sequences("attend", args));
  LOOM_TRY(plain("attend", "y", y, q.dtype));
  LOOM_TRY(same_shape("attend", "q", q, "y", y));
  return apart_from("attend", "y", y, {{"q", q}, {"k", k}, {"v", v}, {"mask", mask}});
}

Status check(const AttendDxArgs& args) {
  const auto& [q, k, v, dy, mask, dq, dk, dv, n, heads, kv_heads, window, scale, causal, cap] =
      args;
  LOOM_TRY(sequences("attend_dx", args));
  LOOM_TRY(plain("attend_dx", "dy", dy, q.dtype));
  LOOM_TRY(same_shape("attend_dx", "q", q, "dy", dy));
  LOOM_TRY(plain("attend_dx", "dq", dq, q.dtype));
  LOOM_TRY(same_shape("attend_dx", "q", q, "dq", dq));
  for (const Named& out : {Named{"dk", dk}, Named{"dv", dv}}) {
    LOOM_TRY(plain("attend_dx", out.name, out.t, q.dtype));
    LOOM_TRY(same_shape("attend_dx", "k", k, out.name, out.t));
  }
  for (const Named& out : {Named{"dq", dq}, Named{"dk", dk}, Named{"dv", dv}}) {
    LOOM_TRY(apart_from("attend_dx", out.name, out.t,
                        {{"q", q}, {"k", k}, {"v", v}, {"dy", dy}, {"mask", mask}}));
  }
  LOOM_TRY(apart_from("attend_dx", "dq", dq, {{"dk", dk}, {"dv", dv}}));
  return apart("attend_dx", "dk", dk, "dv", dv);
}

Status check(const LstmCellArgs& args) {
  const auto& [gates, c_before, acts, c, h, more, h_before, w] = args;
  LOOM_TRY(plain("lstm_cell", "h", h));
  const int64_t rows = h.rows(), width = h.cols();
  LOOM_TRY(matrix("lstm_cell", "gates", gates, rows, 4 * width, h.dtype));
  LOOM_TRY(matrix_or_absent("lstm_cell", "c_before", c_before, rows, width, h.dtype));
  LOOM_TRY(matrix("lstm_cell", "acts", acts, rows, 4 * width, h.dtype));
  LOOM_TRY(matrix("lstm_cell", "c", c, rows, width, h.dtype));
  LOOM_TRY(in_place_or_apart("lstm_cell", "acts", acts, "gates", gates));
  LOOM_TRY(in_place_or_apart("lstm_cell", "c", c, "c_before", c_before));
  LOOM_TRY(apart_from("lstm_cell", "acts", acts, {{"c_before", c_before}, {"c", c}}));
  LOOM_TRY(apart("lstm_cell", "c", c, "gates", gates));
  LOOM_TRY(matrix_or_absent("lstm_cell", "more", more, rows, 4 * width, h.dtype));
  LOOM_TRY(in_place_or_apart("lstm_cell", "acts", acts, "more", more));
  LOOM_TRY(apart_from("lstm_cell", "more", more, {{"c", c}, {"h", h}}));
  if (w.empty() != h_before.empty() || (!w.empty() && !more.empty())) {
    return broken("lstm_cell", "w and h_before go together, in the place of more");
  }
  if (!w.empty()) {
    LOOM_TRY(packed("lstm_cell", "w", w));
    LOOM_TRY(matrix("lstm_cell", "h_before", h_before, rows, width, h.dtype));
    if (w.rows() != 4 * width || w.cols() != width) {
      return broken("lstm_cell", "w is ", w.shape.str(), ", must be ", 4 * width, " x ", width);
    }
    LOOM_TRY(apart("lstm_cell", "acts", acts, "gates", gates));
    LOOM_TRY(apart_from("lstm_cell", "h_before", h_before, {{"acts", acts}, {"c", c}, {"h", h}}));
  }
  return apart_from("lstm_cell", "h", h,
                    {{"gates", gates}, {"c_before", c_before}, {"acts", acts}, {"c", c}});
}

Status check(const LstmCellDxArgs& args) {
  const auto& [acts, c_before, c, dh, dc_next, dgates, dc_before] = args;
  LOOM_TRY(plain("lstm_cell_dx", "c", c));
  const int64_t rows = c.rows(), width = c.cols();
  LOOM_TRY(matrix("lstm_cell_dx", "acts", acts, rows, 4 * width, c.dtype));
  LOOM_TRY(matrix("lstm_cell_dx", "dgates", dgates, rows, 4 * width, c.dtype));
  for (const Named& state : {Named{"c_before", c_before}, Named{"dh", dh},
                             Named{"dc_next", dc_next}, Named{"dc_before", dc_before}}) {
    LOOM_TRY(matrix_or_absent("lstm_cell_dx", state.name, state.t, rows, width, c.dtype));
  }
  LOOM_TRY(in_place_or_apart("lstm_cell_dx", "dgates", dgates, "acts", acts));
  LOOM_TRY(apart_from("lstm_cell_dx", "dgates", dgates,
                      {{"c_before", c_before}, {"c", c}, {"dh", dh}, {"dc_next", dc_next}}));
  if (dc_before.empty()) return {};
  LOOM_TRY(in_place_or_apart("lstm_cell_dx", "dc_before", dc_before, "dc_next", dc_next));
  return apart_from(
      "lstm_cell_dx", "dc_before", dc_before,
      {{"acts", acts}, {"c_before", c_before}, {"c", c}, {"dh", dh}, {"dgates", dgates}});
}

Status check(const GruCellArgs& args) {
  const auto& [gx, gh, h_before, acts, h] = args;
  LOOM_TRY(plain("gru_cell", "h", h));
  const int64_t rows = h.rows(), width = h.cols();
  LOOM_TRY(matrix("gru_cell", "gx", gx, rows, 3 * width, h.dtype));
  LOOM_TRY(matrix("gru_cell", "gh", gh, rows, 3 * width, h.dtype));
  LOOM_TRY(matrix_or_absent("gru_cell", "h_before", h_before, rows, width, h.dtype));
  LOOM_TRY(matrix("gru_cell", "acts", acts, rows, 3 * width, h.dtype));
  LOOM_TRY(in_place_or_apart("gru_cell", "acts", acts, "gx", gx));
  LOOM_TRY(in_place_or_apart("gru_cell", "h", h, "h_before", h_before));
  LOOM_TRY(apart_from("gru_cell", "acts", acts, {{"gh", gh}, {"h_before", h_before}}));
  return apart_from("gru_cell", "h", h, {{"gx", gx}, {"gh", gh}, {"acts", acts}});
}

Status check(const GruCellDxArgs& args) {
  const auto& [acts, gh, h_before, dh, dgx, dgh, dh_before] = args;
  LOOM_TRY(plain("gru_cell_dx", "dh", dh));
  const int64_t rows = dh.rows(), width = dh.cols();
  for (const Named& wide :
       {Named{"acts", acts}, Named{"gh", gh}, Named{"dgx", dgx}, Named{"dgh", dgh}}) {
    LOOM_TRY(matrix("gru_cell_dx", wide.name, wide.t, rows, 3 * width, dh.dtype));
  }
  LOOM_TRY(matrix_or_absent("gru_cell_dx", "h_before", h_before, rows, width, dh.dtype));
  LOOM_TRY(matrix_or_absent("gru_cell_dx", "dh_before", dh_before, rows, width, dh.dtype));
  LOOM_TRY(in_place_or_apart("gru_cell_dx", "dgx", dgx, "acts", acts));
  LOOM_TRY(in_place_or_apart("gru_cell_dx", "dgh", dgh, "gh", gh));
  LOOM_TRY(apart_from("gru_cell_dx", "dgx", dgx, {{"gh", gh}, {"h_before", h_before}, {"dh", dh}}));
  LOOM_TRY(apart_from("gru_cell_dx", "dgh", dgh,
                      {{"acts", acts}, {"h_before", h_before}, {"dh", dh}, {"dgx", dgx}}));
  if (dh_before.empty()) return {};
  LOOM_TRY(in_place_or_apart("gru_cell_dx", "dh_before", dh_before, "dh", dh));
  return apart_from(
      "gru_cell_dx", "dh_before", dh_before,
      {{"acts", acts}, {"gh", gh}, {"h_before", h_before}, {"dgx", dgx}, {"dgh", dgh}});
}

Status check(const SquaredDistanceArgs& args) {
  const auto& [x, c, y] = args;
  LOOM_TRY(plain("squared_distance", "x", x));
  LOOM_TRY(packed("squared_distance", "c", c));
  if (x.cols() != c.cols()) {
    return disagree("squared_distance", "x", x, "c", c, "both must have the same last extent");
  }
  LOOM_TRY(matrix("squared_distance", "y", y, x.rows(), c.rows(), x.dtype));
  return apart_from("squared_distance", "y", y, {{"x", x}, {"c", c}});
}

Status check(const RandomArgs& args) {
  LOOM_TRY(plain("random", "y", args.y));
  if (args.step.empty()) return {};
  LOOM_TRY(rules::vector("random", "step", args.step, 1, args.y.dtype));
  return apart("random", "y", args.y, "step", args.step);
}

Status check(const LossArgs& args) {
  const auto& [pred, target, weight, row_loss, dpred, kind, delta, smoothing] = args;
  LOOM_TRY(plain("loss", "pred", pred));
  if (target.dtype == DType::i32 && kind == LossKind::softmax_ce) {
    LOOM_TRY(rules::vector("loss", "target", target, pred.rows(), DType::i32));
  } else {
    LOOM_TRY(plain("loss", "target", target, pred.dtype));
    LOOM_TRY(same_shape("loss", "pred", pred, "target", target));
  }
  if (!weight.empty()) LOOM_TRY(rules::vector("loss", "weight", weight, pred.rows(), pred.dtype));
  if (row_loss.empty() && dpred.empty()) {
    return broken("loss", "row_loss and dpred are both empty: give one of them");
  }
  if (!row_loss.empty()) {
    LOOM_TRY(rules::vector("loss", "row_loss", row_loss, pred.rows(), pred.dtype));
  }
  if (pred.cols() == 0) return broken("loss", "pred ", pred.shape.str(), " has empty rows");
  if (!(delta > 0.0f)) return broken("loss", "delta is ", delta, ": it must be positive");
  if (!(smoothing >= 0.0f && smoothing <= 1.0f)) {
    return broken("loss", "smoothing is ", smoothing, ": it must lie in [0, 1]");
  }
  LOOM_TRY(apart_from("loss", "row_loss", row_loss,
                      {{"pred", pred}, {"target", target}, {"weight", weight}, {"dpred", dpred}}));
  if (dpred.empty()) return {};
  LOOM_TRY(like("loss", "dpred", dpred, "pred", pred));
  return apart_from("loss", "dpred", dpred, {{"target", target}, {"weight", weight}});
}

Status check(const OptimiseArgs& args) {
  const auto& [p, g, m, v, hyper, scale, kind, beta1, beta2, eps, decay, rows] = args;
  LOOM_TRY(plain("optimise", "p", p));
  if (rows.empty()) {
    LOOM_TRY(plain("optimise", "g", g, p.dtype));
    LOOM_TRY(same_shape("optimise", "p", p, "g", g));
  } else {
    LOOM_TRY(matrix("optimise", "g", g, rows.shape.count(), p.cols(), p.dtype));
  }
  LOOM_TRY(rules::rows("optimise", rows, "p", p));
  LOOM_TRY(rules::rows("optimise", rows, "m", m));
  LOOM_TRY(rules::rows("optimise", rows, "v", v));
  LOOM_TRY(rules::vector("optimise", "hyper", hyper, 4, p.dtype));
  if (!scale.empty()) LOOM_TRY(rules::vector("optimise", "scale", scale, 1, p.dtype));
  LOOM_TRY(moment("m", m, uses_m(kind), args));
  LOOM_TRY(moment("v", v, uses_v(kind), args));
  LOOM_TRY(apart("optimise", "m", m, "v", v));
  return apart_from("optimise", "p", p, {{"g", g}, {"hyper", hyper}, {"scale", scale}});
}

}  // namespace loom::core
