#include "grammar/matcher.hpp"

namespace loom::core::grammar {
namespace {

constexpr size_t kMaxMaskBytes = size_t{64} << 20;
// The work limit for the allowed tokens of one position: about half a second. Other requests wait
// meanwhile.
constexpr size_t kMaxVisits = size_t{8} << 20;

Error too_ambiguous() {
  return make_error(Code::out_of_range,
                    "the grammar is too ambiguous: too many ways to read the text so far");
}

}  // namespace

Matcher::Matcher(std::shared_ptr<const Program> program,
                 std::shared_ptr<const Vocabulary> vocabulary)
    : vocabulary_(std::move(vocabulary)),
      automaton_(std::move(program), vocabulary_->longest()),
      now_(automaton_.start()),
      path_(size_t{vocabulary_->longest()} + 1) {}

// Walks the token tree along the states; skips the subtree of a byte that cannot follow.
void Matcher::fill(int32_t state, std::vector<uint64_t>& bits) {
  const std::vector<Vocabulary::Node>& nodes = vocabulary_->nodes();
  const std::vector<int32_t>& ids = vocabulary_->ids();
  path_[0] = state;
  for (size_t i = 0; i < nodes.size() && !automaton_.overflowed();) {
    const Vocabulary::Node& node = nodes[i];
    const int32_t to = automaton_.next(path_[size_t{node.depth} - 1], node.byte);
    if (to == Automaton::kDead) {
      i = node.end;
      continue;
    }
    path_[node.depth] = to;
    for (uint32_t t = node.first_token; t < node.last_token; ++t) {
      const auto id = static_cast<size_t>(ids[t]);
      bits[id / 64] |= uint64_t{1} << (id % 64);
    }
    ++i;
  }
}

Result<std::span<const uint64_t>> Matcher::allowed() {
  const size_t bytes = vocabulary_->words() * 8;
  automaton_.limit_visits(kMaxVisits);
  if (automaton_.crowded() || masks_.size() * bytes > kMaxMaskBytes) {
    masks_.clear();
    automaton_.forget(now_);
  }
  const int32_t state = automaton_.abstract(now_);
  const auto [found, is_new] = masks_.try_emplace(state);
  if (is_new) {
    found->second.assign(vocabulary_->words(), 0);
    fill(state, found->second);
  }
  if (automaton_.overflowed()) return too_ambiguous();
  return std::span<const uint64_t>(found->second);
}

bool Matcher::accept_bytes(std::string_view bytes) {
  automaton_.limit_visits(kMaxVisits);
  ConfigSet at = now_;
  for (const char c : bytes) {
    at = automaton_.step(at, static_cast<uint8_t>(c));
    if (at.configs.empty() && !at.ends) return false;
  }
  now_ = std::move(at);
  return !automaton_.overflowed();
}

}  // namespace loom::core::grammar
