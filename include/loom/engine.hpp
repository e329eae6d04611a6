// Engine: shared settings and threads of all models of a program: the thread pool, the instruction
// set, the modes. Create one at the start. A handle: copies share the engine, and models keep it
// alive. The threads serve one computation at a time. Sessions of one engine must not compute at
// the same time on several threads of the caller. Such a program creates one engine per thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loom/dtype.hpp"
#include "loom/export.hpp"
#include "loom/result.hpp"
#include "loom/version.hpp"

namespace loom {

// The processor that computes. gpu uses WebGPU.
enum class Device : uint8_t { cpu, gpu };

// How inputs enter products with weights of integer types. q8: rounded to int8; f32: as floats.
// automatic: q8 on the CPU; f32 on the GPU, where q8 does not read weights any faster.
enum class Activations : uint8_t { automatic, q8, f32 };

// Large products of a GPU use the fastest of several kernels with equal bits. A short search on the
// device finds it. force: on software adapters too.
enum class GpuTuning : uint8_t { on, off, force };

// Names as the command line and Python accept them: "cpu", "q8", "force". Errors list the names.
LOOM_API std::string_view device_name(Device device);
LOOM_API Result<Device> parse_device(std::string_view name);
LOOM_API std::string_view activations_name(Activations activations);
LOOM_API Result<Activations> parse_activations(std::string_view name);
LOOM_API std::string_view gpu_tuning_name(GpuTuning tuning);
LOOM_API Result<GpuTuning> parse_gpu_tuning(std::string_view name);

// Log levels: progress (debug), completed work (info), fallbacks (warning).
enum class LogLevel : uint8_t { debug, info, warning };
LOOM_API std::string_view log_level_name(LogLevel level);  // "warning"
// Gets one line, without a line end. Called on the thread that called the library, during its work:
// it must not call the same object.
using LogSink = std::function<void(LogLevel level, std::string_view line)>;

struct EngineOptions {
  int threads = 0;    // worker threads, the caller's thread included; 0 means all cores
  std::string isa{};  // "scalar", "avx2", "avx512vnni", ...; empty means the best one here
  Activations activations = Activations::automatic;
  // Always uses exactly that many threads, even beyond the cores and if other programs use them.
  // Otherwise `threads` is a maximum: a small computation, or a busy core, uses fewer.
  bool exact_threads = false;
  // Maximum bytes for reading networks and data sets, in total; 0 means the free memory.
  uint64_t memory_limit = 0;
  Device device = Device::cpu;
  std::string gpu_library{};  // of webgpu.h; empty means one that the system finds by name
  bool gpu_strict = false;    // an op without a GPU kernel is an error
  GpuTuning gpu_tuning = GpuTuning::on;
  // The file that caches tuning results for the next process; empty means none. If it cannot be
  // read or written, it is ignored.
  std::string gpu_cache{};
  // Receives log lines about the work on this engine; unset means no log. The library itself prints
  // nothing (except or_exit() and the default hook of set_bad_access_hook()).
  LogSink log{};
};

struct EngineInfo {
  std::string version;            // of the library, such as "0.2.0"
  int threads = 1;                // actual number, limited by the cores
  int cores = 1;                  // that this process may use
  bool threads_built_in = true;   // false: a single-threaded build
  std::string isa;                // in use
  std::vector<std::string> isas;  // supported by this build and processor, slowest first
  Activations activations = Activations::q8;  // default of new sessions; never automatic
  std::string device = "cpu";                 // "cpu" or the name of the GPU
};

// Bytes of memory that the objects of an engine hold now. The large, lasting parts are counted:
// packed weights, and memory that sessions and trainers hold for their whole life. Data sets
// (Dataset::bytes()), tokenizers, descriptions, returned tensors and temporary memory of a call are
// not counted.
struct MemoryUse {
  int64_t weights = 0;   // of networks and models, also of a network that only a session still uses
  int64_t sessions = 0;  // activations, states, KV caches, position tables
  int64_t training = 0;  // of trainers: weights, masters, gradients, moments, activations
  int64_t total = 0;     // of these three
  int64_t peak = 0;      // the largest total since the engine was created
  // Weights in mapped files or borrowed bytes. They are not in the total: the system loads pages of
  // files on demand and may evict them.
  int64_t mapped = 0;
  int64_t device = 0;  // all buffers on a GPU; not in the total
};

// Memory of a caller that counts against EngineOptions::memory_limit until the last copy is gone.
using MemoryReservation = std::shared_ptr<const void>;

class LOOM_API Engine {
 public:
  // Errors: invalid_argument (negative threads); unsupported (an instruction set that this build or
  // processor lacks, an adapter that is too small); not_found (no GPU or no WebGPU library).
  static Result<Engine> create(const EngineOptions& options = {});
  // The engine of every call without an engine: all cores, the CPU. Created on first use and kept
  // until the process ends.
  static Result<Engine> shared();

  const EngineInfo& info() const;
  MemoryUse memory() const;  // from any thread
  // Counts `bytes` of the caller's own memory against EngineOptions::memory_limit. `what` names the
  // memory in the error. Any thread. Errors: out_of_memory (more than memory_left()).
  Result<MemoryReservation> reserve(uint64_t bytes, std::string_view what) const;
  uint64_t memory_left() const;  // bytes of memory_limit that nothing uses; any thread

  struct LOOM_LOCAL Impl;
  Impl& impl() const { return *impl_; }
  const std::shared_ptr<Impl>& share() const { return impl_; }

 private:
  friend class Model;
  explicit Engine(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace loom
