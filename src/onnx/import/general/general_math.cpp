// Functions of values and products, the general way. See general.hpp.
#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "layers/core/fields.hpp"
#include "layers/shapes/broadcast.hpp"
#include "layers/spatial/axes.hpp"
#include "onnx/import/general/general.hpp"

namespace loom::core {
namespace {

// One number, if a constant is that.
bool single(const Constant& c) {
  return c.count() == 1 || (c.values.size() == 1 && c.count() > 0);
}

}  // namespace

GraphImport::Value GraphImport::named(const OnnxNode& n, const Value& x) {
  Value v = x;
  v.name = n.inputs.empty() ? std::string() : n.inputs[0];
  return v;
}

// f(x): inside of the layer that computes x, if that takes an activation and nothing else reads it.
Result<GraphImport::Value> GraphImport::unary(const OnnxNode& n, std::string_view function,
                                              const Value& x) {
  if (!x.name.empty() && read_once(x.name, x)) {
    GraphNode& made = nodes_[static_cast<size_t>(x.at.node)];
    const int field = field_index(made.layer, "activation");
    if (field >= 0 && parse_activation(function).ok() && made.layer.text(field) == "linear") {
      made.layer.set_text(field, std::string(function));
      made.activated = true;
      Value y = x;
      y.name.clear();
      return y;
    }
  }
  LOOM_ASSIGN(Value y, emit(n, LayerKind::unary, {{"function", std::string(function)}}, {x}));
  y.scalar = x.scalar;
  return y;
}

Result<GraphImport::Value> GraphImport::binary(const OnnxNode& n, std::string_view function,
                                               const Value& a, const Value& b) {
  LOOM_ASSIGN(Value y, emit(n, LayerKind::binary, {{"function", std::string(function)}}, {a, b}));
  y.scalar = a.scalar && b.scalar;
  return y;
}

// A single number as a value that other nodes read.
Result<GraphImport::Value> GraphImport::number(const OnnxNode& n, double x) {
  return constant_stream(n, Constant{{}, OnnxType::f32, {x}});
}

Result<GraphImport::Value> GraphImport::with_number(const OnnxNode& n, std::string_view function,
                                                    const Value& x, double y) {
  LOOM_ASSIGN(const Value c, number(n, y));
  return binary(n, function, x, c);
}

// A value as a function of another one, so that spelt-out activations are found:
// x * 0.5 * (1 + Erf(x / sqrt 2)) is a GELU.
GraphImport::Value GraphImport::as_function(const Value& x) const {
  Value v = x;
  if (v.f == nullptr) {
    v.f = expr_x();
    v.base = v.at;
  }
  return v;
}

void GraphImport::remember(Value& y, std::string_view op, const Value& a, const Value* b,
                           const double* number, bool number_first) const {
  const auto join = [&](const Value& left, const Value& right) {
    if (!(left.base == right.base)) return;
    y.f = expr_of(std::string(op), {left.f, right.f});
    y.base = left.base;
  };
  if (number != nullptr) {
    const Value x = as_function(a);
    const ExprRef c = expr_number(*number);
    y.f = number_first ? expr_of(std::string(op), {c, x.f}) : expr_of(std::string(op), {x.f, c});
    y.base = x.base;
  } else if (b == nullptr) {
    const Value x = as_function(a);
    y.f = expr_of(std::string(op), {x.f});
    y.base = x.base;
  } else {
    join(as_function(a), as_function(*b));
    Value bare_a = a, bare_b = *b;
    bare_a.f = bare_b.f = nullptr;
    if (y.f == nullptr) join(as_function(bare_a), as_function(*b));
    if (y.f == nullptr) join(as_function(a), as_function(bare_b));
  }
}

// Whether this node alone reads what that one gives.
bool GraphImport::reads_alone(const OnnxNode& n, const GraphValue& at) const {
  if (nodes_[static_cast<size_t>(at.node)].shared) return false;
  int64_t times = 0;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (!has_input(n, i)) continue;
    const Result<const Value*> v = value(n, i);
    if (!v.ok() || (*v)->is_constant() || !((*v)->at == at)) continue;
    times = std::ranges::count(n.inputs, n.inputs[i]);
    if (uses_.at(n.inputs[i]) != times) return false;
  }
  return times > 0;
}

