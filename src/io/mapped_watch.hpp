// Which mapped files were changed by another program while they are mapped. A file that is replaced
// by a rename, as we save, is another file and leaves the map as it is; one that is overwritten in
// place or cut changes the bytes under a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace loom::core {

// What tells that a file was written to.
struct FileState {
  int64_t size = 0, seconds = 0, nanoseconds = 0;
  bool operator==(const FileState& other) const = default;
};
// Size and time of change of an open file; empty: the system does not say.
std::optional<FileState> state_of(int fd);

// Watches the map of an open file as long as the result lives. before: what the file was before it
// was mapped. Takes a descriptor of its own. Null: the system has none left, and the map is not
// watched.
std::shared_ptr<const void> watch_map(const std::string& path, int fd, const FileState& before,
                                      const void* data, size_t size);

// The path of a mapped file whose size or time of change is not what it was when it was mapped, or
// that lost bytes; "" if there is none. Any thread.
std::string changed_mapped_file();

// The same, also of maps that have ended since guard_mapped_files(); the first of them.
std::string mapped_file_that_changed();

// From now on a read beyond the end of a file that was cut gives zeros, and changed_mapped_file()
// names it, in place of SIGBUS. Other SIGBUS go to the handler before. Once per process, by a
// program: a library must not take signals from its host.
void guard_mapped_files();

}  // namespace loom::core
