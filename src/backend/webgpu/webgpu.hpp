// The WebGPU backend: Ops that run on a GPU. All that other rooms see.
//
// Results are not those of the CPU to the bit (WGSL lets compilers fuse and reorder): integer paths
// are exact, float paths are within the bounds of docs/webgpu.md, and the same list on the same
// device gives the same bits again.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/webgpu/runtime/options.hpp"
#include "ops/device.hpp"
#include "ops/fwd.hpp"
#include "ops/op_id.hpp"

namespace loom::core::webgpu {

class Backend : public Device {
 public:
  // Errors: not_found without a library or an adapter; unsupported for an adapter below what is
  // needed; both say what to do.
  static Result<std::unique_ptr<Backend>> open(const OpenOptions& options);

  // The table to give to sessions and training steps; valid as long as this.
  virtual const Ops& ops() const = 0;
  virtual const AdapterReport& adapter() const = 0;
  virtual const Counts& counts() const = 0;
  virtual int64_t bytes() const = 0;  // of the buffers there are; from any thread
  // Times every dispatch from now on, or no longer. Errors: unsupported where the adapter has no
  // timestamps.
  virtual Status set_profile(bool on) = 0;
  // Most time first; what was measured since it was asked for last.
  virtual std::vector<KernelTime> take_profile() = 0;
  // What searches found, or choose() was told: choices of the same adapter and the same
  // variants_version(). Names that nothing has are passed over.
  virtual std::vector<Choice> choices() const = 0;
  virtual void choose(std::span<const Choice> choices) = 0;
  // Called when a search has found something.
  virtual void on_choice(std::function<void()> call) = 0;
  // Makes all products in tiles with one variant from now on; "": with those that are chosen.
  // Errors: not_found; unsupported where it is too large for the adapter.
  virtual Status force_variant(std::string_view name) = 0;
  // That of the last product in tiles.
  virtual std::string last_variant() const = 0;
  // FLOP per second of multiply-adds in f32 alone, measured in about so many seconds.
  virtual Result<double> fma_rate(double seconds) = 0;
  // While it is on, lists are submitted when something waits for them or a submission is full;
  // else also where the device would have nothing to do.
  virtual void gather(bool on) = 0;
  // For tests: as if the device were gone.
  virtual void lose() = 0;
};

std::vector<std::string> variant_names();
int64_t variants_version();

// Which rows of ops.def have kernels. The others, and arguments that a kernel leaves out, are
// computed by the CPU (Counts::fallbacks).
bool has_kernel(OpId op);

}  // namespace loom::core::webgpu
