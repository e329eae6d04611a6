// Files of Unix sockets: whether one may be bound at a path.
#pragma once

#include <string>

#include "base/result.hpp"

namespace loom::core {

// Removes a socket at `path` at which nobody answers. Errors: io_error (somebody answers; what is
// there is not a socket; it cannot be asked).
Status remove_stale_socket(const std::string& path);

}  // namespace loom::core
