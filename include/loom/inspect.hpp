// Looking into model files without running them: what is in one, what differs between two.
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

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

struct LayerInfo {
  int depth = 0;         // in the tree: 0 is a cell
  std::string at;        // "(1, 0, 0, 0)", below it "/0/1"
  std::string type;      // "MultiHeadAttention"
  std::string settings;  // fields that are not at their defaults: "heads 3, kv_heads 1"
  std::string in, out;   // shapes, of cells
  std::string notes;     // "tied to (0, 0, 0, 0)", "from (2, 0, 0, 0)", "disabled"
  int64_t parameters = 0;
};

struct StoredTensor {
  std::string name;   // as the file calls it
  std::string dtype;  // as the format calls it: "BF16", "Q4_K"; "text"
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  int64_t count = 0;  // values
};

// Of a language model.
struct DecoderInfo {
  std::string architecture;  // "LlamaForCausalLM"
  int64_t layers = 0, width = 0, inner_width = 0, heads = 0, kv_heads = 0, head_dim = 0;
  int64_t vocab = 0, context = 0;
  bool tied_head = false;
  int64_t tokenizer_tokens = 0;  // 0: no tokenizer
  bool has_chat_template = false, chat_template_readable = false;
  std::vector<TokenId> eos_ids;
};

// Values of a network's parameters by what training does with them.
struct ParameterCounts {
  int64_t trained = 0;
  int64_t frozen = 0;    // training leaves them as they are (GridCell::frozen)
  int64_t constant = 0;  // statistics of batch norms, and constants of the network
};

// A handle: copies mean the same file.
class LOOM_API ModelFile {
 public:
  // Reads what describes the model; weights stay on the disk. Errors: not_found, bad_file (with
  // file and offset), unsupported, out_of_memory (by the engine's limit).
  static Result<ModelFile> open(const std::string& path, const std::optional<Engine>& engine = {});

  // Of a file in memory.
  static Result<ModelFile> open(const FileBytes& file, const std::optional<Engine>& engine = {});

  const std::string& format() const;  // "Hugging Face folder", "entity", "trained weights", ...
  const std::string& grid() const;    // "6 x 1 x 1 x 2"
  int64_t parameters() const;
  ParameterCounts parameter_counts() const;
  const std::vector<std::string>& notes() const;      // what was inferred
  const std::optional<DecoderInfo>& decoder() const;  // unset: a network
  // Its layers one by one, each before those below it.
  void layers(const std::function<void(const LayerInfo&)>& each) const;
  const std::vector<StoredTensor>& tensors() const;  // empty: the file holds a description alone
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

// Work done and in all; false stops with Code::cancelled.
using WorkProgress = std::function<bool(uint64_t done, uint64_t total)>;

// Compares every blob of an .entity file with the hash that the file holds; returns how many.
// progress: in bytes. Errors: bad_file, naming the blob.
LOOM_API Result<int64_t> verify_hashes(const std::string& path,
                                       const std::optional<Engine>& engine = {},
                                       const WorkProgress& progress = {});

// Two tensors of one name.
struct TensorDifference {
  std::string name;
  bool only_a = false, only_b = false;
  std::string dtype_a, dtype_b, shape_a, shape_b;
  int64_t count = 0;
  int64_t different = 0;  // values whose bits differ
  int64_t max_ulp = 0;    // in float32 steps
  double max_abs = 0;
  double relative = 0;  // root of the mean square of the difference, by that of the first
  double cosine = 1;
  bool same_bytes = false;  // as they are stored
  bool comparable() const { return !only_a && !only_b && shape_a == shape_b; }
  bool equal() const {
    return comparable() && (same_bytes || (different == 0 && dtype_a != "text"));
  }
};

struct DiffOptions {
  bool by_parameters = false;  // by their paths in the network, also where names are shared
  WorkProgress progress{};     // tensors
  std::optional<Engine> engine{};
};

// The tensors of two files side by side: as the files store them if they share a name, else (or if
// options.by_parameters asks for it) by their paths in the network. Then a row of dtype "text" for
// each layer whose kind or settings differ ("(0, 0, 1, 0) layer"), and for other names of classes
// ("classes"); shape_a and shape_b hold what each says. Errors: those of opening.
LOOM_API Result<std::vector<TensorDifference>> diff(const std::string& a, const std::string& b,
                                                    const DiffOptions& options = {});

}  // namespace loom
#endif
