// Functions value by value, and over one axis or more. See lower.hpp.
#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "formats/tflite/lower.hpp"

namespace loom::core {
namespace {

struct OpMapping {
  int code;
  std::string_view op;  // of ONNX
};

std::string_view onnx_op(std::span<const OpMapping> table, int code) {
  const auto is = [&](const OpMapping& s) { return s.code == code; };
  return std::ranges::find_if(table, is)->op;
}

constexpr OpMapping kUnary[] = {
    {kFloor, "Floor"}, {kLogistic, "Sigmoid"}, {kRelu, "Relu"},
    {kTanh, "Tanh"},   {kExp, "Exp"},          {kNeg, "Neg"},
    {kSin, "Sin"},     {kLog, "Log"},          {kSqrt, "Sqrt"},
    {kAbs, "Abs"},     {kCeil, "Ceil"},        {kCos, "Cos"},
    {kElu, "Elu"},     {kRound, "Round"},      {kHardSwish, "HardSwish"},
    {kSign, "Sign"},   {kLogicalNot, "Not"},
};
constexpr OpMapping kBinary[] = {
    {kAdd, "Add"},     {kMul, "Mul"}, {kSub, "Sub"},     {kDiv, "Div"},
    {kPrelu, "PRelu"}, {kPow, "Pow"}, {kMaximum, "Max"}, {kMinimum, "Min"},
};
constexpr OpMapping kCompare[] = {
    {kLess, "Less"},
    {kGreater, "Greater"},
    {kGreaterEqual, "GreaterOrEqual"},
    {kLessEqual, "LessOrEqual"},
    {kEqual, "Equal"},
    {kNotEqual, "Equal"},
    {kLogicalOr, "Or"},
    {kLogicalAnd, "And"},
};
constexpr OpMapping kReduce[] = {
    {kMean, "ReduceMean"},     {kSum, "ReduceSum"},       {kReduceProd, "ReduceProd"},
    {kReduceMax, "ReduceMax"}, {kReduceMin, "ReduceMin"},
};

}  // namespace

void TfliteGraph::unary() {
  const One v = one(0);
  const Name y = add(onnx_op(kUnary, op_->code), {v.x});
  define(0, y, v.dims, v.order, v.type);
}

void TfliteGraph::binary() {
  const Two v = two();
  const int code = op_->code;
  Name y = add(onnx_op(kBinary, code), {v.a, v.b});
  const bool fused = code == kAdd || code == kMul || code == kSub || code == kDiv;
  y = activated(y, fused ? integer_option(0) : 0);
  define(0, y, v.dims, v.order, v.type);
}

// Comparisons and logic: booleans.
void TfliteGraph::compare() {
  const Two v = two();
  Name y = add(onnx_op(kCompare, op_->code), {v.a, v.b});
  if (op_->code == kNotEqual) y = add("Not", {y});
  define(0, y, v.dims, v.order, OnnxType::boolean);
}

// FLOOR_DIV and FLOOR_MOD: towards minus infinity.
void TfliteGraph::floor_pair() {
  const Two v = two();
  Name y = add("Div", {v.a, v.b});
  if (v.type != OnnxType::f32) {
    // Division of integers rounds towards 0. Division of reals gives the same if both have one
    // sign.
    for (const Name name : {v.a, v.b}) {
      const OnnxTensor* c = known(name);
      const Result<List> all = c != nullptr ? onnx_i64(*c) : Result<List>(List{-1});
      if (!all.ok() || std::ranges::any_of(*all, [](int64_t i) { return i < 0; }))
        return refuse("divides integers that may be negative");
    }
  } else {
    y = add("Floor", {y});
  }
  if (op_->code == kFloorMod) {
    y = add("Mul", {y, v.b});
    y = add("Sub", {v.a, y});
  }
  define(0, y, v.dims, v.order, v.type);
}

void TfliteGraph::squared_difference() {
  const Two v = two();
  Name y = add("Sub", {v.a, v.b});
  y = add("Mul", {y, y});
  define(0, y, v.dims, v.order, v.type);
}

// Functions that are not one operator without attributes in ONNX.
void TfliteGraph::function() {
  const One v = one(0);
  const int code = op_->code;
  Name y = kNone;
  if (code == kSquare) {
    y = add("Mul", {v.x, v.x});
  } else if (code == kRsqrt) {
    y = add("Reciprocal", {add("Sqrt", {v.x})});
  } else if (code == kLeakyRelu) {
    y = add("LeakyRelu", {v.x}, {real_of("alpha", static_cast<float>(option(0)))});
  } else if (code == kGelu) {
    y = add("Gelu", {v.x}, {text_of("approximate", flag(0) ? "tanh" : "none")});
  } else {
    y = clipped(v.x, code == kReluN1To1 ? -1 : 0, code == kRelu6 ? 6 : 1);
  }
  define(0, y, v.dims, v.order, v.type);
}

void TfliteGraph::add_all() {
  const Order order = order_of_all();
  const Value& like = value(0);
  Name y = in(0, order);
  for (size_t i = 1; i < op_->inputs.size(); ++i) {
    if (dims(i) != like.dims) refuse("adds values of different shapes");
    y = add("Add", {y, in(i, order)});
  }
  define(0, y, like.dims, order, like.type);
}

// SELECT may have a boolean for each index of the first axis alone.
void TfliteGraph::select() {
  const List& truths = dims(0);
  const Value& like = value(1);
  List visited = truths;
  if (op_->code == kSelect && visited.size() == 1 && like.dims.size() > 1)
    visited.resize(like.dims.size(), 1);
  const List all = broadcast(broadcast(visited, like.dims), dims(2));
  const bool as_it_is = visited == truths;
  const Order order = as_it_is ? order_of({0, 1, 2}) : Order::plain;
  Name test = in(0, order);
  if (!as_it_is) test = shaped(test, visited);
  define(0, add("Where", {test, in(1, order), in(2, order)}), all, order, like.type);
}

// Over the last axis of the file.
void TfliteGraph::softmax() {
  const One v = one(0);
  if (v.dims.empty()) return refuse("is read over an axis");
  const bool plain_one = op_->code == kSoftmax;
  Name x = v.x;
  if (plain_one && option(0) != 1) x = add("Mul", {x, number(static_cast<float>(option(0)))});
  const int64_t along = last_axis(v);
  define(0, add(plain_one ? "Softmax" : "LogSoftmax", {x}, {{"axis", along}}), v.dims, v.order);
}

// The position of the last axis of the file.
int64_t TfliteGraph::last_axis(const One& v) {
  return v.order == Order::first ? 1 : static_cast<int64_t>(v.dims.size()) - 1;
}

void TfliteGraph::reduce() {
  const Value& from = value(0);
  List over = integers(1);
  for (int64_t& a : over) a = axis(a, from.dims.size());
  if (failed()) return;
  std::ranges::sort(over);
  over.erase(std::unique(over.begin(), over.end()), over.end());
  const bool kept = flag(0);
  List dims;
  for (size_t i = 0; i < from.dims.size(); ++i) {
    const bool gone = std::ranges::binary_search(over, static_cast<int64_t>(i));
    if (!gone || kept) dims.push_back(gone ? 1 : from.dims[i]);
  }
  Order order = order_of({0});
  // Channels that do not change are last in both orders.
  const bool pooled = over == List{1, 2} || over == List{1, 2, 3} || over == List{2, 3};
  if (!kept && !pooled) order = Order::plain;
  const Name x = in(0, order);
  if (over.empty()) return define(0, x, dims, order, from.type);
  if (order == Order::first) {
    for (int64_t& a : over) a = kAxisFirst[a];
    std::ranges::sort(over);
  }
  const Name y = add(onnx_op(kReduce, op_->code), {x, list(over)}, {{"keepdims", kept}});
  define(0, y, dims, kept ? order : Order::plain, from.type);
}

TfliteGraph::Name TfliteGraph::as_type(Name x, OnnxType type) {
  return add("Cast", {x}, {{"to", static_cast<int64_t>(type)}});
}

void TfliteGraph::arg() {
  const One v = plain(0);
  const int64_t along = axis(integer(1), v.dims.size());
  if (failed()) return;
  Name y =
      add(op_->code == kArgMax ? "ArgMax" : "ArgMin", {v.x}, {{"axis", along}, {"keepdims", 0}});
  List dims = v.dims;
  dims.erase(dims.begin() + along);
  const bool wide = out_tensor().type == TfliteType::i64;
  const OnnxType type = wide ? OnnxType::i64 : OnnxType::i32;
  if (!wide) y = as_type(y, type);
  define(0, y, dims, Order::plain, type);
}

// Over the last axis; lengths below 1e-6 count as that.
void TfliteGraph::l2_normalization() {
  const One v = one(0);
  if (v.dims.empty()) return refuse("is read over an axis");
  const Name length = add("ReduceL2", {v.x, list({last_axis(v)})});
  const Name y = add("Div", {v.x, add("Max", {length, number(1e-6f)})});
  define(0, activated(y, integer_option(0)), v.dims, v.order);
}

// TFLite multiplies the sum with alpha, ONNX the mean.
void TfliteGraph::local_response() {
  const List& x = dims(0);
  const int64_t radius = integer_option(0);
  if (x.size() != 4 || radius < 0 || radius > 65536)
    return refuse("needs an image, and a radius of 0 or more");
  const int64_t size = 2 * radius + 1;
  const double alpha = option(2) * static_cast<double>(size);
  const Name y = add("LRN", {in(0, Order::first)},
                     {{"size", size},
                      real_of("bias", static_cast<float>(option(1))),
                      real_of("alpha", static_cast<float>(alpha)),
                      real_of("beta", static_cast<float>(option(3)))});
  define(0, y, x, Order::first);
}

void TfliteGraph::cast() {
  const One v = one(0);
  const TfliteTensor& out = out_tensor();
  const OnnxType type = onnx_type_of(out.type);
  if (type == OnnxType::undefined || out.quantization)
    return refuse(cat("makes ", tflite_type_name(out.type), " values"));
  define(0, as_type(v.x, type), v.dims, v.order, type);
}

// Operators that only change how values are stored. The values are real numbers already; define()
// rounds them.
void TfliteGraph::same() {
  const One v = one(0);
  if (op_->code == kDequantize && v.type != OnnxType::f32)
    return refuse("makes numbers of values that have no scale");
  define(0, v.x, v.dims, v.order, v.type);
}

void TfliteGraph::cumsum() {
  const One v = plain(0);
  const int64_t along = axis(integer(1), v.dims.size());
  const Name at = keep(onnx_tensor("", {}, std::span<const int64_t>(&along, 1)));
  const Name y = add("CumSum", {v.x, at}, {{"exclusive", flag(0)}, {"reverse", flag(1)}});
  define(0, y, v.dims, Order::plain, v.type);
}

void TfliteGraph::top_k() {
  const One v = plain(0);
  const int64_t k = integer(1);
  if (v.dims.empty() || k < 1 || k > v.dims.back()) return refuse("k that does not fit");
  const Names made = add_many("TopK", Names{v.x, list({k})}, {}, 2);
  List dims = v.dims;
  dims.back() = k;
  define(0, made[0], dims, Order::plain, v.type);
  define(1, as_type(made[1], OnnxType::i32), dims, Order::plain, OnnxType::i32);
}

void TfliteGraph::one_hot() {
  const One v = plain(0);
  const int64_t depth = integer(1), rank = static_cast<int64_t>(v.dims.size());
  const int64_t along = integer_option(0) < 0 ? integer_option(0) + rank + 1 : integer_option(0);
  if (along < 0 || along > rank || depth < 1) return refuse("an axis or a depth that cannot be");
  const Name both = add("Concat", {shaped(in(3), {1}), shaped(in(2), {1})}, {{"axis", 0}});
  List dims = v.dims;
  dims.insert(dims.begin() + along, depth);
  define(0, add("OneHot", {v.x, list({depth}), both}, {{"axis", along}}), dims, Order::plain,
         value(2).type);
}

}  // namespace loom::core
