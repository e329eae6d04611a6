// Checks and gradient rules of recurrences along a sequence. products.cpp describes the layout of a
// check.
#include "ops/check_rules.hpp"
#include "ops/checks.hpp"
#include "ops/gradients/gradient_rules.hpp"
#include "ops/gradients/gradient_support.hpp"

namespace loom::core {

using Target = Differentiator::Target;

namespace {

using rules::apart_from;
using rules::matrix;
using rules::matrix_or_absent;
using rules::op_error;
using rules::plain;

Status vector_or_absent(std::string_view op, std::string_view name, const Tensor& t, int64_t count,
                        DType dtype) {
  return t.empty() ? Status{} : rules::vector(op, name, t, count, dtype);
}

Status runs(std::string_view op, const Tensor& x, int64_t sequences) {
  if (sequences >= 1 && x.rows() % sequences == 0) return {};
  return op_error(op, x.rows(), " rows do not form ", sequences, " equal sequences");
}

// state [any, width], or [sequences, width] without an order.
Status memory(std::string_view op, const Tensor& x, const Tensor& state, const Tensor& order,
              int64_t width, int64_t sequences) {
  LOOM_TRY(runs(op, x, sequences));
  if (!state.empty()) {
    const int64_t rows = order.empty() ? sequences : state.rows();
    LOOM_TRY(matrix(op, "state", state, rows, width, x.dtype));
  }
  if (order.empty()) return {};
  if (state.empty() && width > 0) return op_error(op, "rows with an order need a state");
  return matrix(op, "order", order, x.rows(), 3, DType::i32);
}

Status kernel(std::string_view op, const Tensor& x, const Tensor& w) {
  LOOM_TRY(rules::vector(op, "w", w, w.shape.count(), x.dtype));
  const int64_t channels = x.cols(), count = w.shape.count();
  if (channels > 0 && count > 0 && count % channels == 0 &&
      count / channels <= CausalConvArgs::kMaxKernel) {
    return {};
  }
  return op_error(op, "w has ", count, " values, must be ", channels, " times 1 to ",
                  CausalConvArgs::kMaxKernel);
}

// The operands that a scan and its gradients have in common.
template <class Args>
Status scan_operands(std::string_view op, const Args& a) {
  LOOM_TRY(plain(op, "x", a.x));
  LOOM_TRY(runs(op, a.x, a.sequences));
  LOOM_TRY(plain(op, "dt", a.dt, a.x.dtype));
  const int64_t heads = a.dt.cols();
  if (a.dt.rows() != a.x.rows() || heads == 0 || a.x.cols() % heads != 0) {
    return rules::disagree(op, "x", a.x, "dt", a.dt,
                           "dt has one column for each head, and heads have equally many channels");
  }
  LOOM_TRY(plain(op, "b", a.b, a.x.dtype));
  LOOM_TRY(matrix(op, "c", a.c, a.b.rows(), a.b.cols(), a.x.dtype));
  if (a.groups < 1 || heads % a.groups != 0 || a.b.cols() % a.groups != 0 ||
      a.b.rows() != a.x.rows() || a.numbers() < 1 || a.numbers() > SelectiveScanArgs::kMaxState) {
    return op_error(op, "b ", a.b.shape.str(), " must have the rows of x, and 1 to ",
                    SelectiveScanArgs::kMaxState, " numbers for each of ", a.groups,
                    " groups of heads");
  }
  const int64_t rates = a.a.shape.count() == heads ? heads : heads * a.numbers();
  return rules::vector(op, "a", a.a, rates, a.x.dtype);
}

}  // namespace

Status check(const CausalConvArgs& args) {
  const auto& [x, w, bias, state, order, y, sequences] = args;
  LOOM_TRY(plain("causal_conv", "x", x));
  LOOM_TRY(kernel("causal_conv", x, w));
  LOOM_TRY(vector_or_absent("causal_conv", "bias", bias, x.cols(), x.dtype));
  LOOM_TRY(memory("causal_conv", x, state, order, w.shape.count() - x.cols(), sequences));
  LOOM_TRY(matrix("causal_conv", "y", y, x.rows(), x.cols(), x.dtype));
  LOOM_TRY(apart_from("causal_conv", "state", state, {{"x", x}, {"w", w}, {"bias", bias}}));
  return apart_from("causal_conv", "y", y,
                    {{"x", x}, {"w", w}, {"bias", bias}, {"state", state}, {"order", order}});
}

Status gradient_rule(Differentiator& d, const CausalConvArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  if (!a.bias.empty()) {
    LOOM_ASSIGN(const Target bias, d.gradient_target(a.bias, true));
    if (!bias.out.empty()) LOOM_TRY(d.ops().reduce_cols({dy, bias.out, bias.accumulate}));
  }
  LOOM_ASSIGN(const Target x, d.gradient_target(a.x, true));
  LOOM_ASSIGN(const Target w, d.gradient_target(a.w, true));
  if (x.out.empty() && w.out.empty()) return {};
  return d.ops().causal_conv_dx(
      {dy, a.x, a.w, x.out, w.out, a.sequences, x.accumulate, w.accumulate});
}

Status check(const CausalConvDxArgs& args) {
  const auto& [dy, x, w, dx, dw, sequences, accumulate_dx, accumulate_dw] = args;
  LOOM_TRY(plain("causal_conv_dx", "x", x));
  LOOM_TRY(kernel("causal_conv_dx", x, w));
  LOOM_TRY(runs("causal_conv_dx", x, sequences));
  LOOM_TRY(matrix("causal_conv_dx", "dy", dy, x.rows(), x.cols(), x.dtype));
  LOOM_TRY(matrix_or_absent("causal_conv_dx", "dx", dx, x.rows(), x.cols(), x.dtype));
  LOOM_TRY(vector_or_absent("causal_conv_dx", "dw", dw, w.shape.count(), x.dtype));
  LOOM_TRY(apart_from("causal_conv_dx", "dx", dx, {{"dy", dy}, {"x", x}, {"w", w}, {"dw", dw}}));
  return apart_from("causal_conv_dx", "dw", dw, {{"dy", dy}, {"x", x}, {"w", w}});
}

Status check(const SelectiveScanArgs& args) {
  const auto& [x, dt, a, b, c, d, state, order, y, groups, sequences] = args;
  LOOM_TRY(scan_operands("selective_scan", args));
  LOOM_TRY(vector_or_absent("selective_scan", "d", d, dt.cols(), x.dtype));
  LOOM_TRY(memory("selective_scan", x, state, order, x.cols() * args.numbers(), sequences));
  LOOM_TRY(matrix("selective_scan", "y", y, x.rows(), x.cols(), x.dtype));
  LOOM_TRY(apart_from("selective_scan", "state", state,
                      {{"x", x}, {"dt", dt}, {"a", a}, {"b", b}, {"c", c}, {"d", d}}));
  return apart_from("selective_scan", "y", y,
                    {{"x", x},
                     {"dt", dt},
                     {"a", a},
                     {"b", b},
                     {"c", c},
                     {"d", d},
                     {"state", state},
                     {"order", order}});
}

Status gradient_rule(Differentiator& d, const SelectiveScanArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Target x, d.gradient_target(a.x));
  LOOM_ASSIGN(const Target dt, d.gradient_target(a.dt));
  LOOM_ASSIGN(const Target rate, d.gradient_target(a.a));
  Target through;
  if (!a.d.empty()) {
    LOOM_ASSIGN(through, d.gradient_target(a.d));
  }
  if (!x.out.empty() || !dt.out.empty() || !rate.out.empty() || !through.out.empty()) {
    LOOM_TRY(d.ops().selective_scan_dx({dy, a.x, a.dt, a.a, a.b, a.c, a.d, x.out, dt.out, rate.out,
                                        through.out, a.groups, a.sequences}));
  }
  LOOM_TRY(d.accumulate(x));
  LOOM_TRY(d.accumulate(dt));
  LOOM_TRY(d.accumulate(rate));
  LOOM_TRY(d.accumulate(through));
  LOOM_ASSIGN(const Target b, d.gradient_target(a.b));
  LOOM_ASSIGN(const Target c, d.gradient_target(a.c));
  if (b.out.empty() && c.out.empty()) return {};
  LOOM_TRY(d.ops().selective_scan_db(
      {dy, a.x, a.dt, a.a, a.b, a.c, b.out, c.out, a.groups, a.sequences}));
  LOOM_TRY(d.accumulate(b));
  return d.accumulate(c);
}

