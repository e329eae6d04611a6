// Models between files: any that can be opened, to any that can be written; and packed in another
// number type.
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

// A number type for the parameters whose path fits: * stands for any text.
struct DTypeRule {
  std::string pattern;
  DType dtype = DType::float32;
};

struct ConvertOptions {
  std::optional<DType> dtype{};      // of matrices; unset: as stored
  std::vector<DTypeRule> rules{};    // the first that fits decides, before dtype
  bool per_tensor = false;           // one scale per matrix instead of one per row
  bool with_weights = false;         // .json: the parameters too, not only the description
  bool measure = false;              // .entity: fill Converted::tensors
  std::string calibration{};         // a text (of language models): what its tokens make reach each
                                     // matrix decides which values its scales keep
  int64_t calibration_windows = 16;  // of 128 tokens
  // false: batch norms of an ONNX or TFLite file, and functions of its weights, go into the weights
  // of layers. That predicts faster, and would train other numbers. true: they stay, and values of
  // a quantized TFLite file are not rounded to its steps. Unset: true of ONNX, false of TFLite.
  std::optional<bool> for_training{};
  // Patterns over names of initializers of an ONNX file that train, and that do not, besides what
  // docs/onnx.md, "What trains", says of them; `frozen` counts more.
  std::vector<std::string> trainable{}, frozen{};
  int64_t open_extent = 0;  // of axes that a file leaves open, besides the batch; 0: an error
  // Reads and writes weights that are NaN or infinite, or that overflow their type. They are an
  // error otherwise.
  bool allow_nonfinite = false;
  StateDictOptions state_dict{};  // answers about .safetensors files without a configuration
  // Makes a language model of a network with the cells of one, such as a decoder in a file of the
  // original: a folder with tokenizer.json (and tokenizer_config.json, which has the chat
  // template), or a tokenizer.json. "": a network stays one.
  std::string tokenizer{};
  int64_t context = 2048;  // positions that such a model was made for
  // Random weights of a named shape ("smollm2-135m") instead of a file; the input is ignored.
  std::string shape{};
  uint64_t seed = 1;
  // What the format of the output has no place for, and what was inferred on opening.
  std::function<void(const std::string&)> note{};
  // Which work ("calibrating", in windows; "writing", in bytes), how much of it is done, and all of
  // it; false stops with Code::cancelled.
  std::function<bool(std::string_view work, uint64_t done, uint64_t total)> progress{};
  std::optional<Engine> engine{};  // unset: Engine::shared()
};

// What packing one parameter cost.
struct PackedTensor {
  std::string name;  // path of the parameter
  Shape shape;
  DType from = DType::float32, to = DType::float32;
  int64_t bytes_from = 0, bytes_to = 0;
  double rms = 0;        // of the values
  double error = 0;      // root of the mean square of what changed
  double max_error = 0;  // the largest change
  double cosine = 1;     // of the values before and after
};

struct Converted {
  std::string format;  // of the input: "Hugging Face folder", "entity", ...
  int64_t bytes = 0;   // of the output; of a folder: its weights
  std::vector<PackedTensor> tensors;
};

// By the ending of `output`: .entity, .gguf, .onnx, .safetensors, .npz, .json; a name without an
// ending is a Hugging Face folder. Errors: unsupported, naming what the format cannot hold;
// invalid_argument; cancelled; those of files.
LOOM_API Result<Converted> convert(const std::string& input, const std::string& output,
                                   const ConvertOptions& options = {});

}  // namespace loom
#endif
