// NPY (versions 1 to 3) and NPZ: the array files of NumPy. An NPZ is a ZIP of NPY files, stored or
// deflated. Its directory is read (ZIP64 too) and checksums are verified. Encryption, pickled
// objects and structured types are refused with a message that names them. Arrays in Fortran order
// are converted to C order. Format:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/memory_budget.hpp"
#include "io/arrays/array.hpp"

namespace loom::core {

bool is_npy(std::span<const std::byte> bytes);
// Inline, so that a build without the reader still recognizes its files.
inline bool is_npz(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && bytes[0] == std::byte{'P'} && bytes[1] == std::byte{'K'} &&
         (bytes[2] == std::byte{3} || bytes[2] == std::byte{5});
}

// The view points into `bytes`, which must outlive it. `base`: their offset in the file, for
// messages.
Result<ArrayView> parse_npy(std::span<const std::byte> bytes, const std::string& where,
                            uint64_t base = 0);

// The size of the array by its header. `head` holds at least 1 MB, or the whole file.
Result<uint64_t> npy_size(std::span<const std::byte> head, const std::string& where);

// The members of an NPZ. Opening reads only the directory. It checks that members do not overlap
// and that their local headers agree.
class Npz {
 public:
  // `bytes` must outlive it.
  static Result<Npz> open(std::span<const std::byte> bytes, const std::string& where,
                          const MemoryBudget& memory = {});

  const std::vector<std::string>& names() const { return names_; }  // without ".npy"
  // Array `index`. A stored member is a view into the file. A deflated one is unpacked into
  // `storage`, once. Before that, its own header must agree with the directory about its size, and
  // the budget must have room.
  Result<ArrayView> read(size_t index, std::deque<std::string>& storage);

 private:
  struct Member {
    std::string name;  // as in the directory
    uint16_t method = 0;
    uint32_t crc = 0;
    uint64_t size = 0;
    uint64_t at = 0;  // of `packed` in the file
    std::span<const std::byte> packed;
  };
  Status check_head(const Member& member, const std::string& location) const;
  Status allow(const Member& member, const std::string& location);

  std::string where_;
  MemoryBudget memory_;
  uint64_t file_bytes_ = 0, unpacked_ = 0;
  std::vector<std::string> names_;
  std::vector<Member> members_;
  std::vector<MemoryShare> shares_;
};

// All members of an NPZ by name.
Result<std::vector<std::pair<std::string, ArrayView>>> parse_npz(std::span<const std::byte> bytes,
                                                                 const std::string& where,
                                                                 std::deque<std::string>& storage,
                                                                 const MemoryBudget& memory = {});

}  // namespace loom::core
