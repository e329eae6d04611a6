// The writer of NPY (version 1) and NPZ files. An NPZ is a ZIP of stored members without
// compression. Times are those of 1980, so equal arrays give equal bytes. NumPy and our own reader
// read them. Formats: see npy.hpp.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/arrays/array.hpp"
#include "io/files/file_ref.hpp"

namespace loom::core {

// An array to be written; `data` holds product(shape) elements, little-endian. NumPy has no bf16:
// convert it to f32 first.
struct NpyOutput {
  std::string name;  // of a member of an NPZ, without ".npy"
  ElementType type = ElementType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
  // If set, it returns the bytes when they are written, valid until the next call; `data` is not
  // read.
  std::function<Result<std::span<const std::byte>>()> produce = {};
};

// The bytes of an NPY file. Errors: invalid_argument (data that does not fit type and shape),
// unsupported (bf16).
Result<std::string> npy_bytes(const NpyOutput& array);
Status write_npy(const std::string& path, const NpyOutput& array);

// The bytes of an NPZ file, members in the given order. Errors: those of npy_bytes;
// invalid_argument (a name that is empty, repeated or too long); unsupported (more than a ZIP
// without ZIP64 holds: 65535 members, 4 GiB).
Result<std::string> npz_bytes(const std::vector<NpyOutput>& arrays);
// Writes the same to a file, member by member.
Status write_npz(const FileRef& path, const std::vector<NpyOutput>& arrays);

}  // namespace loom::core
