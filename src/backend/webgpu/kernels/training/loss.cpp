// loss: a workgroup per row. Sums come first, then the gradient value by value; each value is
// written by the only invocation that reads it. Rows that do not count (weight 0, a class id
// outside [0, N)) run too and write zeros.
#include "backend/webgpu/kernels/training/loss.hpp"
#include "backend/webgpu/kernels/kernels.hpp"
#include "backend/webgpu/wgsl/rows.hpp"

namespace loom::core::webgpu {

constexpr std::string_view kTermsText = R"(
fn sign_of(x: f32) -> f32 { return select(select(0.0, -1.0, x < 0.0), 1.0, x > 0.0); }
fn focal_side(alpha: f32, t: f32) -> f32 {
  return select(alpha * t + (1.0 - alpha) * (1.0 - t), 1.0, alpha < 0.0);
}
fn focal_power(u: f32, gamma: f32) -> f32 {
  if (gamma == 0.0) { return 1.0; }
  return select(0.0, loom_exp(gamma * loom_log(max(u, 1.2e-38))), u > 0.0);
}
fn focal_cross(x: f32, t: f32) -> f32 {
  return (max(x, 0.0) - x * t) + log1p_unit(loom_exp(-abs(x)));
}
fn focal_value(gamma: f32, alpha: f32, x: f32, t: f32) -> f32 {
  let u = loom_sigmoid(-x) * t + loom_sigmoid(x) * (1.0 - t);
  return focal_side(alpha, t) * (focal_power(u, gamma) * focal_cross(x, t));
}
fn focal_slope(gamma: f32, alpha: f32, x: f32, t: f32) -> f32 {
  let s = loom_sigmoid(x);
  let q = loom_sigmoid(-x);
  let u = q * t + s * (1.0 - t);
  let factor = focal_power(u, gamma);
  var slope = 0.0;
  if (u > 0.0) { slope = ((gamma * factor) / u) * ((s * q) * (1.0 - (t + t))); }
  return focal_side(alpha, t) * (factor * ((1.0 - t) * s - t * q) + slope * focal_cross(x, t));
}
fn hinge_left(x: f32, t: f32) -> f32 { return select(1.0 + x, 1.0 - x, t > 0.0); }
fn loss_value(kind: u32, delta: f32, x: f32, t: f32) -> f32 {
  let d = x - t;
  switch (kind) {
    case 0u: { return d * d; }
    case 1u: { return abs(d); }
    case 2u: {
      return select(delta * (abs(d) - 0.5 * delta), (0.5 * d) * d, abs(d) <= delta);
    }
    case 8u: { return select(delta * (0.0 - d), (1.0 - delta) * d, d > 0.0); }
    case 9u: { return loom_exp(x) - t * x; }
    case 10u: {
      return (abs(d) + log1p_unit(loom_exp(-2.0 * abs(d)))) - 0.6931471805599453;
    }
    case 11u: { return max(hinge_left(x, t), 0.0); }
    default: { return (max(x, 0.0) - x * t) + log1p_unit(loom_exp(-abs(x))); }
  }
}
fn loss_slope(kind: u32, delta: f32, x: f32, t: f32) -> f32 {
  let d = x - t;
  switch (kind) {
    case 0u: { return d + d; }
    case 1u: { return sign_of(d); }
    case 2u: { return select(sign_of(d) * delta, d, abs(d) <= delta); }
    case 8u: { return select(select(0.0, -delta, d < 0.0), 1.0 - delta, d > 0.0); }
    case 9u: { return loom_exp(x) - t; }
    case 10u: { return loom_tanh(d); }
    case 11u: { return select(0.0, select(1.0, -1.0, t > 0.0), hinge_left(x, t) > 0.0); }
    default: { return (1.0 - t) * loom_sigmoid(x) - t * loom_sigmoid(-x); }
  }
}
)";
const std::string_view kLossTerms = kTermsText;

