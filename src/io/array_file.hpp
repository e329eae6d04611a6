// ArrayFile: the arrays of an NPY, NPZ, IDX or safetensors file (each also as .gz, but for
// safetensors), told apart by how it begins. IDX and NPY hold one array without a name.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "io/array.hpp"
#include "io/deflate.hpp"
#include "io/safetensors.hpp"

namespace loom {

class ArrayFile {
 public:
  enum class Kind : uint8_t { npy, npz, idx, safetensors };
  // Is this one of the four? A CSV is not.
  static bool known(std::span<const std::byte> bytes);
  static Result<ArrayFile> open(const std::string& path);
  static Result<ArrayFile> from(DataFile file, const std::string& path);

  Kind kind() const { return kind_; }
  // IDX and NPY: their one array, whatever the name.
  Result<ArrayView> find(std::string_view name) const;

 private:
  Status read_safetensors(const std::string& path);

  Kind kind_ = Kind::npy;
  std::string path_;
  DataFile file_;
  std::deque<std::string> storage_;
  std::vector<std::pair<std::string, ArrayView>> arrays_;
};

}  // namespace loom
