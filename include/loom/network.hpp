// Network: layers in a 3D grid, with their weights. It is created in code, from JSON, or from a
// file. A Session runs it, and a Trainer trains it.
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
struct AdapterOptions;
struct SessionOptions;

// A location in the grid. Cells run by z, then y, then x, then l, ascending.
struct Coord {
  int64_t z = 0, y = 0, x = 0, l = 0;
  bool operator==(const Coord&) const = default;
};

struct GridCell {
  Coord at;
  Layer layer;
  std::optional<Coord> shared_with = {};  // shares the parameters of that earlier cell
  std::optional<Coord> link = {};         // reads that cell instead of the previous one
  bool feedback = false;                  // reads its output of the previous pass
  std::optional<DType> dtype = {};        // of its matrices; unset means the network's
  // Parameters that training leaves unchanged: "weight", "2/bias". * and ? match as in
  // TrainerOptions::freeze. Saved with the network.
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

  Grid& put(const Coord& at, Layer layer);  // replaces an existing cell
  // `to` reads the output of `from`: of this pass, or with `feedback` of the previous pass.
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
  Shape input;                         // of one sample; {T} for ids of an Embedding
  uint64_t seed = 1;                   // of the initial weights
  DType dtype = DType::float32;        // of the matrices; vectors are float32
  std::vector<std::string> classes{};  // class names, if outputs are class scores
  std::optional<Engine> engine{};      // unset means Engine::shared()
};

struct LoadOptions {
  std::optional<DType> dtype{};  // of the matrices; unset means as in the file
  uint64_t seed = 1;             // of weights that the file lacks
  std::string weights{};         // a file of weights for a file that describes a network
  // false folds batch norms and constant functions of weights of an ONNX or TFLite file into the
  // weights of layers. That predicts faster, but trains other parameters. true keeps them, and does
  // not round values of a quantized TFLite file to its steps. The default is true for ONNX, false
  // for TFLite.
  std::optional<bool> for_training{};
  // Patterns over initializer names of an ONNX file that train, and that do not, in addition to the
  // rules of docs/onnx.md, "What trains". `frozen` takes precedence.
  std::vector<std::string> trainable{}, frozen{};
  int64_t open_extent = 0;  // extent of open axes besides the batch; 0 makes them an error
  // Accepts weights that are NaN or infinite. They are an error otherwise, because the model would
  // produce garbage.
  bool allow_nonfinite = false;
  StateDictOptions state_dict{};   // settings for .safetensors files without a configuration
  std::optional<Engine> engine{};  // unset means Engine::shared()
  // Parameters read and total; false stops with Code::cancelled.
  std::function<bool(int64_t done, int64_t total)> progress{};
};

// File formats of networks; the names are the file endings.
enum class NetworkFormat : uint8_t { entity, json, onnx, npz, safetensors };
LOOM_API std::string_view network_format_name(NetworkFormat format);  // "onnx"
LOOM_API Result<NetworkFormat> parse_network_format(std::string_view name);

struct SaveOptions {
  std::optional<DType> dtype{};  // of the matrices; unset means unchanged
  bool with_weights = true;      // .json: false writes only the description
  // Bytes written and total; false stops with Code::cancelled. .onnx and .json are written at once.
  std::function<bool(uint64_t done, uint64_t total)> progress{};
};

// How training split the samples, so that the same split can be repeated.
struct TrainingSplit {
  double share = 0;  // of the training samples
  uint64_t seed = 1;
  bool shuffle = true;
  std::string data_hash;        // Dataset::hash() of the whole
  int64_t folds = 0, fold = 0;  // above 0: Dataset::fold(fold, folds); `share` is unused
};

// An input or an output of a network. shape: of one sample, or of the whole if all samples of a
// batch share it. ids: above 0 if values are integers below it.
struct PortInfo {
  std::string name;
  Shape shape;
  bool batched = true;
  int64_t ids = 0;
};

