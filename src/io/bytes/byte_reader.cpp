// ByteReader: see byte_reader.hpp. Invariant: offset_ <= bytes_.size(). Every read first compares
// its size with the remaining bytes (never offset + count, which could wrap).
#include "io/bytes/byte_reader.hpp"

#include "base/numbers/bits.hpp"
#include "base/text.hpp"

namespace loom::core {

ByteReader::ByteReader(std::span<const std::byte> bytes, std::string where)
    : bytes_(bytes), where_(std::move(where)) {}

Error ByteReader::error(std::string message) const {
  return bad_file(std::move(message), where_, static_cast<int64_t>(offset_));
}

Result<std::span<const std::byte>> ByteReader::take(uint64_t count, std::string_view what) {
  if (count > remaining()) {
    return error(cat(what, " needs ", count, " bytes, ", remaining(), " remain"));
  }
  const auto taken = bytes_.subspan(static_cast<size_t>(offset_), static_cast<size_t>(count));
  offset_ += count;
  return taken;
}

Status ByteReader::skip(uint64_t count, std::string_view what) {
  LOOM_TRY(take(count, what));
  return {};
}

Result<uint8_t> ByteReader::u8(std::string_view what) {
  LOOM_ASSIGN(const auto bytes, take(1, what));
  return load_le<uint8_t>(bytes.data());
}

Result<uint16_t> ByteReader::u16(std::string_view what) {
  LOOM_ASSIGN(const auto bytes, take(2, what));
  return load_le<uint16_t>(bytes.data());
}

Result<uint32_t> ByteReader::u32(std::string_view what) {
  LOOM_ASSIGN(const auto bytes, take(4, what));
  return load_le<uint32_t>(bytes.data());
}

Result<uint64_t> ByteReader::u64(std::string_view what) {
  LOOM_ASSIGN(const auto bytes, take(8, what));
  return load_le<uint64_t>(bytes.data());
}

}  // namespace loom::core
