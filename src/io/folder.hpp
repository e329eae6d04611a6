// What a folder holds, in an order that is the same on every machine.
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

// Files and folders, where symbolic links lead to; sorted by the bytes of their names. Names that
// begin with a dot, and what is neither a file nor a folder, are left out. Errors: not_found,
// io_error; bad_file where there are more than `most`.
Result<std::vector<FolderEntry>> list_folder(const std::string& path, size_t most);

}  // namespace loom::core
