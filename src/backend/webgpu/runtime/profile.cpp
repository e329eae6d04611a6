#include "backend/webgpu/runtime/profile.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom::core::webgpu {

Result<std::unique_ptr<Profile>> Profile::create(Gpu& gpu) {
  if (!gpu.report().timestamps) {
    return make_error(Code::unsupported,
                      cat(gpu.report().name, ": the adapter has no timestamps to profile with"));
  }
  std::unique_ptr<Profile> profile(new Profile(gpu));
  LOOM_TRY(gpu.check());
  wgpu::QuerySetDescriptor descriptor;
  descriptor.count = 2 * kMaxProfiled;
  profile->queries_ = gpu.api().DeviceCreateQuerySet(gpu.device(), &descriptor);
  LOOM_TRY(gpu.check());
  const int64_t bytes = int64_t{2} * kMaxProfiled * static_cast<int64_t>(sizeof(uint64_t));
  LOOM_ASSIGN(profile->resolved_, gpu.create_buffer(bytes, wgpu::kQueryResolve | wgpu::kCopySrc));
  return profile;
}

Profile::~Profile() {
  if (gpu_->forked()) return;
  gpu_->drain();
  gpu_->destroy(resolved_);
  if (queries_ != nullptr) gpu_->api().QuerySetRelease(queries_);
}

void Profile::resolve(wgpu::CommandEncoder encoder, uint32_t count) const {
  gpu_->api().CommandEncoderResolveQuerySet(encoder, queries_, 0, 2 * count, resolved_, 0);
}

Status Profile::collect(const std::vector<std::string_view>& names) {
  nanoseconds_.resize(2 * names.size());
  const Gpu::Read read{resolved_, 0, nanoseconds_.data(),
                       static_cast<int64_t>(nanoseconds_.size() * sizeof(uint64_t))};
  LOOM_TRY(gpu_->read({&read, 1}));
  // A pass may begin before its predecessor has ended.
  uint64_t before = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const uint64_t begin = std::max(nanoseconds_[2 * i], before);
    const uint64_t end = std::max(nanoseconds_[2 * i + 1], begin);
    before = end;
    KernelTime& time = times_[std::string(names[i])];
    ++time.dispatches;
    time.microseconds += static_cast<double>(end - begin) * 1e-3;
  }
  return {};
}

std::vector<KernelTime> Profile::times() const {
  std::vector<KernelTime> list;
  for (const auto& [name, time] : times_) {
    list.push_back(time);
    list.back().name = name;
  }
  std::sort(list.begin(), list.end(), [](const KernelTime& a, const KernelTime& b) {
    return a.microseconds > b.microseconds;
  });
  return list;
}

}  // namespace loom::core::webgpu
