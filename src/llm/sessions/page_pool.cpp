#include "llm/sessions/page_pool.hpp"

#include <algorithm>

#include "io/bytes/hash.hpp"

namespace loom::core {
namespace {

int64_t pages_of(int64_t positions) {
  return (positions + PagePool::kPage - 1) / PagePool::kPage;
}

}  // namespace

PagePool::PagePool(int64_t pages, std::vector<std::span<int32_t>> tables)
    : pages_(static_cast<size_t>(pages)), states_(tables.size()) {
  for (size_t s = 0; s < tables.size(); ++s) states_[s].table = tables[s];
  for (int32_t p = 0; p < static_cast<int32_t>(pages); ++p) link(p, false);
}

void PagePool::link(int32_t p, bool first) {
  page(p).before = first ? -1 : last_;
  page(p).next = first ? first_ : -1;
  if (page(p).before >= 0) page(page(p).before).next = p;
  if (page(p).next >= 0) page(page(p).next).before = p;
  if (first || first_ < 0) first_ = p;
  if (!first || last_ < 0) last_ = p;
}

void PagePool::unlink(int32_t p) {
  const Page& one = page(p);
  (one.before >= 0 ? page(one.before).next : first_) = one.next;
  (one.next >= 0 ? page(one.next).before : last_) = one.before;
}

void PagePool::own(int32_t p) {
  if (page(p).owners++ == 0) unlink(p);
}

// Reusable pages go to the end of the line, useless ones to its front.
void PagePool::disown(int32_t p) {
  if (--page(p).owners == 0) link(p, !page(p).known);
}

// A page for one sequence to write to, or -1.
int32_t PagePool::take() {
  const int32_t p = first_;
  if (p < 0) return -1;
  if (page(p).known) {
    ++evicted_;
    forget(p);
  }
  own(p);
  return p;
}

namespace {

uint64_t key_of(std::span<const TokenId> tokens) {
  return hash64(std::as_bytes(tokens));
}

}  // namespace

void PagePool::index(int32_t p, const State& s, std::span<const TokenId> tokens) {
  const int32_t parent = parent_of(s);
  Page& one = page(p);
  one.salt = s.salt;
  int32_t& first = first_after(parent);
  one.known = true;
  one.parent = parent;
  one.child = -1;
  one.older = -1;
  one.sibling = first;
  if (first >= 0) page(first).older = p;
  first = p;
  one.key = key_of(tokens);
  one.count = static_cast<int32_t>(tokens.size());
  std::ranges::copy(tokens, one.tokens.begin());
}

// Pages after it become unreachable too: their contents depend on all tokens before.
void PagePool::forget(int32_t p) {
  Page& one = page(p);
  for (int32_t c = one.child; c >= 0; c = page(c).sibling) page(c).parent = kOrphan;
  one.child = -1;
  if (one.parent != kOrphan) {
    (one.older >= 0 ? page(one.older).sibling : first_after(one.parent)) = one.sibling;
    if (one.sibling >= 0) page(one.sibling).older = one.older;
  }
  one.parent = kOrphan;
  one.known = false;
}

// The full page of these tokens that follows the full pages of a sequence, or -1.
int32_t PagePool::find(const State& s, std::span<const TokenId> tokens) {
  const uint64_t key = key_of(tokens);
  for (int32_t p = first_after(parent_of(s)); p >= 0; p = page(p).sibling) {
    const Page& one = page(p);
    const bool same = one.count == kPage && one.key == key && one.salt == s.salt;
    if (same && std::ranges::equal(one.tokens, tokens)) return p;
  }
  return -1;
}

// The page after the full pages of a sequence that starts with most of these tokens,
// and how many they are.
int32_t PagePool::find_part(const State& s, std::span<const TokenId> tokens, int64_t& count) {
  int32_t best = -1;
  count = 0;
  for (int32_t p = first_after(parent_of(s)); p >= 0; p = page(p).sibling) {
    if (page(p).salt != s.salt) continue;
    const std::span<const TokenId> own(page(p).tokens.data(), static_cast<size_t>(page(p).count));
    const int64_t same = std::ranges::mismatch(own, tokens).in1 - own.begin();
    if (same <= count) continue;
    count = same;
    best = p;
  }
  return best;
}

bool PagePool::write(int64_t sequence, int64_t from, int64_t to, std::vector<Copy>& copies) {
  State& s = state(sequence);
  for (int64_t i = from / kPage; i < pages_of(to); ++i) {
    int32_t& mine = s.table[static_cast<size_t>(i)];
    const bool has = i < s.used;
    if (has && page(mine).owners == 1 && !page(mine).known) continue;
    const int32_t before = mine;
    // Returned first: if there is no other page, it is taken again with its contents.
    if (has) disown(before);
    const int32_t fresh = take();
    if (fresh < 0) {
      if (has) own(before);
      rewind(sequence, from);
      return false;
    }
    mine = fresh;
    s.used = std::max(s.used, i + 1);
    if (has && fresh != before && from > i * kPage) copies.push_back({before, fresh});
  }
  return true;
}

void PagePool::read(int64_t sequence, std::span<const TokenId> tokens) {
  State& s = state(sequence);
  const auto full = static_cast<int64_t>(tokens.size()) / kPage;
  for (; s.full < full; ++s.full) {
    const auto i = static_cast<size_t>(s.full);
    const std::span<const TokenId> these = tokens.subspan(i * kPage, kPage);
    int32_t& mine = s.table[i];
    const int32_t other = find(s, these);
    if (other < 0) {
      index(mine, s, these);
    } else if (other != mine) {  // another sequence read the same: one page is enough
      own_instead(mine, other);
    }
  }
}

void PagePool::own_instead(int32_t& mine, int32_t other) {
  own(other);
  disown(mine);
  mine = other;
}

void PagePool::rewind(int64_t sequence, int64_t position) {
  State& s = state(sequence);
  const int64_t kept = pages_of(position);
  while (s.used > kept) disown(s.table[static_cast<size_t>(--s.used)]);
  s.full = std::min(s.full, position / kPage);
}

void PagePool::publish(int64_t sequence, std::span<const TokenId> tokens) {
  State& s = state(sequence);
  read(sequence, tokens);
  const auto rest = tokens.subspan(static_cast<size_t>(s.full * kPage));
  if (rest.empty()) return;
  const int32_t mine = s.table[static_cast<size_t>(s.full)];
  int64_t known = 0;
  find_part(s, rest, known);
  const bool alone = !page(mine).known && page(mine).owners == 1;
  if (alone && known < static_cast<int64_t>(rest.size())) index(mine, s, rest);
}

void PagePool::release(int64_t sequence, std::span<const TokenId> tokens) {
  publish(sequence, tokens);
  rewind(sequence, 0);
}

void PagePool::erase(int64_t sequence) {
  const State& s = state(sequence);
  for (int64_t i = 0; i < s.used; ++i) {
    const int32_t p = s.table[static_cast<size_t>(i)];
    if (page(p).owners == 1 && page(p).known) forget(p);
  }
  rewind(sequence, 0);
}

int64_t PagePool::adopt(int64_t sequence, std::span<const TokenId> tokens) {
  State& s = state(sequence);
  const auto add = [&](int32_t p) {
    own(p);
    s.table[static_cast<size_t>(s.used++)] = p;
  };
  size_t at = 0;
  while (tokens.size() - at >= kPage) {
    const int32_t p = find(s, tokens.subspan(at, kPage));
    if (p < 0) break;
    add(p);
    ++s.full;
    at += kPage;
  }
  int64_t part = 0;
  const int32_t p = find_part(s, tokens.subspan(at), part);
  if (p >= 0) add(p);
  const int64_t count = static_cast<int64_t>(at) + part;
  found_ += count;
  return count;
}

void PagePool::share(int64_t from, int64_t to) {
  const State& source = state(from);
  State& s = state(to);
  std::ranges::copy(source.table.first(static_cast<size_t>(source.used)), s.table.begin());
  s.used = source.used;
  s.full = source.full;
  s.salt = source.salt;
  for (int64_t i = 0; i < s.used; ++i) own(s.table[static_cast<size_t>(i)]);
}

void PagePool::move_to(std::vector<std::span<int32_t>> tables) {
  for (size_t s = 0; s < states_.size(); ++s) {
    std::ranges::copy(states_[s].table, tables[s].begin());
    states_[s].table = tables[s];
  }
  for (int32_t p = 0; p < static_cast<int32_t>(pages()); ++p) {
    if (page(p).owners == 0 && page(p).known) forget(p);
  }
}

bool PagePool::book(int64_t sequence, int64_t positions) {
  int64_t all = pages_of(positions);
  for (size_t i = 0; i < states_.size(); ++i) {
    if (static_cast<int64_t>(i) != sequence) all += std::max(states_[i].used, states_[i].booked);
  }
  if (positions > 0 && all > pages()) return false;
  state(sequence).booked = pages_of(positions);
  return true;
}

bool PagePool::over_committed() const {
  int64_t all = 0;
  for (const State& s : states_) all += std::max(s.used, s.booked);
  return all > pages();
}

}  // namespace loom::core
