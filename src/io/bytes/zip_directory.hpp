// The directory of a ZIP file (PKWARE APPNOTE 6.3.9, sections 4.3.12 to 4.3.16 and 4.5.3), with the
// 64-bit fields of ZIP64. It does not unpack. Invariant: the directory ends where the end records
// begin, and contains every entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/memory_budget.hpp"

namespace loom::core {

struct ZipEntry {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0, size = 0;
  uint64_t local = 0;  // offset of its local header
  uint64_t end = 0;    // of the entry in the directory, for messages
};

struct ZipDirectory {
  std::vector<ZipEntry> entries;
  uint64_t begin = 0;  // of the directory; members are before it
};

// Errors: bad_file, with the offset of the field; out_of_memory if the entries alone exceed the
// budget.
Result<ZipDirectory> read_zip_directory(std::span<const std::byte> bytes, const std::string& where,
                                        const MemoryBudget& memory);

// The bytes of a member as they are stored, and their offset `at` in the file. Errors: bad_file,
// also if its own header has another name or method.
Result<std::span<const std::byte>> zip_member(std::span<const std::byte> bytes,
                                              const std::string& where, const ZipEntry& entry,
                                              uint64_t& at);

}  // namespace loom::core
