// A finalized network with its parameters as an ONNX model (inference only). Layers become the
// operators that every runtime has, and nodes of a Graph nodes of the model, with its inputs and
// outputs; what no operator computes (sparse softmaxes, feedback links) is an Error that names the
// cell. The batch axis is symbolic, all others are those of `sample`; a network that takes one
// sample at a time is written for one. Inputs are float, or int64 ids where the network takes ids.
// Weights are written as float, decoded from whatever they are packed in. Equal networks give equal
// bytes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bridge/normalization.hpp"
#include "grid/network.hpp"
#include "io/files/file_ref.hpp"
#include "onnx/file/model.hpp"

namespace loom::core {

struct OnnxExportOptions {
  int opset = 20;     // 20 to 23; from 23 on RMSNorm is one operator
  int64_t batch = 0;  // 0 means any ("batch")
  // Names of the first input and output. If empty, those of a Graph, else "input" and "output".
  std::string input, output;
  Normalization normalization;  // of the input, written as Sub and Mul in front; empty: none
  std::vector<std::pair<std::string, std::string>> metadata;  // of the file, as it is
};

// `sample`: the shape of one input without its batch axis (NetworkSpec::input). Errors:
// invalid_argument, a normalization of another size; unsupported, naming the cell and the reason;
// not_found, a parameter that was never loaded.
Result<OnnxModel> export_onnx(const Network& network, const Shape& sample,
                              const OnnxExportOptions& options = {});
Status write_onnx(const FileRef& path, const Network& network, const Shape& sample,
                  const OnnxExportOptions& options = {});

}  // namespace loom::core