// The activation that a function is, over its base. Where the base has become a layer with another
// activation, which is a part of this one, the layer gets this one instead.
Result<bool> GraphImport::recognized(const OnnxNode& n, Value& y) {
  if (y.f == nullptr || y.f->size < 4 || y.base.node < kGraphInput) return false;
  const Recognized r = recognize(*y.f);
  if (r.kind != Recognized::Kind::activation) return false;
  if (y.base.node >= 0 && nodes_[static_cast<size_t>(y.base.node)].activated) {
    if (!reads_alone(n, y.base)) return false;
    LayerConfig& layer = nodes_[static_cast<size_t>(y.base.node)].layer;
    layer.set_text(field_index(layer, "activation"), std::string(activation_name(r.activation)));
    y.at = y.base;
    return true;
  }
  Value base;
  base.at = y.base;
  base.shape = y.shape;
  const ExprRef f = y.f;
  const GraphValue from = y.base;
  LOOM_ASSIGN(y, unary(n, activation_name(r.activation), base));
  y.f = f;
  y.base = from;
  return true;
}

Status GraphImport::unary_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value* x, value(n, 0));
  Value y;
  y.shape = x->shape;
  y.scalar = x->scalar;
  y.at = {-2, 0};  // until a layer computes it
  if (!x->is_constant()) remember(y, n.op, *x, nullptr, nullptr, false);
  LOOM_ASSIGN(const bool done, recognized(n, y));
  if (done) return define(n, std::move(y));
  const std::string_view function = layer_of(n.op).function;
  if (function.empty()) {
    // Erf alone is not a layer, but a part of one.
    if (y.f != nullptr) return define(n, std::move(y));
    return refuse(n, "no layer computes this function");
  }
  LOOM_ASSIGN(const Value from, stream(n, 0));
  LOOM_ASSIGN(Value made, unary(n, function, named(n, from)));
  made.f = y.f;
  made.base = y.base;
  return define(n, std::move(made));
}

Status GraphImport::binary_node(const OnnxNode& n) {
  std::string_view function = layer_of(n.op).function;
  const bool mean = function == "mean";
  if (mean || function == "sum") function = "add";
  if (!is_float(result_) && n.inputs.size() == 2) {
    const bool falls = function == "sub" && (result_ == OnnxType::u8 || result_ == OnnxType::u16 ||
                                             result_ == OnnxType::u32 || result_ == OnnxType::u64);
    if (falls || function == "div" || mean)
      return refuse(n, cat("computes with computed ", onnx_type_name(result_), " values"));
    LOOM_ASSIGN(const Value a, numbers(n, 0));
    LOOM_ASSIGN(const Value b, numbers(n, 1));
    LOOM_ASSIGN(Value y, binary(n, function, a, b));
    return define(n, std::move(y));
  }
  if (n.inputs.size() == 2) {
    LOOM_ASSIGN(const Value* a, value(n, 0));
    LOOM_ASSIGN(const Value* b, value(n, 1));
    Value y;
    y.at = {-2, 0};
    const Value left = *a, right = *b;
    bool computed = true;
    if (left.is_constant() != right.is_constant()) {
      LOOM_ASSIGN(const ConstantRef c, constant(n, left.is_constant() ? 0 : 1));
      const Value& x = left.is_constant() ? right : left;
      y.shape = x.shape;
      y.scalar = x.scalar;
      if (single(*c) && !stays_number(n, left.is_constant() ? 0 : 1)) {
        const double number = c->at(0);
        remember(y, n.op, x, nullptr, &number, left.is_constant());
        computed = x.at.node >= kGraphInput;
      }
    } else if (!left.is_constant() && left.shape == right.shape) {
      y.shape = left.shape;
      y.scalar = left.scalar;
      remember(y, n.op, left, &right, nullptr, false);
      computed = left.at.node >= kGraphInput && right.at.node >= kGraphInput;
    }
    LOOM_ASSIGN(const bool done, recognized(n, y));
    if (done || (!computed && y.f != nullptr)) return define(n, std::move(y));
    LOOM_ASSIGN(const Value p, stream(n, 0));
    LOOM_ASSIGN(const Value q, stream(n, 1));
    LOOM_ASSIGN(Value made, binary(n, function, p, q));
    if (mean) {
      LOOM_ASSIGN(made, with_number(n, "mul", made, 0.5));
    }
    made.f = y.f;
    made.base = y.base;
    return define(n, std::move(made));
  }
  if (n.inputs.empty()) return refuse(n, "it has no input");
  LOOM_ASSIGN(Value y, stream(n, 0));
  for (size_t i = 1; i < n.inputs.size(); ++i) {
    LOOM_ASSIGN(const Value next, stream(n, i));
    LOOM_ASSIGN(y, binary(n, function, y, next));
  }
  if (mean && n.inputs.size() > 1) {
    LOOM_ASSIGN(y, with_number(n, "mul", y, 1.0 / static_cast<double>(n.inputs.size())));
  }
  return define(n, std::move(y));
}

