// The data of `loom info` for a model file: its format, its grid cell by cell, its stored tensors,
// the sizes of a language model. Also the comparison of the tensors of two files, for `loom diff`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "convert/convert.hpp"
#include "io/files/file_ref.hpp"
#include "io/weights/tensor_file.hpp"
#include "loom/tensor_difference.hpp"

namespace loom::core {

// The tensors of a file with their stored names and types. Errors: unsupported (a file without
// tensors).
Result<std::unique_ptr<TensorFile>> open_tensor_file(const FileRef& path);

// The parameters of a model by their paths, independent of the names in its file; without stored
// bytes.
Result<std::unique_ptr<TensorFile>> open_parameters(std::shared_ptr<const OpenedModel> model);

// "heads 3, kv_heads 1": the non-default settings of a layer.
std::string settings_of(const LayerConfig& layer);
// Every node of a Graph with its inputs: "0(input), sum(0, input); outputs sum".
std::string graph_text(const LayerConfig& graph);

struct LayerReport {
  int depth = 0;         // in the tree; 0 is a cell
  std::string at;        // "(1, 0, 0, 0)"; children: "/0/1" after it
  std::string type;      // "MultiHeadAttention"
  std::string settings;  // non-default fields: "heads 3, kv_heads 1"
  std::string in, out;   // shapes, for cells only
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
// Visits all layers, each before its children: all reports at once take more than the network.
void report_layers(const ModelReport& report, const std::function<void(const LayerReport&)>& each);

// progress: tensors; false: cancelled.
Result<std::vector<TensorDifference>> compare_tensors(
    const TensorFile& a, const TensorFile& b,
    const std::function<bool(uint64_t done, uint64_t total)>& progress = {});

}  // namespace loom::core
