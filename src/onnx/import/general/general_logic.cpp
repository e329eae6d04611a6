// Booleans, choices and integers, the general way. See general.hpp. A boolean is 1 or 0, and an
// integer is itself, as a float. All of it uses `step`, which is 1 where x >= 0, and 0 for a NaN.
// So the results are those of the standard for infinities and NaN too, except for a NaN that Where
// chooses.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.hpp"
#include "layers/spatial/axes.hpp"
#include "onnx/import/general/general.hpp"

namespace loom::core {
namespace {

constexpr double kLargest = std::numeric_limits<float>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kWhole = 8388608;  // 2^23: floats from here on are whole

}  // namespace

// Input i as numbers, whatever its type.
Result<GraphImport::Value> GraphImport::numbers(const OnnxNode& n, size_t i) {
  LOOM_ASSIGN(const Value* v, value(n, i));
  if (!v->is_constant()) {
    if (v->at.node < 0) {
      LOOM_ASSIGN(const Value x, stream(n, i));
      return x;
    }
    return *v;
  }
  LOOM_ASSIGN(const ConstantRef c, constant(n, i));
  const auto beyond = [](double x) { return std::abs(x) > 2 * kWhole; };
  if (!is_float(c->type) && std::ranges::any_of(c->values, beyond))
    return refuse(n, "integers beyond those that a float counts exactly");
  return constant_stream(n, *c);
}

// Whether input i is known to hold no infinity.
bool GraphImport::finite(const OnnxNode& n, size_t i) {
  const Result<const Value*> v = value(n, i);
  if (!v.ok()) return false;
  if (!(*v)->is_constant()) return bound(**v) >= 0;
  const Result<ConstantRef> c = constant(n, i);
  return c.ok() &&
         std::ranges::all_of((*c)->values, [](double x) { return std::abs(x) <= kLargest; });
}

Result<GraphImport::Value> GraphImport::negated(const OnnxNode& n, const Value& truth) {
  LOOM_ASSIGN(const Value less, with_number(n, "sub", truth, 1));
  LOOM_ASSIGN(Value y, unary(n, "abs", less));
  nodes_[static_cast<size_t>(y.at.node)].bound = 1;
  return y;
}

// 1 where a >= b: the difference tells, but of two infinities of one sign.
Result<GraphImport::Value> GraphImport::at_least(const OnnxNode& n, const Value& a,
                                                 const Value& b) {
  LOOM_ASSIGN(const Value apart, binary(n, "sub", a, b));
  return unary(n, "step", apart);
}

// 1 where x is infinite on that side (1 or -1): it is there at all, which a NaN is not, and beyond
// the largest number.
Result<GraphImport::Value> GraphImport::infinite(const OnnxNode& n, const Value& x, double side) {
  LOOM_ASSIGN(const Value up, with_number(n, "mul", x, side));
  LOOM_ASSIGN(const Value there, unary(n, "step", up));
  LOOM_ASSIGN(Value inside, with_number(n, "sub", up, kLargest));
  LOOM_ASSIGN(inside, unary(n, "neg", inside));
  LOOM_ASSIGN(inside, unary(n, "step", inside));
  LOOM_ASSIGN(const Value beyond, negated(n, inside));
  return binary(n, "mul", there, beyond);
}

// 1 where both are the same infinity.
Result<GraphImport::Value> GraphImport::both_infinite(const OnnxNode& n, const Value& a,
                                                      const Value& b) {
  Value sides[2];
  for (size_t i = 0; i < 2; ++i) {
    const double side = i == 0 ? 1 : -1;
    LOOM_ASSIGN(const Value of_a, infinite(n, a, side));
    LOOM_ASSIGN(const Value of_b, infinite(n, b, side));
    LOOM_ASSIGN(sides[i], binary(n, "mul", of_a, of_b));
  }
  return binary(n, "add", sides[0], sides[1]);
}

// `simple`: one of them is never infinite.
Result<GraphImport::Value> GraphImport::equal(const OnnxNode& n, const Value& a, const Value& b,
                                              bool simple) {
  LOOM_ASSIGN(const Value above, at_least(n, a, b));
  LOOM_ASSIGN(const Value below, at_least(n, b, a));
  LOOM_ASSIGN(Value y, binary(n, "mul", above, below));
  if (!simple) {
    LOOM_ASSIGN(const Value far, both_infinite(n, a, b));
    LOOM_ASSIGN(y, binary(n, "max", y, far));
  }
  return y;
}

// The rows of the smallest table of the file that the ids of the input name; 0 if there is none.
int64_t GraphImport::rows_of_ids() const {
  int64_t least = 0;
  for (const OnnxNode& n : model_.graph.nodes) {
    if (layer_of(n.op).kind != "gather" || n.inputs.size() < 2 || n.inputs[1] != input_name_)
      continue;
    const auto table = values_.find(n.inputs[0]);
    if (table == values_.end() || table->second.tensor == nullptr) continue;
    const std::vector<int64_t>& dims = table->second.tensor->shape;
    if (dims.size() == 2 && (least == 0 || dims[0] < least)) least = dims[0];
  }
  return least;
}

// Ids of the input, viewed with a trailing axis of 1, beside a list of integers, or beside one
// number: a table of booleans that the ids look up. It has the rows of the other tables. Ids beyond
// it are refused when they come, as those of any table.
Result<bool> GraphImport::ids_beside(const OnnxNode& n, Value& y) {
  LOOM_ASSIGN(const Value* a, value(n, 0));
  LOOM_ASSIGN(const Value* b, value(n, 1));
  const Value* ids = b->is_constant() ? a : b;
  const size_t list = b->is_constant() ? 1 : 0;
  const Value& input = values_.at(input_name_);
  if (!ids_ || a->is_constant() == b->is_constant() || !(ids->at == GraphValue{})) return false;
  LOOM_ASSIGN(const ConstantRef c, constant(n, list));
  const bool one = c->count() == 1 && ids->shape == input.shape &&
                   static_cast<int>(c->dims.size()) <= ids->shape.rank();
  if (!one && ids->shape.rank() != input.shape.rank() + 1) return false;
  const int64_t width = one ? 1 : c->dims.empty() ? 0 : c->dims.back();
  const int64_t most = std::max<int64_t>(rows_of_ids(), 4096);
  if (width < 1 || c->count() != width || static_cast<int>(c->dims.size()) > ids->shape.rank() ||
      std::ranges::any_of(c->values,
                          [&](double v) { return v < 0 || v >= static_cast<double>(most); }))
    return refuse(
        n,
        cat("compares the ids of the input with values that are not a list of ids below ", most));
  const auto vocab = std::max(rows_of_ids(), static_cast<int64_t>(std::ranges::max(c->values)) + 1);
  left_ -= vocab * width;
  if (left_ < 0) return refuse(n, "a list of too many ids");
  std::vector<float> table(static_cast<size_t>(vocab * width));
  for (int64_t i = 0; i < width; ++i)
    table[static_cast<size_t>(static_cast<int64_t>(c->at(i)) * width + i)] = 1;
  ItemParam truths{"weight", Shape{vocab, width}, shared(std::move(table))};
  truths.frozen = true;
  LOOM_ASSIGN(y, emit(n, LayerKind::embedding, {{"vocab", vocab}, {"width", width}}, {input},
                      {std::move(truths)}));
  if (one) {
    LOOM_ASSIGN(y, view(n, y, axis_extents(input.shape)));
  }
  return true;
}

Status GraphImport::compare_node(const OnnxNode& n) {
  const std::string_view function = layer_of(n.op).function;
  if (function == "equal") {
    Value y;
    LOOM_ASSIGN(const bool looked_up, ids_beside(n, y));
    if (looked_up) {
      nodes_[static_cast<size_t>(y.at.node)].bound = 1;
      return define(n, std::move(y));
    }
  }
  const bool simple = finite(n, 0) || finite(n, 1);
  LOOM_ASSIGN(Value a, numbers(n, 0));
  LOOM_ASSIGN(Value b, numbers(n, 1));
  if (function.starts_with("less")) std::swap(a, b);
  Value y;
  if (function == "equal") {
    LOOM_ASSIGN(y, equal(n, a, b, simple));
  } else if (function.ends_with("_equal")) {
    LOOM_ASSIGN(y, at_least(n, a, b));
    if (!simple) {
      LOOM_ASSIGN(const Value far, both_infinite(n, a, b));
      LOOM_ASSIGN(y, binary(n, "max", y, far));
    }
  } else {
    // Where neither is at least the other, one is a NaN, or both are the same infinity.
    LOOM_ASSIGN(const Value above, at_least(n, a, b));
    LOOM_ASSIGN(const Value below, at_least(n, b, a));
    LOOM_ASSIGN(const Value not_below, negated(n, below));
    LOOM_ASSIGN(y, binary(n, "mul", above, not_below));
  }
  nodes_[static_cast<size_t>(y.at.node)].bound = 1;
  return define(n, std::move(y));
}

Status GraphImport::logic_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value a, numbers(n, 0));
  const std::string_view truth = layer_of(n.op).function;
  Value y;
  if (truth == "not") {
    LOOM_ASSIGN(y, negated(n, a));
  } else if (truth == "is_nan") {  // a NaN is neither above 0 nor below
    LOOM_ASSIGN(const Value less, unary(n, "neg", a));
    LOOM_ASSIGN(const Value below, unary(n, "step", less));
    LOOM_ASSIGN(y, unary(n, "step", a));
    LOOM_ASSIGN(y, binary(n, "max", y, below));
    LOOM_ASSIGN(y, negated(n, y));
  } else {
    LOOM_ASSIGN(const Value b, numbers(n, 1));
    const char* function = truth == "and" ? "mul" : truth == "or" ? "max" : "sub";
    LOOM_ASSIGN(y, binary(n, function, a, b));
    if (truth == "xor") {
      LOOM_ASSIGN(y, unary(n, "abs", y));
    }
  }
  nodes_[static_cast<size_t>(y.at.node)].bound = 1;
  return define(n, std::move(y));
}

