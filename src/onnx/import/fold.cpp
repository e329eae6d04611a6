// Constants from constants: what exporters compute about shapes and masks. An operator's meaning is
// that of its row (onnx/operators); here is how a Constant becomes its input and its output, and
// what is refused: results too large, and what the standard leaves open. See values.hpp.
#include <algorithm>
#include <cstring>

#include "backend/reference/reference.hpp"
#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "dtype/codecs/codec.hpp"
#include "onnx/import/schema.hpp"
#include "onnx/import/values.hpp"
#include "onnx/operators/alone.hpp"

namespace loom::core {
namespace {

using evaluate::Alone;
using evaluate::Dims;
using evaluate::Operator;
using evaluate::Slot;
using evaluate::Value;

constexpr double kExact = 9007199254740992.0;         // 2^53
constexpr int64_t kFoldingMemory = int64_t{1} << 36;  // inputs are bounded by the file

Error bad(const OnnxNode& node, std::string_view message) {
  return bad_file(cat("node '", printable(node.name), "' (", printable(node.op), "): ", message));
}

bool is_one_number(const ConstantRef& c) {
  return c == nullptr || c->values.size() == 1;
}

// Extents of at most `most` values.
Status within(const OnnxNode& node, const Dims& dims, uint64_t most) {
  uint64_t count = 1;
  for (const int64_t d : dims) {
    if (d < 0 || !checked_mul(count, static_cast<uint64_t>(d), count) || count > most ||
        dims.size() > kMaxOnnxRank)
      return bad(node, cat("a constant of more than ", most, " values, or no shape at all"));
  }
  return {};
}

// A Constant keeps integers as doubles, which hold all of them up to 2^53.
Status exact(const OnnxNode& node, const Constant& c) {
  if (is_float(c.type)) return {};
  if (std::ranges::any_of(c.values, [](double v) { return v >= kExact || v <= -kExact; }))
    return bad(node, "computes with an integer beyond 2^53");
  return {};
}

// One node at work.
class Folding {
 public:
  Folding(const Operator& row, const OnnxNode& node, int64_t opset)
      : row_(row), node_(node), opset_(opset), alone_(reference_ops(), kFoldingMemory) {}

  Result<Constant> run(const std::vector<ConstantRef>& in);
  // By its rule; the values of the first input are not read.
  Result<Dims> shape(const Dims& first, const std::vector<ConstantRef>& in);

 private:
  bool has(uint16_t flag) const { return (row_.flags & flag) != 0; }
  Result<Slot> slot(const Constant& c, Dims dims);
  Result<std::vector<Slot>> slots(const std::vector<ConstantRef>& in, bool ones);
  Result<Constant> computed(const std::vector<Slot>& in);
  Result<Constant> pointwise(const std::vector<ConstantRef>& in);
  Result<Constant> picked(const std::vector<ConstantRef>& in);
  Result<Constant> filled(const std::vector<ConstantRef>& in);

  const Operator& row_;
  const OnnxNode& node_;
  int64_t opset_;
  Alone alone_;
};

// The values of `c` under some extents; one value stands for all.
Result<Slot> Folding::slot(const Constant& c, Dims dims) {
  if (c.values.size() == 1) LOOM_TRY(within(node_, dims, kMaxFolded));
  LOOM_ASSIGN(Value wide, Value::make(alone_.memory(), OnnxType::f64, std::move(dims)));
  if (c.values.size() == 1) {
    std::fill_n(wide.data<double>(), wide.count(), c.values[0]);
  } else {
    std::ranges::copy(c.values, wide.data<double>());
  }
  LOOM_ASSIGN(Value typed, evaluate::cast(alone_.memory(), wide, c.type));
  return Slot::of(std::move(typed));
}

// `ones`: of constants of one number each, that number alone.
Result<std::vector<Slot>> Folding::slots(const std::vector<ConstantRef>& in, bool ones) {
  std::vector<Slot> out(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i] == nullptr) continue;
    LOOM_ASSIGN(out[i], slot(*in[i], ones ? Dims(in[i]->dims.size(), 1) : in[i]->dims));
  }
  return out;
}

Result<Constant> Folding::computed(const std::vector<Slot>& in) {
  LOOM_TRY(alone_.defined(row_, node_, opset_, in));
  LOOM_ASSIGN(const std::vector<Slot> made, alone_.run(row_, node_, opset_, in));
  const Value& v = made[0].tensor;
  if (onnx_type_bytes(v.type) == 0) return bad(node_, "makes values of a type that is not read");
  LOOM_ASSIGN(const Value wide, evaluate::cast(alone_.memory(), v, OnnxType::f64));
  Constant out{v.dims, v.type, {}};
  out.values.assign(wide.data<double>(), wide.data<double>() + wide.count());
  if (is_float(v.type)) return out;
  for (double& each : out.values) each = std::clamp(each, -kExact, kExact);
  if (!has(Operator::moves)) LOOM_TRY(exact(node_, out));
  return out;
}

