// Makes a Graph node by node, for code that knows what it wants: blocks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "layers/graph.hpp"

namespace loom::core {

class GraphMaker {
 public:
  explicit GraphMaker(std::vector<std::string> inputs = {"input"}) {
    wiring_.inputs = static_cast<int64_t>(inputs.size());
    inputs_ = std::move(inputs);
  }

  static GraphValue input(int64_t i = 0) { return {kGraphInput, i}; }

  // A node and its first output. An Error is kept for finish(), so that chains read as one.
  GraphValue add(std::string name, LayerKind kind, const std::vector<Field>& fields,
                 std::vector<GraphValue> reads) {
    return add(std::move(name), make_layer(kind, fields), std::move(reads));
  }
  GraphValue add(std::string name, Result<LayerConfig> layer, std::vector<GraphValue> reads) {
    const GraphValue made{static_cast<int64_t>(nodes_.size()), 0};
    if (!layer.ok()) {
      if (failed_.ok()) failed_ = layer.error();
      nodes_.push_back({});
    } else {
      nodes_.push_back(std::move(*layer));
    }
    names_.push_back(std::move(name));
    wiring_.nodes.push_back(std::move(reads));
    return made;
  }

  Result<LayerConfig> finish(const GraphValue& output) {
    LOOM_TRY(failed_);
    wiring_.names = std::move(inputs_);
    for (std::string& name : names_) wiring_.names.push_back(std::move(name));
    wiring_.outputs = {output};
    return make_graph(wiring_, std::move(nodes_));
  }

 private:
  GraphWiring wiring_;
  std::vector<LayerConfig> nodes_;
  std::vector<std::string> inputs_, names_;
  Status failed_;
};

}  // namespace loom::core
