// File names that refer to other files.
#pragma once

#include <string>

namespace loom::core {

// Whether the path is a symbolic link, or a file with other names. False if it does not exist.
bool is_link(const std::string& path);

// Whether the path is a link of a hub's cache: from a path under snapshots/ to a file in the
// neighbouring folder blobs/, as hub downloads are stored. Such a link never leaves the cache.
bool is_cache_link(const std::string& path);

}  // namespace loom::core
