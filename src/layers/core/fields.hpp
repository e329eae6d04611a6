// Fields of a layer by name, for readers and writers of formats. Layers themselves use indices.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "layers/core/layer.hpp"

namespace loom::core {

// Index of the field `name` in layer.def->fields, or -1 if the kind has no such field.
inline int field_index(const LayerConfig& layer, std::string_view name) {
  for (size_t i = 0; i < layer.def->fields.size(); ++i) {
    if (layer.def->fields[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

// The fields of a layer, for a writer with hand-written forms. It records which fields were read,
// so that no field is dropped silently: after writing a layer, the writer calls check_all_read(). A
// kind without the field yields 0, "" or an empty list, so that common code of several kinds is
// written once.
class FieldReader {
 public:
  // layer: must outlive the reader.
  explicit FieldReader(const LayerConfig& layer) : layer_(layer), read_(layer.def->fields.size()) {}

  int64_t integer(std::string_view name) { return static_cast<int64_t>(real(name)); }
  double real(std::string_view name);
  bool flag(std::string_view name) { return real(name) != 0; }
  std::string_view text(std::string_view name);
  const std::vector<int64_t>& list(std::string_view name);
  // For a list with one number for all axes or one per axis: returns one per axis.
  std::vector<int64_t> per_axis(std::string_view name, size_t axes);

  // These fields need no form of their own: other shapes imply them, they matter only in training,
  // or other fields make them meaningless.
  void skip(std::initializer_list<std::string_view> names);
  // Errors: unsupported, naming the first field that is not read, not skipped and not at its
  // default. `format`: "ONNX".
  Status check_all_read(std::string_view format) const;

 private:
  int find(std::string_view name);  // -1 if the layer has no such field
  const LayerConfig& layer_;
  std::vector<bool> read_;
};

}  // namespace loom::core
