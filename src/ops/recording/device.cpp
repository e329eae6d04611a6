#include "ops/recording/device.hpp"

#include <utility>

namespace loom::core {

Result<Attached> Attached::attach(Device* device, std::span<const MemoryRange> ranges,
                                  MemoryUse use, bool contents) {
  Attached attached;
  if (device == nullptr) return attached;
  LOOM_ASSIGN(attached.id_, device->attach(ranges, use, contents));
  attached.device_ = device;
  return attached;
}

Attached::Attached(Attached&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)), id_(other.id_) {}

Attached& Attached::operator=(Attached&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(id_, other.id_);
  return *this;
}

Attached::~Attached() {
  if (device_ != nullptr) device_->detach(id_);
}

}  // namespace loom::core
