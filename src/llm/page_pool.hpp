// PagePool: which pages of keys and values the sequences of a batch have. A page is 16 positions of
// all layers. Sequences that begin with the same tokens have their pages in common: a page that is
// full is found again by the page before it and its tokens, for as long as nobody needs its memory;
// of those that no sequence has, the one longest out of use goes first. It moves no numbers: the
// caller copies what copies() of a call say.
//
// Invariant: a page that can be found, or that two sequences have, is not written to.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "loom/generation.hpp"

namespace loom::core {

class PagePool {
 public:
  static constexpr int64_t kPage = 16;
  struct Copy {
    int32_t from, to;
  };

  // tables: of each sequence, as long as it may have pages; kept up to date.
  PagePool(int64_t pages, std::vector<std::span<int32_t>> tables);

  // Before positions [from, to) of a sequence are written: it gets pages of its own for them.
  // copies: pages whose positions before `from` are to be copied, in this order. False: there are
  // not so many, and the sequence has what it had up to `from`.
  bool write(int64_t sequence, int64_t from, int64_t to, std::vector<Copy>& copies);
  // What a sequence has read so far, after it was written: full pages can be found from here on.
  void read(int64_t sequence, std::span<const TokenId> tokens);
  // Gives back what lies behind `position`.
  void rewind(int64_t sequence, int64_t position);
  // Likewise, and the page that is not full as well. If it goes on, it goes on in a copy.
  void publish(int64_t sequence, std::span<const TokenId> tokens);
  // Gives back everything; `tokens`, which it had read, can be found while the memory lasts.
  void release(int64_t sequence, std::span<const TokenId> tokens);
  // Gives back everything, and what no other sequence has cannot be found any more.
  void erase(int64_t sequence);
  // What a sequence without pages reads from now on is found by sequences with the same salt alone.
  // 0 until then.
  void set_salt(int64_t sequence, uint64_t salt) { state(sequence).salt = salt; }
  uint64_t salt(int64_t sequence) const { return states_[static_cast<size_t>(sequence)].salt; }
  // A sequence without pages begins with those that hold the longest prefix of `tokens`. Returns
  // how many tokens that is; positions behind are written to copies.
  int64_t adopt(int64_t sequence, std::span<const TokenId> tokens);

  // A sequence without pages begins with all of those of another.
  void share(int64_t from, int64_t to);

  // The same tables in other memory. What no sequence has cannot be found any more: the memory of
  // the pages is another, and only what sequences have read is written to it again.
  void move_to(std::vector<std::span<int32_t>> tables);

  // Books `positions` for a sequence, of which it may have none yet; write() up to there cannot
  // fail then. False: with what the others have or booked there are not so many. 0: no more booked.
  bool book(int64_t sequence, int64_t positions);
  // Sequences have pages that others booked, so that a write() may fail.
  bool overbooked() const;

  int64_t pages() const { return static_cast<int64_t>(pages_.size()); }
  std::span<const int32_t> table(int64_t sequence) const {
    return states_[static_cast<size_t>(sequence)].table;
  }
  int64_t used(int64_t sequence) const { return states_[static_cast<size_t>(sequence)].used; }
  int64_t found() const { return found_; }      // positions that adopt() found, of all calls
  int64_t evicted() const { return evicted_; }  // pages that could be found and were taken

 private:
  using Tokens = std::array<TokenId, kPage>;
  static constexpr int32_t kRoot = -1, kOrphan = -2;
  struct Page {
    int32_t owners = 0;              // sequences that have it
    int32_t before = -1, next = -1;  // in the order of use, where owners is 0
    // Where it can be found: its place in the list of those that follow a page (kRoot: none), and
    // the first of those that follow it. kOrphan: the page before is gone, and nobody finds it.
    bool known = false;
    int32_t parent = kOrphan, child = -1, sibling = -1, older = -1;
    uint64_t key = 0;   // of the tokens
    uint64_t salt = 0;  // of the sequence that read them
    int32_t count = 0;  // of them
    Tokens tokens{};
  };
  struct State {
    std::span<int32_t> table;
    int64_t used = 0;
    int64_t booked = 0;
    int64_t full = 0;  // pages that it begins with, and that can be found as a prefix
    uint64_t salt = 0;
  };
  Page& page(int32_t p) { return pages_[static_cast<size_t>(p)]; }
  State& state(int64_t s) { return states_[static_cast<size_t>(s)]; }
  static int32_t parent_of(const State& s) {
    return s.full == 0 ? kRoot : s.table[static_cast<size_t>(s.full) - 1];
  }
  int32_t& first_after(int32_t parent) {
    return parent == kRoot ? root_child_ : page(parent).child;
  }
  void link(int32_t p, bool first);
  void unlink(int32_t p);
  void own(int32_t p);
  void disown(int32_t p);
  void own_instead(int32_t& mine, int32_t other);
  int32_t take();
  void forget(int32_t p);
  void index(int32_t p, const State& s, std::span<const TokenId> tokens);
  int32_t find(const State& s, std::span<const TokenId> tokens);
  int32_t find_part(const State& s, std::span<const TokenId> tokens, int64_t& count);

  std::vector<Page> pages_;
  std::vector<State> states_;
  int32_t first_ = -1, last_ = -1;  // without owners: taken from the front
  int32_t root_child_ = -1;
  int64_t found_ = 0, evicted_ = 0;
};

}  // namespace loom::core
