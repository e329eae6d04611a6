// Memory: which buffer of the device belongs to which host addresses. Ranges attached together lie
// in one buffer, or in several where a binding would get too large.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "backend/webgpu/runtime/gpu.hpp"
#include "ops/device.hpp"

namespace loom::core::webgpu {

// Where a host address is on the device.
struct BufferSlice {
  wgpu::Buffer buffer = nullptr;
  int64_t buffer_bytes = 0;
  int64_t offset = 0;     // bytes
  int64_t left = 0;       // bytes of the range from there on
  bool constant = false;  // weights: the host's copy is as good
};

class Memory {
 public:
  explicit Memory(Gpu& gpu) : gpu_(&gpu) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Result<int64_t> attach(std::span<const MemoryRange> ranges, MemoryUse use, bool contents);
  void detach(int64_t id);
  // buffer is null where nothing is attached.
  BufferSlice find(const std::byte* p) const;
  int64_t bytes(MemoryUse use) const { return bytes_[static_cast<int>(use)]; }

 private:
  struct Range {
    MemoryRange host;
    wgpu::Buffer buffer = nullptr;
    int64_t buffer_bytes = 0;
    int64_t offset = 0;
    int users = 0;
    bool constant = false;
  };
  // What one attach() holds: the ranges by their addresses, and the buffers made for them.
  struct Group {
    std::vector<const std::byte*> ranges;
    MemoryUse use = MemoryUse::scratch;
  };
  struct Buffers {
    int ranges = 0;  // that still lie in it
    int64_t bytes = 0;
    MemoryUse use = MemoryUse::scratch;
  };
  Status place(std::span<const MemoryRange> fresh, MemoryUse use, bool contents);
  void release(const std::byte* begin);

  Gpu* gpu_;
  std::map<const std::byte*, Range> ranges_;
  mutable const Range* last_ = nullptr;  // that find() gave: tensors mostly lie where the last did
  std::map<wgpu::Buffer, Buffers> buffers_;
  std::map<int64_t, Group> groups_;
  int64_t next_ = 1;
  int64_t bytes_[kMemoryUses] = {};
};

}  // namespace loom::core::webgpu
