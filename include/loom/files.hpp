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
// A whole file in memory, in place of a path: Network::load({.bytes = bytes, .name = "net.onnx"}).
// What it holds is told by the bytes, as it is of a file, and checked in the same way.
struct FileBytes {
  std::span<const std::byte> bytes;
  // What errors call it. Its ending counts where that of a file does: of .onnx.
  std::string name = "the bytes";
  // Data sets, tokenizers and descriptions are read during the call alone. Weights may be used for
  // as long as there is a network, a model or a session of them. false: so they are copied, and
  // `bytes` may go after the call. true: they are borrowed, have to stay, and begin at a multiple
  // of 64 bytes.
  bool borrow = false;
};

// Would write_file() succeed, as far as can be known? Leaves nothing behind.
LOOM_API Status check_writable(const std::string& path);

// Model files are mapped, so what another program writes into one changes a model in use. (A file
// that is replaced by a rename is another file.) For programs, once per process: from now on a read
// beyond the end of a file that was cut gives zeros in place of SIGBUS, and changed_file() keeps
// names. A library must not take signals from its host.
LOOM_API void guard_files();
// The path of a file that was cut or overwritten while it was mapped, also one whose model is gone
// since guard_files(); "" if there is none. Any thread.
LOOM_API std::string changed_file();

}  // namespace loom
