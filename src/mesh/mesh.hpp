// Mesh: a step mesh that runs. Every cell fires once a tick on what was committed the tick before
// and writes a slot of its own, so cells may run in any order, and results depend neither on
// threads nor on how many ticks are asked for at a time.
//
// Slots are double buffers in memory taken by create(): a tick of an even number reads one side and
// writes the other. Both are recorded once and replayed, and so is a block of ticks. Nothing is
// allocated by a tick. On a device the ticks of a stream share submissions, of as many commands as
// one holds, and the host waits for none of them before up to 1,024 ticks are over.
//
// A cell whose source has nothing yet holds: it does not fire, and is counted as stale. A second
// input that has nothing yet reads zeros.
#pragma once

#include <functional>
#include <memory>

#include "mesh/topology.hpp"
#include "ops/fwd.hpp"

namespace loom::core {

struct MeshRunOptions {
  ActivationMode activations = ActivationMode::q8;
  int64_t block = -1;  // ticks of one recording, an even number; 0: each alone; -1: a good number
  bool activity = false;  // stream() can tell how active slots are
  // Called with true before ticks whose lists may share submissions of the device, and with false
  // behind them (webgpu::Backend::gather). Empty: the device submits when it likes.
  std::function<void(bool)> gather{};
};

class Mesh {
 public:
  // `network`: of `grid`, finalized for a batch, parameters loaded; must outlive this. Errors:
  // those of MeshTopology::create, out_of_memory.
  static Result<Mesh> create(const Network& network, const GridSpec& grid,
                             const MeshOptions& options, const MeshRunOptions& run, const Ops& ops,
                             ThreadPool& pool);
  Mesh(Mesh&&) noexcept;
  Mesh& operator=(Mesh&&) noexcept;
  ~Mesh();

  const MeshTopology& topology() const;
  // Copies what port `port` offers from the next tick on, until it is replaced. x: as many values
  // as the port, without gaps, of the compute type, or i32 for ids. Errors: invalid.
  Status set_input(const Tensor& x, int port = 0);
  Status tick(int64_t count = 1);
  // One tick for each of `count` samples: x [count, port 0]; other ports keep what they hold. y
  // [count, output] gets what the last cell committed in each tick; zeros as long as that is
  // nothing. activity [count, slots], f32: means of the absolute values that slots committed, NaN
  // as long as that is nothing, and for delays; only with MeshRunOptions::activity. Both may be
  // empty. Errors: invalid, and those of the device.
  Status stream(const Tensor& x, int64_t count, const Tensor& y, const Tensor& activity = {});
  // What slot `slot` committed, until the next tick; zeros as long as it holds nothing.
  Result<Tensor> output(int slot) const;
  bool holds(int slot) const;  // whether it ever fired
  int64_t ticks() const;       // since reset()
  int64_t stale() const;       // cells that did not fire in the last tick
  // Empty slots, ports and states, tick 0.
  Status reset();
  int64_t bytes() const;  // of slots, states and recordings

 private:
  struct Impl;
  explicit Mesh(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom::core
