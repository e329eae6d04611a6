// One node as a call of its own. See alone.hpp.
#include "onnx/operators/alone.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom::core::evaluate {
namespace {

// The inputs of a call, without those at the end that are left out.
std::vector<const Slot*> present(std::span<const Slot> inputs) {
  std::vector<const Slot*> in;
  for (const Slot& slot : inputs) in.push_back(&slot);
  while (!in.empty() && in.back()->kind == Slot::Kind::absent) in.pop_back();
  return in;
}

Status check(const Operator& row, const Call& c) {
  const auto count = static_cast<int>(c.in.size());
  const InputCount takes = row.inputs();
  if (count < takes.min) return c.bad(cat("input ", count, " is absent"));
  if (takes.max >= 0 && count > takes.max) return c.bad(cat("has ", count, " inputs"));
  for (const OnnxAttribute& a : c.node.attributes) {
    if (!a.graphs.empty()) return c.not_done("graphs of its own");
    if (!row.knows_attribute(a.name))
      return c.not_done(cat("its attribute '", printable(a.name), "'"));
  }
  if ((row.flags & Operator::lists) != 0) return {};
  for (int i = 0; i < count; ++i) {
    if (!c.has(static_cast<size_t>(i)) && (i < takes.min || takes.max < 0))
      return c.bad(cat("input ", i, " is absent"));
  }
  return {};
}

Error not_read(const OnnxNode& node, std::string_view what) {
  return unsupported(cat("node '", printable(node.name), "' (", printable(node.op),
                         "): its constant output ", what));
}

Result<OnnxTensor> tensor_of(const OnnxNode& node, const Slot& slot) {
  if (slot.kind != Slot::Kind::tensor) return not_read(node, "is not a tensor");
  const Value& v = slot.tensor;
  if (onnx_type_bytes(v.type) == 0)
    return not_read(node, cat("holds ", onnx_type_name(v.type), " values"));
  OnnxTensor out;
  out.type = v.type;
  out.shape = v.dims;
  const auto* bytes = v.data<std::byte>();
  out.own.assign(bytes, bytes + v.bytes());
  return out;
}

}  // namespace

Alone::Alone(const Ops& ops, int64_t memory_limit)
    : memory_(std::make_shared<Memory>(memory_limit)),
      pool_(1),
      recorder_(ops, pool_, ActivationMode::f32),
      rt_{*memory_, pool_, recorder_} {}

Result<std::vector<Slot>> Alone::run(const Operator& row, const OnnxNode& node, int64_t opset,
                                     std::span<const Slot> inputs) {
  const std::vector<const Slot*> in = present(inputs);
  std::vector<Slot> out(node.outputs.size());
  const Call call(node, opset, rt_, in, out);
  LOOM_TRY(check(row, call));
  LOOM_TRY(row.run(call));
  for (size_t i = 0; i < out.size(); ++i) {
    if (!node.outputs[i].empty() && out[i].kind == Slot::Kind::absent)
      return call.not_done(cat("its output ", i));
  }
  return out;
}

Result<Dims> Alone::shape(const Operator& row, const OnnxNode& node, int64_t opset,
                          std::span<const Slot> inputs) {
  const std::vector<const Slot*> in = present(inputs);
  const Call call(node, opset, rt_, in, {});
  LOOM_TRY(check(row, call));
  return row.shape(call);
}

Status Alone::defined(const Operator& row, const OnnxNode& node, int64_t opset,
                      std::span<const Slot> inputs) {
  if (row.defined == nullptr) return {};
  const std::vector<const Slot*> in = present(inputs);
  const Call call(node, opset, rt_, in, {});
  LOOM_TRY(check(row, call));
  return row.defined(call);
}

Result<std::vector<OnnxTensor>> Alone::run(const Operator& row, const OnnxNode& node, int64_t opset,
                                           std::span<const OnnxTensor* const> inputs) {
  std::vector<Slot> in(node.inputs.size());
  for (size_t i = 0; i < in.size(); ++i) {
    if (node.inputs[i].empty()) continue;
    if (i >= inputs.size() || inputs[i] == nullptr)
      return unsupported(cat("node '", printable(node.name), "' (", printable(node.op),
                             "): its input '", printable(node.inputs[i]), "' is not known"));
    LOOM_ASSIGN(Value value, value_of(*memory_, *inputs[i]));
    in[i] = Slot::of(std::move(value));
  }
  LOOM_TRY(defined(row, node, opset, in));
  LOOM_ASSIGN(const std::vector<Slot> made, run(row, node, opset, in));
  std::vector<OnnxTensor> out(made.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    LOOM_ASSIGN(out[i], tensor_of(node, made[i]));
  }
  return out;
}

}  // namespace loom::core::evaluate
