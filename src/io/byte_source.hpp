// ByteSource: a file (or bytes in memory) from front to back, unpacked on the way when it is gzip.
// It holds one piece at a time: pages of a mapped file are given back once they are read, and what
// is unpacked passes through one buffer. Not a reader of any format.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/memory_budget.hpp"
#include "io/deflate.hpp"
#include "io/file.hpp"

namespace loom::core {

class ByteSource {
 public:
  static Result<ByteSource> open(const FileRef& path, const MemoryBudget& memory = {});
  // `bytes` must outlive it.
  static ByteSource of(std::span<const std::byte> bytes, std::string where,
                       const MemoryBudget& memory = {});

  const std::string& where() const { return where_; }
  const MemoryBudget& memory() const { return memory_; }
  // The next bytes, at most kPiece; none at the end. They stay until the next call. Errors:
  // bad_file (damaged gzip data), out_of_memory (it unpacks to more than the budget lets it).
  Result<std::span<const std::byte>> next();
  // Back to the front.
  void rewind();

  bool packed() const { return packed_; }
  // The bytes as they lie in the file.
  std::span<const std::byte> stored() const { return map_.bytes().empty() ? bytes_ : map_.bytes(); }
  // The first bytes, at most `most`; and all of them, of which there must be `size`. Both begin at
  // the front. Only for packed sources: others have stored().
  Result<std::string> head(size_t most);
  Result<std::string> whole(uint64_t size);
  // How many bytes there are; unpacks them all to know.
  Result<uint64_t> count();

  static constexpr size_t kPiece = size_t{256} << 10;

 private:
  Status allow(uint64_t unpacked) const;
  Result<size_t> unpack(std::span<std::byte> out);

  std::string where_;
  MemoryBudget memory_;
  MappedFile map_;
  std::span<const std::byte> bytes_;  // where there is no map
  bool packed_ = false;
  uint64_t at_ = 0;  // bytes given so far
  std::unique_ptr<Inflater> inflater_;
  std::vector<std::byte> piece_;
};

}  // namespace loom::core
