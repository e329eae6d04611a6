// Search and cutting follow `AddedVocabulary` of HF `tokenizers`, including what happens when the
// white space that one token strips belongs to the next one.
#include "text/splitting/added_tokens.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::text {
namespace {

constexpr size_t kMaxContentBytes = 1024;  // bounds the work of a search at every position

size_t strip_before(std::string_view text, size_t at, size_t first) {
  while (at > first) {
    const CodePoint c = code_point_before(text, at);
    if (!is_white_space(c.value)) break;
    at -= c.length;
  }
  return at;
}

size_t strip_after(std::string_view text, size_t at) {
  while (at < text.size()) {
    const CodePoint c = code_point_at(text, at);
    if (!is_white_space(c.value)) break;
    at += c.length;
  }
  return at;
}

// Whether no word continues on either side of the hit.
bool stands_alone(std::string_view text, const TokenTrie::Hit& hit) {
  return (hit.begin == 0 || !is_word(code_point_before(text, hit.begin).value)) &&
         (hit.end == text.size() || !is_word(code_point_at(text, hit.end).value));
}

}  // namespace

int32_t TokenTrie::step(int32_t node, char byte) const {
  int32_t child = nodes_[static_cast<size_t>(node)].child;
  while (child >= 0 && nodes_[static_cast<size_t>(child)].byte != byte) {
    child = nodes_[static_cast<size_t>(child)].sibling;
  }
  return child;
}

bool TokenTrie::insert(std::string_view text, size_t token) {
  if (nodes_.empty()) roots_.fill(-1);
  const auto make = [&](char byte, int32_t sibling) {
    nodes_.push_back({-1, sibling, -1, byte});
    return static_cast<int32_t>(nodes_.size() - 1);
  };
  int32_t& root = roots_[static_cast<unsigned char>(text[0])];
  if (root < 0) root = make(text[0], -1);
  int32_t node = root;
  for (const char byte : text.substr(1)) {
    int32_t next = step(node, byte);
    if (next < 0) {
      next = make(byte, nodes_[static_cast<size_t>(node)].child);
      nodes_[static_cast<size_t>(node)].child = next;
    }
    node = next;
  }
  int32_t& slot = nodes_[static_cast<size_t>(node)].token;
  if (slot >= 0) return false;
  slot = static_cast<int32_t>(token);
  return true;
}

std::optional<TokenTrie::Hit> TokenTrie::find(std::string_view text, size_t from) const {
  if (nodes_.empty()) return std::nullopt;
  for (size_t begin = from; begin < text.size(); ++begin) {
    int32_t node = roots_[static_cast<unsigned char>(text[begin])];
    std::optional<Hit> best;
    for (size_t end = begin + 1; node >= 0; ++end) {
      const int32_t token = nodes_[static_cast<size_t>(node)].token;
      if (token >= 0) best = {begin, end, static_cast<size_t>(token)};
      if (end >= text.size()) break;
      node = step(node, text[end]);
    }
    if (best) return best;
  }
  return std::nullopt;
}

Status AddedTokens::add(AddedToken token, const WordModel& model, const Normalizer& normalizer,
                        const std::string& where) {
  const auto content_error = [&](std::string message) {
    return bad_file(std::move(message), where + ".content");
  };
  if (token.id < 0 || token.id > kMaxTokenId)
    return bad_file(cat("expected a token id from 0 to ", kMaxTokenId), where);
  if (token.content.empty()) return {};  // HF leaves these out too
  if (token.content.size() > kMaxContentBytes) {
    return content_error(cat("longer than ", kMaxContentBytes, " bytes"));
  }
  const int32_t in_model = model.vocabulary().find(token.content);
  if (in_model >= 0 && in_model != token.id) {
    return bad_file(cat("'", printable(token.content), "' has id ", token.id, " here and ",
                        in_model, " in the vocabulary"),
                    where);
  }
  const std::optional<std::string_view> owner = model.token(token.id);
  if (owner && *owner != token.content) {
    return bad_file(cat("'", printable(token.content), "' has id ", token.id,
                        ", which the vocabulary gives to '", printable(*owner), "'"),
                    where);
  }
  token.spelling = token.content;
  if (token.normalized) {
    NormalText text{token.content, 0, false};
    Budget budget = Budget::for_text(token.content.size());
    LOOM_TRY(normalizer.apply(text, budget));
    token.spelling = std::move(text.text);
    if (token.spelling.empty()) return content_error("nothing is left of it when normalized");
    if (token.spelling.size() > kMaxContentBytes) {
      return content_error(cat("longer than ", kMaxContentBytes, " bytes when normalized"));
    }
  }
  if (!by_content_.insert(token.content, static_cast<int32_t>(tokens_.size()))) {
    return bad_file(cat("'", printable(token.content), "' appears twice"), where);
  }
  if (!by_id_.emplace(token.id, tokens_.size()).second) {
    return bad_file(cat("id ", token.id, " is taken already"), where);
  }
  TokenTrie& trie = token.normalized ? normalized_ : plain_;
  if (!trie.insert(token.spelling, tokens_.size())) {
    return bad_file(cat("another token is '", printable(token.spelling), "' when normalized"),
                    where);
  }
  tokens_.push_back(std::move(token));
  return {};
}

Result<AddedTokens> AddedTokens::make(const std::vector<AddedTokenSpec>& list,
                                      const WordModel& model, const Normalizer& normalizer,
                                      const std::string& where) {
  AddedTokens added;
  for (size_t i = 0; i < list.size(); ++i) {
    LOOM_TRY(added.add({list[i], {}}, model, normalizer, cat(where, "[", i, "]")));
  }
  return added;
}

const AddedToken* AddedTokens::find(int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const int32_t index = by_content_.find(content);
  return index < 0 ? nullptr : &tokens_[static_cast<size_t>(index)];
}

Status AddedTokens::split(std::string_view text, bool normalized, bool skip_special, Budget& budget,
                          std::vector<TextPart>& out) const {
  const TokenTrie& trie = normalized ? normalized_ : plain_;
  size_t covered = 0;  // may step back when a token strips into the next one, as it does in HF
  size_t from = 0;
  while (const std::optional<TokenTrie::Hit> hit = trie.find(text, from)) {
    if (budget.stopped(hit->end - from)) return Budget::stop_error();
    from = hit->end;
    const AddedToken& token = tokens_[hit->token];
    if (skip_special && token.special) continue;
    if (token.single_word && !stands_alone(text, *hit)) continue;
    size_t begin = hit->begin, end = hit->end;
    if (token.lstrip) begin = std::max(strip_before(text, begin, covered), covered);
    if (token.rstrip) end = strip_after(text, end);
    if (budget.stopped(end - begin)) return Budget::stop_error();  // the same white space again
    if (covered < begin) out.push_back({covered, begin, nullptr});
    if (begin < end) out.push_back({begin, end, &token});
    covered = end;
  }
  if (covered < text.size()) out.push_back({covered, text.size(), nullptr});
  return {};
}

}  // namespace loom::core::text
