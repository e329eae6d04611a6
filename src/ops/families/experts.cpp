// Checks and gradient rules of products with experts. products.cpp describes the layout of a check.
#include "ops/check_rules.hpp"
#include "ops/checks.hpp"
#include "ops/gradients/gradient_rules.hpp"
#include "ops/gradients/gradient_support.hpp"

namespace loom::core {

using Target = Differentiator::Target;

namespace {

using rules::apart_from;
using rules::disagree;
using rules::matrix;
using rules::op_error;
using rules::packed;
using rules::plain;

Status ids_apart(std::string_view op, std::string_view name, const Tensor& t, int64_t count,
                 std::initializer_list<rules::Named> others) {
  LOOM_TRY(rules::vector(op, name, t, count, DType::i32));
  return apart_from(op, name, t, others);
}

// starts and the rows of w: E runs of as many rows as y has columns.
Status runs(std::string_view op, const Tensor& starts, std::string_view w_name, const Tensor& w,
            std::string_view y_name, const Tensor& y) {
  LOOM_TRY(rules::vector(op, "starts", starts, starts.shape.count(), DType::i32));
  const int64_t experts = starts.shape.count() - 1;
  if (experts < 1)
    return op_error(op, "starts ", starts.shape.str(),
                    " is empty: it must have one value more than experts");
  if (w.rows() == experts * y.cols()) return {};
  return disagree(op, w_name, w, y_name, y,
                  cat(experts, " experts have ", experts * y.cols(), " rows"));
}

Status groups(const TopExpertsArgs& args) {
  const int64_t experts = args.x.cols(), groups = args.groups, chosen = args.chosen_groups;
  if (groups < 1 || experts % groups != 0) {
    return op_error("top_experts", experts, " experts do not form ", groups, " equal groups");
  }
  if (chosen < 1 || chosen > groups) {
    return op_error("top_experts", "chosen_groups is ", chosen, ": it must be in [1, ", groups,
                    "]");
  }
  const int64_t length = experts / groups;
  if (args.group_best < 1 || args.group_best > length) {
    return op_error("top_experts", "group_best is ", args.group_best, ": it must be in [1, ",
                    length, "]");
  }
  if (args.ids.cols() <= chosen * length) return {};
  return op_error("top_experts", args.ids.cols(), " experts are chosen from ", chosen * length);
}

}  // namespace

Status check(const TopExpertsArgs& args) {
  LOOM_TRY(plain("top_experts", "x", args.x));
  LOOM_TRY(plain("top_experts", "ids", args.ids, DType::i32));
  LOOM_TRY(matrix("top_experts", "slots", args.slots, args.x.rows(), args.ids.cols(), DType::i32));
  if (args.ids.rows() != args.x.rows() || args.x.cols() == 0) {
    return disagree("top_experts", "x", args.x, "ids", args.ids, "both must have as many rows");
  }
  if (args.x.shape.count() > INT32_MAX)
    return op_error("top_experts", "x ", args.x.shape.str(), " has more than 2^31 - 1 values");
  if (!args.bias.empty())
    LOOM_TRY(rules::vector("top_experts", "bias", args.bias, args.x.cols(), args.x.dtype));
  LOOM_TRY(groups(args));
  LOOM_TRY(apart_from("top_experts", "ids", args.ids,
                      {{"x", args.x}, {"bias", args.bias}, {"slots", args.slots}}));
  return apart_from("top_experts", "slots", args.slots, {{"x", args.x}, {"bias", args.bias}});
}

Status check(const GroupRowsArgs& args) {
  const auto& [ids, starts, rows, experts, positions] = args;
  const int64_t pairs = ids.shape.count();
  LOOM_TRY(rules::vector("group_rows", "ids", ids, pairs, DType::i32));
  if (starts.shape.count() < 2)
    return op_error("group_rows", "starts ", starts.shape.str(), " has no room for an expert");
  LOOM_TRY(ids_apart("group_rows", "starts", starts, starts.shape.count(), {{"ids", ids}}));
  LOOM_TRY(ids_apart("group_rows", "rows", rows, pairs, {{"ids", ids}, {"starts", starts}}));
  LOOM_TRY(ids_apart("group_rows", "experts", experts, pairs,
                     {{"ids", ids}, {"starts", starts}, {"rows", rows}}));
  return ids_apart("group_rows", "positions", positions, pairs,
                   {{"ids", ids}, {"starts", starts}, {"rows", rows}, {"experts", experts}});
}

Status check(const ExpertMatmulArgs& args) {
  const auto& [x, starts, w, y, q8, use_q8] = args;
  LOOM_TRY(plain("expert_matmul", "x", x));
  LOOM_TRY(packed("expert_matmul", "w", w));
  LOOM_TRY(plain("expert_matmul", "y", y, x.dtype));
  if (x.cols() != w.cols() || x.rows() != y.rows()) {
    return disagree(
        "expert_matmul", "x", x, "w", w,
        cat("both must have the same last extent, and y ", y.shape.str(), " the rows of x"));
  }
  LOOM_TRY(runs("expert_matmul", starts, "w", w, "y", y));
  return apart_from("expert_matmul", "y", y, {{"x", x}, {"starts", starts}, {"w", w}});
}

// y = x w_e^T: dx = dy w_e, dw_e = dy_e^T x_e.
Status gradient_rule(Differentiator& d, const ExpertMatmulArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Target x, d.gradient_target(a.x, true));
  if (!x.out.empty()) LOOM_TRY(d.ops().expert_matmul_dx({dy, a.starts, a.w, x.out, x.accumulate}));
  LOOM_ASSIGN(const Target w, d.gradient_target(a.w, true));
  if (w.out.empty()) return {};
  return d.ops().expert_matmul_dw({dy, a.x, a.starts, w.out, w.accumulate});
}

Status check(const ExpertMatmulDxArgs& args) {
  const auto& [dy, starts, w, dx, accumulate] = args;
  LOOM_TRY(plain("expert_matmul_dx", "dy", dy));
  LOOM_TRY(packed("expert_matmul_dx", "w", w));
  LOOM_TRY(matrix("expert_matmul_dx", "dx", dx, dy.rows(), w.cols(), dy.dtype));
  LOOM_TRY(runs("expert_matmul_dx", starts, "w", w, "dy", dy));
  return apart_from("expert_matmul_dx", "dx", dx, {{"dy", dy}, {"starts", starts}, {"w", w}});
}

Status check(const ExpertMatmulDwArgs& args) {
  const auto& [dy, x, starts, dw, accumulate] = args;
  LOOM_TRY(plain("expert_matmul_dw", "dy", dy));
  LOOM_TRY(matrix("expert_matmul_dw", "x", x, dy.rows(), dw.cols(), dy.dtype));
  LOOM_TRY(plain("expert_matmul_dw", "dw", dw, dy.dtype));
  LOOM_TRY(runs("expert_matmul_dw", starts, "dw", dw, "dy", dy));
  return apart_from("expert_matmul_dw", "dw", dw, {{"dy", dy}, {"x", x}, {"starts", starts}});
}

}  // namespace loom::core
