// Reads and writes whole files with the library's own functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "loom/export.hpp"
#include "loom/result.hpp"

namespace loom {

// Returns the file as bytes. Errors: not_found, io_error, bad_file (a folder, a pipe, more than
// `limit` bytes).
constexpr uint64_t kMostOfTextFile = uint64_t{256} << 20;
LOOM_API Result<std::string> read_file(const std::string& path, uint64_t limit = kMostOfTextFile);

// Writes a file atomically: until it is complete, an existing file of that name stays unchanged.
// Errors: invalid_argument (a folder, a device, no path), not_found (no such folder), io_error.
LOOM_API Status write_file(const std::string& path, std::string_view bytes);
// A whole file in memory, in place of a path: Network::load({.bytes = bytes, .name = "net.onnx"}).
// Its format is detected from its bytes and checked, as for files on disk.
struct FileBytes {
  std::span<const std::byte> bytes;
  // Its name in errors. Its ending counts if that of a file does, as with .onnx.
  std::string name = "the bytes";
  // false: weights are copied, and `bytes` may be freed after the call. true: weights are borrowed.
  // `bytes` must then outlive every network, model and session that uses them, and start at a
  // multiple of 64 bytes. Data sets, tokenizers and descriptions are only read during the call.
  bool borrow = false;
};

// Checks as far as possible whether write_file() would succeed. Leaves no file.
LOOM_API Status check_writable(const std::string& path);

// Model files are mapped, so a program that writes into one changes a model in use. (A file that is
// replaced by a rename is another file.) For programs; call once per process. Afterwards, a read
// beyond the end of a truncated file gives zeros instead of SIGBUS, and changed_file() remembers
// names. A library must not take signals from its host.
LOOM_API void guard_files();
// The path of a file that was truncated or overwritten while it was mapped, or "" if there is none.
// After guard_files() this includes files whose model is gone. Any thread.
LOOM_API std::string changed_file();

}  // namespace loom
