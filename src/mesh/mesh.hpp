// Mesh: a running step mesh. Every cell fires once a tick on values that were committed in the
// previous tick, and writes a slot of its own. So cells may run in any order, and results depend
// neither on threads nor on the number of ticks per call.
//
// Slots are double buffers in memory that create() allocates: a tick with an even number reads one
// side and writes the other. Both ticks are recorded once and replayed, and so is a block of ticks.
// A tick allocates nothing. On a device the ticks of a stream share submissions, each with as many
// commands as fit. The host waits for none of them until up to 1,024 ticks are over.
//
// A cell whose source has no value yet holds: it does not fire, and counts as stale. A second input
// without a value reads zeros.
#pragma once

#include <functional>
#include <memory>

#include "mesh/topology.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

struct MeshRunOptions {
  ActivationMode activations = ActivationMode::q8;
  int64_t block = -1;     // ticks of one recording, even; 0 means each alone, -1 automatic
  bool activity = false;  // stream() can report activity of slots
  // Called with true before ticks whose lists may share submissions of the device, and with false
  // after them (webgpu::Backend::gather). If empty, the device chooses when to submit.
  std::function<void(bool)> gather{};
};

class Mesh {
 public:
  // `network`: made from `grid`, finalized for a batch, with loaded parameters; must outlive this
  // object. Errors: those of MeshTopology::create, out_of_memory.
  static Result<Mesh> create(const Network& network, const GridSpec& grid,
                             const MeshOptions& options, const MeshRunOptions& run, const Ops& ops,
                             ThreadPool& pool);
  Mesh(Mesh&&) noexcept;
  Mesh& operator=(Mesh&&) noexcept;
  ~Mesh();

  const MeshTopology& topology() const;
  // Sets the value of port `port` from the next tick on, until it is replaced; x is copied. x: as
  // many contiguous values as the port, of the compute type, or i32 for ids. Errors: invalid.
  Status set_input(const Tensor& x, int port = 0);
  Status tick(int64_t count = 1);
  // Runs one tick for each of `count` samples: x [count, port 0]; other ports keep their values. y
  // [count, output] receives what the last cell commits in each tick, zeros before its first value.
  // activity [count, slots], f32: means of the absolute values that slots commit, NaN before their
  // first value and for delays; only with MeshRunOptions::activity. Both may be empty. Errors:
  // invalid, and those of the device.
  Status stream(const Tensor& x, int64_t count, const Tensor& y, const Tensor& activity = {});
  // The value that slot `slot` committed, until the next tick; zeros before its first value.
  Result<Tensor> output(int slot) const;
  bool holds(int slot) const;  // whether it ever fired
  int64_t ticks() const;       // since reset()
  int64_t stale() const;       // cells that did not fire in the last tick
  // Clears slots, ports and states, and sets tick 0.
  Status reset();
  int64_t bytes() const;  // of slots, states and recordings

 private:
  struct Impl;
  explicit Mesh(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom::core
