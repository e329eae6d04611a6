// Network: layers in a 3D grid with their weights. Made in code, from JSON, or from a file; run by
// a Session, trained by a Trainer.
//
//   Network net = Network::sequential({Dense{.in = 4, .out = 16, .activation = Activation::relu},
//                                      Dense{.in = 16, .out = 3}},
//                                     {.input = {4}, .seed = 7}).or_exit();
//   print(net.summary());
//   Tensor scores = net.predict(Tensor::view(samples, {n, 4})).or_exit();    // [n, 3]
//   net.save("iris.entity", {.dtype = DType::int8}).or_exit();
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loom/engine.hpp"
#include "loom/export.hpp"
#include "loom/files.hpp"
#include "loom/layers.hpp"
#include "loom/state_dict.hpp"
#include "loom/tensor.hpp"

namespace loom {

class Session;
struct SessionOptions;

// A place in the grid. Cells run by z, then y, then x, then l, ascending.
struct Coord {
  int64_t z = 0, y = 0, x = 0, l = 0;
  bool operator==(const Coord&) const = default;
};

struct GridCell {
  Coord at;
  Layer layer;
  std::optional<Coord> shared_with = {};  // uses the parameters of that earlier cell
  std::optional<Coord> link = {};         // where its input comes from, instead of the cell before
  bool feedback = false;                  // the link brings what that cell gave in the pass before
  std::optional<DType> dtype = {};        // of its matrices; unset: the network's
  // Names of its parameters that training leaves as they are: "weight", "2/bias"; * and ? match as
  // in TrainerOptions::freeze. It is saved with the network.
  std::vector<std::string> frozen = {};
};

// A network as a description: cells of a grid. Plain data; Network::create() checks it.
//
//   Grid grid({2, 1, 1, 1});
//   grid.put({0, 0, 0, 0}, Dense{.in = 8, .out = 16})
//       .put({1, 0, 0, 0}, Lstm{.in = 16, .hidden = 16})
//       .link({1, 0, 0, 0}, {0, 0, 0, 0});
class LOOM_API Grid {
 public:
  // Extents along z, y, x, and layers per cell.
  explicit Grid(std::array<int64_t, 4> extents) : extents_(extents) {}

  Grid& put(const Coord& at, Layer layer);  // in the place of what was there
  // `to` takes its input from `from`: of this pass, or with feedback of the pass before.
  Grid& link(const Coord& to, const Coord& from, bool feedback = false);
  Grid& share(const Coord& cell, const Coord& with);
  Grid& set_dtype(const Coord& cell, DType dtype);
  Grid& freeze(const Coord& cell, std::vector<std::string> parameters);

  const std::array<int64_t, 4>& extents() const { return extents_; }
  const std::vector<GridCell>& cells() const { return cells_; }

