// Builds without a reader of torch.save files: see torch_file.hpp.
#include "io/weights/torch_file.hpp"

namespace loom::core {

bool is_torch_file(std::span<const std::byte>) {
  return false;
}

Result<std::vector<SafeTensor>> read_torch_file(std::span<const std::byte>,
                                                const std::string& where, size_t) {
  return unsupported("this build does not read files of torch.save", where);
}

}  // namespace loom::core
