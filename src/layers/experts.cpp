// Experts: a sparse mixture of gated MLPs (Shazeer et al., "Outrageously large neural networks",
// 2017; Fedus et al., "Switch transformers", 2021; DeepSeek-AI, "DeepSeek-V3", 2024).
// docs/decisions/0116 has the design.
//   s = softmax(Wr x + br) or sigmoid(Wr x + br)
//   w = s of the chosen experts, divided by their sum if they are normalized, times the scale
//   y = sum of w_e (Wd_e (act(Wg_e x + bg_e) * (Wu_e x + bu_e)) + bd_e) over the chosen experts
// limit, gate_scale t and up_offset o give act(t g) / t * (u + o) with limited g and u (gpt-oss).
// sparsemixer (Liu et al., "Sparse backpropagation for MoE training", 2023) has two experts with
//   w = 1 / sum of exp(l_j - l) over the j with (l - l_j) / max(|l_j|, l) <= 2 jitter,
// the second without the first. The limits of these sums have no gradient.
// The experts with the largest s + choice_bias are chosen. The sum has them in this order, then the
// shared expert.
// expert_gate, expert_up [experts inner, width] and expert_down [experts width, inner] have the
// matrices of the experts as runs of rows. A row of y depends on the same row of x alone, with the
// same bits in any batch.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "ops/activation.hpp"

namespace loom::core {
namespace {

using namespace fields::experts;

// The parameters that a layer has, in the order of params(); -1 means absent.
struct Indices {
  int router = 0, gate = 1, up = 2, down = 3;
  int gate_bias = -1, up_bias = -1, down_bias = -1, router_bias = -1, choice_bias = -1;
  int shared_gate = -1, shared_up = -1, shared_down = -1, shared_router = -1;

  explicit Indices(const LayerConfig& c) {
    int next = 4;
    const auto add = [&](bool present, std::initializer_list<int*> all) {
      for (int* i : all) *i = present ? next++ : -1;
    };
    add(c.flag(kBias), {&gate_bias, &up_bias, &down_bias});
    add(c.flag(kRouterBias), {&router_bias});
    add(c.flag(kChoiceBias), {&choice_bias});
    add(c.integer(kSharedInner) > 0, {&shared_gate, &shared_up, &shared_down});
    add(c.integer(kSharedInner) > 0 && c.flag(kSharedGate), {&shared_router});
  }
};

// The matrices of the experts [experts out, in], with Glorot's bounds for one of them.
ParamSpec expert_matrix(std::string_view name, int64_t experts, int64_t out, int64_t in) {
  ParamSpec spec{name, Shape{experts * out, in}, Init::fan_in};
  spec.factor = __builtin_sqrt(6.0 * static_cast<double>(in) / static_cast<double>(in + out));
  return spec;
}

void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  const int64_t width = c.integer(kWidth), inner = c.integer(kInner);
  const int64_t experts = c.integer(kExperts), shared = c.integer(kSharedInner);
  out.push_back(product_weight("router", Shape{experts, width}));
  out.push_back(expert_matrix("expert_gate", experts, inner, width));
  out.push_back(expert_matrix("expert_up", experts, inner, width));
  out.push_back(expert_matrix("expert_down", experts, width, inner));
  if (c.flag(kBias)) {
    out.push_back({"expert_gate_bias", Shape{experts * inner}});
    out.push_back({"expert_up_bias", Shape{experts * inner}});
    out.push_back({"expert_down_bias", Shape{experts * width}});
  }
  if (c.flag(kRouterBias)) out.push_back({"router_bias", Shape{experts}});
  if (c.flag(kChoiceBias)) out.push_back({"choice_bias", Shape{experts}, Init::zeros, false});
  if (shared == 0) return;
  out.push_back(product_weight("shared_gate", Shape{shared, width}));
  out.push_back(product_weight("shared_up", Shape{shared, width}));
  out.push_back(product_weight("shared_down", Shape{width, shared}));
  if (c.flag(kSharedGate)) out.push_back(product_weight("shared_router", Shape{1, width}));
}

Status check_groups(const LayerConfig& c) {
  const int64_t experts = c.integer(kExperts), chosen = c.integer(kChosen);
  const int64_t groups = c.integer(kGroups), best = c.integer(kGroupBest);
  if (experts % groups != 0)
    return invalid(cat("Experts: ", experts, " experts do not form ", groups, " equal groups"));
  if (c.integer(kChosenGroups) > groups) {
    return invalid(cat("Experts: ", c.integer(kChosenGroups), " groups are chosen from ", groups));
  }
  const int64_t eligible = experts / groups * c.integer(kChosenGroups);
  if (chosen > eligible)
    return invalid(cat("Experts: ", chosen, " experts are chosen from ", eligible));
  if (groups > 1 && best > experts / groups) {
    return invalid(
        cat("Experts: group_best is ", best, ", but a group has ", experts / groups, " experts"));
  }
  return {};
}

Status check_score(const LayerConfig& c) {
  const std::string_view score = c.text(kScore);
  if (score == "sparsemixer" && c.integer(kChosen) != 2)
    return invalid(cat("Experts: sparsemixer chooses 2 experts, not ", c.integer(kChosen)));
  if (c.flag(kScaleInputs) && c.integer(kChosen) != 1) {
    return invalid(
        cat("Experts: scale_inputs needs one chosen expert, there are ", c.integer(kChosen)));
  }
  if (score == "softmax" || score == "sigmoid" || score == "sparsemixer") return {};
  return invalid(cat("Experts: unknown score '", printable(score),
                     "'; known are softmax, sigmoid, sparsemixer"));
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  if (in.rank() == 0 || in.last() != c.integer(kWidth)) {
    return invalid(cat("Experts: input ", in.str(), " must end in ", c.integer(kWidth)));
  }
  LOOM_TRY(parse_activation(c.text(kActivation)));
  LOOM_TRY(check_score(c));
  LOOM_TRY(check_groups(c));
  return in;
}

// The recording of one pass over the rows x [R, width] of an input.
struct Mixture {
  ForwardCall& call;
  const LayerConfig& c;
  Indices at;
  Activation activation;
  Tensor x;
  int64_t rows, pairs;
  // The order of the pairs by expert (ops/args/experts.hpp).
  Tensor starts, row_of, expert_of, positions;

