// Matcher: constrains one text to a grammar during generation, token by token. Allowed tokens are a
// bit set. The bit set of a state is cached, so most tokens cost a look-up.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "grammar/automaton.hpp"
#include "grammar/vocabulary.hpp"

namespace loom::core::grammar {

class Matcher {
 public:
  Matcher(std::shared_ptr<const Program> program, std::shared_ptr<const Vocabulary> vocabulary);

  // Tokens that may follow: bit id % 64 of word id / 64. Valid until the next call. Errors:
  // out_of_range (the grammar is too ambiguous to follow).
  Result<std::span<const uint64_t>> allowed();
  // False: the token cannot follow, and nothing changed.
  bool accept(int32_t token) { return accept_bytes(vocabulary_->bytes(token)); }
  bool accept_bytes(std::string_view bytes);
  bool may_end() const { return now_.ends; }
  // The text is complete: it may end, and nothing may follow.
  bool must_end() const { return now_.ends && now_.configs.empty(); }

  // The current position; restore() returns to it. A position is valid only for this matcher, until
  // the next call of allowed().
  const ConfigSet& position() const { return now_; }
  void restore(ConfigSet position) { now_ = std::move(position); }

  size_t masks() const { return masks_.size(); }

 private:
  void fill(int32_t state, std::vector<uint64_t>& bits);

  std::shared_ptr<const Vocabulary> vocabulary_;
  Automaton automaton_;
  ConfigSet now_;
  std::unordered_map<int32_t, std::vector<uint64_t>> masks_;  // by abstract state
  std::vector<int32_t> path_;                                 // states along a token
};

}  // namespace loom::core::grammar