// test ? a : b. The other value becomes -inf, even if it is a NaN, and the maximum of both is the
// result. min and max take their second operand where one is a NaN.
Result<GraphImport::Value> GraphImport::chosen(const OnnxNode& n, const Value& test, const Value& a,
                                               const Value& b) {
  LOOM_ASSIGN(const Value half, with_number(n, "sub", test, 0.5));
  LOOM_ASSIGN(const Value up, with_number(n, "mul", half, kInfinity));
  LOOM_ASSIGN(const Value down, unary(n, "neg", up));
  LOOM_ASSIGN(const Value left, binary(n, "min", a, up));
  LOOM_ASSIGN(const Value right, binary(n, "min", b, down));
  LOOM_ASSIGN(Value y, binary(n, "max", left, right));
  if (bound(a) >= 0 && bound(b) >= 0)
    nodes_[static_cast<size_t>(y.at.node)].bound = std::max(bound(a), bound(b));
  return y;
}

Status GraphImport::where(const OnnxNode& n) {
  for (size_t i = 1; i < 3; ++i) {
    LOOM_ASSIGN(const Value* v, value(n, i));
    if (!v->is_constant()) continue;
    LOOM_ASSIGN(const ConstantRef c, constant(n, i));
    if (std::ranges::any_of(c->values, [](double x) { return std::isnan(x); }))
      return refuse(n, "a constant that holds a NaN");
  }
  LOOM_ASSIGN(const Value test, numbers(n, 0));
  LOOM_ASSIGN(const Value a, learns(n, 1) ? stream(n, 1) : numbers(n, 1));
  LOOM_ASSIGN(const Value b, learns(n, 2) ? stream(n, 2) : numbers(n, 2));
  LOOM_ASSIGN(Value y, chosen(n, test, a, b));
  return define(n, std::move(y));
}

