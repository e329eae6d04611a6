// MemoryBudget: the memory limit that the readers of one command share. A reader asks before it
// allocates. So a file that claims or unpacks to more than the limit gives a one-line Error and
// does not exhaust the machine. Copies share one account; any thread may use it. It is not an
// allocator: it counts what readers request.
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
  // chosen: the user set the number of bytes. If not, it is an estimate from the machine's memory,
  // and archives that unpack to a suspicious multiple of their size are refused (max_unpacked).
  // reserved: bytes that are never granted, for the program itself.
  explicit MemoryBudget(uint64_t bytes, bool chosen = true, uint64_t reserved = 0);

  uint64_t left() const;  // UINT64_MAX means no limit
  // Reserves `bytes` until the share is destroyed. The Error names the file, the purpose of the
  // bytes ("the values"), their number, and the rest of the budget.
  Result<MemoryShare> take(uint64_t bytes, std::string_view what, const std::string& where) const;
  // Whether take() would succeed.
  Status check(uint64_t bytes, std::string_view what, const std::string& where) const;
  // The same Error if only a lower bound of the need is known.
  Error error(uint64_t at_least, std::string_view what, const std::string& where) const;
  // The limit of the unpacked bytes of an archive of `packed` bytes. If the user chose the budget
  // or there is none, it is all that is left. Otherwise it is 256 MB or fifty times its size,
  // whichever is more.
  uint64_t max_unpacked(uint64_t packed) const;

 private:
  friend class MemoryShare;
  struct Account;
  Error refusal(std::string_view need, std::string_view what, const std::string& where) const;
  std::shared_ptr<Account> account_;
};

// The reservation of one reader; the destructor releases it.
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
