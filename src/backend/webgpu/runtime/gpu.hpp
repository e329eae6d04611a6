// Gpu: one opened WebGPU device. It provides buffers, pipelines, submissions and waiting, and turns
// every device error into a Status. It does not depend on ops or tensors. One thread at a time may
// use it, besides its own thread.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/webgpu/runtime/options.hpp"
#include "backend/webgpu/runtime/submission_thread.hpp"
#include "backend/webgpu/runtime/wgpu.hpp"
#include "base/result.hpp"
#include "base/threads/fork_watch.hpp"

namespace loom::core::webgpu {

// The access of a kernel's storage bindings, in order: read-only or not. Binding 0 is the uniform
// block; storage bindings follow.
struct Signature {
  static constexpr int kMax = 8;
  int count = 0;
  uint32_t writable = 0;  // bit i: binding i + 1
  bool operator==(const Signature& other) const = default;
  bool operator<(const Signature& other) const {
    return count != other.count ? count < other.count : writable < other.writable;
  }
};

struct Binding {
  wgpu::Buffer buffer = nullptr;
  uint64_t offset = 0, size = 0;
  auto operator<=>(const Binding&) const = default;
};

inline size_t hash_words(std::span<const uint64_t> words) {
  uint64_t hash = words.size();
  for (const uint64_t word : words) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32;
  }
  return static_cast<size_t>(hash);
}

class Gpu {
 public:
  static Result<std::unique_ptr<Gpu>> open(const OpenOptions& options);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu();

  const AdapterReport& report() const { return report_; }
  void set_subgroup(int lanes) { report_.subgroup = lanes; }
  const wgpu::Api& api() const { return api_; }
  wgpu::Device device() const { return device_; }

  // Runs a job on a thread of its own, in order, for work whose result is not awaited. Other
  // library calls first wait for that thread, so the library sees one thread at a time. This holds
  // for all functions below, with these exceptions: arrived() and stage() need not wait;
  // bind_group(), submit() and begin_read() belong in a job or after drain(). Calls from a job do
  // not wait. The next check() reports an error of a job.
  void later(std::function<Status()> job);
  void drain() const { submissions_->drain(); }
  // True in a child of the process that opened the device (fork). The library's threads do not
  // exist there, and they may have held its mutexes. So nothing of the library is called: check()
  // is an error, and its objects are leaked.
  bool forked() const { return watch_.forked(); }
  bool drained() const { return submissions_->idle(); }

  // Zero-filled. Errors: out_of_memory with the size.
  Result<wgpu::Buffer> create_buffer(int64_t bytes, wgpu::Flags usage);
  void destroy(wgpu::Buffer buffer);
  int64_t bytes() const { return bytes_; }  // of all existing buffers; from any thread
  Status write(wgpu::Buffer buffer, int64_t offset, const void* data, int64_t bytes);
  // Waits for everything submitted before. Short reads share one submission.
  struct Read {
    wgpu::Buffer buffer = nullptr;
    int64_t offset = 0;
    void* data = nullptr;
    int64_t bytes = 0;
  };
  Status read(std::span<const Read> reads);
  // The same in steps: stage() reserves memory for the results and returns the copies that fill it.
  // After their submission call begin_read(). end_read() waits and fills the targets of the reads.
  // At most kMaxRead bytes, counted in whole words.
  static constexpr int64_t kMaxRead = 16 << 20;
  struct StagedCopy {
    wgpu::Buffer from = nullptr, to = nullptr;
    int64_t from_offset = 0, to_offset = 0, bytes = 0;
  };
  Result<int64_t> stage(std::span<const Read> reads, std::vector<StagedCopy>& copies);
  void begin_read(int64_t ticket);
  bool arrived(int64_t ticket);  // end_read() would not wait
  Status end_read(int64_t ticket);
  Status clear(wgpu::Buffer buffer, int64_t offset, int64_t bytes);

  // Errors: internal with the pipeline's name and the compiler's first line.
  Result<wgpu::ComputePipeline> compile(const std::string& name, const std::string& wgsl,
                                        const Signature& signature);
  // Bind groups are created once per set of bindings. `uniforms` is bound with a dynamic offset.
  Result<wgpu::BindGroup> bind_group(const Signature& signature, const Binding& uniforms,
                                     const std::array<Binding, Signature::kMax>& storage);

  Status submit(wgpu::CommandEncoder encoder);
  // Waits until all submitted work is done.
  Status wait();
  // The first error since the last call that has not been reported. A lost device stays lost.
  Status check();
  // The same for errors known so far, without waiting for running work.
  Status glance() { return troubled_.load(std::memory_order_acquire) ? check() : Status{}; }
  // For tests: simulates a lost device from now on.
  void lose();

 private:
  struct Failure {
    bool lost = false;
    uint32_t type = 0;
    std::string message;
  };
  explicit Gpu(wgpu::Api api);
  Status request_adapter(const OpenOptions& options);
  Status read_adapter(const OpenOptions& options, const std::string& library);
  Status request_device(const OpenOptions& options);
  void poll();
  Status poll_until(const bool& done);
  struct Staging;
  Result<int64_t> free_staging(int64_t bytes);
  void push_scopes();
  // The first error since push_scopes(), or ok.
  Status pop_scopes(const std::string& what);
  wgpu::BindGroupLayout layout_of(const Signature& signature);
  void drop_bind_groups();

  wgpu::Api api_;
  AdapterReport report_;
  wgpu::Limits limits_;
  wgpu::Instance instance_ = nullptr;
  wgpu::Adapter adapter_ = nullptr;
  wgpu::Device device_ = nullptr;
  wgpu::Queue queue_ = nullptr;
  Failure failure_;
  std::atomic<int64_t> bytes_ = 0;
  std::atomic<bool> troubled_ = false;  // check() has an error to report
  Status late_;                         // the first error of later()
  struct Layouts {
    wgpu::BindGroupLayout bindings = nullptr;
    wgpu::PipelineLayout pipeline = nullptr;
  };
  std::map<Signature, Layouts> layouts_;
  struct Bound {
    std::array<Binding, Signature::kMax> storage{};
    Binding uniforms;
    Signature signature;
    bool operator==(const Bound& other) const = default;
  };
  struct BoundHash {
    size_t operator()(const Bound& bound) const;
  };
  std::unordered_map<Bound, wgpu::BindGroup, BoundHash> groups_;
  std::vector<std::unique_ptr<Staging>> stagings_;
  wgpu::Buffer fence_ = nullptr;
  ForkWatch watch_;
  // The last member: its jobs use the others.
  std::unique_ptr<SubmissionThread> submissions_ = std::make_unique<SubmissionThread>();
};

constexpr int64_t kUniformBlock = 256;  // bytes of a kernel's uniform block, and their alignment

}  // namespace loom::core::webgpu
