// Files that are not what their name says: pickles, web pages saved as models, Git LFS pointers,
// other archives, pictures, downloads that were not finished. One table of how such files begin,
// for every reader. It is asked before a reader's own error, so that the error says what the file
// is and what to do.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace loom::core {

// What `bytes`, the beginning of a file or all of it, are; nullopt: none of the files of the table.
// Files that Loom reads are none of them: .npy, .npz, .gguf, .entity, safetensors, JSON, CSV.
// packed: gzip is one of the files that are read (data sets).
// Error: bad_file, "is a pickle; ..." at `where`.
std::optional<Error> foreign_file(std::span<const std::byte> bytes, const std::string& where,
                                  bool packed = false);
std::optional<Error> foreign_file(std::string_view text, const std::string& where,
                                  bool packed = false);

// What is wrong with the contents of a file is a bad_file, though the same description from a
// caller would be a wrong argument. where: the file, if the error names none. An error that names
// an option ("--frozen") stays as it is.
Error file_error(Error error, const std::string& where);

}  // namespace loom::core