// 1, 0 or -1.
Result<GraphImport::Value> GraphImport::sign(const OnnxNode& n, const Value& x) {
  LOOM_ASSIGN(const Value up, unary(n, "step", x));
  LOOM_ASSIGN(const Value negative, unary(n, "neg", x));
  LOOM_ASSIGN(const Value down, unary(n, "step", negative));
  LOOM_ASSIGN(Value y, binary(n, "sub", up, down));
  nodes_[static_cast<size_t>(y.at.node)].bound = 1;
  return y;
}

// x, without a gradient. The subtrahend is 0 (a number that large has no digits for the other one)
// and has the gradient of x.
Result<GraphImport::Value> GraphImport::detached(const OnnxNode& n, const Value& x) {
  constexpr double kSmall = 0x1p30, kHuge = 0x1p60;
  LOOM_ASSIGN(Value zero, with_number(n, "min", x, kSmall));
  LOOM_ASSIGN(zero, with_number(n, "max", zero, -kSmall));
  LOOM_ASSIGN(zero, with_number(n, "add", zero, kHuge));
  LOOM_ASSIGN(zero, with_number(n, "sub", zero, kHuge));
  LOOM_ASSIGN(Value y, binary(n, "sub", x, zero));
  nodes_[static_cast<size_t>(y.at.node)].bound = bound(x);
  return y;
}

