// Results from the device to the host.
#include <algorithm>
#include <cstring>

#include "backend/webgpu/runtime/staging.hpp"
#include "base/numbers/checked.hpp"
#include "base/text.hpp"

namespace loom::core::webgpu {
namespace {

// Copies are in whole words, but a request may begin and end inside a word.
int64_t first_word(const Gpu::Read& read) {
  return read.offset & ~int64_t{3};
}
int64_t word_bytes(const Gpu::Read& read) {
  return round_up(read.offset + read.bytes, 4) - first_word(read);
}

}  // namespace

Status Gpu::read(std::span<const Read> reads) {
  LOOM_TRY(check());
  std::vector<Read> piece;
  int64_t bytes = 0;
  const auto flush = [&]() -> Status {
    if (piece.empty()) return {};
    std::vector<StagedCopy> copies;
    LOOM_ASSIGN(const int64_t ticket, stage(piece, copies));
    piece.clear();
    bytes = 0;
    const wgpu::CommandEncoder encoder = api_.DeviceCreateCommandEncoder(device_, nullptr);
    for (const StagedCopy& copy : copies) {
      api_.CommandEncoderCopyBufferToBuffer(
          encoder, copy.from, static_cast<uint64_t>(copy.from_offset), copy.to,
          static_cast<uint64_t>(copy.to_offset), static_cast<uint64_t>(copy.bytes));
    }
    LOOM_TRY(submit(encoder));
    begin_read(ticket);
    return end_read(ticket);
  };
  for (Read left : reads) {
    while (left.bytes > 0) {
      Read now = left;
      now.bytes = std::min(left.bytes, kMaxRead - 8 - bytes);
      piece.push_back(now);
      bytes += word_bytes(now);
      left.offset += now.bytes;
      left.data = static_cast<std::byte*>(left.data) + now.bytes;
      left.bytes -= now.bytes;
      if (bytes >= kMaxRead - 16) LOOM_TRY(flush());
    }
  }
  return flush();
}

// A free staging buffer: the smallest that is large enough, or else the largest, which grows.
Result<int64_t> Gpu::free_staging(int64_t bytes) {
  int64_t best = -1;
  for (int64_t i = 0; i < static_cast<int64_t>(stagings_.size()); ++i) {
    const Staging& one = *stagings_[static_cast<size_t>(i)];
    if (one.state != Staging::State::free) continue;
    const Staging* other = best < 0 ? nullptr : stagings_[static_cast<size_t>(best)].get();
    const bool better = other == nullptr ||
                        (one.bytes >= bytes && other->bytes >= bytes ? one.bytes < other->bytes
                                                                     : one.bytes > other->bytes);
    if (better) best = i;
  }
  if (best < 0) {
    drain();  // jobs access the list
    best = static_cast<int64_t>(stagings_.size());
    stagings_.push_back(std::make_unique<Staging>());
  }
  Staging& staging = *stagings_[static_cast<size_t>(best)];
  if (staging.bytes >= bytes) return best;
  destroy(staging.buffer);
  staging.buffer = nullptr;
  staging.bytes = 0;
  const int64_t capacity = std::max<int64_t>(bytes, 4096);
  LOOM_ASSIGN(staging.buffer, create_buffer(capacity, wgpu::kMapRead | wgpu::kCopyDst));
  staging.bytes = capacity;
  return best;
}

Result<int64_t> Gpu::stage(std::span<const Read> reads, std::vector<StagedCopy>& copies) {
  int64_t bytes = 0;
  for (const Read& read : reads) bytes += word_bytes(read);
  if (bytes > kMaxRead) return make_error(Code::internal, "too much to read at a time");
  LOOM_ASSIGN(const int64_t ticket, free_staging(bytes));
  Staging& staging = *stagings_[static_cast<size_t>(ticket)];
  int64_t at = 0;
  for (const Read& read : reads) {
    copies.push_back({read.buffer, staging.buffer, first_word(read), at, word_bytes(read)});
    at += word_bytes(read);
  }
  staging.reads.assign(reads.begin(), reads.end());
  staging.used = bytes;
  staging.state = Staging::State::staged;
  return ticket;
}

void Gpu::begin_read(int64_t ticket) {
  Staging& staging = *stagings_[static_cast<size_t>(ticket)];
  staging.mapped = {};
  staging.state = Staging::State::mapped;
  api_.BufferMapAsync(staging.buffer, wgpu::kForReading, 0, static_cast<size_t>(staging.used),
                      callback(&Done::receive, &staging.mapped, nullptr));
}

bool Gpu::arrived(int64_t ticket) {
  const Staging& staging = *stagings_[static_cast<size_t>(ticket)];
  if (forked() || !drained() || staging.state != Staging::State::mapped) return false;
  if (!staging.mapped.done) poll();
  return staging.mapped.done;
}

Status Gpu::end_read(int64_t ticket) {
  if (forked()) return check();
  drain();
  Staging& staging = *stagings_[static_cast<size_t>(ticket)];
  const Staging::State state = staging.state;
  if (state == Staging::State::mapped) LOOM_TRY(poll_until(staging.mapped.done));
  staging.state = Staging::State::free;
  LOOM_TRY(check());
  // A device error discarded the preceding commands.
  if (state != Staging::State::mapped)
    return make_error(Code::internal, "a read that was not begun");
  const auto bytes = static_cast<size_t>(staging.used);
  const void* memory = staging.mapped.status == wgpu::kStatusSuccess
                           ? api_.BufferGetConstMappedRange(staging.buffer, 0, bytes)
                           : nullptr;
  if (memory == nullptr) {
    return make_error(
        Code::internal,
        cat(report_.name, ": results cannot be read: ", one_line(staging.mapped.message)));
  }
  const auto* from = static_cast<const std::byte*>(memory);
  for (const Read& read : staging.reads) {
    std::memcpy(read.data, from + (read.offset - first_word(read)),
                static_cast<size_t>(read.bytes));
    from += word_bytes(read);
  }
  api_.BufferUnmap(staging.buffer);
  return {};
}

}  // namespace loom::core::webgpu
