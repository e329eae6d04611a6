// The graph under construction: see builder.hpp. Names are numbers in the order of the calls, so
// equal networks are equal bytes.
#include "onnx/export/builder.hpp"

#include <algorithm>

#include "dtype/r16/r16.hpp"

namespace loom::core {

Error GraphBuilder::refuse(const Node& node, std::string_view reason) const {
  return unsupported(cat("cell ", path_, " (", node.config.def->name, "): ", reason));
}

Status GraphBuilder::check_fields(const Node& node) {
  const Status read = fields(node).check_all_read("ONNX");
  return read.ok() ? Status{} : Status(refuse(node, read.error().message));
}

std::string GraphBuilder::fresh() {
  return cat("value ", ++names_);
}

std::vector<std::string> GraphBuilder::add_many(std::string op, std::vector<std::string> inputs,
                                                std::vector<OnnxAttribute> attributes,
                                                const std::vector<bool>& expected) {
  OnnxNode node;
  node.name = cat(path_, "/", op, " ", graph_.nodes.size());
  node.op = std::move(op);
  node.inputs = std::move(inputs);
  // The empty name is how ONNX leaves an output out.
  for (const bool want : expected) node.outputs.push_back(want ? fresh() : "");
  node.attributes = std::move(attributes);
  graph_.nodes.push_back(std::move(node));
  return graph_.nodes.back().outputs;
}

std::string GraphBuilder::add(std::string op, std::vector<std::string> inputs,
                              std::vector<OnnxAttribute> attributes) {
  return add_many(std::move(op), std::move(inputs), std::move(attributes), {true})[0];
}

void GraphBuilder::store(const std::string& name, std::vector<int64_t> shape,
                         std::span<const float> values, bool trained) {
  OnnxTensor tensor = onnx_tensor(name, std::move(shape), values);
  if (trained) {
    graph_.initializers.push_back(std::move(tensor));
    return;
  }
  OnnxAttribute value;
  value.name = "value";
  value.type = OnnxAttributeType::tensor;
  value.tensors.push_back(std::move(tensor));
  OnnxNode node;
  node.name = name;
  node.op = "Constant";
  node.outputs = {name};
  node.attributes.push_back(std::move(value));
  graph_.nodes.push_back(std::move(node));
}

// Statistics are not weights either, but their operators say so themselves.
bool GraphBuilder::trains(const Node& node) const {
  const bool constant = node.config.def->kind == LayerKind::constant;
  return std::ranges::any_of(node.params, [&](int i) {
    const Param& p = network_.params()[static_cast<size_t>(i)];
    return !p.frozen && (p.spec.trained || !constant);
  });
}

std::string GraphBuilder::constant(std::string_view what, std::vector<int64_t> shape,
                                   const std::vector<float>& values) {
  std::string name = cat(path_, "/", what, " ", names_++);
  store(name, std::move(shape), values, false);
  return name;
}

std::string GraphBuilder::floats_of(const Node& node, std::string_view what,
                                    std::vector<int64_t> shape, const std::vector<float>& values) {
  std::string form = cat("\n", what);  // no path has a line break
  for (const int index : node.params) form += cat(" ", index);
  const auto known = made_.find(form);
  if (known != made_.end()) return known->second;
  std::string name = cat(path_, "/", what, " ", graph_.initializers.size());
  store(name, std::move(shape), values, trains(node));
  made_.emplace(std::move(form), name);
  return name;
}

std::string GraphBuilder::number(float value) {
  return constant("number", {}, {value});
}

// Shapes and axes are inputs in ONNX, not attributes, and the same few come up at many nodes.
std::string GraphBuilder::integers(const std::vector<int64_t>& values) {
  const auto known = integers_.find(values);
  if (known != integers_.end()) return known->second;
  std::string name = cat("integers ", integers_.size());
  graph_.initializers.push_back(
      onnx_tensor(name, {static_cast<int64_t>(values.size())}, std::span(values)));
  integers_.emplace(values, name);
  return name;
}

// -1 is the batch, of any size when the graph runs.
std::string GraphBuilder::reshape(const std::string& x, std::vector<int64_t> rest) {
  rest.insert(rest.begin(), -1);
  return add("Reshape", {x, integers(rest)});
}

// A packed matrix as the numbers that its codes mean. So another program computes with the same
// weights, not with those from before packing.
Result<std::vector<float>> GraphBuilder::values(const Node& node, size_t i) const {
  const Param& p = network_.params()[static_cast<size_t>(node.params[i])];
  const Tensor& t = p.tensor;
  if (t.empty()) return make_error(Code::not_found, cat("parameter ", p.path, " was never loaded"));
  std::vector<float> out(static_cast<size_t>(p.spec.shape.count()));
  if (t.layout == Layout::r16) {
    const int64_t rows = p.spec.shape[0], cols = p.spec.shape[1];
    const R16 geometry = r16_geometry(t.dtype, rows, cols);
    for (int64_t r = 0; r < rows; ++r)
      r16_decode(geometry, t.data, r, 0, cols, out.data() + r * cols);
    return out;
  }
  if (t.dtype == DType::f64) {
    std::transform(t.values<double>(), t.values<double>() + out.size(), out.begin(),
                   [](double v) { return static_cast<float>(v); });
    return out;
  }
  if (t.dtype != DType::f32)
    return unsupported(cat("parameter ", p.path, " is a vector of ", dtype_name(t.dtype)));
  std::copy_n(t.f32(), out.size(), out.begin());
  return out;
}

Result<std::string> GraphBuilder::param(const Node& node, size_t i, std::vector<int64_t> shape) {
  const Param& p = network_.params()[static_cast<size_t>(node.params[i])];
  if (shape.empty()) {
    for (int axis = 0; axis < p.spec.shape.rank(); ++axis) shape.push_back(p.spec.shape[axis]);
  }
  std::string form = p.path;
  for (const int64_t extent : shape) form += cat(" ", extent);
  const auto known = made_.find(form);
  if (known != made_.end()) return known->second;
  LOOM_ASSIGN(const std::vector<float> all, values(node, i));
  // The plain path is the name others may look for; other forms of it get a number.
  std::string name = made_.count(p.path) == 0 ? p.path : cat(p.path, " ", made_.size());
  store(name, std::move(shape), all, trains(node) && !p.frozen);
  made_.emplace(p.path, name);
  made_.emplace(form, name);
  return name;
}

// Ours are [outputs, inputs]; MatMul has its matrix on the right, as [inputs, outputs]. Cells that
// share parameters share the form that was made of them.
Result<std::string> GraphBuilder::transposed(const Node& node, size_t i) {
  const Param& p = network_.params()[static_cast<size_t>(node.params[i])];
  const int64_t rows = p.spec.shape[0], cols = p.spec.shape[1];
  const std::string form = cat(p.path, " transposed");
  const auto known = made_.find(form);
  if (known != made_.end()) return known->second;
  LOOM_ASSIGN(const std::vector<float> all, values(node, i));
  std::vector<float> transposed(all.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c)
      transposed[static_cast<size_t>(c * rows + r)] = all[static_cast<size_t>(r * cols + c)];
  }
  store(form, {cols, rows}, transposed, !p.frozen);
  made_.emplace(form, form);
  return form;
}

}  // namespace loom::core