// To the nearest integer, halves to the even one: 2^23 added has no digits after the point, and
// larger numbers have none. Sums pass gradients on, which a rounded value has not.
Result<GraphImport::Value> GraphImport::rounded(const OnnxNode& n, const Value& given) {
  Value x = given;
  if (options_.for_training) {
    LOOM_ASSIGN(x, detached(n, given));
  }
  LOOM_ASSIGN(const Value size, unary(n, "abs", x));
  LOOM_ASSIGN(const Value small, with_number(n, "min", size, kWhole));
  LOOM_ASSIGN(const Value large, binary(n, "sub", size, small));
  LOOM_ASSIGN(Value y, with_number(n, "add", small, kWhole));
  LOOM_ASSIGN(y, with_number(n, "sub", y, kWhole));
  LOOM_ASSIGN(y, binary(n, "add", y, large));
  LOOM_ASSIGN(const Value side, sign(n, x));
  return binary(n, "mul", y, side);
}

Result<GraphImport::Value> GraphImport::floored(const OnnxNode& n, const Value& x, bool up) {
  LOOM_ASSIGN(const Value near, rounded(n, x));
  LOOM_ASSIGN(const Value fits, up ? at_least(n, near, x) : at_least(n, x, near));
  LOOM_ASSIGN(const Value off, negated(n, fits));
  return binary(n, up ? "add" : "sub", near, off);
}

Status GraphImport::round_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value x, stream(n, 0));
  const std::string_view function = layer_of(n.op).function;
  Value y;
  if (function == "softsign") {
    LOOM_ASSIGN(y, unary(n, "abs", x));
    LOOM_ASSIGN(y, with_number(n, "add", y, 1));
    LOOM_ASSIGN(y, binary(n, "div", x, y));
  } else if (function == "thresholded_relu") {
    LOOM_ASSIGN(const Value edge, number(n, attribute_real(n, "alpha", 1)));
    LOOM_ASSIGN(const Value zero, number(n, 0));
    LOOM_ASSIGN(const Value below, at_least(n, edge, x));
    LOOM_ASSIGN(y, chosen(n, below, zero, x));
  } else if (function == "sign") {
    LOOM_ASSIGN(y, sign(n, x));
  } else if (function == "round") {
    LOOM_ASSIGN(y, rounded(n, x));
  } else {
    LOOM_ASSIGN(y, floored(n, x, function == "ceil"));
  }
  return define(n, std::move(y));
}

// Loom computes with f32 whatever the file says, so only values beyond a type would be lost.
Status GraphImport::cast(const OnnxNode& n, OnnxType from, OnnxType to) {
  LOOM_ASSIGN(const Value* known, value(n, 0));
  const Value x = *known;
  if (x.at == GraphValue{} && ids_)
    return refuse(n, cat("makes ", onnx_type_name(to), " of the ids of the input; only an ",
                         "embedding reads ids"));
  const bool wide = to == OnnxType::f32 || to == OnnxType::f64;
  if (is_float(to)) {
    // Halves hold integers up to 2^11 or 2^8.
    const double most = wide ? kInfinity : to == OnnxType::f16 ? 2048 : 256;
    if (is_float(from) ? !wide : !(bound(x) >= 0 && bound(x) <= most))
      return refuse(n, cat("rounds computed values to ", onnx_type_name(to),
                           ", which no layer does; export the model in one type"));
    return define(n, x);
  }
  if (to == OnnxType::boolean) {
    LOOM_ASSIGN(const Value test, numbers(n, 0));
    LOOM_ASSIGN(const Value zero, number(n, 0));
    LOOM_ASSIGN(const Value none, equal(n, test, zero, true));
    LOOM_ASSIGN(Value y, negated(n, none));
    nodes_[static_cast<size_t>(y.at.node)].bound = 1;
    return define(n, std::move(y));
  }
  if (!is_integer(to) || (is_float(from) && to != OnnxType::i32 && to != OnnxType::i64))
    return refuse(n, cat("makes ", onnx_type_name(to), " of computed ", onnx_type_name(from),
                         " values, which no layer does"));
  if (!is_float(from)) return define(n, x);
  // Towards 0. A float beyond 2^24 is an integer already.
  LOOM_ASSIGN(const Value real, stream(n, 0));
  LOOM_ASSIGN(const Value size, unary(n, "abs", real));
  LOOM_ASSIGN(const Value whole, floored(n, size, false));
  LOOM_ASSIGN(const Value side, sign(n, real));
  LOOM_ASSIGN(Value y, binary(n, "mul", whole, side));
  nodes_[static_cast<size_t>(y.at.node)].bound = bound(real) >= 0 ? bound(real) : 2 * kWhole;
  return define(n, std::move(y));
}

}  // namespace loom::core
