// An importer runs once for a file with an open batch, unless the network may depend on its size.
#include "formats/onnx_network_testing.hpp"
#include "onnx/import/general/general.hpp"
#include "onnx/import/lower/lower.hpp"

namespace loom::core::test::onnx_runs {
namespace {

OnnxNode node_of(const std::string& op, std::vector<std::string> inputs, const std::string& output,
                 std::vector<OnnxAttribute> attributes = {}) {
  OnnxNode n;
  n.name = output;
  n.op = op;
  n.inputs = std::move(inputs);
  n.outputs = {output};
  n.attributes = std::move(attributes);
  return n;
}

// x [batch, 4]; "size" is a list of the number of samples.
OnnxModel model_of(std::vector<OnnxNode> nodes) {
  OnnxModel m;
  m.ir_version = 8;
  m.opsets = {{"", 17}};
  m.graph.inputs = {{"x", OnnxType::f32, true, {{-1, "batch"}, {4, ""}}}};
  m.graph.outputs = {{"y", OnnxType::f32, false, {}}};
  const auto list = [&](const char* name, std::vector<int64_t> values) {
    const auto count = static_cast<int64_t>(values.size());
    m.graph.initializers.push_back(onnx_tensor(name, {count}, values));
  };
  list("zero", {0});
  list("two", {2});
  m.graph.initializers.push_back(onnx_tensor("token", {1, 4}, std::vector<float>{1, 2, 3, 4}));
  m.graph.nodes = {node_of("Shape", {"x"}, "shape"), node_of("Gather", {"shape", "zero"}, "size")};
  m.graph.nodes.insert(m.graph.nodes.end(), nodes.begin(), nodes.end());
  return m;
}

struct Outcome {
  bool ok = false, depends = false;
};

template <class Importer>
Outcome run(const OnnxModel& model) {
  const OnnxImportOptions options;
  const std::string where = "f";
  Importer importer(model, where, options, kOpenBatch);
  const bool ok = importer.run().ok();
  return {ok, importer.depends_on_batch()};
}

TEST(OnnxRuns, CompareTwoSizesOfTheBatchOnlyIfTheNetworkMayDependOnThem) {
  const OnnxAttribute first = onnx_attribute("axis", int64_t{0}),
                      last = onnx_attribute("axis", int64_t{1});
  const auto to_float = onnx_attribute("to", int64_t{1});
  struct Row {
    const char* name;
    std::vector<OnnxNode> nodes;
    bool by_nodes, by_patterns;  // whether it is compared
  };
  const Row rows[] = {
      {"a view as [size, 2, 2]",
       {node_of("Concat", {"size", "two", "two"}, "to", {first}),
        node_of("Reshape", {"x", "to"}, "wide"), node_of("Relu", {"wide"}, "y")},
       false,
       false},
      {"half of the samples",
       {node_of("Div", {"size", "two"}, "half"),
        node_of("Slice", {"x", "zero", "half", "zero"}, "y")},
       true,
       true},
      {"a token for each sample",
       {node_of("Shape", {"token"}, "row"), node_of("Mul", {"shape", "row"}, "product"),
        node_of("Div", {"product", "row"}, "to"), node_of("Expand", {"token", "to"}, "tokens"),
        node_of("Add", {"x", "tokens"}, "y")},
       false,
       false},
      {"the number of samples as a factor",
       {node_of("Cast", {"size"}, "factor", {to_float}), node_of("Mul", {"x", "factor"}, "y")},
       true,
       true},
      {"a sample more",
       {node_of("Concat", {"x", "token"}, "more", {first}), node_of("Shape", {"more"}, "to"),
        node_of("Reshape", {"more", "to"}, "y")},
       true,
       false},
      {"twice as many values",
       {node_of("Concat", {"x", "x"}, "wide", {last}), node_of("Shape", {"wide"}, "to"),
        node_of("Reshape", {"wide", "to"}, "y")},
       false,
       false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const OnnxModel model = model_of(row.nodes);
    const Outcome nodes = run<GraphImport>(model), patterns = run<Lowering>(model);
    EXPECT_EQ(nodes.depends, row.by_nodes);
    if (patterns.ok) {
      EXPECT_EQ(patterns.depends, row.by_patterns);
    }
  }
}

}  // namespace
}  // namespace loom::core::test::onnx_runs