Status GraphImport::pow_node(const OnnxNode& n) {
  LOOM_ASSIGN(const ConstantRef exponent, constant(n, 1));
  if (!single(*exponent)) return refuse(n, "an exponent that is not one number");
  const double p = exponent->at(0);
  stays_number(n, 1);  // it does not: no layer learns an exponent
  LOOM_ASSIGN(const Value* known, value(n, 0));
  Value y;
  y.at = {-2, 0};
  y.shape = known->shape;
  y.scalar = known->scalar;
  if (!known->is_constant()) remember(y, n.op, *known, nullptr, &p, false);
  LOOM_ASSIGN(const bool done, recognized(n, y));
  if (done) return define(n, std::move(y));
  LOOM_ASSIGN(const Value x, stream(n, 0));
  LOOM_ASSIGN(Value made, power(n, x, p));
  made.f = y.f;
  made.base = y.base;
  return define(n, std::move(made));
}

// x ^ p. Whole powers up to 16 and halves are products and roots; others exp(p log x), which has no
// value for x < 0, as the power has none.
Result<GraphImport::Value> GraphImport::power(const OnnxNode& n, const Value& x, double p) {
  const double size = std::abs(p);
  const double twice = 2 * size;
  if (p == 0) return refuse(n, "the power 0");
  Value made;
  if (twice != std::floor(twice) || twice > 32) {
    if (size == std::floor(size)) return refuse(n, cat("the power ", p, " is not read"));
    LOOM_ASSIGN(made, unary(n, "log", x));
    LOOM_ASSIGN(made, with_number(n, "mul", made, p));
    return unary(n, "exp", made);
  }
  bool any = false;
  const auto times = [&](const Value& by) -> Status {
    if (any) {
      LOOM_ASSIGN(made, binary(n, "mul", made, by));
    } else {
      made = by;
    }
    any = true;
    return {};
  };
  Value square = x;
  for (auto left = static_cast<int64_t>(size); left > 0; left /= 2) {
    if (left % 2 == 1) LOOM_TRY(times(square));
    if (left > 1) {
      LOOM_ASSIGN(square, unary(n, "square", square));
    }
  }
  if (size != std::floor(size)) {
    LOOM_ASSIGN(const Value root, unary(n, "sqrt", x));
    LOOM_TRY(times(root));
  }
  if (p > 0) return made;
  return unary(n, "reciprocal", made);
}

