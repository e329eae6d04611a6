// The only EXIF number that images need. An EXIF segment is "Exif", two zeros, and a TIFF file:
// byte order, 42, the offset of the first directory. A directory is a count and entries of 12
// bytes.
#include <cstring>
#include <optional>

#include "media/decoders.hpp"

namespace loom::core {
namespace {

class TiffReader {
 public:
  TiffReader(std::span<const std::byte> bytes, bool big) : bytes_(bytes), big_(big) {}

  std::optional<uint32_t> number(size_t at, size_t size) const {
    if (at > bytes_.size() || bytes_.size() - at < size) return std::nullopt;
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) {
      const auto byte = static_cast<uint32_t>(bytes_[at + (big_ ? i : size - 1 - i)]);
      value = value << 8 | byte;
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool big_;
};

}  // namespace

int exif_orientation(std::span<const std::byte> segment) {
  constexpr uint32_t kOrientation = 0x0112, kShort = 3, kVersion = 42;
  constexpr size_t kEntry = 12;
  if (segment.size() < 14 || std::memcmp(segment.data(), "Exif\0\0", 6) != 0) return 1;
  const std::span<const std::byte> tiff = segment.subspan(6);
  const bool big = std::memcmp(tiff.data(), "MM", 2) == 0;
  if (!big && std::memcmp(tiff.data(), "II", 2) != 0) return 1;
  const TiffReader reader(tiff, big);
  if (reader.number(2, 2) != kVersion) return 1;
  const std::optional<uint32_t> first = reader.number(4, 4);
  const std::optional<uint32_t> count = first ? reader.number(*first, 2) : std::nullopt;
  for (uint32_t i = 0; count && i < *count; ++i) {
    const size_t at = size_t{*first} + 2 + kEntry * i;
    const std::optional<uint32_t> tag = reader.number(at, 2);
    if (!tag) return 1;
    if (*tag != kOrientation || reader.number(at + 2, 2) != kShort) continue;
    const uint32_t value = reader.number(at + 8, 2).value_or(1);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace loom::core
