// ArrayFile: the arrays of an NPY, NPZ, IDX or safetensors file, each also within gzip. The first
// bytes determine the format. IDX and NPY hold one array without a name. The unpacked size is known
// from the header before unpacking, and is reserved in the memory budget of the source.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/arrays/array.hpp"
#include "io/arrays/npy.hpp"
#include "io/bytes/byte_source.hpp"
#include "io/files/file_ref.hpp"

namespace loom::core {

class ArrayFile {
 public:
  enum class Kind : uint8_t { npy, npz, idx, safetensors };
  // Whether the first bytes are those of one of the four formats. A CSV is not.
  static bool known(std::span<const std::byte> bytes);
  static Result<ArrayFile> open(const FileRef& path, const MemoryBudget& memory = {});
  static Result<ArrayFile> from(ByteSource source);

  Kind kind() const { return kind_; }
  // IDX and NPY: their only array, for any name. NPZ: unpacks the member on request. Views are
  // valid for the life of this object.
  Result<ArrayView> find(std::string_view name);

 private:
  Status unpack();
  Status read(std::span<const std::byte> bytes);
  Status read_safetensors(std::span<const std::byte> bytes);

  Kind kind_ = Kind::npy;
  ByteSource source_;
  MemoryShare share_;
  std::unique_ptr<std::string> unpacked_;  // its bytes stay when this object is moved
  std::optional<Npz> npz_;
  std::deque<std::string> storage_;
  std::vector<std::pair<std::string, ArrayView>> arrays_;
};

}  // namespace loom::core