Status GraphImport::clip_node(const OnnxNode& n) {
  LOOM_ASSIGN(Value y, stream(n, 0));
  struct Side {
    size_t input;
    std::string_view attribute, function;
  };
  for (const Side& side : {Side{1, "min", "max"}, Side{2, "max", "min"}}) {
    const OnnxAttribute* attr = n.find(side.attribute);
    if (attr != nullptr) {
      LOOM_ASSIGN(y, with_number(n, side.function, y, static_cast<double>(attr->real)));
    } else if (has_input(n, side.input)) {
      LOOM_ASSIGN(const Value* given, value(n, side.input));
      if (!given->is_constant()) {
        LOOM_ASSIGN(const Value bound, stream(n, side.input));
        LOOM_ASSIGN(y, binary(n, side.function, y, bound));
        continue;
      }
      LOOM_ASSIGN(const ConstantRef bound, constant(n, side.input));
      if (!single(*bound)) return refuse(n, "a bound that is not one number");
      LOOM_ASSIGN(y, with_number(n, side.function, y, bound->at(0)));
    }
  }
  return define(n, std::move(y));
}

// Functions of two branches: max(x, 0) and something of min(x, 0).
Status GraphImport::leaky_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value x, stream(n, 0));
  const std::string_view function = layer_of(n.op).function;
  const bool leaky = function == "leaky_relu", selu = function == "selu";
  const double alpha = attribute_real(n, "alpha",
                                      leaky  ? 0.01
                                      : selu ? 1.67326319217681884765625
                                             : 1.0);
  if ((function == "elu" && alpha == 1) || (leaky && static_cast<float>(alpha) == 0.01f)) {
    LOOM_ASSIGN(Value y, unary(n, function, named(n, x)));
    return define(n, std::move(y));
  }
  LOOM_ASSIGN(const Value above, unary(n, "relu", x));
  LOOM_ASSIGN(Value below, with_number(n, "min", x, 0));
  if (function == "prelu") {
    LOOM_ASSIGN(const Value slope, stream(n, 1));
    LOOM_ASSIGN(below, binary(n, "mul", below, slope));
  } else if (leaky) {
    LOOM_ASSIGN(below, with_number(n, "mul", below, alpha));
  } else {
    if (function == "celu") {
      LOOM_ASSIGN(below, with_number(n, "div", below, alpha));
    }
    LOOM_ASSIGN(below, unary(n, "elu", below));  // exp(x) - 1 below 0
    LOOM_ASSIGN(below, with_number(n, "mul", below, alpha));
  }
  LOOM_ASSIGN(Value y, binary(n, "add", above, below));
  if (selu) {
    const double gamma = attribute_real(n, "gamma", 1.05070102214813232421875);
    LOOM_ASSIGN(y, with_number(n, "mul", y, gamma));
  }
  return define(n, std::move(y));
}

Status GraphImport::gelu(const OnnxNode& n, bool by_tanh) {
  LOOM_ASSIGN(const Value x, stream(n, 0));
  LOOM_ASSIGN(Value y, unary(n, by_tanh ? "gelu_tanh" : "gelu_erf", named(n, x)));
  return define(n, std::move(y));
}

Status GraphImport::hard_sigmoid_node(const OnnxNode& n) {
  LOOM_ASSIGN(Value y, stream(n, 0));
  LOOM_ASSIGN(y, with_number(n, "mul", y, attribute_real(n, "alpha", 0.2f)));
  LOOM_ASSIGN(y, with_number(n, "add", y, attribute_real(n, "beta", 0.5)));
  LOOM_ASSIGN(y, with_number(n, "max", y, 0));
  LOOM_ASSIGN(y, with_number(n, "min", y, 1));
  return define(n, std::move(y));
}

