// See parts.hpp.
#include "onnx/interpreter/parts.hpp"

#include <algorithm>

#include "onnx/interpreter/families.hpp"

namespace loom::core::evaluate {

Part::Part(const Call& c, std::string_view op, std::string_view domain)
    : c_(c), op_(find_operator(domain, op)) {
  node_.name = c.node.name;
  node_.op = c.node.op;
}

Part& Part::keep(std::string_view name, std::string_view as) {
  if (const OnnxAttribute* a = c_.node.find(name)) {
    node_.attributes.push_back(*a);
    if (!as.empty()) node_.attributes.back().name = as;
  }
  return *this;
}

std::vector<Slot> Part::slots(Inputs in) {
  std::vector<Slot> out;
  node_.inputs.clear();
  for (const Value* v : in) {
    out.push_back(v == nullptr ? Slot{} : Slot::of(*v));
    node_.inputs.emplace_back(v == nullptr ? "" : "x");
  }
  return out;
}

Result<std::vector<Slot>> Part::values(Inputs in, size_t outputs) {
  const std::vector<Slot> given = slots(in);
  std::vector<const Slot*> pointers;
  for (const Slot& s : given) pointers.push_back(&s);
  const auto needed = static_cast<size_t>(op_->inputs().min);
  for (size_t i = 0; i < needed; ++i) {
    if (i >= given.size() || given[i].kind != Slot::Kind::tensor)
      return c_.bad("an input that it needs is left out");
  }
  node_.outputs.assign(outputs, "y");
  std::vector<Slot> out(outputs);
  Call call(node_, opset_, c_.rt, pointers, out);
  call.prepared = prepared_;
  LOOM_TRY(op_->run(call));
  return out;
}

Result<Value> Part::value(Inputs in) {
  LOOM_ASSIGN(const std::vector<Slot> out, values(in, 1));
  return out[0].tensor;
}

Part::PreparedResult Part::prepare(Inputs in) {
  const std::vector<Slot> given = slots(in);
  std::vector<const Slot*> pointers;
  for (const Slot& s : given) pointers.push_back(&s);
  return op_->prepare(Call(node_, opset_, c_.rt, pointers, {}));
}

Result<Value> part_of(const Call& c, const Value& v, int axis, int64_t first, int64_t count) {
  const auto at = static_cast<size_t>(axis);
  if (first == 0 && count == v.dims[at]) return v;
  Dims dims = v.dims;
  dims[at] = count;
  LOOM_ASSIGN(Value out, c.make(v.type, dims));
  Move m{dims, steps_of(v.dims), steps_of(dims)};
  m.x_first = first * m.x_steps[at];
  move(c, v, out, m);
  return out;
}

Result<Value> real_row(const Call& c, std::initializer_list<double> values) {
  const auto n = static_cast<int64_t>(values.size());
  LOOM_ASSIGN(Value v, c.make(OnnxType::f32, n == 1 ? Dims{} : Dims{n}));
  std::ranges::transform(values, v.data<float>(), [](double x) { return static_cast<float>(x); });
  return v;
}

}  // namespace loom::core::evaluate
