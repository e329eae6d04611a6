// Inspects model files without running them: lists their contents and compares two files.
//
//   ModelFile file = ModelFile::open("net.entity").or_exit();
//   for (const StoredTensor& t : file.tensors()) print(t.name, t.dtype, t.bytes);
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "loom/engine.hpp"
#include "loom/export.hpp"
#include "loom/files.hpp"
#include "loom/language_model.hpp"
#include "loom/result.hpp"
#include "loom/tensor.hpp"
#include "loom/tensor_difference.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

struct LayerInfo {
  int depth = 0;         // in the tree; 0 is a cell
  std::string at;        // "(1, 0, 0, 0)"; children: "/0/1" after it
  std::string type;      // "MultiHeadAttention"
  std::string settings;  // non-default fields: "heads 3, kv_heads 1"
  std::string in, out;   // shapes, for cells only
  std::string notes;     // "tied to (0, 0, 0, 0)", "from (2, 0, 0, 0)", "disabled"
  int64_t parameters = 0;
};

struct StoredTensor {
  std::string name;   // as in the file
  std::string dtype;  // as in the format: "BF16", "Q4_K"; "text"
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  int64_t count = 0;  // values
};

// Properties of a language model.
struct DecoderInfo {
  std::string architecture;  // "LlamaForCausalLM"
  int64_t layers = 0, width = 0, inner_width = 0, heads = 0, kv_heads = 0, head_dim = 0;
  int64_t vocab = 0, context = 0;
  bool tied_head = false;
  int64_t tokenizer_tokens = 0;  // 0 means no tokenizer
  bool has_chat_template = false, chat_template_readable = false;
  std::vector<TokenId> eos_ids;
};

// Numbers in a network's parameters, by what training does with them.
struct ParameterCounts {
  int64_t trained = 0;
  int64_t frozen = 0;    // unchanged by training (GridCell::frozen)
  int64_t constant = 0;  // statistics of batch norms, and constants of the network
};

// A handle: copies share the file.
class LOOM_API ModelFile {
 public:
  // Reads the description of the model; weights stay on disk. Errors: not_found, bad_file (with
  // file and offset), unsupported, out_of_memory (the engine's limit).
  static Result<ModelFile> open(const std::string& path, const std::optional<Engine>& engine = {});

  // Opens a file in memory.
  static Result<ModelFile> open(const FileBytes& file, const std::optional<Engine>& engine = {});

  const std::string& format() const;  // "Hugging Face folder", "entity", "trained weights", ...
  const std::string& grid() const;    // "6 x 1 x 1 x 2"
  int64_t parameters() const;
  ParameterCounts parameter_counts() const;
  const std::vector<std::string>& notes() const;      // what was inferred
  const std::optional<DecoderInfo>& decoder() const;  // unset for other networks
  // The record of training as JSON: loss, classes, split, columns. Empty if the file has none.
  const std::string& training() const;
  // Visits all layers, each before its children.
  void layers(const std::function<void(const LayerInfo&)>& each) const;
  const std::vector<StoredTensor>& tensors() const;  // empty if the file has only a description
  // Values of a tensor as float32, in its shape. Errors: out_of_range, unsupported (a type without
  // values: "text"), bad_file, out_of_memory.
  Result<Tensor> values(size_t tensor) const;
  // XXH3-128 of the bytes of a tensor, as hexadecimal digits.
  Result<std::string> hash(size_t tensor) const;

  struct LOOM_LOCAL Impl;
  explicit ModelFile(std::shared_ptr<Impl> impl);

 private:
  std::shared_ptr<Impl> impl_;
};

// Work done and total; false stops with Code::cancelled.
using WorkProgress = std::function<bool(uint64_t done, uint64_t total)>;

// Compares every blob of an .entity file with its stored hash; returns the number of blobs.
// progress: in bytes. Errors: bad_file, naming the blob.
LOOM_API Result<int64_t> verify_hashes(const std::string& path,
                                       const std::optional<Engine>& engine = {},
                                       const WorkProgress& progress = {});

struct DiffOptions {
  bool by_parameters = false;  // by paths in the network, even if names are shared
  WorkProgress progress{};     // in tensors
  std::optional<Engine> engine{};
};

// Compares the tensors of two files. If the files share a tensor name, tensors are compared as
// stored. Otherwise, or with options.by_parameters, they are compared by their paths in the
// network. Rows of dtype "text" follow: one for each layer whose kind or settings differ ("(0, 0,
// 1, 0) layer"), and one for different class names ("classes"). Their shape_a and shape_b hold the
// two texts. Errors: those of opening.
LOOM_API Result<std::vector<TensorDifference>> diff(const std::string& a, const std::string& b,
                                                    const DiffOptions& options = {});

}  // namespace loom
#endif
