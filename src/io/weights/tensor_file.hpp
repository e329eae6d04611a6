// TensorFile: named tensors in a file of any format, for `loom info`, `diff`, `convert` and the
// universal loader. Plain data; it makes no layers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loom::core {

struct TensorEntry {
  std::string name;
  std::string dtype;           // the format's name: "BF16", "Q4_K"
  std::vector<int64_t> shape;  // row-major, the fastest axis last
  uint64_t offset = 0;         // of its bytes in the file
  uint64_t bytes = 0;
  int64_t count() const;  // product of shape
};

class TensorFile {
 public:
  virtual ~TensorFile() = default;
  // In file order; names are unique.
  virtual std::span<const TensorEntry> entries() const = 0;
  // Values [first, first + count) of entry `index` as f32 into out[count]. Errors: unsupported (a
  // type that cannot be read), out_of_range, bad_file (checksum).
  virtual Status to_f32(size_t index, int64_t first, int64_t count, float* out) const = 0;
  // The stored bytes of entry `index`.
  virtual std::span<const std::byte> bytes(size_t index) const = 0;
  // Releases the pages of an entry to the system.
  virtual void release(size_t index) const = 0;

  // The index of the tensor, or -1 if there is none.
  virtual int64_t find(std::string_view name) const;
};

}  // namespace loom::core
