// Profile: device time of kernels, from timestamps around every dispatch. Each dispatch is then a
// pass of its own, and the host waits for each submission. So a list takes longer in total, but the
// measured times are device times only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/webgpu/runtime/gpu.hpp"

namespace loom::core::webgpu {

class Profile {
 public:
  static constexpr uint32_t kMaxProfiled = 2048;  // of a submission: a query set has 4096 times

  // Errors: unsupported if the adapter has no timestamps.
  static Result<std::unique_ptr<Profile>> create(Gpu& gpu);
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  ~Profile();

  // For the pass of dispatch `n` of a submission.
  wgpu::TimestampWrites around(uint32_t n) const { return {nullptr, queries_, 2 * n, 2 * n + 1}; }
  // Encodes the last commands of a submission of `count` dispatches.
  void resolve(wgpu::CommandEncoder encoder, uint32_t count) const;
  // Waits for the submission and adds its times to those of the kernels.
  Status collect(const std::vector<std::string_view>& names);

  void clear() { times_.clear(); }
  // Sorted by time, longest first.
  std::vector<KernelTime> times() const;

 private:
  explicit Profile(Gpu& gpu) : gpu_(&gpu) {}

  Gpu* gpu_;
  wgpu::QuerySet queries_ = nullptr;
  wgpu::Buffer resolved_ = nullptr;
  std::vector<uint64_t> nanoseconds_;
  std::map<std::string, KernelTime, std::less<>> times_;
};

}  // namespace loom::core::webgpu
