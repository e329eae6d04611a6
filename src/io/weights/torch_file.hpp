// Files of torch.save (.bin, .pt, .pth): the tensors of a state dict, without running its pickle.
// Formats: torch/serialization.py of PyTorch, the ZIP archive since 1.6 and the older stream.
#pragma once

#include "io/weights/safetensors.hpp"

namespace loom::core {

// Whether the bytes begin like a file of torch.save.
bool is_torch_file(std::span<const std::byte> bytes);

// Its tensors, as views of `bytes`, for SafeTensors. A tensor in nested dictionaries or lists has
// their keys as its name, with dots: "model.fc.weight". Other values than tensors are left out.
// Tensors may share bytes. `file`: as in SafeTensor. Errors: bad_file; unsupported (a class other
// than tensors, complex numbers, values that are not in row-major order, TorchScript).
Result<std::vector<SafeTensor>> read_torch_file(std::span<const std::byte> bytes,
                                                const std::string& where, size_t file);

}  // namespace loom::core
