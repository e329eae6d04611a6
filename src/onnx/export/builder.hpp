// The target of the ONNX exporter: a graph under construction, with short ways to add nodes and
// constants, and the values of parameters as f32. Room-private; the interface is export.hpp. Every
// value has its batch axis first, whose extent is free.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "layers/core/fields.hpp"
#include "onnx/export/export.hpp"

namespace loom::core {

// A value of the graph and the shape a layer sees, counted for one sample ([1, ...]).
struct ExportValue {
  std::string name;
  Shape shape;
};

using ExportInputs = std::span<const ExportValue>;

class GraphBuilder {
 public:
  GraphBuilder(const Network& network, const OnnxExportOptions& options)
      : network_(network), options_(options) {}

  int opset() const { return options_.opset; }
  const Network& network() const { return network_; }
  OnnxGraph& graph() { return graph_; }
  // The layer whose nodes follow: "(0, 0, 1, 0)/0".
  void enter(std::string path) { path_ = std::move(path); }
  const std::string& path() const { return path_; }
  // "cell (0, 0, 1, 0)/0 (Softmax): ..."
  Error refuse(const Node& node, std::string_view reason) const;
  // The fields of a layer. The code that emits the layer reads or skips each of them:
  // check_fields().
  FieldReader& fields(const Node& node) {
    return fields_.try_emplace(&node, node.config).first->second;
  }
  // Once the layer is emitted. Errors: unsupported, naming the cell and a field that was not read.
  Status check_fields(const Node& node);

  // Adds a node with one output and returns the output's name.
  std::string add(std::string op, std::vector<std::string> inputs,
                  std::vector<OnnxAttribute> attributes = {});
  // Adds a node with several outputs; those not asked for are named "".
  std::vector<std::string> add_many(std::string op, std::vector<std::string> inputs,
                                    std::vector<OnnxAttribute> attributes,
                                    const std::vector<bool>& expected);
  std::string number(float value);
  // Numbers of a formula: a Constant, which no importer takes for a weight.
  std::string constant(std::string_view what, std::vector<int64_t> shape,
                       const std::vector<float>& values);
  // The same, made of the parameters of a layer: one for all layers that share them.
  std::string floats_of(const Node& node, std::string_view what, std::vector<int64_t> shape,
                        const std::vector<float>& values);
  std::string integers(const std::vector<int64_t>& values);  // shared by equal values
  // The batch axis stays what it is; the others become `rest`.
  std::string reshape(const std::string& x, std::vector<int64_t> rest);

  // Parameter `i` of a layer as f32, row-major.
  Result<std::vector<float>> values(const Node& node, size_t i) const;
  // The same as an initializer of this shape (empty: its own), made once.
  Result<std::string> param(const Node& node, size_t i, std::vector<int64_t> shape = {});
  Result<std::string> transposed(const Node& node, size_t i);

 private:
  std::string fresh();
  // Weights as an initializer; what training leaves as it is as a Constant.
  void store(const std::string& name, std::vector<int64_t> shape, std::span<const float> values,
             bool trained);
  bool trains(const Node& node) const;
  const Network& network_;
  const OnnxExportOptions& options_;
  OnnxGraph graph_;
  std::string path_;
  int64_t names_ = 0;
  std::map<std::vector<int64_t>, std::string> integers_;
  std::map<std::string, std::string> made_;  // parameters by path and form
  std::map<const Node*, FieldReader> fields_;
};

// y = act(x).
Result<std::string> emit_activation(GraphBuilder& g, const std::string& x,
                                    std::string_view activation);
// y[..., out] = x[..., in] W^T + b, W and b being parameters of the layer; bias < 0: none.
Result<std::string> emit_product(GraphBuilder& g, const Node& node, const std::string& x, int rank,
                                 size_t weight, int bias);
// scale * x; x for a scale of 1.
std::string emit_scale(GraphBuilder& g, const std::string& x, double scale);
// c tanh(x / c); x for a c of 0.
std::string emit_soft_cap(GraphBuilder& g, const std::string& x, double cap);
// x / sqrt(mean(x^2) + eps) * gamma over the last axis.
std::string emit_rms(GraphBuilder& g, const std::string& x, const std::string& gamma, double eps);

// One layer, its children apart, of the values it reads: one, but for nodes of a Graph. Shapes were
// checked by finalize().
using EmitLayer = Result<std::string> (*)(GraphBuilder&, const Node&, ExportInputs);
Result<std::string> emit_attention(GraphBuilder& g, const Node& node, const ExportValue& x);
Result<std::string> emit_recurrent(GraphBuilder& g, const Node& node, const ExportValue& x);
Result<std::string> emit_softmax(GraphBuilder& g, const Node& node, const ExportValue& x);
Result<std::string> emit_kmeans(GraphBuilder& g, const Node& node, const ExportValue& x);

Result<std::string> emit_pool(GraphBuilder& g, const Node& node, const ExportValue& x);
Result<std::string> emit_upsample(GraphBuilder& g, const Node& node, const ExportValue& x);
Result<std::string> emit_pixel_shuffle(GraphBuilder& g, const Node& node, const ExportValue& x);
Result<std::string> emit_group_norm(GraphBuilder& g, const Node& node, const ExportValue& x);

Result<std::string> emit_unary(GraphBuilder& g, const Node& node, const ExportValue& x);
Result<std::string> emit_reduce(GraphBuilder& g, const Node& node, const ExportValue& x);
Result<std::string> emit_slice(GraphBuilder& g, const Node& node, const ExportValue& x);
Result<std::string> emit_transpose(GraphBuilder& g, const Node& node, const ExportValue& x);
Result<std::string> emit_permute(GraphBuilder& g, const Node& node, const ExportValue& x);
Result<std::string> emit_view(GraphBuilder& g, const Node& node, const ExportValue& x);
Result<std::string> emit_reshape(GraphBuilder& g, const Node& node, const ExportValue& x);
Result<std::string> emit_pad(GraphBuilder& g, const Node& node, const ExportValue& x);
Result<std::string> emit_binary(GraphBuilder& g, const Node& node, ExportInputs x);
Result<std::string> emit_concat(GraphBuilder& g, const Node& node, ExportInputs x);
Result<std::string> emit_matmul(GraphBuilder& g, const Node& node, ExportInputs x);
Result<std::string> emit_expand(GraphBuilder& g, const Node& node, ExportInputs x);
Result<std::string> emit_scan(GraphBuilder& g, const Node& node, ExportInputs x);
Result<std::string> emit_constant(GraphBuilder& g, const Node& node, ExportInputs);
// Null for a container, or a kind that cannot be exported.
EmitLayer emitter_of(LayerKind kind);

}  // namespace loom::core