struct NetworkInfo {
  Shape input, output;  // of one sample; of the first input and output
  std::vector<PortInfo> inputs{}, outputs{};
  int64_t layers = 0;      // cells in use
  int64_t parameters = 0;  // numbers; shared ones count once
  int64_t trainable = 0;   // those that training changes by default
  int64_t bytes = 0;       // packed, in memory
  DType dtype = DType::float32;
  std::string loss;  // of its training; empty if not trained
  std::vector<std::string> classes;
  bool fresh = true;             // only initial weights: not trained, not read from a file
  bool takes_ids = false;        // inputs are ids (int32), not numbers
  std::vector<int64_t> heads{};  // widths of the parts of an output, each with its own classes
  bool normalizes = false;       // the network shifts and scales inputs as in training
  bool trained = false;          // its file, or a Trainer, records the loss
  std::optional<TrainingSplit> split{};
  // Column names of its training table: inputs in order, then targets. Empty if unknown.
  std::vector<std::string> columns{};
  std::string plan{};  // how it reads a table, as JSON (loom/table.hpp); empty if it has no plan
  // The deviation of each numeric target, if training standardizes them; otherwise empty.
  std::vector<double> target_scale{};
  // A loss of targets in a unit is in that unit to this power: 2 for squared errors. 0 means none.
  int loss_degree = 0;
};

struct ParameterInfo {
  std::string name;  // "(0, 0, 0, 0)/weight": cell, child indices, name
  Shape shape;
  DType dtype = DType::float32;
};

// A handle: copies share the network. Training changes it; sessions keep the weights of the time
// when they were created. Functions that only read are thread-safe.
class LOOM_API Network {
 public:
  // A chain of layers. Errors: invalid_argument, naming the layer and the field, or the two layers
  // whose shapes do not fit.
  static Result<Network> sequential(std::vector<Layer> layers, const NetworkOptions& options);
  static Result<Network> create(const Grid& grid, const NetworkOptions& options);
  // A description in the format of `loom new` (docs/network.md), with optional weights.
  static Result<Network> from_json(std::string_view json, const LoadOptions& options = {});
  // Loads any file with a network: .entity, .json, .onnx, .tflite, .npz, .safetensors. The format
  // is detected from the bytes. Errors: not_found, bad_file (with file and offset), unsupported.
  static Result<Network> load(const std::string& path, const LoadOptions& options = {});
  // Loads a file in memory; options.weights is still the name of a file.
  static Result<Network> load(const FileBytes& file, const LoadOptions& options = {});
  // The ending selects the format: .entity, .json, .onnx, .npz, .safetensors. An existing file is
  // replaced as a whole or not at all.
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
  // Packs and sets new values. Errors: not_found, invalid_argument (another shape).
  Status set_parameter(std::string_view name, const Tensor& values);

  // A copy with an adapter on every weight that options.weights selects (docs/network.md). These
  // weights are frozen, so training changes the adapter; outputs are the same until then. Errors:
  // invalid_argument: no such weight, a second adapter of the name.
  Result<Network> with_adapter(const AdapterOptions& options) const;
  // A copy whose adapters were added to their weights, each rounded once to its number type.
  // Errors: invalid_argument: no adapters, a weight that several layers share, a sum that is not
  // finite.
  Result<Network> merge_adapters() const;

  // Takes all memory that a run needs. Errors: invalid_argument, out_of_memory.
  Result<Session> session(const SessionOptions& options) const;
  Result<Session> session() const;
  // Converts outputs [.., n] to probabilities, if the network was trained for classes: softmax over
  // the last extent (of each head), or sigmoid of each value for Loss::bce. Errors: unsupported.
  Result<Tensor> probabilities(const Tensor& outputs) const;
  // Runs inputs [n, ...] to outputs [n, ...] in a temporary session; for many calls make one. The
  // network of a table takes encoded rows: Dataset::from_file(), then Dataset::inputs().
  Result<Tensor> predict(const Tensor& inputs) const;

  struct LOOM_LOCAL Impl;
  Impl& impl() const { return *impl_; }
  explicit Network(std::shared_ptr<Impl> impl);

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace loom
