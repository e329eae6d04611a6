// The reader of the original's network descriptions, for both of its file formats: see
// original.hpp. A layer's record becomes typed fields (Loom1Record), then a LayerConfig. Weights
// come from a Loom1Weights, which a JSON or an entity file fills. Room-private. The depth limit of
// parse_json bounds the nesting.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "formats/original/original.hpp"
#include "io/json/json.hpp"

namespace loom::core {

// The fields of one layer; absent numbers are 0, as in the original.
struct Loom1Record {
  std::string type, activation, dtype, output_mode, combine_mode, softmax_type;
  int64_t z = 0, y = 0, x = 0, l = 0;
  int64_t input_height = 0, input_width = 0, input_depth = 0;
  int64_t output_height = 0, output_width = 0, output_depth = 0;
  int64_t input_channels = 0, filters = 0, kernel_size = 0, stride = 0, padding = 0;
  int64_t output_padding = 0, num_heads = 0, num_kv_heads = 0, head_dim = 0, query_dim = 0;
  int64_t d_model = 0, seq_length = 0, vocab_size = 0, embedding_dim = 0, num_clusters = 0;
  int64_t softmax_rows = 0, softmax_cols = 0, tile_size = 0;
  int64_t target_z = 0, target_y = 0, target_x = 0, target_l = 0;
  double rope_freq_base = 0, kmeans_temperature = 0, temperature = 0, entmax_alpha = 0, scale = 0;
  bool gumbel_noise = false, native = false, use_tiling = false, is_disabled = false;
  bool is_remote_link = false;
  std::vector<int64_t> mask, hierarchy_levels;
  const JsonValue* weights = nullptr;
};

struct Loom1Layer {
  Loom1Record record;
  LayerConfig config;  // without children
  std::vector<Loom1Layer> children;
  std::string location;  // "layers[3].parallel_branches[0]", for messages
  std::string path;      // "layers.3.parallel_branches.0", of blobs
  int64_t offset = -1;   // of the record in the file
  DType dtype = DType::f32;
};

struct Loom1Grid {
  int64_t depth = 1, rows = 1, cols = 1, layers_per_cell = 1;
  std::vector<Loom1Layer> layers;
};

// Settings of a layer outside its record (entity files have blobs for them).
struct Loom1Extras {
  bool qk_norm = false;
  bool inner_norm = false;    // before the last projection of attention or SwiGLU
  double norm_eps = 0;        // 0 means unknown
  double rope_freq_base = 0;  // used if the record has none
  std::string gate;           // activation of a SwiGLU's gate; empty means SiLU
};

class Loom1Reader {
 public:
  // `base`: the offset of the JSON text in the file.
  Loom1Reader(std::string where, int64_t base) : where_(std::move(where)), base_(base) {}

  Result<Loom1Grid> grid(const JsonValue& root);
  std::function<Loom1Extras(const std::string& path)> extras;

  Error bad(const JsonValue& at, const std::string& location, std::string_view message) const;
  Error bad(const Loom1Layer& layer, std::string_view message) const;
  Error lacking(const Loom1Layer& layer, std::string_view message) const;  // unsupported
  void note(const std::string& location, std::string_view text);
  const std::string& where() const { return where_; }
  std::vector<std::string> notes;

 private:
  enum class Nesting : uint8_t { cell, branch, step };
  Result<Loom1Layer> layer(const JsonValue& value, std::string location, std::string path,
                           Nesting nesting);
  Status read_record(const JsonValue& value, Loom1Layer& into);
  Status read_member(const std::string& key, const JsonValue& value, Loom1Layer& into);
  Status read_special(const std::string& key, const JsonValue& value, Loom1Layer& into);
  Status read_list(const JsonValue& value, const std::string& location, bool flags,
                   std::vector<int64_t>& out) const;
  Status read_children(const JsonValue& value, Loom1Layer& into);
  Status check_dialect(const std::string& key, const JsonValue& value, const Loom1Layer& into);
  Status check_cell(const Loom1Layer& layer, const Loom1Grid& grid) const;

  std::string where_;
  int64_t base_;
  std::string checkpoint_key_, architecture_key_;  // the first one of each dialect
};

// Fills layer.config from layer.record. `reader` receives the notes.
Status configure_loom1(Loom1Reader& reader, Loom1Layer& layer, const Loom1Extras& extras);

// Appends the weights of one layer to `out`, in the original's flat order; returns false if the
// file has none for it.
using Loom1Weights = std::function<Result<bool>(
    const Loom1Layer& layer, const std::vector<ParamSpec>& specs, std::vector<float>& out)>;
// The number of values in all parameters, bounded.
Result<uint64_t> loom1_count(const Loom1Reader& reader, const Loom1Layer& layer,
                             const std::vector<ParamSpec>& specs);
// Weights of a layer and its children, under Loom's path.
Status read_loom1_weights(Loom1Reader& reader, const Loom1Layer& layer, const std::string& path,
                          const Loom1Weights& weights, std::vector<Loom1Param>& out);
// Builds the network of the layers, with the shape of its input.
Result<NetworkSpec> assemble_loom1(Loom1Reader& reader, Loom1Grid& grid,
                                   const Loom1Options& options);
// The layer with its children, as a grid takes it.
LayerConfig whole_loom1_layer(const Loom1Layer& layer);
// Assembles the network and reads the weights of every cell.
Result<Loom1Network> build_loom1(Loom1Reader& reader, Loom1Grid& grid, const Loom1Options& options,
                                 const Loom1Weights& weights);

}  // namespace loom::core
