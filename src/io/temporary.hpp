// The temporary files and folders that saving makes beside its target: how they are called, who
// holds them, and what processes that are gone left behind. Room-private; see AtomicFile in
// file.hpp and AtomicFolder in atomic_folder.hpp.
#pragma once

#include <string>

#include "base/result.hpp"

namespace loom::core {

// With its final slash; "./" for a plain name.
std::string folder_of(const std::string& path);

// A name beside `path` that nobody else makes: .NAME.tmp-PROCESS-TIME-COUNT.
std::string temporary_name(const std::string& path);
// Likewise .NAME.old-PROCESS-TIME-COUNT: the old folder between two renames.
std::string set_aside_name(const std::string& path);

// fsync, repeated if it is interrupted. False: errno says why.
bool sync_file(int fd);
// fsync of the folder that has `path`. Without this a rename itself may be lost in a power cut.
Status sync_folder(const std::string& path);

// Locks a temporary file or folder that was just made, for as long as it is open, so that others
// see that its process lives. False: another process is removing it as left behind; make another
// one.
bool hold_temporary(int fd);

// Removes the temporary files of `path` whose process is gone. One whose process lives,
// or that anybody holds (also in another container, where process numbers say nothing), stays.
void remove_stale_temporaries(const std::string& path);
// Likewise temporary folders.
void remove_stale_folders(const std::string& path);

// If `path` is missing and a process that is gone had set the old folder aside, renames it back. If
// `path` exists, what such processes set aside is removed. Errors: io_error.
Status restore_set_aside(std::string path);

// Removes a folder and the files in it. A folder inside of it stays, and so does the folder then.
void remove_flat_folder(const std::string& path);

}  // namespace loom::core
