// The ZIP around NPY arrays: see npy.hpp. Sizes come from the central directory; those of the local
// headers may be zero or stand in extra fields. Invariant: the directory ends at the end record and
// members share no byte, so what is unpacked is bounded by the size of the file.
#include <iterator>
#include <map>
#include <set>

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

// Bytes of the file that members take: where each begins, and where it ends.
class Places {
 public:
  // False where `begin` to `end` share a byte with another member.
  bool take(uint64_t begin, uint64_t end) {
    const auto [at, fresh] = taken_.emplace(begin, end);
    if (!fresh) return false;
    const auto next = std::next(at);
    if (next != taken_.end() && next->first < end) return false;
    return at == taken_.begin() || std::prev(at)->second <= begin;
  }

 private:
  std::map<uint64_t, uint64_t> taken_;
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
  if (e.name.empty()) return reader.error("a member without a name");
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
  const std::string called = cat("'", printable(e.name), "'");
  LOOM_TRY(reader.skip(e.local, cat("the place of ", called)));
  const ByteReader at_header = reader;
  LOOM_ASSIGN(const uint32_t signature, reader.u32("a local header"));
  if (signature != kLocal) return at_header.error(cat("no local header of ", called, " here"));
  LOOM_TRY(reader.skip(4, "a local header"));
  LOOM_ASSIGN(const uint16_t method, reader.u16("a local header"));
  LOOM_TRY(reader.skip(16, "a local header"));
  LOOM_ASSIGN(const uint16_t name, reader.u16("a local header"));
  LOOM_ASSIGN(const uint16_t extra, reader.u16("a local header"));
  LOOM_ASSIGN(const auto text, reader.take(name, "a local header"));
  const std::string_view own(reinterpret_cast<const char*>(text.data()), text.size());
  // Two readers must not see two files in one.
  if (own != e.name || method != e.method)
    return at_header.error(cat("the header of ", called, " is not what the directory says"));
  LOOM_TRY(reader.skip(extra, "a local header"));
  at = reader.offset();
  return reader.take(e.packed, cat("member ", called));
}

Result<ArrayView> read_member(std::span<const std::byte> bytes, const std::string& where,
                              const Entry& e, Places& places, std::deque<std::string>& storage) {
  uint64_t at = 0;
  LOOM_ASSIGN(std::span<const std::byte> data, packed_bytes(bytes, where, e, at));
  if (!places.take(e.local, at + e.packed)) {
    return bad_file(cat("'", printable(e.name), "' lies over another member"), where,
                    static_cast<int64_t>(e.local));
  }
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
  if (e.packed != e.size) {
    return bad_file(cat("stored in ", e.packed, " bytes, but its size says ", e.size), place,
                    static_cast<int64_t>(at));
  }
  if (crc32_of(data) != e.crc)
    return bad_file("the checksum of the data is wrong", place, static_cast<int64_t>(at));
  return parse_npy(data, place, at);
}

// Of the end record: how many members, and where the directory begins.
struct Directory {
  uint16_t count = 0;
  uint32_t begin = 0;
};

Result<Directory> read_end(std::span<const std::byte> bytes, const std::string& where,
                           uint64_t end) {
  ByteReader reader(bytes, where);
  LOOM_TRY(reader.skip(end, "the end record"));
  const ByteReader at_end = reader;
  LOOM_TRY(reader.skip(4, "the end record"));
  LOOM_ASSIGN(const uint32_t disks, reader.u32("the end record"));
  Directory directory;
  LOOM_ASSIGN(const uint16_t here, reader.u16("the end record"));
  LOOM_ASSIGN(directory.count, reader.u16("the end record"));
  LOOM_ASSIGN(const uint32_t size, reader.u32("the end record"));
  LOOM_ASSIGN(directory.begin, reader.u32("the end record"));
  if (directory.count == UINT16_MAX || size == UINT32_MAX || directory.begin == UINT32_MAX)
    return at_end.error("needs ZIP64, which is not read; save fewer or smaller arrays");
  if (disks != 0 || here != directory.count)
    return at_end.error("a part of a ZIP file of several parts");
  if (uint64_t{directory.begin} + size != end) {
    return at_end.error(
        cat("a directory of ", size, " bytes at byte ", directory.begin, " does not end here"));
  }
  return directory;
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
  LOOM_ASSIGN(const Directory directory, read_end(bytes, where, end));
  ByteReader entries(bytes.first(static_cast<size_t>(end)), where);
  LOOM_TRY(entries.skip(directory.begin, "the place of the directory"));
  const auto members = bytes.first(directory.begin);
  std::vector<std::pair<std::string, ArrayView>> arrays;
  std::set<std::string> names;
  Places places;
  for (int i = 0; i < directory.count; ++i) {
    LOOM_ASSIGN(const Entry e, read_entry(entries));
    std::string name = e.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    if (!names.insert(name).second)
      return entries.error(cat("two members are called '", printable(name), "'"));
    LOOM_ASSIGN(ArrayView array, read_member(members, where, e, places, storage));
    arrays.emplace_back(std::move(name), std::move(array));
  }
  if (entries.remaining() == 0) return arrays;
  return entries.error(
      cat("the directory has ", entries.remaining(), " bytes after its last member"));
}

}  // namespace loom
