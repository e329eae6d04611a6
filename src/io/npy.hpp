// NPY (versions 1 to 3) and NPZ: the array files of NumPy. An NPZ is a ZIP of NPY files, stored or
// deflated; its directory is read, checksums are verified, ZIP64 and encryption are refused.
// Pickled objects, structured types and Fortran order are refused by name. Format:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "io/array.hpp"

namespace loom {

bool is_npy(std::span<const std::byte> bytes);
bool is_npz(std::span<const std::byte> bytes);

// The view points into `bytes`, which must outlive it. `base`: where they stand in the file, for
// messages.
Result<ArrayView> parse_npy(std::span<const std::byte> bytes, const std::string& where,
                            uint64_t base = 0);

// Name (without ".npy") and array of every member. Deflated members are unpacked into `storage`,
// stored ones are views into `bytes`.
Result<std::vector<std::pair<std::string, ArrayView>>> parse_npz(std::span<const std::byte> bytes,
                                                                 const std::string& where,
                                                                 std::deque<std::string>& storage);

}  // namespace loom
