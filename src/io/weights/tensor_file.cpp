#include "io/weights/tensor_file.hpp"

namespace loom::core {

int64_t TensorEntry::count() const {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

int64_t TensorFile::find(std::string_view name) const {
  const std::span<const TensorEntry> all = entries();
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == name) return static_cast<int64_t>(i);
  }
  return -1;
}

}  // namespace loom::core
