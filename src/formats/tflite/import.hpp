// TFLite files as networks: each operator is said in those of ONNX, which onnx/import reads.
// docs/tflite.md lists the operators. Inputs and outputs keep the order of axes that they have in
// the file, and quantized ones are the numbers that they stand for.
#pragma once

#include <string>
#include <vector>

#include "formats/tflite/model.hpp"
#include "onnx/import/import.hpp"

namespace loom::core {

struct TfliteOptions {
  int64_t open_extent = 0;  // for open axes after the first; 0 refuses them
  // Computed values of quantized files are rounded to the steps of their scales, as the interpreter
  // does. Without, they are only held in the range of those; a step has no slope to train by.
  bool steps = true;
  OnnxFolder folder =
      {};  // constants that are computed; none: they are left to who reads the graph
};

struct TfliteAsOnnx {
  OnnxModel model;                 // its tensors may view the bytes of the file
  std::vector<std::string> notes;  // for a person
};

// Errors: unsupported, by operator, its place and why; bad_file, where operators name what no
// operator before them makes, or tensors are made twice.
Result<TfliteAsOnnx> tflite_as_onnx(const TfliteModel& file, const std::string& where,
                                    const TfliteOptions& options = {});
Result<ImportedNetwork> import_tflite(std::span<const std::byte> file, const std::string& where,
                                      const OnnxImportOptions& options = {});
Result<ImportedNetwork> load_tflite(const FileRef& path, const OnnxImportOptions& options = {});

}  // namespace loom::core
