// The WebGPU backend: Ops that run on a GPU. Other rooms include only this header.
//
// Results do not equal those of the CPU bit for bit, because WGSL lets compilers fuse and reorder.
// Integer paths are exact; float paths are within the bounds of docs/webgpu.md. The same list on
// the same device gives the same bits again.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/webgpu/runtime/options.hpp"
#include "ops/families/fwd.hpp"
#include "ops/op_id.hpp"
#include "ops/recording/device.hpp"

namespace loom::core::webgpu {

class Backend : public Device {
 public:
  // Errors: not_found without a library or an adapter; unsupported for an adapter below the
  // minimum. Both say what to do.
  static Result<std::unique_ptr<Backend>> open(const OpenOptions& options);

  // The table for sessions and training steps; valid for the life of this object.
  virtual const Ops& ops() const = 0;
  virtual const AdapterReport& adapter() const = 0;
  virtual const Counts& counts() const = 0;
  virtual int64_t bytes() const = 0;  // of existing buffers; from any thread
  // Turns timing of every dispatch on or off. Errors: unsupported if the adapter has no timestamps.
  virtual Status set_profile(bool on) = 0;
  // The times since the last call, longest first.
  virtual std::vector<KernelTime> take_profile() = 0;
  // Choices that searches found or choose() set. They are valid for the same adapter and the same
  // variants_version(). Unknown names are skipped.
  virtual std::vector<Choice> choices() const = 0;
  virtual void choose(std::span<const Choice> choices) = 0;
  // Called after a search has found a choice.
  virtual void on_choice(std::function<void()> call) = 0;
  // Forces one variant for all products in tiles from now on. "" restores the choices. Errors:
  // not_found; unsupported if it is too large for the adapter.
  virtual Status force_variant(std::string_view name) = 0;
  // The variant of the last product in tiles.
  virtual std::string last_variant() const = 0;
  // FLOP per second of pure f32 multiply-adds, measured in about `seconds`.
  virtual Result<double> fma_rate(double seconds) = 0;
  // While on, a list is submitted only if something waits for it or a submission is full. While
  // off, lists are also submitted whenever the device would be idle.
  virtual void gather(bool on) = 0;
  // For tests: simulates a lost device.
  virtual void lose() = 0;
};

std::vector<std::string> variant_names();
int64_t variants_version();

// Which rows of ops.def have kernels. The CPU computes the others, and arguments that a kernel does
// not support (Counts::fallbacks).
bool has_kernel(OpId op);

}  // namespace loom::core::webgpu