// Over one axis; below opset 13 over all from `axis` on.
Status GraphImport::softmax(const OnnxNode& n, int64_t axis, bool log) {
  LOOM_ASSIGN(Value x, stream(n, 0));
  const bool flat = opset_ < 13;
  const Shape in = x.shape;
  std::vector<int64_t> order;
  for (int i = 0; i < in.rank(); ++i) order.push_back(i);
  const bool moves = !flat && axis + 1 < in.rank();
  if (moves) {
    std::swap(order[static_cast<size_t>(axis)], order.back());
    LOOM_ASSIGN(x, emit(n, LayerKind::transpose, {{"axes", order}}, {x}));
  }
  if (flat && axis + 1 < in.rank()) {
    std::vector<int64_t> rows;
    int64_t width = 1;
    for (int i = 0; i < in.rank(); ++i) {
      if (i < axis)
        rows.push_back(in[i]);
      else
        width *= in[i];
    }
    rows.push_back(width);
    LOOM_ASSIGN(x, view(n, x, rows));
  }
  LOOM_ASSIGN(Value y, emit(n, LayerKind::softmax, {}, {x}));
  if (log) {
    LOOM_ASSIGN(y, unary(n, "log", y));
  }
  if (moves) {
    LOOM_ASSIGN(y, emit(n, LayerKind::transpose, {{"axes", order}}, {y}));
  }
  if (flat && axis + 1 < in.rank()) {
    std::vector<int64_t> dims;
    for (int i = 0; i < in.rank(); ++i) dims.push_back(in[i]);
    LOOM_ASSIGN(y, view(n, y, dims));
  }
  return define(n, std::move(y));
}

Status GraphImport::reduce_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value x, stream(n, 0));
  LOOM_ASSIGN(std::vector<int64_t> axes, list(n, 1, "axes", {}));
  if (axes.empty()) {
    if (attribute(n, "noop_with_empty_axes", 0) != 0) return define(n, x);
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  if (x.scalar) return refuse(n, "its input is a single number");
  const bool keep = attribute(n, "keepdims", 1) != 0;
  Value from = x, top;
  std::string_view function = layer_of(n.op).function;
  const bool exponents = function == "log_sum_exp", logs = exponents || function == "log_sum";
  if (logs) function = "sum";
  if (exponents) {  // less the largest, so that none is beyond a float
    LOOM_ASSIGN(top, emit(n, LayerKind::reduce,
                          {{"function", "max"}, {"axes", axes}, {"keep", true}}, {x}));
    LOOM_ASSIGN(from, binary(n, "sub", x, top));
    LOOM_ASSIGN(from, unary(n, "exp", from));
  }
  LOOM_ASSIGN(Value y,
              emit(n, LayerKind::reduce,
                   {{"function", std::string(function)}, {"axes", axes}, {"keep", keep}}, {from}));
  y.scalar = !keep && static_cast<int>(axes.size()) == x.rank();
  if (logs) {
    LOOM_ASSIGN(y, unary(n, "log", y));
  }
  if (exponents) {
    const bool scalar = y.scalar;
    if (!keep) {
      LOOM_ASSIGN(top, view(n, top, scalar ? std::vector<int64_t>{} : axis_extents(y.shape)));
    }
    LOOM_ASSIGN(y, binary(n, "add", y, top));
    y.scalar = scalar;
  }
  return define(n, std::move(y));
}

// x w + b with weights of the file. w is [in, out], or [out, in] where it is transposed.
Result<GraphImport::Value> GraphImport::dense(const OnnxNode& n, const Value& x, const Constant& w,
                                              bool transposed, const Constant* bias, double scale) {
  const int64_t in = w.dims[transposed ? 1 : 0], out = w.dims[transposed ? 0 : 1];
  const std::vector<float> given = w.floats();
  std::vector<float> rows(given.size());
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t i = 0; i < in; ++i) {
      const auto from = static_cast<size_t>(transposed ? o * in + i : i * out + o);
      rows[static_cast<size_t>(o * in + i)] =
          static_cast<float>(static_cast<double>(given[from]) * scale);
    }
  }
  if (x.shape.last() != in)
    return refuse(n, cat("rows of ", x.shape.last(), " times weights of ", in, " rows"));
  std::vector<ItemParam> params = {param(n, 1, "weight", Shape{out, in}, std::move(rows))};
  if (bias != nullptr) params.push_back(param(n, 2, "bias", Shape{out}, bias->floats()));
  LOOM_ASSIGN(Value y,
              emit(n, LayerKind::dense, {{"in", in}, {"out", out}, {"bias", bias != nullptr}}, {x},
                   std::move(params)));
  if (shares_rows(n, 1)) nodes_.back().source = source_of_rows(n, 1);
  return y;
}