// If each input is one number, the result is one number, of any extent.
Result<Constant> Folding::pointwise(const std::vector<ConstantRef>& in) {
  Dims dims;
  for (const ConstantRef& c : in) {
    if (c != nullptr && !evaluate::broadcast(dims, c->dims))
      return bad(node_, "shapes that do not fit");
  }
  const bool ones = std::ranges::all_of(in, is_one_number);
  auto most = static_cast<uint64_t>(kMaxFolded);
  for (const ConstantRef& c : in) {
    if (c != nullptr) most = std::max<uint64_t>(most, c->values.size());
  }
  LOOM_TRY(within(node_, dims, ones ? kMaxOnnxFile : most));
  LOOM_ASSIGN(const std::vector<Slot> values, slots(in, ones));
  LOOM_ASSIGN(Constant out, computed(values));
  if (!ones) return out;
  out.dims = std::move(dims);
  if (out.count() == 0) out.values.clear();
  return out;
}

Result<Dims> Folding::shape(const Dims& first, const std::vector<ConstantRef>& in) {
  std::vector<ConstantRef> others = in;
  others[0] = nullptr;
  LOOM_ASSIGN(std::vector<Slot> values, slots(others, false));
  values[0].kind = Slot::Kind::tensor;
  values[0].tensor.type = OnnxType::f32;
  values[0].tensor.dims = first;
  LOOM_TRY(alone_.defined(row_, node_, opset_, values));
  return alone_.shape(row_, node_, opset_, values);
}

// Elements of the first input: of one number, that number in other extents.
Result<Constant> Folding::picked(const std::vector<ConstantRef>& in) {
  LOOM_ASSIGN(Dims dims, shape(in[0]->dims, in));
  if (is_one_number(in[0])) {
    LOOM_TRY(within(node_, dims, kMaxOnnxFile));
    return Constant{std::move(dims), in[0]->type, in[0]->values};
  }
  LOOM_TRY(within(node_, dims, std::max<uint64_t>(kMaxFolded, in[0]->values.size())));
  LOOM_ASSIGN(const std::vector<Slot> values, slots(in, false));
  return computed(values);
}

// One number throughout: that which the row gives for no extents.
Result<Constant> Folding::filled(const std::vector<ConstantRef>& in) {
  LOOM_ASSIGN(const std::vector<Slot> values, slots(in, false));
  LOOM_ASSIGN(Dims dims, alone_.shape(row_, node_, opset_, values));
  LOOM_TRY(within(node_, dims, kMaxOnnxFile));
  LOOM_ASSIGN(Slot none, slot(Constant{{0}, in[0]->type, {}}, {0}));
  LOOM_ASSIGN(Constant out, computed({std::move(none)}));
  out.dims = std::move(dims);
  return out;
}

Result<Constant> Folding::run(const std::vector<ConstantRef>& in) {
  for (const ConstantRef& c : in) {
    if (c != nullptr && !has(Operator::moves)) LOOM_TRY(exact(node_, *c));
  }
  const bool same = has(Operator::pointwise) && has(Operator::moves) && in.size() == 1;
  if (same) return *in[0];
  if (has(Operator::pointwise)) return pointwise(in);
  if (has(Operator::picks)) return picked(in);
  if (has(Operator::fills)) return filled(in);
  LOOM_ASSIGN(const std::vector<Slot> values, slots(in, false));
  if (row_.shape != nullptr) {
    LOOM_ASSIGN(const Dims dims, alone_.shape(row_, node_, opset_, values));
    LOOM_TRY(within(node_, dims, kMaxFolded));
  }
  return computed(values);
}

}  // namespace

int64_t Constant::count() const {
  int64_t n = 1;
  for (const int64_t d : dims) n *= d;
  return n;
}

std::vector<int64_t> Constant::integers() const {
  std::vector<int64_t> out;
  const int64_t n = std::min(count(), kMaxFolded);
  for (int64_t i = 0; i < n; ++i) {
    const double v = at(i);
    out.push_back(static_cast<int64_t>(std::clamp(v == v ? v : 0, -kExact, kExact)));
  }
  return out;
}

