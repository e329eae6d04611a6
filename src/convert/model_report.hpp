// What `loom info` says of a model in a file: its format, its grid cell by cell, its stored
// tensors, the sizes of a language model. And the tensors of two files side by side, for `loom
// diff`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "convert/convert.hpp"
#include "io/file_ref.hpp"
#include "io/tensor_file.hpp"

namespace loom::core {

// The tensors of a file as it names and stores them. Errors: unsupported (a file without tensors).
Result<std::unique_ptr<TensorFile>> open_tensor_file(const FileRef& path);

// The parameters of a model by their paths, whatever its file calls them; no bytes as stored.
Result<std::unique_ptr<TensorFile>> open_parameters(std::shared_ptr<const OpenedModel> model);

// "heads 3, kv_heads 1": what of a layer is not at its default.
std::string settings_of(const LayerConfig& layer);

struct LayerReport {
  int depth = 0;         // in the tree: 0 is a cell
  std::string at;        // "(1, 0, 0, 0)", below it "/0/1"
  std::string type;      // "MultiHeadAttention"
  std::string settings;  // fields that are not at their defaults: "heads 3, kv_heads 1"
  std::string in, out;   // shapes, of cells
  std::string notes;     // "tied to (0, 0, 0, 0)", "from (2, 0, 0, 0)", "disabled"
  int64_t parameters = 0;
};

struct ModelReport {
  std::string format;
  std::string grid;  // "6 x 1 x 1 x 2"
  std::shared_ptr<const Network> network;
  int64_t parameters = 0;
  std::vector<std::string> notes;
};
Result<ModelReport> report_model(const OpenedModel& model);
// Its layers one by one, each before those below it: all at once they take more than the network.
void report_layers(const ModelReport& report, const std::function<void(const LayerReport&)>& each);

// Two tensors of the same name.
struct TensorDifference {
  std::string name;
  bool only_a = false, only_b = false;
  std::string dtype_a, dtype_b;
  std::string shape_a, shape_b;
  int64_t count = 0;
  int64_t different = 0;  // values whose bits differ
  int64_t max_ulp = 0;    // in f32 steps; 0 where all are equal
  double max_abs = 0;
  double relative = 0;  // root of the mean square of the difference by that of a
  double cosine = 1;
  bool same_bytes = false;  // as they are stored
  bool comparable() const { return !only_a && !only_b && shape_a == shape_b; }
};
// progress: tensors; false: cancelled.
Result<std::vector<TensorDifference>> compare_tensors(
    const TensorFile& a, const TensorFile& b,
    const std::function<bool(uint64_t done, uint64_t total)>& progress = {});

}  // namespace loom::core
