// Converts model files: reads every format that can be opened, writes every format that can be
// written, and packs weights in another number type.
//
//   convert("smollm2", "smollm2.gguf").or_exit();
//   Converted small = convert("net.entity", "small.entity", {.dtype = DType::q4_0}).or_exit();
//   for (const PackedTensor& t : small.tensors) print(t.name, t.signal_to_noise);
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loom/convert_options.hpp"
#include "loom/dtype.hpp"
#include "loom/engine.hpp"
#include "loom/export.hpp"
#include "loom/result.hpp"
#include "loom/tensor.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

// Quantization error of one parameter.
struct PackedTensor {
  std::string name;  // path of the parameter
  Shape shape;
  DType from = DType::float32, to = DType::float32;
  int64_t bytes_from = 0, bytes_to = 0;
  double rms = 0;        // root mean square of the values
  double error = 0;      // root mean square of the change
  double max_error = 0;  // the largest change
  double cosine = 1;     // between the values before and after
};

struct Converted {
  std::string format;  // of the input: "Hugging Face folder", "entity", ...
  int64_t bytes = 0;   // of the output; of a folder, its weights only
  std::vector<PackedTensor> tensors;
};

// The ending of `output` decides: .entity, .gguf, .onnx, .safetensors, .npz, .json. A name without
// an ending is a Hugging Face folder. Errors: unsupported, naming what the format cannot hold;
// invalid_argument; cancelled; those of files.
LOOM_API Result<Converted> convert(const std::string& input, const std::string& output,
                                   const ConvertOptions& options = {});

}  // namespace loom
#endif
