// Inputs and outputs of the operator under way, in the order of axes that it asks for. See
// lower.hpp.
#include <algorithm>
#include <cmath>

#include "base/checked.hpp"
#include "base/text.hpp"
#include "formats/tflite/lower.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMostValues = int64_t{1} << 40;  // of one tensor

// Whether an operator only moves or picks values, so that they stay on the steps of its input.
bool keeps_steps(int code) {
  constexpr int kCodes[] = {kConcatenation, kMaxPool,      kReshape,      kPad,        kGather,
                            kTranspose,     kSqueeze,      kSplit,        kExpandDims, kSlice,
                            kTile,          kStridedSlice, kPack,         kUnpack,     kSplitV,
                            kReverse,       kMirrorPad,    kReduceMax,    kReduceMin,  kRelu,
                            kBroadcastTo,   kDepthToSpace, kSpaceToDepth, kMaximum,    kMinimum,
                            kSelectV2,      kSelect,       kGatherNd};
  return std::ranges::find(kCodes, code) != std::end(kCodes);
}

struct Steps {
  int64_t low, high;
};
Steps steps_of(TfliteType type) {
  if (type == TfliteType::u8) return {0, 255};
  if (type == TfliteType::i16) return {-32768, 32767};
  return {-128, 127};
}

}  // namespace

int64_t count_of(const std::vector<int64_t>& dims) {
  uint64_t count = 1;
  for (const int64_t d : dims) {
    if (d < 0 || !checked_mul(count, static_cast<uint64_t>(d), count)) return -1;
  }
  return count > static_cast<uint64_t>(kMostValues) ? -1 : static_cast<int64_t>(count);
}

