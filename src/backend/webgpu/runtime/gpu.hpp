// Gpu: one opened WebGPU device. Buffers, pipelines, submissions and waiting, with every error of
// the device as a Status. It knows no op and no tensor. One thread at a time, besides its own.
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
#include "base/fork_watch.hpp"
#include "base/result.hpp"

namespace loom::core::webgpu {

// How a kernel's storage bindings are bound, in order: read-only or not. Binding 0 is the uniform
// block, these follow.
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

  // For work that nobody waits for: a thread of its own does it, in order. What else calls the
  // library waits for that first, so it sees one thread at a time: all below but arrived() and
  // stage(), which need not, and bind_group(), submit() and begin_read(), which belong into a job
  // or behind drain(). What a job calls does not wait. An error of a job comes from the next
  // check().
  void later(std::function<Status()> job);
  void drain() const { submissions_->drain(); }
  // A child of the process that opened it (fork): the library's threads are not here, and it may
  // have held their mutexes. Nothing of it is called then: check() is an error, and what it had
  // made is left behind.
  bool forked() const { return watch_.forked(); }
  bool drained() const { return submissions_->idle(); }

  // Zero-filled. Errors: out_of_memory with the size.
  Result<wgpu::Buffer> create_buffer(int64_t bytes, wgpu::Flags usage);
  void destroy(wgpu::Buffer buffer);
  int64_t bytes() const { return bytes_; }  // of all buffers there are; from any thread
  Status write(wgpu::Buffer buffer, int64_t offset, const void* data, int64_t bytes);
  // Waits for everything submitted before; all of them in one submission where they are short.
  struct Read {
    wgpu::Buffer buffer = nullptr;
    int64_t offset = 0;
    void* data = nullptr;
    int64_t bytes = 0;
  };
  Status read(std::span<const Read> reads);
  // The same in moves: stage() finds memory for the results and says which copies bring them there;
  // once these are submitted, begin_read(); end_read() waits and fills what the reads name. At most
  // kMostRead bytes, whole words counted.
  static constexpr int64_t kMostRead = 16 << 20;
  struct StagedCopy {
    wgpu::Buffer from = nullptr, to = nullptr;
    int64_t from_offset = 0, to_offset = 0, bytes = 0;
  };
  Result<int64_t> stage(std::span<const Read> reads, std::vector<StagedCopy>& copies);
  void begin_read(int64_t ticket);
  bool arrived(int64_t ticket);  // end_read() need not wait
  Status end_read(int64_t ticket);
  Status clear(wgpu::Buffer buffer, int64_t offset, int64_t bytes);

  // Errors: internal with the compiler's first line, the pipeline's name in front.
  Result<wgpu::ComputePipeline> compile(const std::string& name, const std::string& wgsl,
                                        const Signature& signature);
  // Bind groups are made once per set of bindings. `uniforms` is bound with a dynamic offset.
  Result<wgpu::BindGroup> bind_group(const Signature& signature, const Binding& uniforms,
                                     const std::array<Binding, Signature::kMax>& storage);

  Status submit(wgpu::CommandEncoder encoder);
  // All submitted work is done.
  Status wait();
  // The first error since the last call that nobody was told of; a lost device stays lost.
  Status check();
  // The same of what is known so far, without waiting for work that is on its way.
  Status glance() { return troubled_.load(std::memory_order_acquire) ? check() : Status{}; }
  // For tests: the device is gone from now on.
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
  std::atomic<bool> troubled_ = false;  // check() has something to say
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