namespace kernels {
namespace {

// The row data that every kind of loss uses.
constexpr std::string_view kRow = R"(
struct Row { index: u32, weight: f32, id: i32 }
fn open_row(row: u32) -> Row {
  var r = Row(row, 1.0, 0);
  if (has_weight) { r.weight = weight_at(row); }
  if (has_ids) { r.id = ids_at(row); }
  if (r.id < 0 || r.id >= i32(p.cols)) { r.weight = 0.0; }
  return r;
}
fn pred(r: Row, c: u32) -> f32 { return pred_at(r.index * p.pred_s + c); }
fn target_value(r: Row, c: u32) -> f32 {
  if (has_ids) { return select(0.0, 1.0, i32(c) == r.id); }
  return target_at(r.index * p.target_row + c);
}
fn weighted(r: Row, v: f32) -> f32 { return select(r.weight * v, 0.0, r.weight == 0.0); }
fn put_gradient(r: Row, c: u32, v: f32) {
  if (has_dpred) { dpred_set(r.index * p.dpred_row + c, weighted(r, v)); }
}
fn put_loss(r: Row, lane: u32, v: f32) {
  if (lane == 0u) { row_loss_set(r.index, weighted(r, v)); }
}
)";

// Means of a function of pred and target (is_mean).
constexpr Kernel kMeanLoss{"loss_mean", R"(
fn run(row: u32, lane: u32) {
  let r = open_row(row);
  let count = f32(p.cols);
  var part = 0.0;
  for (var c = lane; c < p.cols; c += lanes) { 
    if (kind == 7u) {
      part += focal_value(p.delta, p.alpha, pred(r, c), target_value(r, c));
    } else {
      part += loss_value(kind, p.delta, pred(r, c), target_value(r, c));
    }
  }
  put_loss(r, lane, group_sum(lane, part) / count);
  for (var c = lane; c < p.cols; c += lanes) {
    var slope = 0.0;
    if (kind == 7u) {
      slope = focal_slope(p.delta, p.alpha, pred(r, c), target_value(r, c));
    } else {
      slope = loss_slope(kind, p.delta, pred(r, c), target_value(r, c));
    }
    put_gradient(r, c, slope / count);
  }
}
)"};

// softmax_ce, kl: through log softmax(pred)[c] = (pred[c] - largest) - log_sum. Terms with target 0
// add nothing, so a class id without smoothing has one term.
constexpr Kernel kSoftmaxLoss{"loss_softmax", R"(
fn run(row: u32, lane: u32) {
  let r = open_row(row);
  var most = -infinity();
  for (var c = lane; c < p.cols; c += lanes) { most = max(most, pred(r, c)); }
  let largest = group_max(lane, most);
  var part = 0.0;
  var target_part = 0.0;
  for (var c = lane; c < p.cols; c += lanes) {
    part += loom_exp(pred(r, c) - largest);
    if (!has_ids) { target_part += target_value(r, c); }
  }
  let sum = group_sum(lane, part);
  let log_sum = loom_log(sum);
  let keep = 1.0 - p.smoothing;
  let floor_part = p.smoothing / f32(p.cols);
  var total = 1.0;
  if (!has_ids && divergence == 0u) { total = keep * group_sum(lane, target_part) + p.smoothing; }
  var terms = 0.0;
  if (has_ids && p.smoothing == 0.0) {
    if (lane == 0u && r.weight != 0.0) { terms = (pred(r, u32(r.id)) - largest) - log_sum; }
  } else {
    for (var c = lane; c < p.cols; c += lanes) {
      var t = target_value(r, c);
      if (divergence == 0u) { t = keep * t + floor_part; }
      var term = -((pred(r, c) - largest) - log_sum);
      if (divergence != 0u) { term += loom_log(t); }
      if (t != 0.0) { terms -= t * term; }
    }
  }
  put_loss(r, lane, 0.0 - group_sum(lane, terms));
  if (!has_dpred) { return; }
  for (var c = lane; c < p.cols; c += lanes) {
    let softmax = loom_exp(pred(r, c) - largest) / sum;
    let t = target_value(r, c);
    if (divergence != 0u) {
      put_gradient(r, c, softmax - t);
    } else {
      put_gradient(r, c, softmax * total - (keep * t + floor_part));
    }
  }
}
)"};

// 1 - cos(pred, target). Norms below 1e-8 count as 1e-8. The gradient of a pred that short has no
// term along pred.
constexpr Kernel kCosineLoss{"loss_cosine", R"(
fn run(row: u32, lane: u32) {
  let r = open_row(row);
  var pp = 0.0;
  var tt = 0.0;
  var pt = 0.0;
  for (var c = lane; c < p.cols; c += lanes) {
    let x = pred(r, c);
    let t = target_value(r, c);
    pp += x * x;
    tt += t * t;
    pt += x * t;
  }
  let p_norm = sqrt(group_sum(lane, pp));
  let by_p = max(p_norm, 1e-8);
  let by_t = max(sqrt(group_sum(lane, tt)), 1e-8);
  let cosine = (group_sum(lane, pt) / by_p) / by_t;
  let pull = select(cosine, 0.0, p_norm < 1e-8);
  put_loss(r, lane, 1.0 - cosine);
  for (var c = lane; c < p.cols; c += lanes) {
    put_gradient(r, c, (pull * (pred(r, c) / by_p) - target_value(r, c) / by_t) / by_p);
  }
}
)"};

const Kernel& kernel_of(LossKind kind) {
  if (kind == LossKind::cosine) return kCosineLoss;
  return kind == LossKind::softmax_ce || kind == LossKind::kl ? kSoftmaxLoss : kMeanLoss;
}

}  // namespace

Status loss(Frame& frame, const LossArgs& args) {
  const bool by_ids = args.target.dtype == DType::i32;
  const int64_t rows = args.pred.rows(), cols = args.pred.cols();
  // bce is the default branch of the kernel.
  return Call(frame, kernel_of(args.kind))
      .text(kRow)
      .text(kLossTerms)
      .read("pred", args.pred)
      .read("target", by_ids ? Tensor{} : args.target)
      .ids("ids", by_ids ? args.target : Tensor{})
      .read("weight", args.weight)
      .write("row_loss", args.row_loss)
      .write("dpred", args.dpred)
      .value("cols", cols)
      .value("target_row", args.target.row_stride)
      .value("dpred_row", args.dpred.row_stride)
      .value("delta", args.delta)
      .value("smoothing", args.smoothing)
      .value("alpha", args.alpha)
      .constant("kind", static_cast<int64_t>(args.kind))
      .constant("divergence", int64_t{args.kind == LossKind::kl})
      .lanes(row_lanes(rows, cols))
      .rows(rows);
}

}  // namespace kernels
}  // namespace loom::core::webgpu
