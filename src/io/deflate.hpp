// gzip and raw deflate (RFC 1952, RFC 1951): the only door to zlib. Data is unpacked in pieces that
// the caller has room for, so memory follows what the caller allows, never what a header claims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.hpp"

namespace loom::core {

bool is_gzip(std::span<const std::byte> bytes);

// Unpacks `bytes` from front to back; they must outlive it. gzip: all its members, their checksums
// and sizes verified. raw: one deflate stream. Nothing may follow the data.
class Inflater {
 public:
  enum class Form : uint8_t { gzip, raw };
  // `offset`: where in the file `bytes` stand, for messages.
  Inflater(Form form, std::span<const std::byte> bytes, std::string where, int64_t offset = 0);
  Inflater(Inflater&& other) noexcept;
  Inflater& operator=(Inflater&& other) noexcept;
  ~Inflater();

  // The next bytes into `out`; fewer than its size only at the end of the data.
  Result<size_t> read(std::span<std::byte> out);
  uint64_t used() const;  // packed bytes so far
  Error error(std::string message) const;

 private:
  struct State;  // holds zlib's
  Status piece(std::span<std::byte> out, size_t& done);
  Status next_stream();

  std::unique_ptr<State> state_;
};

// Raw deflate data that must unpack to `size` bytes with this CRC-32.
Result<std::string> unpack_deflate(std::span<const std::byte> bytes, uint64_t size, uint32_t crc,
                                   const std::string& where, int64_t offset);
// Goes on from `before`, the sum of the bytes before these.
uint32_t crc32_of(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace loom::core
