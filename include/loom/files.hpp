// Whole files, as the library itself reads and writes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "loom/export.hpp"
#include "loom/result.hpp"

namespace loom {

// The file as bytes. Errors: not_found, io_error, bad_file (a folder, a pipe, more than `limit`
// bytes).
constexpr uint64_t kMostOfTextFile = uint64_t{256} << 20;
LOOM_API Result<std::string> read_file(const std::string& path, uint64_t limit = kMostOfTextFile);

// Writes a file that appears under its name only when it is whole: whatever happens before, what
// was there stays. Errors: invalid_argument (a folder, a device, no path), not_found (no such
// folder), io_error.
LOOM_API Status write_file(const std::string& path, std::string_view bytes);
// Would write_file() succeed, as far as can be known? Leaves nothing behind.
LOOM_API Status check_writable(const std::string& path);

}  // namespace loom
