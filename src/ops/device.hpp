// Device: what a backend that is not the CPU offers besides kernels. Tensors keep their host
// addresses; a range of addresses that was attached has a buffer in the device's memory, and that
// buffer is what commands read and write. Host memory and device buffer meet only in upload() and
// download(), so host memory that nobody touches costs nothing.
//
// Used by sessions and training steps, which attach their memory once; layers never see it.
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

  // Gives the ranges device buffers, filled with zeros or, with `contents`, with what the host
  // holds. A range that has one already is shared and keeps its contents. Returns what detach()
  // takes. Errors: out_of_memory; unsupported for a range larger than the device can bind.
  virtual Result<int64_t> attach(std::span<const MemoryRange> ranges, MemoryUse use,
                                 bool contents) = 0;
  virtual void detach(int64_t id) = 0;
  // Whether all of these addresses have a device buffer.
  virtual bool holds(const MemoryRange& range) const = 0;

  // Part of an attached range, or all of it: host to device, device to host. download() waits for
  // the commands before it.
  virtual Status upload(const std::byte* begin, int64_t bytes) = 0;
  virtual Status download(std::span<const MemoryRange> ranges) = 0;
  // The same in two moves, for little (16 MiB): begin_download() may return before the commands
  // before it have run, end_download() waits for what was submitted with those; downloaded(): it
  // need not. Commands in between go on. Each is ended once, in any order.
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

  // Attached memory to other attached memory, both in whole words and not of one attach(), behind
  // the commands before it.
  virtual Status copy(const MemoryRange& from, const std::byte* to) = 0;

  // Many of them, of whole words, behind the commands before them; nothing is both moved and
  // written over. Within one attach() as well.
  struct Move {
    const std::byte* from;
    std::byte* to;
    int64_t bytes;
  };
  virtual Status move(std::span<const Move> moves) {
    for (const Move& m : moves) LOOM_TRY(copy({m.from, m.bytes}, m.to));
    return {};
  }

  // Everything so far has run.
  virtual Status wait() = 0;

  // Runs a whole list, in order. May return before it ran, or before the device has it: lists are
  // submitted together when something waits for them. Errors of the device then show in a later
  // call.
  virtual Status execute(std::span<const Command> commands) = 0;
  // The same for a list of rows that stand for themselves (sessions of several sequences): each has
  // the bits that it has in a list of any other number of rows.
  virtual Status execute_rows_alone(std::span<const Command> commands) { return execute(commands); }
};

// Ranges attached as long as this lives. Does nothing without a device.
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
