// The entries of a folder, in an order that is the same on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace loom::core {

struct FolderEntry {
  std::string name;  // without the folder
  bool folder = false;
};

// Files and folders, with symbolic links resolved, sorted by the bytes of their names. Skips names
// that begin with a dot, and special files. Errors: not_found, io_error; bad_file if there are more
// than `most`.
Result<std::vector<FolderEntry>> list_folder(const std::string& path, size_t most);

}  // namespace loom::core
