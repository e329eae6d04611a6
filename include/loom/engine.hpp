// Engine: what every model of a program shares: the threads, the instruction set, the modes. Make
// one at the start. A handle: copies mean the same engine, and models keep it alive.
// The threads serve one computation at a time: sessions of one engine must not compute at the same
// time on several threads of the caller. Such a program makes one engine per thread.
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

namespace loom {

inline constexpr std::string_view kVersion = "0.1.0";

// What computes. gpu: through WebGPU.
enum class Device : uint8_t { cpu, gpu };

// How inputs meet weights of integer types. q8: rounded to int8; f32: as floats. automatic: q8 on
// the CPU, f32 on the GPU, which reads weights no faster for it.
enum class Activations : uint8_t { automatic, q8, f32 };

// Large products of a GPU are made with the fastest of several kernels of the same bits, which a
// short search on the device finds. force: on software adapters too.
enum class GpuTuning : uint8_t { on, off, force };

// Names as the program and Python take them: "cpu", "q8", "force". Errors list what there is.
LOOM_API std::string_view device_name(Device device);
LOOM_API Result<Device> parse_device(std::string_view name);
LOOM_API std::string_view activations_name(Activations activations);
LOOM_API Result<Activations> parse_activations(std::string_view name);
LOOM_API std::string_view gpu_tuning_name(GpuTuning tuning);
LOOM_API Result<GpuTuning> parse_gpu_tuning(std::string_view name);

// What is told of: work as it goes (debug), what was done (info), what went another way than was
// asked for, and on (warning).
enum class LogLevel : uint8_t { debug, info, warning };
LOOM_API std::string_view log_level_name(LogLevel level);  // "warning"
// One line without an end. Called from the thread that called the library, in the middle of its
// work: it must not call the same object.
using LogSink = std::function<void(LogLevel level, std::string_view line)>;

struct EngineOptions {
  int threads = 0;    // lanes of work, the caller's thread included; 0: all cores
  std::string isa{};  // "scalar", "avx2", "avx512vnni", ...; "": the best one here
  Activations activations = Activations::automatic;
  // Always that many lanes, also beyond the cores and where other programs use them. Without it a
  // computation has at most `threads`: fewer where it is small, or where a core is taken.
  bool exact_threads = false;
  // Bytes that reading networks and data sets may take, all together; 0: what the machine has free.
  uint64_t memory_limit = 0;
  Device device = Device::cpu;
  std::string gpu_library{};  // of webgpu.h; "": one that the system finds by name
  bool gpu_strict = false;    // an op that the GPU has no kernel for is an error
  GpuTuning gpu_tuning = GpuTuning::on;
  // The file that keeps what was found, for the next process; "": none. One that cannot be read or
  // written is passed over.
  std::string gpu_cache{};
  // Where lines about the work on this engine go; unset: nowhere. The library itself prints nothing
  // (but for or_exit() and the default hook of set_bad_access_hook()).
  LogSink log{};
};

struct EngineInfo {
  std::string version;            // of the library, "0.1.0"
  int threads = 1;                // as they run, after the limit of cores
  int cores = 1;                  // that this process may use
  bool threads_built_in = true;   // false: a single-threaded build
  std::string isa;                // in use
  std::vector<std::string> isas;  // that this build holds and this processor runs, slowest first
  Activations activations = Activations::q8;  // default of new sessions; never automatic
  std::string device = "cpu";                 // that computes: "cpu" or the name of the GPU
};

// Bytes of memory that the objects of an engine hold now. Counted are the large, lasting parts:
// weights as they are packed, and what sessions and trainers take for their whole life. Not
// counted: data sets (Dataset::bytes()), tokenizers and descriptions, tensors that were handed out,
// and what a call takes until it returns.
struct MemoryUse {
  int64_t weights = 0;   // of networks and models; a network that a session still uses counts
  int64_t sessions = 0;  // activations, states, caches of keys and values, tables of positions
  int64_t training = 0;  // of trainers: their weights, masters, gradients, moments, activations
  int64_t total = 0;     // of these three
  int64_t peak = 0;      // the largest total since the engine was made
  // Weights that lie in mapped files or borrowed bytes. Not in the total: the system reads pages of
  // files when they are needed, and takes them back.
  int64_t mapped = 0;
  int64_t device = 0;  // all buffers on a GPU; not in the total
};

class LOOM_API Engine {
 public:
  // Errors: invalid_argument (negative threads), unsupported (an instruction set that this build or
  // processor lacks, an adapter that is too small), not_found (no GPU or no WebGPU library).
  static Result<Engine> create(const EngineOptions& options = {});
  // The engine of everything that is not given one: all cores, the CPU. Made when it is first asked
  // for, and kept until the process ends.
  static Result<Engine> shared();

  const EngineInfo& info() const;
  MemoryUse memory() const;  // from any thread

  struct LOOM_LOCAL Impl;
  Impl& impl() const { return *impl_; }
  const std::shared_ptr<Impl>& share() const { return impl_; }

 private:
  explicit Engine(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace loom
