#include "io/bytes/zip_directory.hpp"

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "io/bytes/byte_reader.hpp"

namespace loom::core {
namespace {
constexpr uint32_t kLocal = 0x04034B50;  // signature of a local header

constexpr uint32_t kCentral = 0x02014B50, kEnd = 0x06054B50;
constexpr uint32_t kEnd64 = 0x06064B50, kLocator64 = 0x07064B50;
constexpr uint64_t kEndBytes = 22, kMaxComment = 65535, kLocatorBytes = 20, kEntryBytes = 46;
constexpr uint16_t kExtra64 = 1;

// The end record: the last location with its signature and a comment that reaches the end.
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
  return bad_file("not a whole ZIP file: its directory is absent; copy or download it again", where,
                  static_cast<int64_t>(size));
}

// ZIP64: of size, packed size and offset, those that are all ones in the entry are in an extra
// field, in this order.
Status widen(ZipEntry& e, std::span<const std::byte> extra, const ByteReader& at) {
  uint64_t* const fields[] = {&e.size, &e.packed, &e.local};
  bool wide = false;
  for (const uint64_t* field : fields) wide = wide || *field == UINT32_MAX;
  if (!wide) return {};
  ByteReader reader(extra, {});
  while (reader.remaining() >= 4) {
    LOOM_ASSIGN(const uint16_t id, reader.u16("an extra field"));
    LOOM_ASSIGN(const uint16_t size, reader.u16("an extra field"));
    const auto data = reader.take(size, "an extra field");
    if (!data.ok()) break;
    if (id != kExtra64) continue;
    ByteReader values(*data, {});
    for (uint64_t* field : fields) {
      if (*field != UINT32_MAX) continue;
      const Result<uint64_t> value = values.u64("a size");
      if (!value.ok()) return at.error(cat("the ZIP64 sizes of '", printable(e.name), "' are cut"));
      *field = *value;
    }
    return {};
  }
  return at.error(cat("'", printable(e.name), "' needs ZIP64 sizes, which are absent"));
}

Result<ZipEntry> read_entry(ByteReader& reader) {
  ZipEntry e;
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
  LOOM_ASSIGN(const auto more, reader.take(extra, "a directory entry"));
  LOOM_TRY(reader.skip(comment, "a directory entry"));
  e.end = reader.offset();
  if (e.name.empty()) return reader.error("a member without a name");
  if ((e.flags & 1) != 0) return reader.error(cat("'", printable(e.name), "' is encrypted"));
  LOOM_TRY(widen(e, more, reader));
  return e;
}

// The result of the end records: the number of members, and the location of the directory.
struct Directory {
  uint64_t count = 0, here = 0, size = 0, begin = 0, end = 0;
  uint64_t disks = 0;
};

// Whether a ZIP64 locator precedes the end record at `end`.
bool has_locator64(std::span<const std::byte> bytes, uint64_t end) {
  if (end < kLocatorBytes) return false;
  ByteReader reader(bytes.subspan(static_cast<size_t>(end - kLocatorBytes)), {});
  const Result<uint32_t> signature = reader.u32("");
  return signature.ok() && *signature == kLocator64;
}

// The wide end record; the locator before the narrow one at `end` has its offset.
Result<Directory> read_end64(std::span<const std::byte> bytes, const std::string& where,
                             uint64_t end) {
  ByteReader locator(bytes, where);
  LOOM_TRY(locator.skip(end - kLocatorBytes, "the ZIP64 locator"));
  const ByteReader at_locator = locator;
  LOOM_TRY(locator.skip(4, "the ZIP64 locator"));
  LOOM_ASSIGN(const uint32_t disk, locator.u32("the ZIP64 locator"));
  Directory end_record;
  LOOM_ASSIGN(end_record.end, locator.u64("the ZIP64 locator"));
  LOOM_ASSIGN(const uint32_t disks, locator.u32("the ZIP64 locator"));
  if (disk != 0 || disks > 1) return at_locator.error("a part of a ZIP file of several parts");
  ByteReader reader(bytes.first(static_cast<size_t>(end - kLocatorBytes)), where);
  LOOM_TRY(reader.skip(end_record.end, "the place of the ZIP64 end record"));
  const ByteReader at_record = reader;
  LOOM_ASSIGN(const uint32_t own, reader.u32("the ZIP64 end record"));
  if (own != kEnd64) return at_record.error("no ZIP64 end record where one must be");
  LOOM_ASSIGN(const uint64_t rest, reader.u64("the ZIP64 end record"));
  if (rest != reader.remaining())
    return at_record.error("the ZIP64 end record does not end at its locator");
  LOOM_TRY(reader.skip(4, "the ZIP64 end record"));
  LOOM_ASSIGN(end_record.disks, reader.u64("the ZIP64 end record"));
  LOOM_ASSIGN(end_record.here, reader.u64("the ZIP64 end record"));
  LOOM_ASSIGN(end_record.count, reader.u64("the ZIP64 end record"));
  LOOM_ASSIGN(end_record.size, reader.u64("the ZIP64 end record"));
  LOOM_ASSIGN(end_record.begin, reader.u64("the ZIP64 end record"));
  return end_record;
}

Result<Directory> read_end(std::span<const std::byte> bytes, const std::string& where,
                           uint64_t end) {
  ByteReader reader(bytes, where);
  LOOM_TRY(reader.skip(end, "the end record"));
  const ByteReader at_end = reader;
  LOOM_TRY(reader.skip(4, "the end record"));
  Directory end_record;
  LOOM_ASSIGN(end_record.disks, reader.u32("the end record"));
  LOOM_ASSIGN(end_record.here, reader.u16("the end record"));
  LOOM_ASSIGN(end_record.count, reader.u16("the end record"));
  LOOM_ASSIGN(end_record.size, reader.u32("the end record"));
  LOOM_ASSIGN(end_record.begin, reader.u32("the end record"));
  end_record.end = end;
  if (has_locator64(bytes, end)) {
    LOOM_ASSIGN(end_record, read_end64(bytes, where, end));
  } else if (end_record.count == UINT16_MAX || end_record.size == UINT32_MAX ||
             end_record.begin == UINT32_MAX) {
    return at_end.error("needs ZIP64 records, which are absent");
  }
  if (end_record.disks != 0 || end_record.here != end_record.count)
    return at_end.error("a part of a ZIP file of several parts");
  uint64_t reached = 0;
  if (!checked_add(end_record.begin, end_record.size, reached) || reached != end_record.end) {
    return at_end.error(cat("a directory of ", end_record.size, " bytes at byte ", end_record.begin,
                            " does not end here"));
  }
  return end_record;
}

}  // namespace

