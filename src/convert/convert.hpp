// Converting models between files: any that can be opened, to any that can be written. What a file
// holds is told by how it begins, what to write by the name of the output.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/memory_budget.hpp"
#include "bridge/network_source.hpp"
#include "formats/universal/infer_options.hpp"
#include "io/file_ref.hpp"
#include "io/machine_memory.hpp"
#include "llm/model_source.hpp"
#include "train_io/training_files.hpp"

namespace loom::core {

// A model in a file: a language model, or a network.
struct OpenedModel {
  std::string format;                    // "Hugging Face folder", "entity", "trained weights", ...
  std::unique_ptr<ModelSource> decoder;  // one of
  std::unique_ptr<NetworkSource> network;  // the two
  std::vector<std::string> notes;          // what was inferred, or could not be kept
  bool fresh = false;                      // the file holds no weights: these are starting values
  bool guessed = false;                    // the file holds no description: layers are inferred
};
struct OpenOptions {
  int64_t open_extent = 0;  // of axes that an ONNX file leaves open, besides the batch; 0: an Error
  // This and the next: OnnxImportOptions. Unset: true of ONNX files; false of TFLite files, whose
  // values are then rounded to the steps of their scales.
  std::optional<bool> for_training = {};
  std::vector<std::string> trainable, frozen;
  bool allow_nonfinite = false;  // weights that are NaN or infinite are no error
  InferOptions infer;            // answers about a state dict without a configuration
  MemoryBudget memory =
      default_budget();  // of what reading takes, also of weights that are unpacked
};
// Errors: out_of_memory, before anything is parsed, where the budget has no room for the file.
Result<OpenedModel> open_model(const FileRef& path, const OpenOptions& options = {});
// A network from any file that open_model() takes. Errors: unsupported (a language model).
Result<OpenedModel> open_network(const FileRef& path, const OpenOptions& options = {});
// Weights for the network `spec`: any file that describes a network itself, or arrays called by the
// paths of its parameters (.npz, .safetensors). Errors: bad_file (a description without weights).
Result<std::unique_ptr<NetworkSource>> open_network_weights(const FileRef& path,
                                                            const NetworkSpec& spec,
                                                            const OpenOptions& options = {});

struct ConvertRule {
  std::string pattern;  // of parameter paths: * stands for any text
  DType dtype = DType::f32;
};

struct ConvertOptions {
  std::optional<DType> dtype;      // of matrices; unset: as stored
  std::vector<ConvertRule> rules;  // the first that fits decides, before dtype
  bool with_weights = false;       // .json: the parameters too, not only the description
  bool per_tensor = false;         // one scale per matrix instead of one per row
  std::function<Status(const Param& param, DType dtype, int64_t rows, float* values)> adjust;
  std::function<void(const PackReport&)> report;
  std::function<bool(uint64_t done, uint64_t total)> progress;  // bytes; false: cancelled
};

// What of `model` the file `path` has no place for, and what other programs that read it may do
// otherwise: lines for a person.
std::vector<std::string> left_out(const std::string& path, const OpenedModel& model,
                                  const ConvertOptions& options);

// Key of the metadata of an ONNX file that keeps the loss and the names of classes, as JSON.
constexpr std::string_view kOnnxTrainedFor = "loom.model";
// Likewise of NetworkSpec::state_dict.
constexpr std::string_view kOnnxStateDict = "loom.state_dict";

// Writes `model` to `path`: .entity; .safetensors, .npz (values as float32); .onnx, .gguf; .json
// (the description alone, or with the weights); a name without an extension is a Hugging Face
// folder. Errors: unsupported, naming what the format cannot hold.
Status write_model(const FileRef& path, const OpenedModel& model, const ConvertOptions& options,
                   ThreadPool& pool);

}  // namespace loom::core
