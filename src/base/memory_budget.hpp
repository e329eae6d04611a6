// MemoryBudget: how much memory the readers of one command may take together. A reader asks before
// it allocates, so that a file which claims or unpacks to more than there is becomes an Error of
// one line instead of a machine without memory. Copies share one account; any thread may use it.
// Not an allocator: it counts what readers say they need.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace loom::core {

// "512M", "2G", "65536": bytes; K, M, G, T count in steps of 1024. Errors: anything else, zero.
Result<uint64_t> parse_size(std::string_view text);
// "512 MB", "4.8 GB": for messages; in steps of 1024.
std::string size_text(uint64_t bytes);

class MemoryShare;

class MemoryBudget {
 public:
  MemoryBudget() = default;  // no limit
  // chosen: a person named the number of bytes; if not, it is a guess from what the machine has,
  // and archives that unpack to a suspicious multiple of their size are refused (most_unpacked).
  // reserved: what is never given out, for the program itself.
  explicit MemoryBudget(uint64_t bytes, bool chosen = true, uint64_t reserved = 0);

  uint64_t left() const;  // UINT64_MAX: no limit
  // Books `bytes` until the share is destroyed. The Error names the file, what the bytes are for
  // ("the values"), how many they are, and what is left of the budget.
  Result<MemoryShare> take(uint64_t bytes, std::string_view what, const std::string& where) const;
  // Would take() succeed?
  Status check(uint64_t bytes, std::string_view what, const std::string& where) const;
  // The same Error for a need of which only a lower bound is known.
  Error error(uint64_t at_least, std::string_view what, const std::string& where) const;
  // How many bytes an archive of `packed` bytes may unpack to: all that is left where a person
  // chose the budget or there is none, else 256 MB or fifty times its size, whichever is more.
  uint64_t most_unpacked(uint64_t packed) const;

 private:
  friend class MemoryShare;
  struct Account;
  Error refusal(std::string_view need, std::string_view what, const std::string& where) const;
  std::shared_ptr<Account> account_;
};

// What one reader booked; given back by the destructor.
class MemoryShare {
 public:
  MemoryShare() = default;
  MemoryShare(MemoryShare&& other) noexcept;
  MemoryShare& operator=(MemoryShare&& other) noexcept;
  ~MemoryShare();

 private:
  friend class MemoryBudget;
  std::shared_ptr<MemoryBudget::Account> account_;
  uint64_t bytes_ = 0;
};

}  // namespace loom::core
