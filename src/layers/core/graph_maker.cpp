#include "layers/core/graph_maker.hpp"

#include <utility>

namespace loom::core {
namespace {

Field field_of(const Arg& arg) {
  Field field(arg.name, arg.number);
  field.type = arg.type;
  field.text = arg.text;
  field.list.assign(arg.list.begin(), arg.list.end());
  return field;
}

}  // namespace

Result<LayerConfig> layer_with(LayerKind kind, Args args) {
  std::vector<Field> fields;
  for (const Arg& arg : args) fields.push_back(field_of(arg));
  return make_layer(kind, fields);
}

Result<LayerConfig> both_of(Result<LayerConfig> first, Result<LayerConfig> second) {
  if (!first.ok()) return first;
  if (!second.ok()) return second;
  std::vector<LayerConfig> children;
  children.push_back(std::move(*first));
  children.push_back(std::move(*second));
  return make_layer(LayerKind::sequential, {}, std::move(children));
}

GraphMaker::GraphMaker(std::vector<std::string> inputs) : names_(std::move(inputs)) {
  wiring_.inputs = static_cast<int64_t>(names_.size());
}

GraphValue GraphMaker::add(std::string_view name, LayerKind kind, Args args,
                           std::initializer_list<GraphValue> reads) {
  return add(name, layer_with(kind, args), std::span(reads.begin(), reads.size()));
}

GraphValue GraphMaker::add(std::string_view name, Result<LayerConfig> layer,
                           std::span<const GraphValue> reads) {
  const GraphValue made{static_cast<int64_t>(nodes_.size()), 0};
  if (!layer.ok() && failed_.ok()) failed_ = layer.error();
  nodes_.push_back(layer.ok() ? std::move(*layer) : LayerConfig{});
  names_.emplace_back(name);
  wiring_.nodes.emplace_back(reads.begin(), reads.end());
  return made;
}

Result<LayerConfig> GraphMaker::finish(const GraphValue& output) {
  return finish(std::span(&output, 1));
}

Result<LayerConfig> GraphMaker::finish(std::span<const GraphValue> outputs) {
  LOOM_TRY(failed_);
  wiring_.names = std::move(names_);
  wiring_.outputs.assign(outputs.begin(), outputs.end());
  return make_graph(wiring_, std::move(nodes_));
}

}  // namespace loom::core
