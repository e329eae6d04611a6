// Converts model files: reads every format that can be opened, writes every format that can be
// written. The input format is detected from its first bytes; the output format follows from its
// name.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/memory_budget.hpp"
#include "bridge/network_source.hpp"
#include "formats/universal/infer_options.hpp"
#include "io/files/file_ref.hpp"
#include "io/machine_memory.hpp"
#include "llm/model_source.hpp"
#include "train_io/training_files.hpp"

namespace loom::core {

// A model in a file: a language model, or a network.
struct OpenedModel {
  std::string format;                    // "Hugging Face folder", "entity", "trained weights", ...
  std::unique_ptr<ModelSource> decoder;  // exactly one of
  std::unique_ptr<NetworkSource> network;  // these two
  std::vector<std::string> notes;          // what was inferred, or could not be kept
  bool fresh = false;                      // the file has no weights: these are initial values
  bool guessed = false;                    // the file has no description: layers are inferred
};
struct OpenOptions {
  int64_t open_extent = 0;  // of open ONNX axes besides the batch; 0 means an Error
  // This and the next: OnnxImportOptions. Unset means true for ONNX files, and false for TFLite
  // files, whose values are then rounded to the steps of their scales.
  std::optional<bool> for_training = {};
  std::vector<std::string> trainable, frozen;
  bool allow_nonfinite = false;            // accept weights that are NaN or infinite
  InferOptions infer;                      // settings for a state dict without a configuration
  MemoryBudget memory = default_budget();  // for reading, also of unpacked weights
};
// Errors: out_of_memory, before anything is parsed, if the budget has no room for the file.
Result<OpenedModel> open_model(const FileRef& path, const OpenOptions& options = {});
// The error if a file is of another format than ONNX or TFLite, as its contents show.
std::optional<Error> not_a_graph(const FileRef& path);
// A network from any file that open_model() accepts. Errors: unsupported (a language model).
Result<OpenedModel> open_network(const FileRef& path, const OpenOptions& options = {});
// Weights for the network `spec`: any file that describes a network itself, or arrays named by
// parameter path (.npz, .safetensors). Errors: bad_file (a description without weights).
Result<std::unique_ptr<NetworkSource>> open_network_weights(const FileRef& path,
                                                            const NetworkSpec& spec,
                                                            const OpenOptions& options = {});

struct ConvertRule {
  std::string pattern;  // for parameter paths: * matches any text
  DType dtype = DType::f32;
};

struct WriteOptions {
  std::optional<DType> dtype;      // of matrices; unset means as stored
  std::vector<ConvertRule> rules;  // the first match decides, before dtype
  bool with_weights = false;       // .json: with the parameters, not only the description
  bool per_tensor = false;         // one scale per matrix instead of one per row
  std::function<void(const PackReport&)> report;
  std::function<bool(uint64_t done, uint64_t total)> progress;  // bytes; false: cancelled
};

// Parts of `model` that the file `path` cannot hold, and possible differences in other programs
// that read it: lines for people.
std::vector<std::string> left_out(const std::string& path, const OpenedModel& model,
                                  const WriteOptions& options);

// Metadata key in an ONNX file for the loss and the class names, as JSON.
constexpr std::string_view kOnnxTrainedFor = "loom.model";
// The same for NetworkSpec::state_dict.
constexpr std::string_view kOnnxStateDict = "loom.state_dict";

// Writes `model` to `path`: .entity; .safetensors, .npz (values as float32); .onnx, .gguf; .json
// (only the description, or with the weights). A name without an extension is a Hugging Face
// folder. Errors: unsupported, naming what the format cannot hold.
Status write_model(const FileRef& path, const OpenedModel& model, const WriteOptions& options,
                   ThreadPool& pool);

}  // namespace loom::core
