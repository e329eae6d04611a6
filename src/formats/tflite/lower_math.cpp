// Functions value by value, and over one axis or more. See lower.hpp.
#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "formats/tflite/lower.hpp"

namespace loom::core {
namespace {

struct Said {
  int code;
  std::string_view op;  // of ONNX
};

std::string_view said(std::span<const Said> table, int code) {
  const auto is = [&](const Said& s) { return s.code == code; };
  return std::ranges::find_if(table, is)->op;
}

constexpr Said kUnary[] = {
    {kFloor, "Floor"}, {kLogistic, "Sigmoid"}, {kRelu, "Relu"},
    {kTanh, "Tanh"},   {kExp, "Exp"},          {kNeg, "Neg"},
    {kSin, "Sin"},     {kLog, "Log"},          {kSqrt, "Sqrt"},
    {kAbs, "Abs"},     {kCeil, "Ceil"},        {kCos, "Cos"},
    {kElu, "Elu"},     {kRound, "Round"},      {kHardSwish, "HardSwish"},
    {kSign, "Sign"},   {kLogicalNot, "Not"},
};
constexpr Said kBinary[] = {
    {kAdd, "Add"},     {kMul, "Mul"}, {kSub, "Sub"},     {kDiv, "Div"},
    {kPrelu, "PRelu"}, {kPow, "Pow"}, {kMaximum, "Max"}, {kMinimum, "Min"},
};
constexpr Said kCompare[] = {
    {kLess, "Less"},
    {kGreater, "Greater"},
    {kGreaterEqual, "GreaterOrEqual"},
    {kLessEqual, "LessOrEqual"},
    {kEqual, "Equal"},
    {kNotEqual, "Equal"},
    {kLogicalOr, "Or"},
    {kLogicalAnd, "And"},
};
constexpr Said kReduce[] = {
    {kMean, "ReduceMean"},     {kSum, "ReduceSum"},       {kReduceProd, "ReduceProd"},
    {kReduceMax, "ReduceMax"}, {kReduceMin, "ReduceMin"},
};

}  // namespace

Status TfliteGraph::unary() {
  LOOM_ASSIGN(One v, one(0));
  LOOM_ASSIGN(const Name y, add(said(kUnary, op_->code), {v.x}));
  return define(0, y, std::move(v.dims), v.order, v.type);
}

Status TfliteGraph::binary() {
  LOOM_ASSIGN(Two v, two());
  const int code = op_->code;
  LOOM_ASSIGN(Name y, add(said(kBinary, code), {v.a, v.b}));
  const bool fused = code == kAdd || code == kMul || code == kSub || code == kDiv;
  LOOM_ASSIGN(y, activated(y, fused ? whole(0) : 0));
  return define(0, y, std::move(v.dims), v.order, v.type);
}

// Comparisons and logic: truths.
Status TfliteGraph::compare() {
  LOOM_ASSIGN(Two v, two());
  LOOM_ASSIGN(Name y, add(said(kCompare, op_->code), {v.a, v.b}));
  if (op_->code == kNotEqual) {
    LOOM_ASSIGN(y, add("Not", {y}));
  }
  return define(0, y, std::move(v.dims), v.order, OnnxType::boolean);
}

// FLOOR_DIV and FLOOR_MOD: towards minus infinity.
Status TfliteGraph::floor_pair() {
  LOOM_ASSIGN(Two v, two());
  LOOM_ASSIGN(Name y, add("Div", {v.a, v.b}));
  if (v.type != OnnxType::f32) {
    // Division of whole numbers goes towards 0, which is the same where both have one sign.
    for (const Name name : {v.a, v.b}) {
      const OnnxTensor* c = known(name);
      const Result<List> all = c != nullptr ? onnx_i64(*c) : Result<List>(List{-1});
      if (!all.ok() || std::ranges::any_of(*all, [](int64_t i) { return i < 0; }))
        return refuse("divides whole numbers that are not known to be 0 or more");
    }
  } else {
    LOOM_ASSIGN(y, add("Floor", {y}));
  }
  if (op_->code == kFloorMod) {
    LOOM_ASSIGN(y, add("Mul", {y, v.b}));
    LOOM_ASSIGN(y, add("Sub", {v.a, y}));
  }
  return define(0, y, std::move(v.dims), v.order, v.type);
}

Status TfliteGraph::squared_difference() {
  LOOM_ASSIGN(Two v, two());
  LOOM_ASSIGN(Name y, add("Sub", {v.a, v.b}));
  LOOM_ASSIGN(y, add("Mul", {y, y}));
  return define(0, y, std::move(v.dims), v.order, v.type);
}

// Functions that are not one operator without attributes in ONNX.
Status TfliteGraph::function() {
  LOOM_ASSIGN(One v, one(0));
  const int code = op_->code;
  Result<Name> y = v.x;
  if (code == kSquare) {
    y = add("Mul", {v.x, v.x});
  } else if (code == kRsqrt) {
    y = add("Sqrt", {v.x});
    if (y.ok()) y = add("Reciprocal", {*y});
  } else if (code == kLeakyRelu) {
    y = add("LeakyRelu", {v.x}, {real_of("alpha", static_cast<float>(option(0)))});
  } else if (code == kGelu) {
    y = add("Gelu", {v.x}, {text_of("approximate", flag(0) ? "tanh" : "none")});
  } else {
    y = clipped(v.x, code == kReluN1To1 ? -1 : 0, code == kRelu6 ? 6 : 1);
  }
  if (!y.ok()) return y.error();
  return define(0, *y, std::move(v.dims), v.order, v.type);
}

Status TfliteGraph::add_all() {
  LOOM_ASSIGN(const Order order, order_of_all());
  Names names;
  LOOM_ASSIGN(const Value* first, value(0));
  const Value like = *first;
  for (size_t i = 0; i < op_->inputs.size(); ++i) {
    LOOM_ASSIGN(const List have, dims(i));
    if (have != like.dims) return refuse("adds values of different shapes");
    LOOM_ASSIGN(names.emplace_back(), in(i, order));
  }
  Name y = names[0];
  for (size_t i = 1; i < names.size(); ++i) {
    LOOM_ASSIGN(y, add("Add", {y, names[i]}));
  }
  return define(0, y, like.dims, order, like.type);
}

// SELECT may have a truth for each place of the first axis alone.
Status TfliteGraph::select() {
  LOOM_ASSIGN(const List test_dims, dims(0));
  LOOM_ASSIGN(const Value* yes, value(1));
  LOOM_ASSIGN(const List no, dims(2));
  const Value like = *yes;
  List seen = test_dims;
  if (op_->code == kSelect && seen.size() == 1 && like.dims.size() > 1)
    seen.resize(like.dims.size(), 1);
  Result<List> dims = broadcast_dims(seen, like.dims);
  if (dims.ok()) dims = broadcast_dims(*dims, no);
  if (!dims.ok()) return refuse(dims.error().message);
  LOOM_ASSIGN(const Order order,
              seen == test_dims ? order_of({0, 1, 2}) : Result<Order>(Order::plain));
  LOOM_ASSIGN(Name test, in(0, order));
  if (seen != test_dims) {
    LOOM_ASSIGN(test, shaped(test, seen));
  }
  LOOM_ASSIGN(const Name a, in(1, order));
  LOOM_ASSIGN(const Name b, in(2, order));
  LOOM_ASSIGN(Name y, add("Where", {test, a, b}));
  return define(0, y, *dims, order, like.type);
}

// Over the last axis of the file.
Status TfliteGraph::softmax() {
  LOOM_ASSIGN(One v, one(0));
  Name x = v.x;
  if (v.dims.empty()) return refuse("is read over an axis");
  const bool plain = op_->code == kSoftmax;
  if (plain && option(0) != 1) {
    LOOM_ASSIGN(x, add("Mul", {x, number(static_cast<float>(option(0)))}));
  }
  const int64_t axis = v.order == Order::first ? 1 : static_cast<int64_t>(v.dims.size()) - 1;
  LOOM_ASSIGN(const Name y, add(plain ? "Softmax" : "LogSoftmax", {x}, {{"axis", axis}}));
  return define(0, y, std::move(v.dims), v.order);
}

Status TfliteGraph::reduce() {
  LOOM_ASSIGN(const Value* v, value(0));
  const Value from = *v;
  LOOM_ASSIGN(List over, integers(1));
  for (int64_t& a : over) {
    LOOM_ASSIGN(a, axis(a, from.dims.size()));
  }
  std::ranges::sort(over);
  over.erase(std::ranges::unique(over).begin(), over.end());
  const bool kept = flag(0);
  List dims;
  for (size_t i = 0; i < from.dims.size(); ++i) {
    const bool gone = std::ranges::binary_search(over, static_cast<int64_t>(i));
    if (!gone || kept) dims.push_back(gone ? 1 : from.dims[i]);
  }
  LOOM_ASSIGN(Order order, order_of({0}));
  // Channels that are left alone stand last in both orders.
  const bool pooled = over == List{1, 2} || over == List{1, 2, 3} || over == List{2, 3};
  if (!kept && !pooled) order = Order::plain;
  if (over.empty()) {
    LOOM_ASSIGN(Name same, in(0, order));
    return define(0, same, from.dims, order, from.type);
  }
  LOOM_ASSIGN(const Name x, in(0, order));
  if (order == Order::first) {
    for (int64_t& a : over) a = kAxisFirst[a];
    std::ranges::sort(over);
  }
  LOOM_ASSIGN(Name y, add(said(kReduce, op_->code), {x, list(over)}, {{"keepdims", kept}}));
  return define(0, y, std::move(dims), kept ? order : Order::plain, from.type);
}

Status TfliteGraph::arg() {
  LOOM_ASSIGN(List dims, dims(0));
  LOOM_ASSIGN(const int64_t given, integer(1));
  LOOM_ASSIGN(const int64_t along, axis(given, dims.size()));
  LOOM_ASSIGN(const Name x, in(0));
  LOOM_ASSIGN(Name y, add(op_->code == kArgMax ? "ArgMax" : "ArgMin", {x},
                          {{"axis", along}, {"keepdims", 0}}));
  dims.erase(dims.begin() + along);
  const bool wide = out_tensor().type == TfliteType::i64;
  const OnnxType type = wide ? OnnxType::i64 : OnnxType::i32;
  if (!wide) {
    LOOM_ASSIGN(y, add("Cast", {y}, {{"to", static_cast<int64_t>(type)}}));
  }
  return define(0, y, std::move(dims), Order::plain, type);
}

// Over the last axis; lengths below 1e-6 count as that.
Status TfliteGraph::l2_normalization() {
  LOOM_ASSIGN(One v, one(0));
  if (v.dims.empty()) return refuse("is read over an axis");
  const int64_t along = v.order == Order::first ? 1 : static_cast<int64_t>(v.dims.size()) - 1;
  LOOM_ASSIGN(Name length, add("ReduceL2", {v.x, list({along})}));
  LOOM_ASSIGN(length, add("Max", {length, number(1e-6f)}));
  LOOM_ASSIGN(Name y, add("Div", {v.x, length}));
  LOOM_ASSIGN(y, activated(y, whole(0)));
  return define(0, y, std::move(v.dims), v.order);
}

// TFLite multiplies the sum with alpha, ONNX the mean.
Status TfliteGraph::local_response() {
  LOOM_ASSIGN(List dims, dims(0));
  const int64_t radius = whole(0);
  if (dims.size() != 4 || radius < 0 || radius > 65536)
    return refuse("is read of pictures, with a radius of 0 or more");
  LOOM_ASSIGN(const Name x, in(0, Order::first));
  const int64_t size = 2 * radius + 1;
  LOOM_ASSIGN(Name y,
              add("LRN", {x},
                  {{"size", size},
                   real_of("bias", static_cast<float>(option(1))),
                   real_of("alpha", static_cast<float>(option(2) * static_cast<double>(size))),
                   real_of("beta", static_cast<float>(option(3)))}));
  return define(0, y, std::move(dims), Order::first);
}

Status TfliteGraph::cast() {
  LOOM_ASSIGN(One v, one(0));
  const TfliteTensor& out = out_tensor();
  const OnnxType type = onnx_type_of(out.type);
  if (type == OnnxType::undefined || out.quantization)
    return refuse(cat("makes ", tflite_type_name(out.type), " values"));
  LOOM_ASSIGN(const Name y, add("Cast", {v.x}, {{"to", static_cast<int64_t>(type)}}));
  return define(0, y, std::move(v.dims), v.order, type);
}

// What only changes how values are stored: they are numbers already. define() rounds them.
Status TfliteGraph::same() {
  LOOM_ASSIGN(One v, one(0));
  if (op_->code == kDequantize && v.type != OnnxType::f32)
    return refuse("makes numbers of values that have no scale");
  return define(0, v.x, std::move(v.dims), v.order, v.type);
}

Status TfliteGraph::cumsum() {
  LOOM_ASSIGN(const Value* v, value(0));
  const Value from = *v;
  LOOM_ASSIGN(const int64_t given, integer(1));
  LOOM_ASSIGN(const int64_t along, axis(given, from.dims.size()));
  LOOM_ASSIGN(const Name x, in(0));
  const Name at = keep(onnx_tensor("", {}, std::span<const int64_t>(&along, 1)));
  LOOM_ASSIGN(Name y, add("CumSum", {x, at}, {{"exclusive", flag(0)}, {"reverse", flag(1)}}));
  return define(0, y, from.dims, Order::plain, from.type);
}

Status TfliteGraph::top_k() {
  LOOM_ASSIGN(const Value* v, value(0));
  const Value from = *v;
  LOOM_ASSIGN(const int64_t k, integer(1));
  if (from.dims.empty() || k < 1 || k > from.dims.back()) return refuse("k that does not fit");
  LOOM_ASSIGN(const Name x, in(0));
  LOOM_ASSIGN(Names made, add_many("TopK", {x, list({k})}, {}, 2));
  List dims = from.dims;
  dims.back() = k;
  LOOM_TRY(define(0, made[0], dims, Order::plain, from.type));
  LOOM_ASSIGN(Name at, add("Cast", {made[1]}, {{"to", static_cast<int64_t>(OnnxType::i32)}}));
  return define(1, at, dims, Order::plain, OnnxType::i32);
}

Status TfliteGraph::one_hot() {
  LOOM_ASSIGN(List dims, dims(0));
  LOOM_ASSIGN(const int64_t depth, integer(1));
  LOOM_ASSIGN(const Value* on, value(2));
  const OnnxType type = on->type;
  const int64_t rank = static_cast<int64_t>(dims.size());
  const int64_t along = whole(0) < 0 ? whole(0) + rank + 1 : whole(0);
  if (along < 0 || along > rank || depth < 1) return refuse("an axis or a depth that cannot be");
  LOOM_ASSIGN(const Name x, in(0));
  LOOM_ASSIGN(const Name yes, in(2));
  LOOM_ASSIGN(const Name no, in(3));
  LOOM_ASSIGN(const Name one, shaped(yes, {1}));
  LOOM_ASSIGN(const Name other, shaped(no, {1}));
  LOOM_ASSIGN(const Name both, add("Concat", {other, one}, {{"axis", 0}}));
  LOOM_ASSIGN(Name y, add("OneHot", {x, list({depth}), both}, {{"axis", along}}));
  dims.insert(dims.begin() + along, depth);
  return define(0, y, std::move(dims), Order::plain, type);
}

}  // namespace loom::core
