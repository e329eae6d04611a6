// Detects mapped files that another program changed. A file that is replaced by a rename, as we
// save, is a new file and does not affect the map. A file that is overwritten in place or truncated
// changes the bytes of a loaded model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace loom::core {

// The properties that change if a file is written.
struct FileState {
  int64_t size = 0, seconds = 0, nanoseconds = 0;
  bool operator==(const FileState& other) const = default;
};
// Size and modification time of an open file; empty if the system does not report them.
std::optional<FileState> state_of(int fd);

// Watches the map of an open file for the life of the result. before: the state of the file before
// it was mapped. Uses a descriptor of its own. May be null: no descriptor is left, and the map is
// not watched.
std::shared_ptr<const void> watch_map(const std::string& path, int fd, const FileState& before,
                                      const void* data, size_t size);

// The path of a mapped file whose size or modification time changed since it was mapped, or that
// lost bytes; "" if there is none. Any thread.
std::string changed_mapped_file();

// The first such file since guard_mapped_files(), including maps that have ended.
std::string mapped_file_that_changed();

// From now on a read past the end of a truncated file gives zeros in place of SIGBUS, and
// changed_mapped_file() names the file. Other SIGBUS signals go to the previous handler. Call it
// once per process, from a program: a library must not take signals from its host.
void guard_mapped_files();

}  // namespace loom::core