Status check(const SelectiveScanDxArgs& args) {
  const auto& [dy, x, dt, a, b, c, d, dx, ddt, da, dd, groups, sequences] = args;
  constexpr std::string_view kOp = "selective_scan_dx";
  LOOM_TRY(scan_operands(kOp, args));
  LOOM_TRY(matrix(kOp, "dy", dy, x.rows(), x.cols(), x.dtype));
  LOOM_TRY(vector_or_absent(kOp, "d", d, dt.cols(), x.dtype));
  LOOM_TRY(matrix_or_absent(kOp, "dx", dx, x.rows(), x.cols(), x.dtype));
  LOOM_TRY(matrix_or_absent(kOp, "ddt", ddt, dt.rows(), dt.cols(), x.dtype));
  LOOM_TRY(vector_or_absent(kOp, "da", da, a.shape.count(), x.dtype));
  LOOM_TRY(vector_or_absent(kOp, "dd", dd, dt.cols(), x.dtype));
  const std::initializer_list<rules::Named> inputs = {{"dy", dy}, {"x", x}, {"dt", dt}, {"a", a},
                                                      {"b", b},   {"c", c}, {"d", d}};
  LOOM_TRY(apart_from(kOp, "dx", dx, inputs));
  LOOM_TRY(apart_from(kOp, "ddt", ddt, inputs));
  LOOM_TRY(apart_from(kOp, "da", da, inputs));
  LOOM_TRY(apart_from(kOp, "dd", dd, inputs));
  LOOM_TRY(apart_from(kOp, "dx", dx, {{"ddt", ddt}, {"da", da}, {"dd", dd}}));
  LOOM_TRY(apart_from(kOp, "ddt", ddt, {{"da", da}, {"dd", dd}}));
  return apart_from(kOp, "da", da, {{"dd", dd}});
}

Status check(const SelectiveScanDbArgs& args) {
  const auto& [dy, x, dt, a, b, c, db, dc, groups, sequences] = args;
  constexpr std::string_view kOp = "selective_scan_db";
  LOOM_TRY(scan_operands(kOp, args));
  LOOM_TRY(matrix(kOp, "dy", dy, x.rows(), x.cols(), x.dtype));
  LOOM_TRY(matrix_or_absent(kOp, "db", db, b.rows(), b.cols(), x.dtype));
  LOOM_TRY(matrix_or_absent(kOp, "dc", dc, b.rows(), b.cols(), x.dtype));
  const std::initializer_list<rules::Named> inputs = {{"dy", dy}, {"x", x}, {"dt", dt},
                                                      {"a", a},   {"b", b}, {"c", c}};
  LOOM_TRY(apart_from(kOp, "db", db, inputs));
  LOOM_TRY(apart_from(kOp, "dc", dc, inputs));
  return apart_from(kOp, "db", db, {{"dc", dc}});
}

}  // namespace loom::core