  Tensor param(int i) const { return i < 0 ? Tensor{} : call.param(static_cast<size_t>(i)); }

  Result<Tensor> binary(const Tensor& a, const Tensor& b, BinaryKind kind) const {
    LOOM_ASSIGN(const Tensor y, call.tensor(Shape{a.rows(), a.cols()}));
    LOOM_TRY(call.ops().binary({a, b, y, kind}));
    return y;
  }
  Result<Tensor> product(const Tensor& a, int weight, int bias = -1) const {
    const Tensor w = param(weight);
    LOOM_ASSIGN(const Tensor y, call.tensor(Shape{a.rows(), w.rows()}));
    LOOM_TRY(call.product(static_cast<size_t>(weight), {a, {}, param(bias), y}));
    return y;
  }
  Result<Tensor> gathered(const Tensor& table, const Tensor& ids) const {
    LOOM_ASSIGN(const Tensor y, call.tensor(Shape{ids.shape.count(), table.cols()}));
    LOOM_TRY(call.ops().gather_rows({table, ids, y}));
    return y;
  }
  Result<Tensor> unary(const Tensor& a, UnaryKind kind) const {
    LOOM_ASSIGN(const Tensor y, call.like(a));
    LOOM_TRY(call.ops().unary({a, y, kind}));
    return y;
  }
  // a op a number.
  Result<Tensor> with(const Tensor& a, double number, BinaryKind kind) const {
    LOOM_ASSIGN(const Tensor b, call.constant(static_cast<float>(number)));
    return binary(a, b, kind);
  }

