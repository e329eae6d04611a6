// Operators that are several others: each part runs by its own row of the table, with a node made
// up for it. Errors name the node of the file.
#pragma once

#include <initializer_list>

#include "onnx/interpreter/body.hpp"

namespace loom::core::evaluate {

// A value of the call, or null where it is left out.
inline const Value* optional(const Call& c, size_t i) {
  return c.has(i) ? &c.value(i) : nullptr;
}

class Part {
 public:
  using Inputs = std::initializer_list<const Value*>;  // null: left out
  using PreparedResult = Result<std::shared_ptr<const Prepared>>;

  // `op` is in the table.
  Part(const Call& c, std::string_view op, std::string_view domain = "");
  template <class T>
  Part& set(std::string name, T value) {
    node_.attributes.push_back(onnx_attribute(std::move(name), std::move(value)));
    return *this;
  }
  // An attribute of the call, under another name; nothing where it has none.
  Part& keep(std::string_view name, std::string_view as = "");
  // The result of prepare(), made when the graph was opened.
  Part& with(const Prepared* prepared) {
    prepared_ = prepared;
    return *this;
  }
  // The operator set whose meaning the part has; the newest without it.
  Part& version(int64_t opset) {
    opset_ = opset;
    return *this;
  }

  Result<Value> value(Inputs in);  // its only output
  Result<std::vector<Slot>> values(Inputs in, size_t outputs);
  // Prepares the part for its constant inputs.
  PreparedResult prepare(Inputs in);

 private:
  std::vector<Slot> slots(Inputs in);
  const Call& c_;
  const Operator* op_;
  OnnxNode node_;
  const Prepared* prepared_ = nullptr;
  int64_t opset_ = 23;
};

// Places [first, first + count) of an axis.
Result<Value> part_of(const Call& c, const Value& v, int axis, int64_t first, int64_t count);
// One number, or a row of them, in f32.
Result<Value> real_row(const Call& c, std::initializer_list<double> values);

std::span<const Operator> fused_operators();
std::span<const Operator> fused_product_operators();
std::span<const Operator> fused_attention_operators();
std::span<const Operator> linear_operators();
std::span<const Operator> blockwise_operators();

}  // namespace loom::core::evaluate