// Whether input 1 becomes the weights of a layer. Products that read one tensor in several ways
// read it as a node, which learns from all of them.
Result<bool> GraphImport::is_matrix_of_layer(const OnnxNode& n) const {
  LOOM_ASSIGN(const Value* b, value(n, 1));
  const bool multiple =
      options_.for_training && origins_.sharing(n.inputs[1]) == Origins::Sharing::multiple;
  return b->is_constant() && !multiple;
}

Status GraphImport::matmul(const OnnxNode& n) {
  LOOM_ASSIGN(const bool weights, is_matrix_of_layer(n));
  LOOM_ASSIGN(const Value x, stream(n, 0));
  if (weights) {
    LOOM_ASSIGN(const ConstantRef w, constant(n, 1));
    if (w->dims.size() == 2 && x.shape.rank() >= 2) {
      LOOM_ASSIGN(Value y, dense(n, x, *w, false, nullptr, 1));
      return define(n, std::move(y));
    }
  }
  LOOM_ASSIGN(const Value other, stream(n, 1));
  LOOM_ASSIGN(Value y, emit(n, LayerKind::matmul, {}, {x, other}));
  return define(n, std::move(y));
}

Status GraphImport::gemm(const OnnxNode& n, const OnnxGemm& args) {
  LOOM_ASSIGN(const bool weights, is_matrix_of_layer(n));
  const auto& [alpha, beta, ta, tb] = args;
  LOOM_ASSIGN(const Value x, stream(n, 0));
  Value y;
  bool biased = false;
  if (weights && !ta) {
    LOOM_ASSIGN(const ConstantRef w, constant(n, 1));
    if (w->dims.size() != 2) return refuse(n, "weights that are not a matrix");
    ConstantRef c;
    // A layer that has the rows of a table has no bias of its own.
    if (!shares_rows(n, 1)) {
      LOOM_ASSIGN(biased, gemm_bias(n, w->dims[tb ? 0 : 1], beta, c));
    }
    LOOM_ASSIGN(y, dense(n, x, *w, tb, c.get(), alpha));
  } else {
    LOOM_ASSIGN(const Value other, stream(n, 1));
    LOOM_ASSIGN(y,
                emit(n, LayerKind::matmul, {{"transpose_a", ta}, {"transpose_b", tb}}, {x, other}));
    if (alpha != 1) {
      LOOM_ASSIGN(y, with_number(n, "mul", y, alpha));
    }
  }
  if (!biased && has_input(n, 2)) {
    LOOM_ASSIGN(Value c, stream(n, 2));
    if (beta != 1) {
      LOOM_ASSIGN(c, with_number(n, "mul", c, beta));
    }
    const Shape product = y.shape;
    if (c.shape.rank() > 2) return refuse(n, "a bias of more than two axes");
    LOOM_ASSIGN(y, binary(n, "add", y, c));
    if (!(y.shape == product)) return refuse(n, "a bias that is larger than the product");
  }
  return define(n, std::move(y));
}

// The constant that a Gemm adds, as the bias of a Dense of so many outputs. False: there is none,
// or it is something else.
Result<bool> GraphImport::gemm_bias(const OnnxNode& n, int64_t outputs, double beta,
                                    ConstantRef& bias) {
  if (!has_input(n, 2)) return false;
  LOOM_ASSIGN(const Value* v, value(n, 2));
  if (!v->is_constant() || beta != 1) return false;
  LOOM_ASSIGN(const ConstantRef c, constant(n, 2));
  const bool row =
      !c->dims.empty() && c->dims.size() <= 2 && c->dims.back() == outputs && c->count() == outputs;
  if (row) bias = c;
  return row;
}

}  // namespace loom::core
