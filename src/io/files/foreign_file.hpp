// Files of an unexpected type: pickles, web pages saved as models, Git LFS pointers, other
// archives, images, incomplete downloads. One table of their first bytes serves all readers. It is
// checked before a reader's own error, so that the error says what the file is and what to do.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace loom::core {

// Identifies `bytes`, the beginning of a file or all of it; nullopt if the table has no match.
// Files that Loom reads never match: .npy, .npz, .gguf, .entity, safetensors, JSON, CSV. packed:
// gzip is an accepted type (data sets). Error: bad_file, "is a pickle; ..." at `where`.
std::optional<Error> foreign_file(std::span<const std::byte> bytes, const std::string& where,
                                  bool packed = false);
std::optional<Error> foreign_file(std::string_view text, const std::string& where,
                                  bool packed = false);

// Wrong contents of a file are a bad_file, though the same description from a caller would be an
// invalid argument. where: the file, if the error names none. An error that names an option
// ("--frozen") is unchanged.
Error file_error(Error error, const std::string& where);

}  // namespace loom::core
