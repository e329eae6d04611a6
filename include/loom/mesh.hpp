// Mesh: a network that runs in ticks. In a tick every cell fires once, on the values committed in
// the previous tick. So a chain of L layers outputs a sample after L ticks, and then one result per
// tick. Links carry a value in any direction, with any delay in ticks.
//
//   Mesh mesh = Mesh::create(net, {.links = {{.to = {0, 0, 0, 0}, .from = Coord{2, 0, 0, 0}}}})
//                   .or_exit();
//   for (const Tensor& sample : samples) show(mesh.push(sample).or_exit());
//
// Equal networks, inputs and ticks give equal bits, with any number of threads and any number of
// ticks per call. docs/mesh.md has the rules.
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
#include "loom/training_events.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

// An input besides the first, which is called "input" and has the network's input shape. Further
// inputs of the network (its Input layers) are ports by name without an entry here.
struct MeshPort {
  std::string name;
  Shape shape;  // of one sample
};

// Replaces what a cell reads, by default the previous cell: another cell (itself as well), a port,
// or nothing. Without `from`, `port` and `nothing` the source stays, and only the delay changes.
struct MeshLink {
  Coord to;
  std::optional<Coord> from{};
  std::string port{};
  bool nothing = false;
  int64_t delay = 1;    // in ticks, at least 1; of a port, 1 is the sample of the same tick
  bool second = false;  // the second input of a Residual without children
};

struct MeshOptions {
  std::vector<MeshPort> ports{};
  std::vector<MeshLink> links{};  // added to those of the network itself
  // false: a cell does not fire while its source has no value yet. true: it fires on zeros.
  bool zero_fill = false;
  bool carry = false;     // recurrent layers keep their state between ticks; false: reset
  int64_t batch = 1;      // parallel streams
  bool activity = false;  // run() records the activity of cells; costs some time per cell and tick
  bool quantize_activations = true;  // SessionOptions::quantize_activations
  std::optional<Engine> engine{};    // unset means the network's
};

// One sample per tick for a port besides the first: [n, sample]; with several streams [n, batch,
// sample].
struct MeshSamples {
  std::string port;
  Tensor samples;
};

struct MeshCell {
  Coord at;
  std::string layer;       // its type; empty for a disabled cell
  Shape output;            // of one sample
  int64_t first_tick = 0;  // first firing if all ports are set from the start; -1 means never
};

class LOOM_API Mesh {
 public:
  // The mesh copies the current weights of the network. Errors: invalid_argument, naming the link
  // or the two cells that do not fit; out_of_memory.
  static Result<Mesh> create(const Network& network, const MeshOptions& options = {});

  std::vector<MeshCell> cells() const;
  // Sets the value of a port until it is replaced: [batch, sample]. Errors: invalid_argument.
  Status set_input(const Tensor& x, std::string_view port = "input");
  Status tick(int64_t count = 1);
  // Sets a sample, runs one tick, and returns the last cell's value: zeros before latency().
  Result<Tensor> push(const Tensor& x);
  // One tick for each sample: [n, sample] to [n, output]; with several streams [n, batch, sample].
  // On a GPU, samples and results are copied for up to 1,024 ticks at a time.
  Result<Tensor> run(const Tensor& samples);
  // The same with a sample per tick for other ports as well. Ports that are not listed keep their
  // value. Ticks run one by one. Errors: invalid_argument.
  Result<Tensor> run(const Tensor& samples, const std::vector<MeshSamples>& ports);
  // For the last run(): mean absolute values that cells committed, float32 [n, cells] in the order
  // of cells(). NaN marks ticks in which a cell had no value. Empty without MeshOptions::activity.
  const Tensor& activity() const;
  // The last committed value of a cell, float32 [batch, output]; unset means the last cell.
  Result<Tensor> output(std::optional<Coord> cell = {}) const;
  bool holds(const Coord& cell) const;  // whether it has ever fired
  int64_t ticks() const;                // since reset()
  int64_t stale() const;                // cells that did not fire in the last tick
  int64_t latency() const;              // ticks from a sample to its result; -1 means never
  Status reset();                       // clears all values; tick 0
  int64_t bytes() const;                // memory in use

  struct LOOM_LOCAL Impl;
  explicit Mesh(std::unique_ptr<Impl> impl);
  Mesh(Mesh&&) noexcept;
  Mesh& operator=(Mesh&&) noexcept;
  ~Mesh();

 private:
  std::unique_ptr<Impl> impl_;
};

// Trains a network as a mesh. A dataset is a stream with one sample per tick, in order. The last
// cell's output latency() ticks after a sample is compared with that sample's target.
// MeshOptions::batch splits the dataset into that many streams of equal length. Every epoch starts
// new streams. Every port besides the first reads the additional input of its name
// (Dataset::with_input).
class LOOM_API MeshTrainer {
 public:
  // Errors: those of Mesh; out_of_memory if options.memory is too small; nothing is allocated then.
  static Result<MeshTrainer> create(const Network& network, const MeshOptions& mesh,
                                    const MeshTrainerOptions& options);
  // The network has the new weights on return; after an error, those of the last update. Errors:
  // invalid_argument (also a loss that is not finite), cancelled.
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
