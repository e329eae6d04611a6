// ByteSource: a file (or bytes in memory) from front to back, unpacked on the way if it is gzip. It
// holds one piece at a time. Pages of a mapped file are released after reading, and unpacked data
// passes through one buffer. It does not parse any format.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/memory_budget.hpp"
#include "io/bytes/deflate.hpp"
#include "io/files/file.hpp"

namespace loom::core {

class ByteSource {
 public:
  static Result<ByteSource> open(const FileRef& path, const MemoryBudget& memory = {});
  // `bytes` must outlive it.
  static ByteSource of(std::span<const std::byte> bytes, std::string where,
                       const MemoryBudget& memory = {});
  // The same, with bytes of its own.
  static ByteSource own(std::string bytes, std::string where, const MemoryBudget& memory = {});

  const std::string& where() const { return where_; }
  const MemoryBudget& memory() const { return memory_; }
  // The next bytes, at most kPiece; none at the end. Valid until the next call. Errors: bad_file
  // (damaged gzip data), out_of_memory (the unpacked size exceeds the budget).
  Result<std::span<const std::byte>> next();
  // Back to the front.
  void rewind();

  bool packed() const { return packed_; }
  // The bytes as stored in the file.
  std::span<const std::byte> stored() const { return map_.bytes().empty() ? bytes_ : map_.bytes(); }
  // head(): the first bytes, at most `most`. whole(): all bytes, of which there must be `size`.
  // Both read from the front. Only for packed sources; others have stored().
  Result<std::string> head(size_t most);
  Result<std::string> read_all(uint64_t size);
  // The number of bytes; unpacks all of them to count.
  Result<uint64_t> count();

  static constexpr size_t kPiece = size_t{256} << 10;

 private:
  Status allow(uint64_t unpacked) const;
  Result<size_t> unpack(std::span<std::byte> out);

  std::string where_;
  MemoryBudget memory_;
  MappedFile map_;
  std::span<const std::byte> bytes_;  // if there is no map
  std::shared_ptr<const std::string> owned_;
  bool packed_ = false;
  uint64_t at_ = 0;  // bytes returned so far
  std::unique_ptr<Inflater> inflater_;
  std::vector<std::byte> piece_;
};

}  // namespace loom::core
