// Names of files that lead elsewhere.
#pragma once

#include <string>

namespace loom::core {

// Whether the path is a symbolic link, or a file that has other names. false where it is not there.
bool is_link(const std::string& path);

}  // namespace loom::core
