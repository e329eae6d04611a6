// The parts of the universal loader: groups tensors into modules by name, and modules into layers.
// See infer.hpp. Room-private.
#pragma once

#include <algorithm>
#include <map>
#include <optional>

#include "formats/universal/infer.hpp"

namespace loom::core {

// Tensors of one prefix: "fc.weight" and "fc.bias" are module "fc".
struct TensorModule {
  std::string name;
  std::map<std::string, size_t, std::less<>> leaves;  // "weight" -> index of the entry
};

// "a.10.b" after "a.2.b": numbers compare as numbers.
bool natural_less(std::string_view a, std::string_view b);
std::string_view last_part(std::string_view name);    // "c" of "a.b.c"
std::string_view parent_name(std::string_view name);  // "a.b" of "a.b.c", "" of "a"
inline bool one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}
// Returns -1 if it is not a number.
int64_t as_number(std::string_view text);

struct ModuleParam {
  std::string name;  // of the layer's parameter: "q"
  std::vector<InferredPiece> pieces;
};

// The layer of a module.
struct ModuleLayer {
  std::string name;
  LayerConfig config;
  std::vector<ModuleParam> params;
  std::string why;
  Confidence confidence = Confidence::high;
  int64_t in = 0, out = 0;  // widths, or channels
  int axes = 0;             // of a convolution
  std::vector<int64_t> taps;
  bool maybe_table = false;  // a matrix without bias: dense, or an embedding
};

// A choice that changes numbers and that no tensor determines.
struct Guess {
  std::string what;    // "the activation after '0'"
  std::string option;  // settles it: "--activation NAME"; empty: only --assume does
};

class ModuleReader {
 public:
  ModuleReader(const TensorFile& file, const InferOptions& options);

  // All modules as layers, in the natural order of their names. Unused tensors stay untaken.
  Result<std::vector<ModuleLayer>> read();
  std::vector<std::string> untaken() const;
  std::vector<std::string> assumptions;
  std::vector<Guess> guesses;
  std::vector<std::string> derived;  // tensors without data to keep

 private:
  using Leaves = std::map<std::string, size_t, std::less<>>;
  const std::vector<int64_t>& shape(size_t tensor) const { return file_.entries()[tensor].shape; }
  // The tensor `leaf` of module `name` if it exists, is not taken, and has this rank.
  std::optional<size_t> find(const std::string& name, std::string_view leaf, size_t rank) const;
  ModuleParam take(std::string param, size_t tensor, int64_t first = 0);
  Status attention(const std::string& name, ModuleLayer& out, bool& made);
  Status packed_attention(const std::string& name, ModuleLayer& out, bool& made);
  Status finish_attention(ModuleLayer& out, int64_t q, int64_t kv, int64_t width,
                          std::vector<Field> fields);
  Status swiglu(const std::string& name, ModuleLayer& out, bool& made);
  Status recurrent(const std::string& name, std::vector<ModuleLayer>& out);
  Status simple(const std::string& name, ModuleLayer& out, bool& made);
  Status convolution(const std::string& name, size_t weight, ModuleLayer& out, bool& made);
  void add_bias(const std::string& name, std::string_view param, std::vector<ModuleParam>& out);
  int64_t head_dim(const std::string& name, int64_t q, int64_t kv, Confidence& confidence);

  const TensorFile& file_;
  const InferOptions& options_;
  std::map<std::string, TensorModule> modules_;
  std::vector<bool> taken_;
};

// A chain of layers, or the blocks of a decoder if the names say so.
Result<InferredNetwork> arrange_modules(std::vector<ModuleLayer> layers, ModuleReader& reader,
                                        const TensorFile& file, const std::string& where,
                                        const InferOptions& options);

}  // namespace loom::core
