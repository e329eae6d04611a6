// gzip and raw deflate (RFC 1952, RFC 1951): the only door to zlib. Output is limited before it is
// written, and grows with what was really unpacked, never with what a header claims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.hpp"
#include "io/file.hpp"

namespace loom {

constexpr uint64_t kMaxUnpacked = uint64_t{1} << 32;

bool is_gzip(std::span<const std::byte> bytes);
// The whole of a gzip file (all its members); checksums and sizes are verified.
Result<std::string> unpack_gzip(std::span<const std::byte> bytes, const std::string& where,
                                uint64_t max_bytes = kMaxUnpacked);
// Raw deflate data that must unpack to `size` bytes with this CRC-32. `offset`: where in the file
// `bytes` stand, for messages.
Result<std::string> unpack_deflate(std::span<const std::byte> bytes, uint64_t size, uint32_t crc,
                                   const std::string& where, int64_t offset);
// Goes on from `before`, the sum of the bytes before these.
uint32_t crc32_of(std::span<const std::byte> bytes, uint32_t before = 0);

// A file, unpacked when it is gzip. The bytes live as long as this.
class DataFile {
 public:
  static Result<DataFile> open(const std::string& path);
  // The same for bytes in memory, which are copied.
  static Result<DataFile> of(std::span<const std::byte> bytes, const std::string& where,
                             uint64_t max_bytes = kMaxUnpacked);
  std::span<const std::byte> bytes() const {
    return text_ != nullptr ? std::as_bytes(std::span(*text_)) : map_.bytes();
  }

 private:
  MappedFile map_;
  std::unique_ptr<std::string> text_;  // what gzip unpacked to; its bytes stay when this is moved
};

}  // namespace loom
