// gzip and raw deflate (RFC 1952, RFC 1951): the only access to zlib. Data is unpacked in pieces
// into the caller's buffers. So the caller limits the memory, never the claim of a header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.hpp"

namespace loom::core {

bool is_gzip(std::span<const std::byte> bytes);

// Unpacks `bytes` from front to back; they must outlive it. gzip: all members, with verified
// checksums and sizes. raw: one deflate stream. Data after the end is an error.
class Inflater {
 public:
  enum class Form : uint8_t { gzip, raw };
  // `offset`: the location of `bytes` in the file, for messages.
  Inflater(Form form, std::span<const std::byte> bytes, std::string where, int64_t offset = 0);
  Inflater(Inflater&& other) noexcept;
  Inflater& operator=(Inflater&& other) noexcept;
  ~Inflater();

  // Writes the next bytes to `out`; fewer than its size only at the end of the data.
  Result<size_t> read(std::span<std::byte> out);
  uint64_t used() const;  // packed bytes so far
  Error error(std::string message) const;

 private:
  struct State;  // zlib's state
  Status piece(std::span<std::byte> out, size_t& done);
  Status next_stream();

  std::unique_ptr<State> state_;
};

// Raw deflate data that must unpack to `size` bytes with this CRC-32.
Result<std::string> unpack_deflate(std::span<const std::byte> bytes, uint64_t size, uint32_t crc,
                                   const std::string& where, int64_t offset);
// Continues from `before`, the sum of the preceding bytes.
uint32_t crc32_of(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace loom::core
