// LookupText: for each run length, a sorted list of the runs by hash, with the most frequent next
// token. A hash collision only gives a wrong draft token, which costs time.
#include "loom/lookup.hpp"

#include <algorithm>
#include <vector>

namespace loom {
namespace {

constexpr size_t kLongestRun = 6;

// FNV-1a over the tokens, with a last mix, as its low bits are those of the last token.
uint64_t run_key(std::span<const TokenId> run) {
  uint64_t key = 0xcbf29ce484222325ull;
  for (const TokenId id : run) key = (key ^ static_cast<uint32_t>(id)) * 0x100000001b3ull;
  return key ^ (key >> 29);
}

}  // namespace

struct LookupText::Impl {
  struct Followed {
    uint64_t key;
    TokenId by;
    float share;  // of the times that the run is in the text
  };
  std::vector<Followed> runs[kLongestRun];  // of i + 1 tokens, by key

  void learn(std::span<const TokenId> text, size_t length) {
    std::vector<Followed> all;
    for (size_t at = length; at < text.size(); ++at)
      all.push_back({run_key(text.subspan(at - length, length)), text[at], 1.0f});
    std::ranges::sort(all, [](const Followed& a, const Followed& b) {
      return a.key != b.key ? a.key < b.key : a.by < b.by;
    });
    std::vector<Followed>& out = runs[length - 1];
    for (size_t begin = 0; begin < all.size();) {
      size_t end = begin, best = 0;
      Followed found = all[begin];
      while (end < all.size() && all[end].key == found.key) {
        size_t same = end;
        while (same < all.size() && all[same].key == found.key && all[same].by == all[end].by)
          ++same;
        if (same - end > best) {
          best = same - end;
          found.by = all[end].by;
        }
        end = same;
      }
      found.share = static_cast<float>(best) / static_cast<float>(end - begin);
      out.push_back(found);
      begin = end;
    }
    out.shrink_to_fit();
  }
};

LookupText::LookupText(std::span<const TokenId> text) : impl_(std::make_unique<Impl>()) {
  for (size_t length = 1; length <= kLongestRun; ++length) impl_->learn(text, length);
}
LookupText::LookupText(LookupText&&) noexcept = default;
LookupText& LookupText::operator=(LookupText&&) noexcept = default;
LookupText::~LookupText() = default;

TokenId LookupText::next(std::span<const TokenId> history, double share) const {
  for (size_t length = std::min(kLongestRun, history.size()); length > 0; --length) {
    const std::vector<Impl::Followed>& known = impl_->runs[length - 1];
    const uint64_t key = run_key(history.last(length));
    const auto at = std::ranges::lower_bound(known, key, {}, &Impl::Followed::key);
    if (at == known.end() || at->key != key) continue;
    return static_cast<double>(at->share) >= share ? at->by : -1;
  }
  return -1;
}

}  // namespace loom
