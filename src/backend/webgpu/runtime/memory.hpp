// Memory: maps host addresses to buffers of the device. Ranges attached together are in one buffer,
// or in several if a binding would get too large.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "backend/webgpu/runtime/gpu.hpp"
#include "ops/recording/device.hpp"

namespace loom::core::webgpu {

// The device location of a host address.
struct BufferSlice {
  wgpu::Buffer buffer = nullptr;
  int64_t buffer_bytes = 0;
  int64_t offset = 0;     // bytes
  int64_t left = 0;       // bytes of the range from there on
  bool constant = false;  // weights: the host's copy is identical
};

class Memory {
 public:
  explicit Memory(Gpu& gpu) : gpu_(&gpu) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Result<int64_t> attach(std::span<const MemoryRange> ranges, MemoryUse use, bool contents);
  void detach(int64_t id);
  // buffer is null if nothing is attached at p.
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
  // The state of one attach(): the ranges by their addresses, and their buffers.
  struct Group {
    std::vector<const std::byte*> ranges;
    MemoryUse use = MemoryUse::scratch;
  };
  struct Buffers {
    int ranges = 0;  // ranges still in it
    int64_t bytes = 0;
    MemoryUse use = MemoryUse::scratch;
  };
  Status allocate_ranges(std::span<const MemoryRange> fresh, MemoryUse use, bool contents);
  void release(const std::byte* begin);

  Gpu* gpu_;
  std::map<const std::byte*, Range> ranges_;
  mutable const Range* last_ = nullptr;  // the last result of find(), often hit again
  std::map<wgpu::Buffer, Buffers> buffers_;
  std::map<int64_t, Group> groups_;
  int64_t next_ = 1;
  int64_t bytes_[kMemoryUses] = {};
};

}  // namespace loom::core::webgpu
