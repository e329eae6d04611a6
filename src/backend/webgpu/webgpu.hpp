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

#include "ops/device.hpp"
#include "ops/ops.hpp"

namespace loom::core::webgpu {

// Whether large products are made with the variant of their kernel that a search on the device
// found fastest (docs/webgpu.md). force: on software adapters too.
enum class Tuning : uint8_t { off, on, force };

// What a search found for a class of products: both by name.
struct Choice {
  std::string product, variant;
  bool operator==(const Choice& other) const = default;
};

struct OpenOptions {
  std::string library;         // path of a webgpu.h library; empty: see library_names()
  bool robust = false;         // keep the checks of array bounds inside shaders
  bool features = true;        // use optional features of the adapter (f16, subgroups, timestamps)
  bool slow_features = false;  // also those that software adapters are slower with: immediates
  bool strict = false;         // an op without a kernel is an error, not run on the CPU
  Tuning tuning = Tuning::on;
  const Ops* host = nullptr;  // what the host computes with; null: the reference
};

struct AdapterReport {
  std::string library, flavour;  // file that was opened; "Dawn (2025)"
  std::string name, vendor, architecture, driver, backend;
  bool software = false;
  bool f16 = false, subgroups = false, timestamps = false;
  uint32_t subgroup_min = 0, subgroup_max = 0;
  int64_t immediates = 0;  // bytes of parameters that go with a dispatch; 0: they lie in a buffer
  int team = 1;  // invocations in a row that swap values in registers; 1: none, kernels do without
  int64_t max_buffer = 0, max_binding = 0;
  int64_t max_storage_buffers = 0, max_workgroup_memory = 0, max_workgroup_size = 0,
          max_workgroups = 0;
};

// What the device did since it was opened.
struct Counts {
  int64_t submits = 0, dispatches = 0, commands = 0;
  int64_t pipelines = 0;
  int64_t uploaded = 0, downloaded = 0;  // bytes
  int64_t memory[kMemoryUses] = {};      // bytes attached now, per MemoryUse
  int64_t own_memory = 0;                // uniforms, staging, temporaries
  int64_t fallbacks[kOpCount] = {};      // commands that ran on the CPU, per op
  int64_t total_fallbacks() const;
};

// What the dispatches of one kernel took on the device.
struct KernelTime {
  std::string name;
  int64_t dispatches = 0;
  double microseconds = 0;
};

class Backend : public Device {
 public:
  // Errors: not_found without a library or an adapter; unsupported for an adapter below what is
  // needed; both say what to do.
  static Result<std::unique_ptr<Backend>> open(const OpenOptions& options);

  // The table to give to sessions and training steps; valid as long as this.
  virtual const Ops& ops() const = 0;
  virtual const AdapterReport& adapter() const = 0;
  virtual const Counts& counts() const = 0;
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
  // For tests: as if the device were gone.
  virtual void lose() = 0;
};

std::vector<std::string> variant_names();
int64_t variants_version();

// Which rows of ops.def have kernels, and how many. The others, and arguments that a kernel leaves
// out, are computed by the CPU (Counts::fallbacks).
bool has_kernel(OpId op);
int ops_with_kernels();

}  // namespace loom::core::webgpu
