// The temporary files and folders that saving makes next to its target: their names, their locks,
// and leftovers of ended processes. Private to the room; see AtomicFile in file.hpp and
// AtomicFolder in atomic_folder.hpp.
#pragma once

#include <string>

#include "base/result.hpp"

namespace loom::core {

// With its trailing slash; "./" for a plain name.
std::string folder_of(const std::string& path);

// A unique name next to `path`: .NAME.tmp-PROCESS-TIME-COUNT.
std::string temporary_name(const std::string& path);
// Likewise .NAME.old-PROCESS-TIME-COUNT: the old folder between two renames.
std::string set_aside_name(const std::string& path);

// fsync, repeated if interrupted. False: errno has the reason.
bool sync_file(int fd);
// fsync of the folder that contains `path`. Without it a power failure may undo a rename.
Status sync_folder(const std::string& path);

// Locks a new temporary file or folder while it is open, as a sign that its process is alive.
// False: another process is removing it as a leftover; make another one.
bool hold_temporary(int fd);

// Removes the temporary files of `path` whose process has ended. A file stays if its process is
// alive or if it is locked. A lock may be held in another container, where process numbers mean
// nothing.
void remove_stale_temporaries(const std::string& path);
// The same for temporary folders.
void remove_stale_folders(const std::string& path);

// If `path` is missing and an ended process had set the old folder aside, renames it back. If
// `path` exists, removes what such processes set aside. Errors: io_error.
Status restore_set_aside(std::string path);

// Removes a folder and its files. A folder inside of it stays, and so does the folder then.
void remove_flat_folder(const std::string& path);

}  // namespace loom::core
