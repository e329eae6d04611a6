// PagePool: assigns pages of keys and values to the sequences of a batch. A page is 16 positions of
// all layers. Sequences with a common prefix share its pages. A full page is found by the page
// before it and its tokens, while its memory is not needed. The least recently used page without an
// owner is evicted first. The pool moves no data: the caller copies what copies() of a call say.
//
// Invariant: a page that can be found, or that two sequences share, is never written.
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

  // tables: the page table of each sequence, sized for its maximum; kept up to date.
  PagePool(int64_t pages, std::vector<std::span<int32_t>> tables);

  // Call it before positions [from, to) of a sequence are written: gives it exclusive pages for
  // them. copies: pages whose positions before `from` must be copied, in this order. false: there
  // are not enough pages, and the sequence keeps its pages up to `from`.
  bool write(int64_t sequence, int64_t from, int64_t to, std::vector<Copy>& copies);
  // Records the tokens that a sequence has read, after they were written: its full pages can now be
  // found.
  void read(int64_t sequence, std::span<const TokenId> tokens);
  // Releases the positions from `position` on.
  void rewind(int64_t sequence, int64_t position);
  // Like read(), and also for the last partial page. A sequence that continues writes to a copy.
  void publish(int64_t sequence, std::span<const TokenId> tokens);
  // Releases everything; `tokens`, which it had read, can be found while memory lasts.
  void release(int64_t sequence, std::span<const TokenId> tokens);
  // Releases everything; pages without another owner can no longer be found.
  void erase(int64_t sequence);
  // Sets the salt of a sequence without pages: only sequences with the same salt find what it
  // reads. The default is 0.
  void set_salt(int64_t sequence, uint64_t salt) { state(sequence).salt = salt; }
  uint64_t salt(int64_t sequence) const { return states_[static_cast<size_t>(sequence)].salt; }
  // Gives a sequence without pages those with the longest prefix of `tokens`. Returns the number of
  // tokens; later positions are written to copies.
  int64_t adopt(int64_t sequence, std::span<const TokenId> tokens);

  // Gives a sequence without pages all pages of another.
  void share(int64_t from, int64_t to);

  // Moves the tables to other memory. Pages without an owner can no longer be found: the memory of
  // pages is new, and only what sequences have read is written to it again.
  void move_to(std::vector<std::span<int32_t>> tables);

  // Reserves `positions` for a sequence, which may have none of them yet; write() up to there then
  // succeeds. Returns false if the others have or reserved too much. 0 cancels the reservation.
  bool book(int64_t sequence, int64_t positions);
  // Whether sequences use pages that others reserved, so that a write() may fail.
  bool over_committed() const;

  int64_t pages() const { return static_cast<int64_t>(pages_.size()); }
  std::span<const int32_t> table(int64_t sequence) const {
    return states_[static_cast<size_t>(sequence)].table;
  }
  int64_t used(int64_t sequence) const { return states_[static_cast<size_t>(sequence)].used; }
  int64_t found() const { return found_; }      // positions that adopt() found, over all calls
  int64_t evicted() const { return evicted_; }  // reusable pages that were evicted

 private:
  using Tokens = std::array<TokenId, kPage>;
  static constexpr int32_t kRoot = -1, kOrphan = -2;
  struct Page {
    int32_t owners = 0;              // sequences that use it
    int32_t before = -1, next = -1;  // links in order of use, if owners is 0
    // Index for lookup: its links in the list of pages after `parent` (kRoot: none), and the first
    // page after it. kOrphan: its parent is gone, and it cannot be found.
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
    int64_t full = 0;  // leading pages that can be found as a prefix
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
