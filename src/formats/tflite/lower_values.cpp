// Inputs and outputs of the operator under way, in the order of axes that it asks for. See
// lower.hpp.
#include <algorithm>
#include <cmath>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "formats/tflite/lower.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMaxValues = int64_t{1} << 40;  // of one tensor
constexpr int64_t kFarthest = int64_t{1} << 52;

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
  return count > static_cast<uint64_t>(kMaxValues) ? -1 : static_cast<int64_t>(count);
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

// An integer option for a count or an index. The reader refused all others.
int64_t TfliteGraph::integer_option(size_t field) const {
  return static_cast<int64_t>(op_->options[field]);
}

TfliteGraph::Value& TfliteGraph::tensor_value(int64_t tensor) {
  Value& v = values_[static_cast<size_t>(tensor)];
  if (v.made || failed()) return v;
  if (!file_.tensors[static_cast<size_t>(tensor)].constant) {
    fail(bad_file(cat(place_, ": reads tensor ", tensor, ", which no operator before it makes"),
                  where_));
    return v;
  }
  OnnxTensor t = constant_of(tensor, false);
  if (failed()) return v;
  v.dims = t.shape;
  v.type = t.type;
  v.plain = keep(std::move(t));
  v.made = true;
  return v;
}

const TfliteGraph::Value& TfliteGraph::value(size_t i) {
  if (has(i)) {
    const Value& v = tensor_value(op_->inputs[i]);
    return v.made ? v : nothing_;
  }
  fail(bad_file(cat(place_, ": its input ", i, " is absent"), where_));
  return nothing_;
}

const TfliteGraph::List& TfliteGraph::dims(size_t i) {
  return value(i).dims;
}

// Constants of fewer axes get axes of 1 in front, as broadcasting reads them.
TfliteGraph::Name TfliteGraph::padded_first(const Value& v) {
  if (v.dims.empty()) return v.plain;
  List dims = v.dims;
  dims.insert(dims.begin(), 4 - dims.size(), 1);
  return moved(shaped(v.plain, dims), {std::begin(kToFirst), std::end(kToFirst)});
}

TfliteGraph::Name TfliteGraph::in_order(Value& v, Order order) {
  Name& name = order == Order::plain ? v.plain : v.first;
  if (name != kNone || failed()) return name;
  if (order == Order::plain) {
    name = moved(v.first, {std::begin(kToLast), std::end(kToLast)});
  } else if (v.dims.size() > 4) {
    refuse("mixes values of four axes and of more");
  } else {
    name = padded_first(v);
  }
  return name;
}

TfliteGraph::Name TfliteGraph::in(size_t i, Order order) {
  if (!value(i).made) return kNone;
  return in_order(values_[static_cast<size_t>(op_->inputs[i])], order);
}

// Channels first where that is all there is of some input, and where every input can be had so.
TfliteGraph::Order TfliteGraph::order_of(std::initializer_list<size_t> inputs) {
  bool alone = false, fits = true;
  for (const size_t i : inputs) {
    const Value& v = value(i);
    const bool constant = known(v.plain) != nullptr;
    alone = alone || (v.plain == kNone && !constant);
    fits = fits && (constant ? v.dims.size() <= 4 : v.dims.size() == 4);
  }
  return alone && fits ? Order::first : Order::plain;
}

TfliteGraph::Order TfliteGraph::order_of_all() {
  bool alone = false;
  for (size_t i = 0; i < op_->inputs.size(); ++i) {
    if (value(i).dims.size() != 4) return Order::plain;
    alone = alone || order_of({i}) == Order::first;
  }
  return alone ? Order::first : Order::plain;
}

const OnnxTensor* TfliteGraph::known(Name name) const {
  const auto found = constants_.find(name);
  return found == constants_.end() ? nullptr : &found->second;
}

