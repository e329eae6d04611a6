// Checks of losses and updates, which have no gradients. products.cpp describes the layout of a
// check.
#include "ops/check_rules.hpp"
#include "ops/checks.hpp"

namespace loom::core {

namespace {

using rules::apart;
using rules::apart_from;
using rules::like;
using rules::matrix;
using rules::op_error;
using rules::plain;
using rules::same_shape;

// A moment of the optimizer: it must exist if the kind uses it.
Status moment(std::string_view name, const Tensor& t, bool used, const OptimizeArgs& args) {
  if (t.empty()) {
    if (!used || args.p.shape.count() == 0) return {};
    return op_error("optimize", name, " is missing: this kind of update needs it");
  }
  LOOM_TRY(plain("optimize", name, t, args.p.dtype));
  LOOM_TRY(same_shape("optimize", "p", args.p, name, t));
  return apart_from("optimize", name, t,
                    {{"p", args.p}, {"g", args.g}, {"hyper", args.hyper}, {"scale", args.scale}});
}

}  // namespace

Status check(const LossArgs& args) {
  const auto& [pred, target, weight, row_loss, dpred, kind, delta, smoothing, alpha] = args;
  LOOM_TRY(plain("loss", "pred", pred));
  if (target.dtype == DType::i32 && kind == LossKind::softmax_ce) {
    LOOM_TRY(rules::vector("loss", "target", target, pred.rows(), DType::i32));
  } else {
    LOOM_TRY(plain("loss", "target", target, pred.dtype));
    LOOM_TRY(same_shape("loss", "pred", pred, "target", target));
  }
  if (!weight.empty()) LOOM_TRY(rules::vector("loss", "weight", weight, pred.rows(), pred.dtype));
  if (row_loss.empty() && dpred.empty()) {
    return op_error("loss", "row_loss and dpred are both empty: give one of them");
  }
  if (!row_loss.empty()) {
    LOOM_TRY(rules::vector("loss", "row_loss", row_loss, pred.rows(), pred.dtype));
  }
  if (pred.cols() == 0) return op_error("loss", "pred ", pred.shape.str(), " has empty rows");
  if (!(delta > 0.0f) && kind != LossKind::focal)
    return op_error("loss", "delta is ", delta, ": it must be positive");
  if (!(delta >= 0.0f)) return op_error("loss", "delta is ", delta, ": it must not be negative");
  if (kind == LossKind::quantile && !(delta < 1.0f)) {
    return op_error("loss", "delta is ", delta, ": a quantile must be between 0 and 1");
  }
  if (!(alpha <= 1.0f)) return op_error("loss", "alpha is ", alpha, ": it must be at most 1");
  if (!(smoothing >= 0.0f && smoothing <= 1.0f)) {
    return op_error("loss", "smoothing is ", smoothing, ": it must be in [0, 1]");
  }
  LOOM_TRY(apart_from("loss", "row_loss", row_loss,
                      {{"pred", pred}, {"target", target}, {"weight", weight}, {"dpred", dpred}}));
  if (dpred.empty()) return {};
  LOOM_TRY(like("loss", "dpred", dpred, "pred", pred));
  return apart_from("loss", "dpred", dpred, {{"target", target}, {"weight", weight}});
}

Status check(const OptimizeArgs& args) {
  const auto& [p, g, m, v, hyper, scale, kind, beta1, beta2, eps, decay, rows] = args;
  LOOM_TRY(plain("optimize", "p", p));
  if (rows.empty()) {
    LOOM_TRY(plain("optimize", "g", g, p.dtype));
    LOOM_TRY(same_shape("optimize", "p", p, "g", g));
  } else {
    LOOM_TRY(matrix("optimize", "g", g, rows.shape.count(), p.cols(), p.dtype));
  }
  LOOM_TRY(rules::rows("optimize", rows, "p", p));
  LOOM_TRY(rules::rows("optimize", rows, "m", m));
  LOOM_TRY(rules::rows("optimize", rows, "v", v));
  LOOM_TRY(rules::vector("optimize", "hyper", hyper, 4, p.dtype));
  if (!scale.empty()) LOOM_TRY(rules::vector("optimize", "scale", scale, 1, p.dtype));
  LOOM_TRY(moment("m", m, keeps_m(kind), args));
  LOOM_TRY(moment("v", v, keeps_v(kind), args));
  LOOM_TRY(apart("optimize", "m", m, "v", v));
  return apart_from("optimize", "p", p, {{"g", g}, {"hyper", hyper}, {"scale", scale}});
}

}  // namespace loom::core
