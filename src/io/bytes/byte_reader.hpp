// ByteReader: the only entry for untrusted binary bytes. Little-endian and bounds-checked; every
// error has the file name and the absolute offset. Counts are compared with the remaining bytes
// before any allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace loom::core {

class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string where);

  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return bytes_.size() - offset_; }

  // `what` names the field in the message: "header length".
  Result<uint8_t> u8(std::string_view what);
  Result<uint16_t> u16(std::string_view what);
  Result<uint32_t> u32(std::string_view what);
  Result<uint64_t> u64(std::string_view what);
  Result<std::span<const std::byte>> take(uint64_t count, std::string_view what);
  Status skip(uint64_t count, std::string_view what);

  // An Error with the file name and the current offset.
  Error error(std::string message) const;

 private:
  std::span<const std::byte> bytes_;
  uint64_t offset_ = 0;
  std::string where_;
};

}  // namespace loom::core
