// The writer of safetensors files: tensors in name order, the header padded to 8 bytes with spaces,
// metadata first. Written atomically, so a reader never sees a partial file.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/files/file_ref.hpp"
#include "io/weights/safetensors.hpp"

namespace loom::core {

struct SafeOutput {
  std::string name;
  SafeDType dtype = SafeDType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
  // If set, it returns the bytes when they are written, valid until the next call; `data` is not
  // read.
  std::function<Result<std::span<const std::byte>>()> produce = {};
};

using SafeMetadata = std::vector<std::pair<std::string, std::string>>;

// The bytes of the file. Errors: a repeated name, or data that does not fit dtype and shape.
Result<std::string> safetensors_bytes(std::vector<SafeOutput> tensors,
                                      const SafeMetadata& metadata);
// keep: see AtomicFile::commit().
Status write_safetensors(const FileRef& path, std::vector<SafeOutput> tensors,
                         const SafeMetadata& metadata, const std::string& keep = {});

}  // namespace loom::core