Result<ZipDirectory> read_zip_directory(std::span<const std::byte> bytes, const std::string& where,
                                        const MemoryBudget& memory) {
  LOOM_ASSIGN(const uint64_t end, find_end(bytes, where));
  LOOM_ASSIGN(const Directory end_record, read_end(bytes, where, end));
  // The memory of an entry, here and in its reader.
  constexpr uint64_t kEntryMemory = 512;
  LOOM_TRY(memory.check(end_record.size / kEntryBytes * kEntryMemory, "the directory", where));
  ByteReader entries(bytes.first(static_cast<size_t>(end_record.end)), where);
  LOOM_TRY(entries.skip(end_record.begin, "the place of the directory"));
  ZipDirectory directory;
  directory.begin = end_record.begin;
  for (uint64_t i = 0; i < end_record.count; ++i) {
    LOOM_ASSIGN(ZipEntry entry, read_entry(entries));
    directory.entries.push_back(std::move(entry));
  }
  if (entries.remaining() == 0) return directory;
  return entries.error(
      cat("the directory has ", entries.remaining(), " bytes after its last member"));
}

Result<std::span<const std::byte>> zip_member(std::span<const std::byte> bytes,
                                              const std::string& where, const ZipEntry& e,
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
  // Different readers must not see different files in one.
  if (own != e.name || method != e.method)
    return at_header.error(cat("the header of ", called, " is not what the directory says"));
  LOOM_TRY(reader.skip(extra, "a local header"));
  at = reader.offset();
  return reader.take(e.packed, cat("member ", called));
}

}  // namespace loom::core
