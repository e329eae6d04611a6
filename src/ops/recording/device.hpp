// Device: the services of a backend other than the CPU, besides kernels. Tensors keep their host
// addresses. An attached address range has a buffer in the device's memory, and commands read and
// write that buffer. Only upload() and download() copy between host memory and device buffer, so
// untouched host memory costs nothing.
//
// Sessions and training steps use it and attach their memory once; layers never see it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.hpp"

namespace loom::core {

struct Command;

enum class MemoryUse : uint8_t { weights, state, scratch };
constexpr int kMemoryUses = 3;

struct MemoryRange {
  const std::byte* begin = nullptr;
  int64_t bytes = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  // Gives the ranges device buffers, filled with zeros or, with `contents`, with the host's data. A
  // range that already has a buffer is shared and keeps its contents. Returns a handle for
  // detach(). Errors: out_of_memory; unsupported for a range larger than the device can bind.
  virtual Result<int64_t> attach(std::span<const MemoryRange> ranges, MemoryUse use,
                                 bool contents) = 0;
  virtual void detach(int64_t id) = 0;
  // Whether all of these addresses have a device buffer.
  virtual bool holds(const MemoryRange& range) const = 0;

  // Copies an attached range, or a part of it: host to device, device to host. download() waits for
  // the preceding commands.
  virtual Status upload(const std::byte* begin, int64_t bytes) = 0;
  virtual Status download(std::span<const MemoryRange> ranges) = 0;
  // The same in two steps, for small data (16 MiB). begin_download() may return before the
  // preceding commands have run. end_download() waits for what was submitted with those; if
  // downloaded(), it does not wait. Commands in between continue. Each download is ended once, in
  // any order.
  virtual Result<int64_t> begin_download(std::span<const MemoryRange> ranges) {
    LOOM_TRY(download(ranges));
    return 0;
  }
  virtual bool downloaded(int64_t ticket) {
    static_cast<void>(ticket);
    return true;
  }
  virtual Status end_download(int64_t ticket) {
    static_cast<void>(ticket);
    return {};
  }

  // Copies attached memory to other attached memory, in whole words, after the preceding commands.
  // The two must not be of one attach().
  virtual Status copy(const MemoryRange& from, const std::byte* to) = 0;

  // Several moves of whole words, after the preceding commands. No range is both moved and
  // overwritten. Also works within one attach().
  struct Move {
    const std::byte* from;
    std::byte* to;
    int64_t bytes;
  };
  virtual Status move(std::span<const Move> moves) {
    for (const Move& m : moves) LOOM_TRY(copy({m.from, m.bytes}, m.to));
    return {};
  }

  // Waits until everything submitted has run.
  virtual Status wait() = 0;

  // Runs a whole list, in order. It may return before the list has run, or before it is submitted:
  // lists are submitted together when something waits for them. A later call then reports device
  // errors.
  virtual Status execute(std::span<const Command> commands) = 0;
  // The same for a list of independent rows (sessions of several sequences): each row has the bits
  // that it has in a list of any other number of rows.
  virtual Status execute_rows_alone(std::span<const Command> commands) { return execute(commands); }
};

// Ranges that are attached for the life of this object. Does nothing without a device.
class Attached {
 public:
  static Result<Attached> attach(Device* device, std::span<const MemoryRange> ranges, MemoryUse use,
                                 bool contents);
  Attached() = default;
  Attached(Attached&& other) noexcept;
  Attached& operator=(Attached&& other) noexcept;
  ~Attached();

 private:
  Device* device_ = nullptr;
  int64_t id_ = 0;
};

}  // namespace loom::core
