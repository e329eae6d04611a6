// Files of Unix sockets: whether one may be bound at a path.
#pragma once

#include <string>

#include "base/result.hpp"

namespace loom::core {

// Removes a socket at `path` without a listening process. Errors: io_error (a process listens; the
// file is not a socket; it cannot be checked).
Status remove_stale_socket(const std::string& path);

}  // namespace loom::core
