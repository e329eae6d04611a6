// Checks and gradient rules of recurrent cells. products.cpp describes the layout of a check.
#include "ops/check_rules.hpp"
#include "ops/checks.hpp"
#include "ops/gradients/gradient_rules.hpp"
#include "ops/gradients/gradient_support.hpp"

namespace loom::core {

using Target = Differentiator::Target;

namespace {

using rules::apart;
using rules::apart_from;
using rules::in_place_or_apart;
using rules::matrix;
using rules::matrix_or_absent;
using rules::Named;
using rules::op_error;
using rules::packed;
using rules::plain;

}  // namespace

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
    return op_error("lstm_cell", "w and h_before go together, in the place of more");
  }
  if (!w.empty()) {
    LOOM_TRY(packed("lstm_cell", "w", w));
    LOOM_TRY(matrix("lstm_cell", "h_before", h_before, rows, width, h.dtype));
    if (w.rows() != 4 * width || w.cols() != width) {
      return op_error("lstm_cell", "w is ", w.shape.str(), ", must be ", 4 * width, " x ", width);
    }
    LOOM_TRY(apart("lstm_cell", "acts", acts, "gates", gates));
    LOOM_TRY(apart_from("lstm_cell", "h_before", h_before, {{"acts", acts}, {"c", c}, {"h", h}}));
  }
  return apart_from("lstm_cell", "h", h,
                    {{"gates", gates}, {"c_before", c_before}, {"acts", acts}, {"c", c}});
}

Status gradient_rule(Differentiator& d, const LstmCellArgs& a) {
  LstmCellDxArgs g;
  g.dh = d.of(a.h);
  g.dc_next = d.of(a.c);
  if (g.dh.empty() && g.dc_next.empty()) return {};
  LOOM_ASSIGN(const Target gates, d.gradient_target(a.gates));
  LOOM_ASSIGN(const Target before, d.gradient_target(a.c_before));
  g.acts = a.acts;
  g.c_before = a.c_before;
  g.c = a.c;
  g.dgates = gates.out.empty() ? d.fresh(a.gates.shape) : gates.out;
  g.dc_before = before.out;
  if (g.dc_before.empty()) g.dc_before = d.fresh(Shape{a.c.rows(), a.c.cols()});
  LOOM_TRY(d.ops().lstm_cell_dx(g));
  LOOM_TRY(d.accumulate(gates));
  return d.accumulate(before);
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

Status gradient_rule(Differentiator& d, const GruCellArgs& a) {
  GruCellDxArgs g;
  g.dh = d.of(a.h);
  if (g.dh.empty()) return {};
  LOOM_ASSIGN(const Target gx, d.gradient_target(a.gx));
  LOOM_ASSIGN(const Target gh, d.gradient_target(a.gh));
  LOOM_ASSIGN(const Target before, d.gradient_target(a.h_before));
  const auto or_fresh = [&](const Target& p, const Tensor& like) {
    return p.out.empty() ? d.fresh(Shape{like.rows(), like.cols()}) : p.out;
  };
  g.acts = a.acts;
  g.gh = a.gh;
  g.h_before = a.h_before;
  g.dgx = or_fresh(gx, a.gx);
  g.dgh = or_fresh(gh, a.gh);
  g.dh_before = or_fresh(before, a.h);
  LOOM_TRY(d.ops().gru_cell_dx(g));
  LOOM_TRY(d.accumulate(gx));
  LOOM_TRY(d.accumulate(gh));
  return d.accumulate(before);
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

}  // namespace loom::core
