// The ZIP around NPY arrays: see npy.hpp. Sizes come from the central directory; those of the local
// headers may be zero or stand in extra fields.
#include <algorithm>

#include "base/text.hpp"
#include "io/byte_reader.hpp"
#include "io/deflate.hpp"
#include "io/npy.hpp"

namespace loom {
namespace {

constexpr uint32_t kLocal = 0x04034B50, kCentral = 0x02014B50, kEnd = 0x06054B50;
constexpr uint64_t kEndBytes = 22, kMaxComment = 65535;
constexpr uint16_t kStored = 0, kDeflated = 8;

struct Entry {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0, size = 0, local = 0;
};

// The end record: the last place that has its signature and a comment that reaches the end.
Result<uint64_t> find_end(std::span<const std::byte> bytes, const std::string& where) {
  const uint64_t size = bytes.size();
  const uint64_t lowest = size > kEndBytes + kMaxComment ? size - kEndBytes - kMaxComment : 0;
  for (uint64_t at = size >= kEndBytes ? size - kEndBytes + 1 : 0; at-- > lowest;) {
    ByteReader reader(bytes.subspan(static_cast<size_t>(at)), where);
    LOOM_ASSIGN(const uint32_t signature, reader.u32("a signature"));
    if (signature != kEnd) continue;
    LOOM_TRY(reader.skip(16, "the end record"));
    LOOM_ASSIGN(const uint16_t comment, reader.u16("the comment length"));
    if (comment == reader.remaining()) return at;
  }
  return bad_file("not a whole ZIP file: its directory is absent", where,
                  static_cast<int64_t>(size));
}

Result<Entry> read_entry(ByteReader& reader) {
  Entry e;
  LOOM_ASSIGN(const uint32_t signature, reader.u32("a directory entry"));
  if (signature != kCentral) return reader.error("no directory entry where one must be");
  LOOM_TRY(reader.skip(4, "a directory entry"));
  LOOM_ASSIGN(e.flags, reader.u16("a directory entry"));
  LOOM_ASSIGN(e.method, reader.u16("a directory entry"));
  LOOM_TRY(reader.skip(4, "a directory entry"));
  LOOM_ASSIGN(e.crc, reader.u32("a directory entry"));
  LOOM_ASSIGN(e.packed, reader.u32("a directory entry"));
  LOOM_ASSIGN(e.size, reader.u32("a directory entry"));
  LOOM_ASSIGN(const uint16_t name, reader.u16("a directory entry"));
  LOOM_ASSIGN(const uint16_t extra, reader.u16("a directory entry"));
  LOOM_ASSIGN(const uint16_t comment, reader.u16("a directory entry"));
  LOOM_TRY(reader.skip(8, "a directory entry"));
  LOOM_ASSIGN(e.local, reader.u32("a directory entry"));
  LOOM_ASSIGN(const auto text, reader.take(name, "a member's name"));
  e.name.assign(reinterpret_cast<const char*>(text.data()), text.size());
  LOOM_TRY(reader.skip(uint64_t{extra} + comment, "a directory entry"));
  if ((e.flags & 1) != 0) return reader.error(cat("'", printable(e.name), "' is encrypted"));
  if (e.packed == UINT32_MAX || e.size == UINT32_MAX || e.local == UINT32_MAX)
    return reader.error(cat("'", printable(e.name), "' needs ZIP64, which is not read"));
  return e;
}

// The bytes of a member as they lie in the file, and where they begin.
Result<std::span<const std::byte>> packed_bytes(std::span<const std::byte> bytes,
                                                const std::string& where, const Entry& e,
                                                uint64_t& at) {
  ByteReader reader(bytes, where);
  LOOM_TRY(reader.skip(e.local, "the place of a member"));
  LOOM_ASSIGN(const uint32_t signature, reader.u32("a local header"));
  if (signature != kLocal) return reader.error("no local header where one must be");
  LOOM_TRY(reader.skip(22, "a local header"));
  LOOM_ASSIGN(const uint16_t name, reader.u16("a local header"));
  LOOM_ASSIGN(const uint16_t extra, reader.u16("a local header"));
  LOOM_TRY(reader.skip(uint64_t{name} + extra, "a local header"));
  at = reader.offset();
  return reader.take(e.packed, cat("member '", printable(e.name), "'"));
}

Result<ArrayView> read_member(std::span<const std::byte> bytes, const std::string& where,
                              const Entry& e, std::deque<std::string>& storage) {
  uint64_t at = 0;
  LOOM_ASSIGN(std::span<const std::byte> data, packed_bytes(bytes, where, e, at));
  const std::string place = cat(where, ": ", printable(e.name));
  if (e.method == kDeflated) {
    LOOM_ASSIGN(std::string text,
                unpack_deflate(data, e.size, e.crc, place, static_cast<int64_t>(at)));
    storage.push_back(std::move(text));
    return parse_npy(std::as_bytes(std::span(storage.back())), place);
  }
  if (e.method != kStored)
    return bad_file(cat("compression method ", e.method, " is not read"), place,
                    static_cast<int64_t>(at));
  if (e.packed != e.size || crc32_of(data) != e.crc)
    return bad_file("the checksum of the data is wrong", place, static_cast<int64_t>(at));
  return parse_npy(data, place, at);
}

}  // namespace

bool is_npz(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && bytes[0] == std::byte{'P'} && bytes[1] == std::byte{'K'} &&
         (bytes[2] == std::byte{3} || bytes[2] == std::byte{5});
}

Result<std::vector<std::pair<std::string, ArrayView>>> parse_npz(std::span<const std::byte> bytes,
                                                                 const std::string& where,
                                                                 std::deque<std::string>& storage) {
  LOOM_ASSIGN(const uint64_t end, find_end(bytes, where));
  ByteReader reader(bytes, where);
  LOOM_TRY(reader.skip(end + 8, "the end record"));
  LOOM_TRY(reader.skip(2, "the end record"));
  LOOM_ASSIGN(const uint16_t count, reader.u16("the end record"));
  LOOM_TRY(reader.skip(4, "the end record"));
  LOOM_ASSIGN(const uint32_t directory, reader.u32("the end record"));
  ByteReader entries(bytes.first(static_cast<size_t>(end)), where);
  LOOM_TRY(entries.skip(directory, "the place of the directory"));
  std::vector<std::pair<std::string, ArrayView>> arrays;
  for (int i = 0; i < count; ++i) {
    LOOM_ASSIGN(const Entry e, read_entry(entries));
    std::string name = e.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    if (std::any_of(arrays.begin(), arrays.end(), [&](const auto& a) { return a.first == name; }))
      return entries.error(cat("two members are called '", printable(name), "'"));
    LOOM_ASSIGN(ArrayView array, read_member(bytes, where, e, storage));
    arrays.emplace_back(std::move(name), std::move(array));
  }
  return arrays;
}

}  // namespace loom
