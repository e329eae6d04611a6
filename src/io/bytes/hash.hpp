// BytesHash: XXH3-128 over bytes, in the order they are added. It detects damage and changes of
// bits; it is not a signature.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace loom::core {

class BytesHash {
 public:
  BytesHash();
  BytesHash(BytesHash&&) noexcept;
  ~BytesHash();
  void add(std::span<const std::byte> bytes);
  std::string hex() const;  // 32 digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string hash_hex(std::span<const std::byte> bytes);
uint64_t hash64(std::span<const std::byte> bytes);  // XXH3-64

}  // namespace loom::core
