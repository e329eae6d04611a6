#include "api/network/layer_builder.hpp"

#include "layers/blocks/blocks.hpp"

namespace loom {

std::vector<std::string> layer_types() {
  return core::layer_names();
}

void LayerBuilder::add(const char* name, bool value) {
  layer_.fields.push_back({name, value});
}
void LayerBuilder::add(const char* name, int64_t value) {
  layer_.fields.push_back({name, value});
}
void LayerBuilder::add(const char* name, double value) {
  layer_.fields.push_back({name, value});
}
void LayerBuilder::add(const char* name, const char* value) {
  add(name, std::string(value));
}
void LayerBuilder::add(const char* name, const std::string& value) {
  layer_.fields.push_back({name, value});
}
void LayerBuilder::add(const char* name, const Axes& value) {
  layer_.fields.push_back({name, value});
}
void LayerBuilder::add(const std::vector<LayerField>& more) {
  layer_.fields.insert(layer_.fields.end(), more.begin(), more.end());
}

Layer LayerBuilder::layer(std::vector<Layer> children) && {
  layer_.children = std::move(children);
  return std::move(layer_);
}

}  // namespace loom
