// The temporary files that saving makes beside its target: how they are called, who holds them, and
// what processes that are gone left behind. Room-private; see AtomicFile in file.hpp.
#pragma once

#include <string>

namespace loom::core {

// With its final slash; "./" for a plain name.
std::string folder_of(const std::string& path);

// A name beside `path` that nobody else makes: .NAME.tmp-PROCESS-TIME-COUNT.
std::string temporary_name(const std::string& path);

// Locks a temporary file that was just made, for as long as it is open, so that others see that its
// process lives. False: another process is removing it as left behind; make another one.
bool hold_temporary(int fd);

// Removes the temporary files of `path` whose process is gone. One whose process lives, or that
// anybody holds (also in another container, where process numbers say nothing), stays.
void remove_stale_temporaries(const std::string& path);

}  // namespace loom::core
