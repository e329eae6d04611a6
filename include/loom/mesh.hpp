// Mesh: a network that ticks. In a tick every cell fires once, on what was committed the tick
// before, so a chain of L layers shows a sample after L ticks, and from then on one result per
// tick. Links carry a value in any direction, delayed by as many ticks as one likes.
//
//   Mesh mesh = Mesh::create(net, {.links = {{.to = {0, 0, 0, 0}, .from = Coord{2, 0, 0, 0}}}})
//                   .or_exit();
//   for (const Tensor& sample : samples) show(mesh.push(sample).or_exit());
//
// Equal networks, inputs and ticks give equal bits, with any number of threads and however many
// ticks are asked for at a time. docs/mesh.md has the rules.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "loom/dataset.hpp"
#include "loom/export.hpp"
#include "loom/mesh_options.hpp"
#include "loom/network.hpp"
#include "loom/trainer.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

// An input besides the first, which is called "input" and takes what the network takes. Further
// inputs of the network (its Input layers) are ports by their names without being listed here.
struct MeshPort {
  std::string name;
  Shape shape;  // of one sample
};

// What a cell reads instead of the cell before it: another cell (itself as well), a port, or
// nothing. With neither `from` nor `port` nor `nothing` the source stays, and the delay is new.
struct MeshLink {
  Coord to;
  std::optional<Coord> from{};
  std::string port{};
  bool nothing = false;
  int64_t delay = 1;    // ticks, at least 1; of a port 1 is the sample of this very tick
  bool second = false;  // the second input, of a Residual without children
};

struct MeshOptions {
  std::vector<MeshPort> ports{};
  std::vector<MeshLink> links{};  // besides those of the network itself
  // Cells whose source has nothing yet hold: they do not fire. true: they fire on zeros.
  bool zero_fill = false;
  bool carry = false;     // recurrent layers go on from the tick before; false: every tick is alone
  int64_t batch = 1;      // streams side by side
  bool activity = false;  // run() keeps how active cells were; it costs some time per cell and tick
  bool quantize_activations = true;  // SessionOptions::quantize_activations
  std::optional<Engine> engine{};    // unset: that of the network
};

// A sample per tick for a port besides the first: [n, sample]; of several streams [n, batch,
// sample].
struct MeshSamples {
  std::string port;
  Tensor samples;
};

struct MeshCell {
  Coord at;
  std::string layer;       // its type; "" for a disabled cell
  Shape output;            // of one sample
  int64_t first_tick = 0;  // in which it fires, when all ports are set from the start; -1: never
};

class LOOM_API Mesh {
 public:
  // The mesh keeps the weights that the network has now. Errors: invalid_argument, naming the link
  // or the two cells that do not meet; out_of_memory.
  static Result<Mesh> create(const Network& network, const MeshOptions& options = {});

  std::vector<MeshCell> cells() const;
  // What a port offers until it is replaced: [batch, sample]. Errors: invalid_argument.
  Status set_input(const Tensor& x, std::string_view port = "input");
  Status tick(int64_t count = 1);
  // A sample for one tick, and what the last cell committed in it: zeros before latency().
  Result<Tensor> push(const Tensor& x);
  // One tick for each sample: [n, sample] to [n, output]; of several streams [n, batch, sample]. On
  // a GPU all samples go there and all results come back together, up to 1,024 ticks at a time.
  Result<Tensor> run(const Tensor& samples);
  // The same with a sample per tick for other ports as well; ports that are not named keep what
  // they hold. Ticks run one by one. Errors: invalid_argument.
  Result<Tensor> run(const Tensor& samples, const std::vector<MeshSamples>& ports);
  // Of the last run(): means of the absolute values that cells committed, float32 [n, cells] in the
  // order of cells(); NaN in ticks in which a cell held nothing. Empty without
  // MeshOptions::activity.
  const Tensor& activity() const;
  // What a cell committed last, float32 [batch, output]; unset: the last cell.
  Result<Tensor> output(std::optional<Coord> cell = {}) const;
  bool holds(const Coord& cell) const;  // whether it ever fired
  int64_t ticks() const;                // since reset()
  int64_t stale() const;                // cells that did not fire in the last tick
  int64_t latency() const;              // ticks from a sample to its result; -1: it never comes
  Status reset();                       // nothing is held, tick 0
  int64_t bytes() const;                // memory that it took

  struct LOOM_LOCAL Impl;
  explicit Mesh(std::unique_ptr<Impl> impl);
  Mesh(Mesh&&) noexcept;
  Mesh& operator=(Mesh&&) noexcept;
  ~Mesh();

 private:
  std::unique_ptr<Impl> impl_;
};

struct MeshEpoch {
  int64_t number = 0;              // from 1
  double loss = 0;                 // mean over the samples
  std::optional<double> accuracy;  // of labels
  double ticks_per_second = 0;
};

struct MeshFitOptions {
  int64_t epochs = 10;
  // Windows done and in all; false stops.
  std::function<bool(int64_t done, int64_t total)> on_window{};
  std::function<void(const MeshEpoch&)> on_epoch{};
};

// Trains a network as a mesh: a dataset is a stream, one sample per tick in its order, and what the
// last cell gives latency() ticks after a sample is compared with that sample's target. With
// MeshOptions::batch the dataset is cut into as many streams of equal length. Every epoch begins a
// new stream. Every port besides the first takes the further input of its name
// (Dataset::with_input).
class LOOM_API MeshTrainer {
 public:
  // Errors: those of Mesh; out_of_memory where options.memory is too little, before any is taken.
  static Result<MeshTrainer> create(const Network& network, const MeshOptions& mesh,
                                    const MeshTrainerOptions& options);
  // The network has the new weights when it returns, after an error those of the last update.
  // Errors: invalid_argument (a loss that is not finite as well), cancelled.
  Result<std::vector<MeshEpoch>> fit(const Dataset& stream, const MeshFitOptions& options = {});

  struct LOOM_LOCAL Impl;
  explicit MeshTrainer(std::unique_ptr<Impl> impl);
  MeshTrainer(MeshTrainer&&) noexcept;
  MeshTrainer& operator=(MeshTrainer&&) noexcept;
  ~MeshTrainer();

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom
#endif
