// The nodes of a Graph in ONNX: arithmetic of several inputs, and operators that move values. Most
// have an operator of the same meaning; see builder.hpp.
#include "base/text.hpp"
#include "layers/spatial/axes.hpp"
#include "onnx/export/builder.hpp"

namespace loom::core {
namespace {

std::vector<int64_t> ones(size_t count) {
  return std::vector<int64_t>(count, 1);
}

}  // namespace

Result<std::string> emit_binary(GraphBuilder& g, const Node& node, ExportInputs x) {
  struct Row {
    std::string_view function, op;
  };
  static constexpr Row kRows[] = {{"add", "Add"}, {"sub", "Sub"}, {"mul", "Mul"},
                                  {"div", "Div"}, {"max", "Max"}, {"min", "Min"}};
  const std::string_view function = g.fields(node).text("function");
  for (const Row& row : kRows) {
    if (row.function != function) continue;
    std::string y = x[0].name;
    for (const ExportValue& other : x.subspan(1)) y = g.add(std::string(row.op), {y, other.name});
    return y;
  }
  return g.refuse(node, cat("the function ", function, " has no form in ONNX"));
}

Result<std::string> emit_unary(GraphBuilder& g, const Node& node, const ExportValue& x) {
  struct Row {
    std::string_view function, op;
  };
  static constexpr Row kRows[] = {{"exp", "Exp"}, {"log", "Log"}, {"sqrt", "Sqrt"},
                                  {"neg", "Neg"}, {"abs", "Abs"}, {"reciprocal", "Reciprocal"}};
  const std::string_view function = g.fields(node).text("function");
  for (const Row& row : kRows) {
    if (row.function == function) return g.add(std::string(row.op), {x.name});
  }
  if (function == "square") return g.add("Mul", {x.name, x.name});
  if (function == "step") {
    const std::string from_0 = g.add("GreaterOrEqual", {x.name, g.number(0)});
    return g.add("Cast", {from_0}, {onnx_attribute("to", static_cast<int64_t>(OnnxType::f32))});
  }
  return emit_activation(g, x.name, function);
}

Result<std::string> emit_concat(GraphBuilder& g, const Node& node, ExportInputs x) {
  std::vector<std::string> parts;
  for (const ExportValue& part : x) parts.push_back(part.name);
  return g.add("Concat", parts, {onnx_attribute("axis", g.fields(node).integer("axis"))});
}

// None named: all but the batch. A rank of 0 is a rank of 1 here.
Result<std::string> emit_reduce(GraphBuilder& g, const Node& node, const ExportValue& x) {
  struct Row {
    std::string_view function, op;
  };
  static constexpr Row kRows[] = {{"sum", "ReduceSum"},
                                  {"mean", "ReduceMean"},
                                  {"max", "ReduceMax"},
                                  {"min", "ReduceMin"},
                                  {"sum_squares", "ReduceSumSquare"},
                                  {"l1", "ReduceL1"},
                                  {"l2", "ReduceL2"}};
  FieldReader& f = g.fields(node);
  std::vector<int64_t> axes = f.list("axes");
  for (int64_t axis = 1; f.list("axes").empty() && axis < x.shape.rank(); ++axis)
    axes.push_back(axis);
  if (axes.empty()) return g.refuse(node, "it reduces no axis, which ONNX takes for all of them");
  for (const Row& row : kRows) {
    if (row.function != f.text("function")) continue;
    const int64_t keep = f.flag("keep") ? 1 : 0;
    const std::string y =
        g.add(std::string(row.op), {x.name, g.integers(axes)}, {onnx_attribute("keepdims", keep)});
    const bool all = static_cast<int>(axes.size()) == x.shape.rank();
    return all && keep == 0 ? g.add("Reshape", {y, g.integers({1})}) : y;
  }
  return g.refuse(node, cat("the function ", f.text("function"), " has no form in ONNX"));
}

Result<std::string> emit_matmul(GraphBuilder& g, const Node& node, ExportInputs x) {
  FieldReader& f = g.fields(node);
  const auto transposed = [&](const ExportValue& value, bool turn) {
    if (!turn) return value.name;
    std::vector<int64_t> axes;
    for (int i = 0; i < value.shape.rank(); ++i) axes.push_back(i);
    std::swap(axes[axes.size() - 2], axes[axes.size() - 1]);
    return g.add("Transpose", {value.name}, {onnx_attribute("perm", axes)});
  };
  return g.add("MatMul",
               {transposed(x[0], f.flag("transpose_a")), transposed(x[1], f.flag("transpose_b"))});
}

Result<std::string> emit_slice(GraphBuilder& g, const Node& node, const ExportValue& x) {
  FieldReader& f = g.fields(node);
  const size_t count = f.list("starts").size();
  std::vector<int64_t> axes = f.list("axes");
  for (int64_t axis = 0; f.list("axes").empty() && axis < static_cast<int64_t>(count); ++axis)
    axes.push_back(axis);
  return g.add("Slice", {x.name, g.integers(f.list("starts")), g.integers(f.list("ends")),
                         g.integers(axes), g.integers(f.per_axis("steps", count))});
}

Result<std::string> emit_transpose(GraphBuilder& g, const Node& node, const ExportValue& x) {
  std::vector<int64_t> axes = g.fields(node).list("axes");
  for (int64_t& axis : axes) axis += axis < 0 ? x.shape.rank() : 0;
  if (axes.empty()) return g.add("Transpose", {x.name});
  return g.add("Transpose", {x.name}, {onnx_attribute("perm", axes)});
}

Result<std::string> emit_permute(GraphBuilder& g, const Node& node, const ExportValue& x) {
  std::vector<int64_t> axes = {0};
  for (const int64_t axis : g.fields(node).list("axes")) axes.push_back(axis + 1);
  return g.add("Transpose", {x.name}, {onnx_attribute("perm", axes)});
}

// 0 and -1 mean in Reshape what they mean in View.
Result<std::string> emit_view(GraphBuilder& g, const Node& node, const ExportValue& x) {
  return g.add("Reshape", {x.name, g.integers(g.fields(node).list("shape"))});
}

Result<std::string> emit_reshape(GraphBuilder& g, const Node& node, const ExportValue& x) {
  g.fields(node).skip({"first", "shape"});  // the extents of the output have them
  LOOM_ASSIGN(const Shape out, infer_shape(node.config, x.shape));
  const std::vector<int64_t> extents = axis_extents(out);
  return g.reshape(x.name, {extents.begin() + 1, extents.end()});
}

// Values of the constant in its own shape; its parameter is one row of them.
Result<std::string> emit_constant(GraphBuilder& g, const Node& node, ExportInputs) {
  g.fields(node).skip({"trained", "fill", "factor"});  // of training alone
  return g.param(node, 0, g.fields(node).list("shape"));
}

// The extents that the layer names, then the batch of what it reads besides.
Result<std::string> emit_expand(GraphBuilder& g, const Node& node, ExportInputs x) {
  std::string y = g.add("Expand", {x[0].name, g.integers(g.fields(node).list("shape"))});
  if (x.size() < 2) return y;
  const Shape shapes[] = {x[0].shape};
  LOOM_ASSIGN(const std::vector<Shape> out, infer_all(node.config, shapes));
  if (out[0][0] != 1) return y;
  std::string extents =
      g.add("Shape", {x[1].name},
            {onnx_attribute("start", int64_t{0}), onnx_attribute("end", int64_t{1})});
  if (out[0].rank() > 1) {
    const auto rest = static_cast<size_t>(out[0].rank() - 1);
    extents =
        g.add("Concat", {extents, g.integers(ones(rest))}, {onnx_attribute("axis", int64_t{0})});
  }
  return g.add("Expand", {y, extents});
}

// The operator of that name. It has a state of zeros, of the shape of one step, and the step as a
// graph of its own. The names of that graph begin with that of the state.
Result<std::string> emit_scan(GraphBuilder& g, const Node& scan, ExportInputs x) {
  g.fields(scan).skip({"width"});  // its inputs have it
  const std::string first =
      g.add("Slice", {x[1].name, g.integers({0}), g.integers({1}), g.integers({1})});
  const std::string step = g.add("Squeeze", {first, g.integers({1})});
  const std::string zeros = g.add("ConstantOfShape", {g.add("Shape", {step})});
  const auto name = [&](const char* part) { return cat(zeros, "_", part); };
  const auto node = [&](const char* op, std::vector<std::string> from, std::string to) {
    OnnxNode made;
    made.name = to;
    made.op = op;
    made.inputs = std::move(from);
    made.outputs = {std::move(to)};
    return made;
  };
  OnnxAttribute body{.name = "body", .type = OnnxAttributeType::graph};
  OnnxGraph& graph = body.graphs.emplace_back();
  graph.name = name("step");
  for (const char* part : {"before", "a", "b"}) graph.inputs.push_back({.name = name(part)});
  for (const char* part : {"after", "y"}) graph.outputs.push_back({.name = name(part)});
  graph.nodes = {node("Mul", {name("a"), name("before")}, name("kept")),
                 node("Add", {name("kept"), name("b")}, name("after")),
                 node("Identity", {name("after")}, name("y"))};
  const std::vector<std::string> out =
      g.add_many("Scan", {zeros, x[0].name, x[1].name},
                 {std::move(body), onnx_attribute("num_scan_inputs", int64_t{2}),
                  onnx_attribute("scan_input_axes", std::vector<int64_t>{1, 1}),
                  onnx_attribute("scan_output_axes", std::vector<int64_t>{1})},
                 {true, true});
  return out[1];
}

Result<std::string> emit_pad(GraphBuilder& g, const Node& node, const ExportValue& x) {
  FieldReader& f = g.fields(node);
  std::vector<int64_t> pads;
  for (const std::string_view end : {"before", "after"}) {
    const std::vector<int64_t>& last = f.list(end);
    pads.resize(pads.size() + static_cast<size_t>(x.shape.rank()) - last.size());
    pads.insert(pads.end(), last.begin(), last.end());
  }
  std::vector<std::string> inputs = {x.name, g.integers(pads)};
  if (f.text("mode") != "constant") f.skip({"value"});
  if (f.text("mode") == "constant") inputs.push_back(g.number(static_cast<float>(f.real("value"))));
  return g.add("Pad", inputs, {onnx_attribute("mode", std::string(f.text("mode")))});
}

}  // namespace loom::core