std::vector<float> Constant::floats() const {
  std::vector<float> out(static_cast<size_t>(count()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(at(static_cast<int64_t>(i)));
  return out;
}

Result<Constant> constant_of(const OnnxTensor& tensor) {
  Constant out{tensor.shape, tensor.type, {}};
  if (is_float(tensor.type)) {
    LOOM_ASSIGN(out.values, onnx_f64(tensor));
    return out;
  }
  LOOM_ASSIGN(const std::vector<int64_t> whole, onnx_i64(tensor));
  for (const int64_t v : whole)
    out.values.push_back(std::clamp(static_cast<double>(v), -kExact, kExact));
  return out;
}

Result<OnnxTensor> tensor_of(const Constant& constant) {
  OnnxTensor out;
  out.type = constant.type;
  out.shape = constant.dims;
  const size_t bytes = onnx_type_bytes(constant.type);
  out.own.resize(static_cast<size_t>(constant.count()) * bytes);
  for (int64_t i = 0; i < constant.count(); ++i) {
    const double v = constant.at(i);
    std::byte* at = out.own.data() + static_cast<size_t>(i) * bytes;
    if (!is_float(constant.type)) {
      if (v >= kExact || v <= -kExact) return unsupported("an integer beyond 2^53");
      const auto whole = static_cast<int64_t>(v);
      std::memcpy(at, &whole, bytes);  // little-endian, as files are
    } else if (constant.type == OnnxType::f64) {
      std::memcpy(at, &v, bytes);
    } else {
      const auto f = static_cast<float>(v);
      const uint16_t half = constant.type == OnnxType::f16 ? f16_from_f32(f) : bf16_from_f32(f);
      std::memcpy(at, bytes == 4 ? static_cast<const void*>(&f) : &half, bytes);
    }
  }
  return out;
}

ConstantRef numbers_of(const OnnxNode& node) {
  Constant made;
  if (const OnnxAttribute* real = node.find("value_float")) {
    made.values = {static_cast<double>(real->real)};
  } else if (const OnnxAttribute* whole = node.find("value_int")) {
    made = {{}, OnnxType::i64, {static_cast<double>(whole->integer)}};
  } else if (const OnnxAttribute* list = node.find("value_ints")) {
    made = {{static_cast<int64_t>(list->integers.size())}, OnnxType::i64, {}};
    made.values.assign(list->integers.begin(), list->integers.end());
  } else if (const OnnxAttribute* reals = node.find("value_floats")) {
    made = {{static_cast<int64_t>(reals->reals.size())}, OnnxType::f32, {}};
    made.values.assign(reals->reals.begin(), reals->reals.end());
  } else {
    return nullptr;
  }
  return std::make_shared<const Constant>(std::move(made));
}

Constant shape_of(const OnnxNode& node, const std::vector<int64_t>& dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  const auto position = [&](int64_t p) {
    return std::clamp(p < 0 ? p + rank : p, int64_t{0}, rank);
  };
  const int64_t first = position(attribute(node, "start", 0));
  const int64_t last = position(attribute(node, "end", rank));
  Constant out{{std::max<int64_t>(last - first, 0)}, OnnxType::i64, {}};
  for (int64_t i = first; i < last; ++i)
    out.values.push_back(static_cast<double>(dims[static_cast<size_t>(i)]));
  return out;
}

OnnxNode cast_of(const OnnxNode& node, OnnxType type) {
  OnnxNode cast = node;
  cast.op = "Cast";
  cast.inputs.resize(1);
  OnnxAttribute to;
  to.name = "to";
  to.integer = static_cast<int64_t>(type);
  cast.attributes.push_back(std::move(to));
  return cast;
}

Result<std::vector<int64_t>> shape_by_row(const OnnxNode& node, int64_t opset,
                                          const std::vector<int64_t>& first,
                                          const std::vector<ConstantRef>& inputs) {
  return Folding(*evaluate::find_common_operator("", node.op), node, opset).shape(first, inputs);
}

bool folds_tensors(const OnnxNode& node) {
  return evaluate::find_common_operator("", node.op) != nullptr;
}

Result<std::vector<OnnxTensor>> fold_tensors(const OnnxNode& node, int64_t opset,
                                             std::span<const OnnxTensor* const> inputs) {
  Alone alone(reference_ops(), kFoldingMemory);
  return alone.run(*evaluate::find_common_operator("", node.op), node, opset, inputs);
}

bool folds(const OnnxNode& node) {
  const Operator* row = evaluate::find_common_operator("", node.op);
  return row != nullptr && (row->flags & Operator::folds) != 0;
}

Result<Constant> fold(const OnnxNode& node, int64_t opset, const std::vector<ConstantRef>& inputs) {
  const Operator& row = *evaluate::find_common_operator("", node.op);
  const evaluate::InputCount takes = row.inputs();
  for (size_t i = 0; i < std::max(static_cast<size_t>(takes.min), inputs.size()); ++i) {
    const bool here = i < inputs.size() && inputs[i] != nullptr;
    if (!here && (static_cast<int>(i) < takes.min || takes.max < 0))
      return bad(node, cat("input ", i, " is absent"));
  }
  return Folding(row, node, opset).run(inputs);
}

}  // namespace loom::core
