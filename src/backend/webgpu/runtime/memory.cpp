#include "backend/webgpu/runtime/memory.hpp"

#include <algorithm>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"

namespace loom::core::webgpu {
namespace {

// Bindings start at multiples of this value (minStorageBufferOffsetAlignment is at most 256).
constexpr int64_t kAlignment = 256;

}  // namespace

Memory::~Memory() {
  for (const auto& [buffer, info] : buffers_) gpu_->destroy(buffer);
}

BufferSlice Memory::find(const std::byte* p) const {
  const auto holds = [&](const Range& range) {
    return p >= range.host.begin && p <= range.host.begin + range.host.bytes;
  };
  // At the exact end of a range another range may begin.
  if (last_ == nullptr || !holds(*last_) || p == last_->host.begin + last_->host.bytes) {
    auto after = ranges_.upper_bound(p);
    if (after == ranges_.begin()) return {};
    const Range& range = std::prev(after)->second;
    if (!holds(range)) return {};
    last_ = &range;
  }
  const int64_t inside = p - last_->host.begin;
  return {last_->buffer, last_->buffer_bytes, last_->offset + inside, last_->host.bytes - inside,
          last_->constant};
}

Result<int64_t> Memory::attach(std::span<const MemoryRange> ranges, MemoryUse use, bool contents) {
  std::vector<MemoryRange> fresh;
  Group group;
  group.use = use;
  for (const MemoryRange& range : ranges) {
    const bool twice = std::any_of(group.ranges.begin(), group.ranges.end(),
                                   [&](const std::byte* begin) { return begin == range.begin; });
    if (range.bytes <= 0 || twice) continue;
    group.ranges.push_back(range.begin);
    const auto found = ranges_.find(range.begin);
    if (found != ranges_.end() && found->second.host.bytes == range.bytes) {
      ++found->second.users;
      continue;
    }
    const auto overlapping = [&](const MemoryRange& other) {
      return range.begin < other.begin + other.bytes && other.begin < range.begin + range.bytes;
    };
    const bool known = std::any_of(fresh.begin(), fresh.end(), overlapping) ||
                       std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& entry) {
                         return overlapping(entry.second.host);
                       });
    if (known) {
      for (const std::byte* begin : group.ranges) release(begin);
      return make_error(Code::internal, "GPU memory: two ranges overlap");
    }
    fresh.push_back(range);
  }
  if (Status status = allocate_ranges(fresh, use, contents); !status.ok()) {
    for (const std::byte* begin : group.ranges) release(begin);
    return status.error();
  }
  groups_.emplace(next_, std::move(group));
  return next_++;
}

Status Memory::allocate_ranges(std::span<const MemoryRange> fresh, MemoryUse use, bool contents) {
  const int64_t limit = std::min(gpu_->report().max_buffer, gpu_->report().max_binding);
  size_t first = 0;
  while (first < fresh.size()) {
    int64_t bytes = 0;
    size_t last = first;
    for (; last < fresh.size(); ++last) {
      const int64_t more = round_up(fresh[last].bytes, kAlignment);
      if (more > limit) {
        return unsupported(cat("a tensor of ", fresh[last].bytes, " bytes is larger than ",
                               gpu_->report().name, " can bind (", limit,
                               " bytes); use a smaller number type, or the CPU"));
      }
      if (bytes + more > limit) break;
      bytes += more;
    }
    LOOM_ASSIGN(const wgpu::Buffer buffer,
                gpu_->create_buffer(bytes, wgpu::kStorage | wgpu::kCopySrc | wgpu::kCopyDst));
    buffers_[buffer] = {static_cast<int>(last - first), bytes, use};
    bytes_[static_cast<int>(use)] += bytes;
    int64_t offset = 0;
    for (; first < last; ++first) {
      const MemoryRange& host = fresh[first];
      ranges_[host.begin] = {host, buffer, bytes, offset, 1, use == MemoryUse::weights};
      if (contents) LOOM_TRY(gpu_->write(buffer, offset, host.begin, host.bytes));
      offset += round_up(host.bytes, kAlignment);
    }
  }
  return {};
}

void Memory::release(const std::byte* begin) {
  const auto found = ranges_.find(begin);
  if (found == ranges_.end() || --found->second.users > 0) return;
  const wgpu::Buffer buffer = found->second.buffer;
  last_ = nullptr;
  ranges_.erase(found);
  const auto held = buffers_.find(buffer);
  if (--held->second.ranges > 0) return;
  bytes_[static_cast<int>(held->second.use)] -= held->second.bytes;
  gpu_->destroy(buffer);
  buffers_.erase(held);
}

void Memory::detach(int64_t id) {
  const auto found = groups_.find(id);
  if (found == groups_.end()) return;
  for (const std::byte* begin : found->second.ranges) release(begin);
  groups_.erase(found);
}

}  // namespace loom::core::webgpu
