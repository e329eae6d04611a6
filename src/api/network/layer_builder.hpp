// Builds the Layer of a struct, field by field, for the generated src/api/network/layers.cpp.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "loom/layer.hpp"

namespace loom {

class LayerBuilder {
 public:
  explicit LayerBuilder(std::string type) { layer_.type = std::move(type); }

  void add(const char* name, bool value);
  void add(const char* name, int64_t value);
  void add(const char* name, double value);
  void add(const char* name, const char* value);
  void add(const char* name, const std::string& value);
  void add(const char* name, const Axes& value);
  // After the members, so that these win.
  void add(const std::vector<LayerField>& more);

  Layer layer(std::vector<Layer> children = {}) &&;

 private:
  Layer layer_;
};

// The text of a value of an enum. A number that the enum does not have is a text that every kind
// refuses.
template <class E, size_t N>
const char* word(const char* const (&texts)[N], E value) {
  const auto i = static_cast<size_t>(value);
  return i < N ? texts[i] : "unknown";
}

}  // namespace loom
