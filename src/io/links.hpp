// Names of files that lead elsewhere.
#pragma once

#include <string>

namespace loom::core {

// Whether the path is a symbolic link, or a file that has other names. false where it is not there.
bool is_link(const std::string& path);

// Whether the path is a link of a hub's cache: from below snapshots/ to a file in the folder blobs/
// beside it, as downloads of a hub are stored. Such a link leads to no other file of the machine.
bool is_cache_link(const std::string& path);

}  // namespace loom::core
