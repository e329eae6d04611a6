// IDX: the format of the MNIST files. Two zero bytes, the type, the number of axes, one 32-bit
// big-endian extent per axis, then the data (big-endian).
#pragma once

#include "io/arrays/array.hpp"

namespace loom::core {

bool is_idx(std::span<const std::byte> bytes);
// The size of the file according to its header. `head` holds at least the first 64 bytes, or the
// whole file.
Result<uint64_t> idx_size(std::span<const std::byte> head, const std::string& where);
// The view points into `bytes`, which must outlive it.
Result<ArrayView> parse_idx(std::span<const std::byte> bytes, const std::string& where);

}  // namespace loom::core