  Result<Tensor> gated(Tensor gate, Tensor up) const;
  Result<Tensor> scores() const;
  Result<Tensor> near_share(const Tensor& logits, const Tensor& own, const Tensor& first) const;
  Result<Tensor> sparsemixer(const Tensor& logits, const Tensor& own) const;
  Result<Tensor> weights();
  Result<Tensor> expert_product(const Tensor& a, int weight, int bias, int64_t width) const;
  Result<Tensor> outputs(const Tensor& from) const;
  Result<Tensor> shared() const;
  Status sum(const Tensor& parts, const Tensor& y) const;
};

Result<Tensor> Mixture::gated(Tensor gate, Tensor up) const {
  const double limit = c.real(kLimit), scale = c.real(kGateScale);
  if (limit > 0) {
    LOOM_ASSIGN(gate, with(gate, limit, BinaryKind::min));
    LOOM_ASSIGN(up, with(up, limit, BinaryKind::min));
    LOOM_ASSIGN(up, with(up, -limit, BinaryKind::max));
  }
  if (c.real(kUpOffset) != 0) {
    LOOM_ASSIGN(up, with(up, c.real(kUpOffset), BinaryKind::add));
  }
  if (scale != 1) {
    LOOM_ASSIGN(gate, with(gate, scale, BinaryKind::mul));
    LOOM_ASSIGN(up, with(up, 1 / scale, BinaryKind::mul));
  }
  LOOM_ASSIGN(const Tensor y, call.like(gate));
  LOOM_TRY(call.ops().gated({gate, up, y, activation}));
  return y;
}

// [R, experts]; of sparsemixer the logits.
Result<Tensor> Mixture::scores() const {
  LOOM_ASSIGN(const Tensor logits, product(x, at.router, at.router_bias));
  if (c.text(kScore) == "sparsemixer") return logits;
  LOOM_ASSIGN(const Tensor y, call.like(logits));
  if (c.text(kScore) == "sigmoid") {
    LOOM_TRY(call.ops().unary({logits, y, UnaryKind::sigmoid}));
  } else {
    LOOM_TRY(call.ops().softmax({logits, y}));
  }
  return y;
}

// [R, 1]: the softmax of the logits `own` [R, 1] over the experts near them. first: the logits of
// an expert that does not count, or empty.
Result<Tensor> Mixture::near_share(const Tensor& logits, const Tensor& own,
                                   const Tensor& first) const {
  LOOM_ASSIGN(const Tensor above, binary(logits, own, BinaryKind::sub));
  LOOM_ASSIGN(const Tensor sizes, unary(logits, UnaryKind::abs));
  LOOM_ASSIGN(const Tensor larger, binary(sizes, own, BinaryKind::max));
  LOOM_ASSIGN(const Tensor ratio, binary(above, larger, BinaryKind::div));
  LOOM_ASSIGN(const Tensor slack, with(ratio, 2 * c.real(kJitter), BinaryKind::add));
  LOOM_ASSIGN(Tensor counted, unary(slack, UnaryKind::step));
  if (!first.empty()) {
    LOOM_ASSIGN(const Tensor below, unary(above, UnaryKind::neg));
    LOOM_ASSIGN(const Tensor eligible, unary(below, UnaryKind::step));
    LOOM_ASSIGN(counted, binary(counted, eligible, BinaryKind::mul));
  }
  LOOM_ASSIGN(const Tensor capped, with(above, 0, BinaryKind::min));
  LOOM_ASSIGN(const Tensor powers, unary(capped, UnaryKind::exp));
  LOOM_ASSIGN(const Tensor terms, binary(powers, counted, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor sums, call.tensor(Shape{rows}));
  LOOM_TRY(call.ops().reduce({terms, sums, ReduceKind::sum}));
  Tensor total = as_matrix(sums, rows, 1);
  if (!first.empty()) {  // the first counted if both are equal
    LOOM_ASSIGN(const Tensor between, binary(own, first, BinaryKind::sub));
    LOOM_ASSIGN(const Tensor equal, unary(between, UnaryKind::step));
    LOOM_ASSIGN(total, binary(total, equal, BinaryKind::sub));
  }
  return unary(total, UnaryKind::reciprocal);
}

// [R, 2], from the logits of the chosen experts [R, 2].
Result<Tensor> Mixture::sparsemixer(const Tensor& logits, const Tensor& own) const {
  Tensor columns[2];
  for (int64_t k = 0; k < 2; ++k) {
    LOOM_ASSIGN(columns[k], call.tensor(Shape{rows, 1}));
    LOOM_TRY(call.ops().unary({slice_cols(own, k, 1), columns[k]}));
  }
  LOOM_ASSIGN(const Tensor y, call.tensor(Shape{rows, 2}));
  LOOM_ASSIGN(const Tensor best, near_share(logits, columns[0], {}));
  LOOM_TRY(call.ops().unary({best, slice_cols(y, 0, 1)}));
  LOOM_ASSIGN(const Tensor second, near_share(logits, columns[1], columns[0]));
  LOOM_TRY(call.ops().unary({second, slice_cols(y, 1, 1)}));
  return y;
}

// Chooses the experts, and orders the pairs by expert. Returns the weight of each pair, [P, 1].
Result<Tensor> Mixture::weights() {
  const int64_t experts = c.integer(kExperts), chosen = c.integer(kChosen);
  LOOM_ASSIGN(const Tensor all, scores());
  LOOM_ASSIGN(const Tensor ids, call.ids(Shape{rows, chosen}));
  LOOM_ASSIGN(Tensor slots, call.ids(Shape{rows, chosen}));
  TopExpertsArgs top{all, param(at.choice_bias), ids, slots};
  top.groups = c.integer(kGroups);
  top.chosen_groups = c.integer(kChosenGroups);
  if (top.groups > 1) top.group_best = c.integer(kGroupBest);
  LOOM_TRY(call.ops().top_experts(top));
  LOOM_ASSIGN(starts, call.ids(Shape{experts + 1}));
  LOOM_ASSIGN(row_of, call.ids(Shape{pairs}));
  LOOM_ASSIGN(expert_of, call.ids(Shape{pairs}));
  LOOM_ASSIGN(positions, call.ids(Shape{pairs}));
  LOOM_TRY(call.ops().group_rows({ids, starts, row_of, expert_of, positions}));

  slots.shape = Shape{pairs};
  slots.row_stride = pairs;
  LOOM_ASSIGN(Tensor w, gathered(as_matrix(all, rows * experts, 1), slots));
  if (c.text(kScore) == "sparsemixer") {
    LOOM_ASSIGN(const Tensor shares, sparsemixer(all, as_matrix(w, rows, chosen)));
    w = as_matrix(shares, pairs, 1);
  }
  if (c.flag(kNormalize)) {
    const Tensor by_row = as_matrix(w, rows, chosen);
    LOOM_ASSIGN(const Tensor sums, call.tensor(Shape{rows}));
    LOOM_TRY(call.ops().reduce({by_row, sums, ReduceKind::sum}));
    // Sigmoids may all be zero. The term has no effect on larger sums.
    LOOM_ASSIGN(const Tensor least, call.constant(1e-20f));
    LOOM_ASSIGN(const Tensor safe, binary(as_matrix(sums, rows, 1), least, BinaryKind::add));
    LOOM_ASSIGN(const Tensor shares, binary(by_row, safe, BinaryKind::div));
    w = as_matrix(shares, pairs, 1);
  }
  return c.real(kScale) == 1.0 ? Result<Tensor>(w) : with(w, c.real(kScale), BinaryKind::mul);
}

// a [P, in], by expert, with the matrices of each row's expert. width: rows of one matrix.
Result<Tensor> Mixture::expert_product(const Tensor& a, int weight, int bias, int64_t width) const {
  LOOM_ASSIGN(const Tensor y, call.tensor(Shape{pairs, width}));
  LOOM_TRY(call.ops().expert_matmul({a, starts, param(weight), y}));
  if (bias < 0) return y;
  LOOM_ASSIGN(const Tensor biases,
              gathered(as_matrix(param(bias), c.integer(kExperts), width), expert_of));
  return binary(y, biases, BinaryKind::add);
}

// The outputs of the experts, [P, width], by row and choice. from: their inputs [R, width].
Result<Tensor> Mixture::outputs(const Tensor& from) const {
  const int64_t inner = c.integer(kInner);
  LOOM_ASSIGN(const Tensor inputs, gathered(from, row_of));
  LOOM_ASSIGN(const Tensor gate, expert_product(inputs, at.gate, at.gate_bias, inner));
  LOOM_ASSIGN(const Tensor up, expert_product(inputs, at.up, at.up_bias, inner));
  LOOM_ASSIGN(const Tensor mixed, gated(gate, up));
  LOOM_ASSIGN(const Tensor down, expert_product(mixed, at.down, at.down_bias, c.integer(kWidth)));
  return gathered(down, positions);
}

Result<Tensor> Mixture::shared() const {
  LOOM_ASSIGN(const Tensor gate, product(x, at.shared_gate));
  LOOM_ASSIGN(const Tensor up, product(x, at.shared_up));
  LOOM_ASSIGN(const Tensor mixed, gated(gate, up));
  LOOM_ASSIGN(const Tensor y, product(mixed, at.shared_down));
  if (at.shared_router < 0) return y;
  LOOM_ASSIGN(const Tensor logit, product(x, at.shared_router));
  LOOM_ASSIGN(const Tensor share, unary(logit, UnaryKind::sigmoid));
  return binary(y, share, BinaryKind::mul);
}

// y [R, width] = the sum of the parts [P, width] of each row, the first choice first, and of the
// shared expert.
Status Mixture::sum(const Tensor& parts, const Tensor& y) const {
  const int64_t chosen = c.integer(kChosen), width = c.integer(kWidth);
  std::vector<Tensor> terms;
  for (int64_t j = 0; j < chosen; ++j) {
    Tensor term = slice_cols(as_matrix(parts, rows, chosen * width), j * width, width);
    terms.push_back(term);
  }
  if (at.shared_gate >= 0) {
    LOOM_ASSIGN(const Tensor term, shared());
    terms.push_back(term);
  }
  Tensor total = terms.front();
  for (size_t i = 1; i + 1 < terms.size(); ++i) {
    LOOM_ASSIGN(total, binary(total, terms[i], BinaryKind::add));
  }
  if (terms.size() == 1) return call.ops().unary({total, y, UnaryKind::linear});
  return call.ops().binary({total, terms.back(), y, BinaryKind::add});
}

Result<Tensor> forward(ForwardCall& call) {
  const LayerConfig& c = call.config();
  const Tensor& x = call.x();
  const int64_t rows = x.shape.count() / c.integer(kWidth);
  LOOM_ASSIGN(const Activation activation, parse_activation(c.text(kActivation)));
  Mixture m{call,
            c,
            Indices(c),
            activation,
            as_matrix(x, rows, c.integer(kWidth)),
            rows,
            rows * c.integer(kChosen)};
  LOOM_ASSIGN(const Tensor weights, m.weights());
  const bool before = c.flag(kScaleInputs);
  Tensor inputs = m.x;
  if (before) {
    LOOM_ASSIGN(inputs, m.binary(inputs, weights, BinaryKind::mul));
  }
  LOOM_ASSIGN(Tensor parts, m.outputs(inputs));
  if (!before) {
    LOOM_ASSIGN(parts, m.binary(parts, weights, BinaryKind::mul));
  }
  LOOM_ASSIGN(const Tensor y, call.like(x));
  LOOM_TRY(m.sum(parts, as_matrix(y, rows, c.integer(kWidth))));
  return y;
}

LayerExample example() {
  return {Shape{9},
          {{LayerKind::experts,
            {{"width", 9},
             {"inner", 14},
             {"experts", 6},
             {"chosen", 2},
             {"bias", true},
             {"router_bias", true},
             {"groups", 3},
             {"chosen_groups", 2},
             {"shared_inner", 5},
             {"shared_gate", true}}}}};
}

}  // namespace

extern const LayerDef kExperts;
const LayerDef kExperts = {.kind = LayerKind::experts,
                           .name = "Experts",
                           .fields = kFields,
                           .ragged = true,
                           .params = params,
                           .infer = infer,
                           .forward = forward,
                           .example = example};

}  // namespace loom::core