TfliteGraph::List TfliteGraph::integers(size_t i) {
  const OnnxTensor* t = known(value(i).plain);
  if (t == nullptr) {
    refuse(cat("its input ", i, " must be known before the model runs"));
    return {};
  }
  if (t->count() > static_cast<int64_t>(kMaxTfliteList)) {
    refuse(cat("its input ", i, " is a list of ", t->count(), " numbers"));
    return {};
  }
  Result<List> out = onnx_i64(*t);
  if (out.ok()) {
    // Values beyond every axis are clamped, because they need no more precision.
    for (int64_t& at : *out) at = std::clamp(at, -kFarthest, kFarthest);
    return std::move(*out);
  }
  refuse(cat("its input ", i, " has no integers"));
  return {};
}

// The inputs of an operator on single values, with channels first if that order exists.
TfliteGraph::One TfliteGraph::one(size_t i) {
  const Order order = order_of({i});
  const Name x = in(i, order);
  const Value& v = value(i);
  return {x, v.dims, v.type, order};
}

TfliteGraph::One TfliteGraph::plain(size_t i) {
  const Name x = in(i);
  const Value& v = value(i);
  return {x, v.dims, v.type, Order::plain};
}

TfliteGraph::Two TfliteGraph::two() {
  const Order order = order_of({0, 1});
  const Name a = in(0, order), b = in(1, order);
  return {a, b, broadcast(dims(0), dims(1)), value(0).type, order};
}

TfliteGraph::List TfliteGraph::broadcast(const List& a, const List& b) {
  Result<List> out = broadcast_dims(a, b);
  if (out.ok()) return std::move(*out);
  refuse(out.error().message);
  return {};
}

int64_t TfliteGraph::integer(size_t i) {
  const List all = integers(i);
  if (all.size() == 1) return all[0];
  refuse(cat("its input ", i, " is not one number"));
  return 0;
}

// Afterwards failed() has to be asked before anything is indexed by it.
int64_t TfliteGraph::axis(int64_t given, size_t rank) {
  const auto axes = static_cast<int64_t>(rank);
  const int64_t at = given < 0 ? given + axes : given;
  if (at < 0 || at >= axes) refuse(cat("axis ", given, " of ", rank));
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

void TfliteGraph::define(size_t output, Name name, const List& dims, Order order, OnnxType type) {
  if (failed()) return;
  const TfliteTensor& t = out_tensor(output);
  Value& v = values_[static_cast<size_t>(op_->outputs[output])];
  if (v.made) return fail(bad_file(cat(place_, ": gives a tensor twice"), where_));
  const OnnxTensor* constant = known(name);
  v.dims = constant != nullptr ? constant->shape : dims;
  v.type = constant != nullptr ? constant->type : type;
  if (constant != nullptr) order = Order::plain;
  if (count_of(v.dims) < 1 || v.dims.size() > kMaxTfliteRank)
    return refuse("gives no values, too many, or too many axes");
  const bool stepped =
      t.type == TfliteType::i8 || t.type == TfliteType::u8 || t.type == TfliteType::i16;
  if (t.quantization && stepped && !(keeps_steps(op_->code) && same_steps(t)))
    name = quantized(name, *t.quantization, t.type);
  v.made = !failed();
  (order == Order::plain ? v.plain : v.first) = name;
}

// x on the steps of a scale: divided, held in the range of the type, rounded and multiplied.
TfliteGraph::Name TfliteGraph::quantized(Name x, const TfliteQuantization& q, TfliteType type) {
  if (known(x) != nullptr && !options_.folder) return x;
  if (q.scale.size() != 1) {
    refuse("computed values with a scale for each channel");
    return kNone;
  }
  const Steps s = steps_of(type);
  const auto low = static_cast<float>(s.low - q.zero_point[0]);
  const auto high = static_cast<float>(s.high - q.zero_point[0]);
  const float scale = q.scale[0];
  if (!options_.steps) return clipped(x, low * scale, high * scale);
  const Name indices = clipped(add("Div", {x, number(scale)}), low, high);
  return add("Mul", {add("Round", {indices}), number(scale)});
}

}  // namespace loom::core