Result<std::vector<int64_t>> broadcast_dims(const std::vector<int64_t>& a,
                                            const std::vector<int64_t>& b) {
  std::vector<int64_t> out(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return unsupported("shapes that do not fit each other");
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

// An option that stands for a count or a place: what is no whole number was refused by the reader.
int64_t TfliteGraph::whole(size_t field) const {
  return static_cast<int64_t>(op_->options[field]);
}

Result<TfliteGraph::Value*> TfliteGraph::tensor_value(int64_t tensor) {
  Value& v = values_[static_cast<size_t>(tensor)];
  if (v.made) return &v;
  if (!file_.tensors[static_cast<size_t>(tensor)].constant)
    return bad_file(cat(place_, ": reads tensor ", tensor, ", which no operator before it makes"),
                    where_);
  LOOM_ASSIGN(OnnxTensor t, constant_of(tensor, false));
  v.dims = t.shape;
  v.type = t.type;
  v.plain = keep(std::move(t));
  v.made = true;
  return &v;
}

Result<TfliteGraph::Value*> TfliteGraph::value(size_t i) {
  if (!has(i)) return bad_file(cat(place_, ": its input ", i, " is absent"), where_);
  return tensor_value(op_->inputs[i]);
}

Result<TfliteGraph::List> TfliteGraph::dims(size_t i) {
  LOOM_ASSIGN(const Value* v, value(i));
  return v->dims;
}

// Constants of fewer axes get axes of 1 in front, as broadcasting reads them.
Result<TfliteGraph::Name> TfliteGraph::padded_first(Value& v) {
  if (v.dims.empty()) return v.plain;
  List dims = v.dims;
  dims.insert(dims.begin(), 4 - dims.size(), 1);
  LOOM_ASSIGN(const Name four, shaped(v.plain, dims));
  return moved(four, {std::begin(kToFirst), std::end(kToFirst)});
}

Result<TfliteGraph::Name> TfliteGraph::in_order(Value& v, Order order) {
  Name& name = order == Order::plain ? v.plain : v.first;
  if (name != kNone) return name;
  if (order == Order::plain) {
    LOOM_ASSIGN(name, moved(v.first, {std::begin(kToLast), std::end(kToLast)}));
  } else if (v.dims.size() > 4) {
    return refuse("mixes values of four axes and of more");
  } else {
    LOOM_ASSIGN(name, padded_first(v));
  }
  return name;
}

Result<TfliteGraph::Name> TfliteGraph::in(size_t i, Order order) {
  LOOM_ASSIGN(Value * v, value(i));
  return in_order(*v, order);
}

// Channels first where that is all there is of some input, and where every input can be had so.
Result<TfliteGraph::Order> TfliteGraph::order_of(std::initializer_list<size_t> inputs) {
  bool alone = false, fits = true;
  for (const size_t i : inputs) {
    LOOM_ASSIGN(const Value* v, value(i));
    const bool constant = known(v->plain) != nullptr;
    alone = alone || (v->plain == kNone && !constant);
    fits = fits && (constant ? v->dims.size() <= 4 : v->dims.size() == 4);
  }
  return alone && fits ? Order::first : Order::plain;
}

Result<TfliteGraph::Order> TfliteGraph::order_of_all() {
  for (size_t i = 0; i < op_->inputs.size(); ++i) {
    LOOM_ASSIGN(const Value* v, value(i));
    if (v->dims.size() != 4) return Order::plain;
  }
  for (size_t i = 0; i < op_->inputs.size(); ++i) {
    LOOM_ASSIGN(const Order order, order_of({i}));
    if (order == Order::first) return order;
  }
  return Order::plain;
}

const OnnxTensor* TfliteGraph::known(Name name) const {
  const auto found = constants_.find(name);
  return found == constants_.end() ? nullptr : &found->second;
}

Result<TfliteGraph::List> TfliteGraph::integers(size_t i) {
  LOOM_ASSIGN(const Value* v, value(i));
  const OnnxTensor* t = known(v->plain);
  if (t == nullptr) return refuse(cat("its input ", i, " must be known before the model runs"));
  if (t->count() > static_cast<int64_t>(kMaxTfliteList))
    return refuse(cat("its input ", i, " is a list of ", t->count(), " numbers"));
  const Result<List> out = onnx_i64(*t);
  return out.ok() ? out : Result<List>(refuse(cat("its input ", i, " holds no whole numbers")));
}

// What an operator that works value by value takes: channels first, where that is what is there.
Result<TfliteGraph::One> TfliteGraph::one(size_t i) {
  LOOM_ASSIGN(const Order order, order_of({i}));
  LOOM_ASSIGN(const Name x, in(i, order));
  const Value& v = values_[static_cast<size_t>(op_->inputs[i])];
  return One{x, v.dims, v.type, order};
}

Result<TfliteGraph::One> TfliteGraph::plain(size_t i) {
  LOOM_ASSIGN(const Name x, in(i));
  const Value& v = values_[static_cast<size_t>(op_->inputs[i])];
  return One{x, v.dims, v.type, Order::plain};
}

Result<TfliteGraph::Two> TfliteGraph::two() {
  LOOM_ASSIGN(const Order order, order_of({0, 1}));
  LOOM_ASSIGN(const Name a, in(0, order));
  LOOM_ASSIGN(const Name b, in(1, order));
  const Value& left = values_[static_cast<size_t>(op_->inputs[0])];
  const Value& right = values_[static_cast<size_t>(op_->inputs[1])];
  Result<List> dims = broadcast_dims(left.dims, right.dims);
  if (!dims.ok()) return refuse(dims.error().message);
  return Two{a, b, std::move(*dims), left.type, order};
}

Result<int64_t> TfliteGraph::integer(size_t i) {
  LOOM_ASSIGN(const List all, integers(i));
  if (all.size() != 1) return refuse(cat("its input ", i, " is not one number"));
  return all[0];
}

Result<int64_t> TfliteGraph::axis(int64_t given, size_t rank) const {
  const auto axes = static_cast<int64_t>(rank);
  const int64_t at = given < 0 ? given + axes : given;
  if (at < 0 || at >= axes) return refuse(cat("axis ", given, " of ", rank));
  return at;
}

bool TfliteGraph::same_steps(const TfliteTensor& out) const {
  return std::ranges::all_of(op_->inputs, [&](int64_t tensor) {
    if (tensor < 0) return true;
    const TfliteTensor& in = file_.tensors[static_cast<size_t>(tensor)];
    if (in.type == TfliteType::i32 || in.type == TfliteType::i64) return true;  // places, extents
    return in.type == out.type && in.quantization &&
           in.quantization->scale == out.quantization->scale &&
           in.quantization->zero_point == out.quantization->zero_point;
  });
}

Status TfliteGraph::define(size_t output, Name name, List dims, Order order, OnnxType type) {
  const TfliteTensor& t = out_tensor(output);
  Value& v = values_[static_cast<size_t>(op_->outputs[output])];
  if (v.made) return bad_file(cat(place_, ": gives a tensor twice"), where_);
  if (const OnnxTensor* c = known(name)) {
    dims = c->shape;
    type = c->type;
    order = Order::plain;
  } else if (count_of(dims) < 1 || dims.size() > kMaxTfliteRank) {
    return refuse("gives no values, too many, or too many axes");
  }
  const bool stepped =
      t.type == TfliteType::i8 || t.type == TfliteType::u8 || t.type == TfliteType::i16;
  if (t.quantization && stepped && !(keeps_steps(op_->code) && same_steps(t))) {
    LOOM_ASSIGN(name, quantized(name, *t.quantization, t.type));
  }
  v.dims = std::move(dims);
  v.type = type;
  v.made = true;
  (order == Order::plain ? v.plain : v.first) = name;
  return {};
}

// x on the steps of a scale: divided, held in the range of the type, rounded and multiplied.
Result<TfliteGraph::Name> TfliteGraph::quantized(Name name, const TfliteQuantization& q,
                                                 TfliteType type) {
  if (known(name) != nullptr && !options_.folder) return name;
  if (q.scale.size() != 1) return refuse("computed values with a scale for each channel");
  const Steps s = steps_of(type);
  const auto low = static_cast<float>(s.low - q.zero_point[0]);
  const auto high = static_cast<float>(s.high - q.zero_point[0]);
  const float scale = q.scale[0];
  if (!options_.steps) return clipped(name, low * scale, high * scale);
  LOOM_ASSIGN(Name x, add("Div", {name, number(scale)}));
  LOOM_ASSIGN(x, clipped(x, low, high));
  LOOM_ASSIGN(x, add("Round", {x}));
  return add("Mul", {x, number(scale)});
}

}  // namespace loom::core
