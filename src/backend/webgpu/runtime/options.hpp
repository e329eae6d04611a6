// The options of opening a GPU, and its reports.
#pragma once

#include <cstdint>
#include <string>

#include "ops/families/fwd.hpp"
#include "ops/op_id.hpp"
#include "ops/recording/device.hpp"

namespace loom::core::webgpu {

// Whether large products use the kernel variant that a search on the device found fastest
// (docs/webgpu.md). `force` searches on software adapters too.
enum class Tuning : uint8_t { off, on, force };

// The result of a search for a class of products: both by name.
struct Choice {
  std::string product, variant;
  bool operator==(const Choice& other) const = default;
};

struct OpenOptions {
  std::string library;         // path of a webgpu.h library; empty means library_names()
  bool robust = false;         // keep the checks of array bounds inside shaders
  bool features = true;        // use optional features of the adapter (f16, subgroups, timestamps)
  bool slow_features = false;  // also those that slow down software adapters: immediates
  bool strict = false;         // an op without a kernel is an error, not run on the CPU
  Tuning tuning = Tuning::on;
  const Ops* host = nullptr;  // the host's fallback; null means the reference
};

struct AdapterReport {
  std::string library, flavour;  // opened file; for example "Dawn (2025)"
  std::string name, vendor, architecture, driver, backend;
  bool software = false;
  bool f16 = false, subgroups = false, timestamps = false;
  uint32_t subgroup_min = 0, subgroup_max = 0;
  int64_t immediates = 0;  // bytes of parameters in a dispatch; 0 means a buffer
  int subgroup = 1;        // adjacent invocations that exchange registers; 1 means none
  int64_t max_buffer = 0, max_binding = 0;
  int64_t max_storage_buffers = 0, max_workgroup_memory = 0, max_workgroup_size = 0,
          max_workgroups = 0;
};

// Counters since the device was opened.
struct Counts {
  int64_t submits = 0, dispatches = 0, commands = 0;
  int64_t pipelines = 0;
  int64_t uploaded = 0, downloaded = 0;  // bytes
  int64_t memory[kMemoryUses] = {};      // bytes attached now, per MemoryUse
  int64_t own_memory = 0;                // uniforms, staging, temporaries
  int64_t fallbacks[kOpCount] = {};      // commands that ran on the CPU, per op
  int64_t total_fallbacks() const;
};

// Device time of the dispatches of one kernel.
struct KernelTime {
  std::string name;
  int64_t dispatches = 0;
  double microseconds = 0;
};

}  // namespace loom::core::webgpu
