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

#include "loom/dtype.hpp"
#include "loom/engine.hpp"
#include "loom/export.hpp"
#include "loom/result.hpp"
#include "loom/state_dict.hpp"
#include "loom/tensor.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

// A number type for the parameters whose path matches; * matches any text.
struct DTypeRule {
  std::string pattern;
  DType dtype = DType::float32;
};

struct ConvertOptions {
  std::optional<DType> dtype{};      // of matrices; unset means as stored
  std::vector<DTypeRule> rules{};    // the first match decides, before dtype
  bool per_tensor = false;           // one scale per matrix instead of one per row
  bool with_weights = false;         // .json: with the parameters, not only the description
  bool measure = false;              // .entity: fill Converted::tensors
  std::string calibration{};         // a text file, for language models: the activations of its
                                     // tokens weight the choice of scales
  int64_t calibration_windows = 16;  // of 128 tokens each
  // false folds batch norms and constant functions of weights of an ONNX or TFLite file into the
  // weights of layers. That predicts faster, but trains other parameters. true keeps them, and does
  // not round values of a quantized TFLite file to its steps. The default is true for ONNX, false
  // for TFLite.
  std::optional<bool> for_training{};
  // Patterns over initializer names of an ONNX file that train, and that do not, in addition to the
  // rules of docs/onnx.md, "What trains". `frozen` takes precedence.
  std::vector<std::string> trainable{}, frozen{};
  int64_t open_extent = 0;  // extent of open axes besides the batch; 0 makes them an error
  // Accepts weights that are NaN or infinite, or that overflow their type. Otherwise they are an
  // error.
  bool allow_nonfinite = false;
  StateDictOptions state_dict{};  // settings for .safetensors files without a configuration
  // Turns a network with the cells of a language model into one, such as a decoder in a file of the
  // original project. It names a tokenizer.json, or a folder with one (and with
  // tokenizer_config.json, which has the chat template). Empty keeps a network.
  std::string tokenizer{};
  int64_t context = 2048;  // positions that such a model supports
  // A named shape ("smollm2-135m") with random weights instead of a file; the input is ignored.
  std::string shape{};
  uint64_t seed = 1;
  // Reports data that the output format cannot hold, and values that were inferred on opening.
  std::function<void(const std::string&)> note{};
  // Progress: the phase ("calibrating", in windows; "writing", in bytes), the amount done, and the
  // total. false stops with Code::cancelled.
  std::function<bool(std::string_view work, uint64_t done, uint64_t total)> progress{};
  std::optional<Engine> engine{};  // unset: Engine::shared()
};

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