 private:
  GridCell& cell(const Coord& at);
  std::array<int64_t, 4> extents_;
  std::vector<GridCell> cells_;
};

struct NetworkOptions {
  Shape input;                         // of one sample; ids of an Embedding: {T}
  uint64_t seed = 1;                   // of the starting weights
  DType dtype = DType::float32;        // of the matrices; vectors are float32
  std::vector<std::string> classes{};  // names, where outputs are scores of classes
  std::optional<Engine> engine{};      // unset: Engine::shared()
};

struct LoadOptions {
  std::optional<DType> dtype{};  // of the matrices; unset: as the file has them
  uint64_t seed = 1;             // of weights that the file does not have
  std::string weights{};         // a file of weights for a file that describes a network
  // false: batch norms of an ONNX or TFLite file, and functions of its weights, go into the weights
  // of layers. That predicts faster, and would train other numbers. true: they stay, and values of
  // a quantized TFLite file are not rounded to its steps. Unset: true of ONNX, false of TFLite.
  std::optional<bool> for_training{};
  // Patterns over names of initializers of an ONNX file that train, and that do not, besides what
  // docs/onnx.md, "What trains", says of them; `frozen` counts more.
  std::vector<std::string> trainable{}, frozen{};
  int64_t open_extent = 0;  // of axes that a file leaves open, besides the batch; 0: an error
  // Reads weights that are NaN or infinite. They are an error otherwise: the model would compute
  // nothing of use.
  bool allow_nonfinite = false;
  StateDictOptions state_dict{};   // answers about .safetensors files without a configuration
  std::optional<Engine> engine{};  // unset: Engine::shared()
  // Parameters read and in all; false stops with Code::cancelled.
  std::function<bool(int64_t done, int64_t total)> progress{};
};

// Formats of networks; as files they have the ending of that name.
enum class NetworkFormat : uint8_t { entity, json, onnx, npz, safetensors };
LOOM_API std::string_view network_format_name(NetworkFormat format);  // "onnx"
LOOM_API Result<NetworkFormat> parse_network_format(std::string_view name);

struct SaveOptions {
  std::optional<DType> dtype{};  // of the matrices; unset: as they are
  bool with_weights = true;      // .json: or the description alone
  // Bytes written and in all; false stops with Code::cancelled. .onnx and .json are written at
  // once.
  std::function<bool(uint64_t done, uint64_t total)> progress{};
};

// How training held samples out, so that the same ones can be found again.
struct TrainingSplit {
  double share = 0;  // of the samples that trained
  uint64_t seed = 1;
  bool shuffle = true;
  std::string data_hash;        // Dataset::hash() of the whole
  int64_t folds = 0, fold = 0;  // above 0: Dataset::fold(fold, folds), and `share` says nothing
};

// An input or an output of a network. shape: of one sample, or of the whole where all samples of a
// batch share it. ids: above 0 where values are whole numbers below it.
struct PortInfo {
  std::string name;
  Shape shape;
  bool batched = true;
  int64_t ids = 0;
};

struct NetworkInfo {
  Shape input, output;  // of one sample; the first of those below
  std::vector<PortInfo> inputs{}, outputs{};
  int64_t layers = 0;      // cells in use
  int64_t parameters = 0;  // numbers; shared ones once
  int64_t trainable = 0;   // of these, those that training changes if nothing else is asked for
  int64_t bytes = 0;       // packed, in memory
  DType dtype = DType::float32;
  std::string loss;  // that it was trained with; "": not trained
  std::vector<std::string> classes;
  bool fresh = true;             // its weights are starting values: nothing was trained or read
  bool takes_ids = false;        // inputs are ids (int32), not numbers
  std::vector<int64_t> heads{};  // widths of the parts of an output, each with classes of its own
  bool normalizes = false;  // inputs are shifted and scaled as in training, by the network itself
  bool trained = false;     // its file, or a Trainer, says what for
  std::optional<TrainingSplit> split{};
  // Names of the columns of the table that it was trained with: inputs in its order, then targets.
  // Empty: not known.
  std::vector<std::string> columns{};
};

struct ParameterInfo {
  std::string name;  // "(0, 0, 0, 0)/weight": cell, child indices, name
  Shape shape;
  DType dtype = DType::float32;
};

// A handle: copies mean the same network. Training changes it; sessions keep the weights that it
// had when they were made. Functions that only read are thread-safe.
class LOOM_API Network {
 public:
  // Layers one after the other. Errors: invalid_argument, naming the layer and the field, or the
  // two layers whose shapes do not fit.
  static Result<Network> sequential(std::vector<Layer> layers, const NetworkOptions& options);
  static Result<Network> create(const Grid& grid, const NetworkOptions& options);
  // A description as `loom new` writes it (docs/network.md), with weights if it has them.
  static Result<Network> from_json(std::string_view json, const LoadOptions& options = {});
  // Any file that holds a network: .entity, .json, .onnx, .tflite, .npz, .safetensors. What a file
  // holds is told by its bytes. Errors: not_found, bad_file (with file and offset), unsupported.
  static Result<Network> load(const std::string& path, const LoadOptions& options = {});
  // The same of a file in memory; options.weights stays the name of a file.
  static Result<Network> load(const FileBytes& file, const LoadOptions& options = {});
  // The format is that of the ending: .entity, .json, .onnx, .npz, .safetensors. A file that is
  // there is replaced as a whole or not at all.
  Status save(const std::string& path, const SaveOptions& options = {}) const;
  // The bytes of such a file.
  Result<std::string> save_bytes(NetworkFormat format, const SaveOptions& options = {}) const;
  std::string json() const;  // the description

  NetworkInfo info() const;
  // A table for people: cells, layers, shapes, parameters.
  std::string summary() const;

  std::vector<ParameterInfo> parameters() const;
  // Values of a parameter as float32. Errors: not_found.
  Result<Tensor> parameter(std::string_view name) const;
  // Packs new values. Errors: not_found, invalid_argument (another shape).
  Status set_parameter(std::string_view name, const Tensor& values);

  // Takes all memory a run needs. Errors: invalid_argument, out_of_memory.
  Result<Session> session(const SessionOptions& options) const;
  Result<Session> session() const;
  // Outputs [.., n] as probabilities, if the network was trained for classes: softmax over the last
  // extent (of each head), or sigmoid of each value for Loss::bce. Errors: unsupported.
  Result<Tensor> probabilities(const Tensor& outputs) const;
  // A session for one call: inputs [n, ...] to outputs [n, ...]. For many calls make a session.
  Result<Tensor> predict(const Tensor& inputs) const;

  struct LOOM_LOCAL Impl;
  Impl& impl() const { return *impl_; }
  explicit Network(std::shared_ptr<Impl> impl);

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace loom
