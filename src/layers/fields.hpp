// Fields of a layer by name, for readers and writers of formats. Layers themselves know the index.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "layers/layer.hpp"

namespace loom::core {

// Index of the field called `name` in layer.def->fields; -1: the kind has none of that name.
inline int field_index(const LayerConfig& layer, std::string_view name) {
  for (size_t i = 0; i < layer.def->fields.size(); ++i) {
    if (layer.def->fields[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

// The fields of a layer for a writer that has a form for each by hand. It notes which were read, so
// that no field is dropped without a word: once a layer is written, the writer refuses it if
// check_all_read() does. A kind without the field has 0, "" or an empty list, so that what kinds
// have in common is written once.
class FieldReader {
 public:
  // layer: must outlive the reader.
  explicit FieldReader(const LayerConfig& layer) : layer_(layer), read_(layer.def->fields.size()) {}

  int64_t integer(std::string_view name) { return static_cast<int64_t>(real(name)); }
  double real(std::string_view name);
  bool flag(std::string_view name) { return real(name) != 0; }
  std::string_view text(std::string_view name);
  const std::vector<int64_t>& list(std::string_view name);
  // Of a list with one number for all axes or one for each: one for each.
  std::vector<int64_t> per_axis(std::string_view name, size_t axes);

  // These fields need no form of their own: shapes of values or parameters say the same, they
  // matter in training alone, or the other fields leave them without a meaning.
  void skip(std::initializer_list<std::string_view> names);
  // Errors: unsupported, naming the first field that is neither read nor skipped and that is not at
  // its default. `format`: "ONNX".
  Status check_all_read(std::string_view format) const;

 private:
  int find(std::string_view name);  // -1: the layer has no such field
  const LayerConfig& layer_;
  std::vector<bool> read_;
};

}  // namespace loom::core
