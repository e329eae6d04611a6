// The tensors of a checkpoint grouped by layers: loom/cluster.hpp.
#pragma once

#include <vector>

#include "io/weights/tensor_file.hpp"
#include "loom/cluster.hpp"

namespace loom::core {

// Tensors of unknown layers are grouped by their names up to the last '.' or '/'.
Result<std::vector<TensorGroup>> group_by_names(const TensorFile& file);

}  // namespace loom::core
