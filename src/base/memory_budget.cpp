#include "base/memory_budget.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <utility>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kFreelyUnpacked = uint64_t{256} << 20;
constexpr uint64_t kMaxExpansion = 50;

}  // namespace

struct MemoryBudget::Account {
  uint64_t limit = 0;
  bool chosen = false;
  std::atomic<uint64_t> used = 0;

  bool book(uint64_t bytes) {
    uint64_t now = used.load();
    do {
      if (now > limit || bytes > limit - now) return false;
    } while (!used.compare_exchange_weak(now, now + bytes));
    return true;
  }
};

Result<uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  std::string_view rest = text;
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  bool fits = code == std::errc() && value > 0;
  if (!rest.empty() && (rest.back() == 'B' || rest.back() == 'b') && rest.size() > 1)
    rest.remove_suffix(1);
  if (!rest.empty()) {
    const char unit = rest[0] >= 'a' ? static_cast<char>(rest[0] - 'a' + 'A') : rest[0];
    const size_t at = kUnits.find(unit);
    fits = fits && rest.size() == 1 && at != std::string_view::npos &&
           checked_mul(value, uint64_t{1} << (10 * (at + 1)), value);
  }
  if (fits) return value;
  return invalid(cat("'", printable(text), "' is not a size; write for example 512M or 2G"));
}

std::string size_text(uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {" bytes", " kB", " MB", " GB", " TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  // One digit after the point below ten, none above it.
  const auto tenths = static_cast<uint64_t>(value * 10 + 0.5);
  const std::string point = unit > 0 && tenths < 100 ? cat(".", tenths % 10) : "";
  return cat(point.empty() ? (tenths + 5) / 10 : tenths / 10, point == ".0" ? "" : point,
             kUnits[unit]);
}

MemoryBudget::MemoryBudget(uint64_t bytes, bool chosen, uint64_t reserved)
    : account_(std::make_shared<Account>()) {
  account_->used = reserved;
  account_->limit = bytes;
  account_->chosen = chosen;
}

uint64_t MemoryBudget::left() const {
  if (account_ == nullptr) return UINT64_MAX;
  return account_->limit - std::min(account_->limit, account_->used.load());
}

uint64_t MemoryBudget::max_unpacked(uint64_t packed) const {
  if (account_ == nullptr || account_->chosen) return UINT64_MAX;
  uint64_t most = 0;
  if (!checked_mul(packed, kMaxExpansion, most)) return UINT64_MAX;
  return std::max(kFreelyUnpacked, most);
}

Error MemoryBudget::refusal(std::string_view need, std::string_view what,
                            const std::string& where) const {
  return make_error(
      Code::out_of_memory,
      cat("needs ", need, " for ", what, ", and ", size_text(left()), " of the memory budget of ",
          size_text(account_ == nullptr ? UINT64_MAX : account_->limit),
          " are left; give more with --memory SIZE, or read a smaller file"),
      where);
}

Error MemoryBudget::error(uint64_t at_least, std::string_view what,
                          const std::string& where) const {
  return refusal(cat("more than ", size_text(at_least)), what, where);
}

Status MemoryBudget::check(uint64_t bytes, std::string_view what, const std::string& where) const {
  if (bytes <= left()) return {};
  return refusal(size_text(bytes), what, where);
}

Result<MemoryShare> MemoryBudget::take(uint64_t bytes, std::string_view what,
                                       const std::string& where) const {
  MemoryShare share;
  if (account_ == nullptr) return share;
  if (!account_->book(bytes)) return refusal(size_text(bytes), what, where);
  share.account_ = account_;
  share.bytes_ = bytes;
  return share;
}

MemoryShare::MemoryShare(MemoryShare&& other) noexcept
    : account_(std::move(other.account_)), bytes_(std::exchange(other.bytes_, 0)) {}

MemoryShare& MemoryShare::operator=(MemoryShare&& other) noexcept {
  std::swap(account_, other.account_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MemoryShare::~MemoryShare() {
  if (account_ != nullptr) account_->used -= bytes_;
}

}  // namespace loom::core
