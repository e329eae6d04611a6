// Encoding a word: its characters become symbols in a linked list, and a queue of adjacent pairs
// ordered by (rank, position) merges them. An entry of the queue is stale when the pair at its
// position no longer merges into the same token; that test, not the rank, is what HF `tokenizers`
// asks, and it decides ids when two merges make the same token.
#include "text/models/bpe.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::text {
namespace {

// Orders a std heap so that its top has the lowest rank, then the lowest position.
bool later(const WordModel::Scratch::Candidate& a, const WordModel::Scratch::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
}

void append_symbol(WordModel::Scratch& scratch, int32_t id) {
  const auto index = static_cast<int32_t>(scratch.symbols.size());
  if (index > 0) scratch.symbols.back().next = index;
  scratch.symbols.push_back({id, index - 1, -1, true});
}

}  // namespace

Status Bpe::add_merge(std::string_view left, std::string_view right, int32_t rank) {
  const auto fail = [&](std::string_view token, std::string_view why) {
    return bad_file(cat("merge ", rank, " ('", printable(left, 20), "', '", printable(right, 20),
                        "'): '", printable(token), "' ", why),
                    where_ + ".merges");
  };
  const int32_t a = vocabulary_.find(left), b = vocabulary_.find(right);
  if (a < 0) return fail(left, "is not in the vocabulary");
  if (b < 0) return fail(right, "is not in the vocabulary");
  if (right.size() < prefix_.size())
    return fail(right, "is shorter than continuing_subword_prefix");
  const std::string whole = cat(left, right.substr(prefix_.size()));
  const int32_t merged = vocabulary_.find(whole);
  if (merged < 0) return fail(whole, "is not in the vocabulary");
  merges_.set(a, b, {rank, merged});
  return {};
}

Result<std::unique_ptr<WordModel>> Bpe::make(const BpeSpec& spec, const std::string& where) {
  auto made = std::make_unique<Bpe>();
  Bpe& bpe = *made;
  bpe.where_ = where;
  bpe.has_unk_ = spec.unk_token.has_value();
  bpe.unk_token_ = spec.unk_token.value_or("");
  bpe.prefix_ = spec.prefix;
  bpe.suffix_ = spec.suffix;
  bpe.fuse_unk_ = spec.fuse_unk;
  bpe.byte_fallback_ = spec.byte_fallback;
  bpe.ignore_merges_ = spec.ignore_merges;
  LOOM_TRY(bpe.add_vocabulary(spec.vocabulary, where));
  if (!spec.ranks.empty() && spec.ranks.size() != spec.merges.size())
    return bad_file("expected one rank for each merge", where + ".merge_ranks");
  bpe.merges_.reserve(spec.merges.size());
  for (size_t i = 0; i < spec.merges.size(); ++i) {
    const auto& [left, right] = spec.merges[i];
    LOOM_TRY(
        bpe.add_merge(left, right, spec.ranks.empty() ? static_cast<int32_t>(i) : spec.ranks[i]));
  }
  bpe.index_characters();
  return std::unique_ptr<WordModel>(std::move(made));
}

void Bpe::index_characters() {
  for (size_t c = 0; c < small_characters_.size(); ++c) {
    small_characters_[c] = vocabulary_.find(utf8(static_cast<char32_t>(c)));
  }
  static constexpr char kHex[] = "0123456789ABCDEF";
  for (size_t byte = 0; byte < 256; ++byte) {
    byte_tokens_[byte] = vocabulary_.find(cat("<0x", kHex[byte >> 4], kHex[byte & 15], ">"));
  }
}

int32_t Bpe::find_character(std::string_view character) const {
  if (character.size() <= 2) return small_characters_[code_point_at(character, 0).value];
  return vocabulary_.find(character);
}

// The tokens of single bytes, when the vocabulary has them all.
bool Bpe::add_bytes(std::string_view bytes, Scratch& scratch) const {
  const auto token = [&](char c) { return byte_tokens_[static_cast<unsigned char>(c)]; };
  if (!std::all_of(bytes.begin(), bytes.end(), [&](char c) { return token(c) >= 0; })) return false;
  for (const char c : bytes) append_symbol(scratch, token(c));
  return true;
}

Status Bpe::add_symbols(std::string_view word, Budget& budget, Scratch& scratch) const {
  int32_t pending_unk = -1;
  for (size_t at = 0; at < word.size();) {
    if (budget.stopped(1)) return Budget::stop_error();
    const size_t length = code_point_at(word, at).length;
    std::string_view character = word.substr(at, length);
    const bool is_first = at == 0, is_last = at + length == word.size();
    at += length;
    const bool decorated = (!is_first && !prefix_.empty()) || (is_last && !suffix_.empty());
    if (decorated) {
      scratch.key = cat(is_first ? std::string_view() : prefix_, character,
                        is_last ? std::string_view(suffix_) : std::string_view());
      character = scratch.key;
    }
    const int32_t id = decorated ? vocabulary_.find(character) : find_character(character);
    if (id >= 0) {
      if (pending_unk >= 0) append_symbol(scratch, pending_unk);
      pending_unk = -1;
      append_symbol(scratch, id);
      continue;
    }
    if (byte_fallback_ && add_bytes(character, scratch)) continue;
    if (!has_unk_) continue;
    if (pending_unk >= 0 && fuse_unk_) continue;
    if (pending_unk >= 0) append_symbol(scratch, pending_unk);
    pending_unk = vocabulary_.find(unk_token_);
    if (pending_unk < 0) {
      return bad_file(cat("the text needs unk_token '", printable(unk_token_),
                          "', which is not in the vocabulary"),
                      where_);
    }
  }
  if (pending_unk >= 0) append_symbol(scratch, pending_unk);
  return {};
}

// Queues the pair of the symbols `left` and `right` when it merges.
void Bpe::offer(Scratch& scratch, int32_t left, int32_t right) const {
  const auto& symbols = scratch.symbols;
  const PairTable::Merge* merge =
      merges_.find(symbols[static_cast<size_t>(left)].id, symbols[static_cast<size_t>(right)].id);
  if (merge == nullptr) return;
  scratch.queue.push_back({merge->rank, left, merge->id});
}

Status Bpe::merge_symbols(Budget& budget, Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& queue = scratch.queue;
  queue.clear();
  for (size_t i = 1; i < symbols.size(); ++i) {
    if (budget.stopped(1)) return Budget::stop_error();
    offer(scratch, static_cast<int32_t>(i - 1), static_cast<int32_t>(i));
  }
  std::make_heap(queue.begin(), queue.end(), later);
  const auto push = [&](int32_t left, int32_t right) {
    const size_t before = queue.size();
    offer(scratch, left, right);
    if (queue.size() > before) std::push_heap(queue.begin(), queue.end(), later);
  };
  while (!queue.empty()) {
    if (budget.stopped(1)) return Budget::stop_error();
    std::pop_heap(queue.begin(), queue.end(), later);
    const Scratch::Candidate top = queue.back();
    queue.pop_back();
    auto& left = symbols[static_cast<size_t>(top.position)];
    if (!left.alive || left.next < 0) continue;
    auto& right = symbols[static_cast<size_t>(left.next)];
    const PairTable::Merge* merge = merges_.find(left.id, right.id);
    if (merge == nullptr || merge->id != top.id) continue;
    left.id = top.id;
    left.next = right.next;
    right.alive = false;
    if (right.next >= 0) symbols[static_cast<size_t>(right.next)].previous = top.position;
    if (left.previous >= 0) push(left.previous, top.position);
    if (left.next >= 0) push(top.position, left.next);
  }
  return {};
}

Status Bpe::encode(std::string_view word, Budget& budget, Scratch& scratch,
                   std::vector<int32_t>& ids) const {
  if (word.empty()) return {};
  if (word.size() > INT32_MAX) return invalid("a word of more than 2 GiB");
  if (ignore_merges_) {
    const int32_t id = vocabulary_.find(word);
    if (id >= 0) {
      ids.push_back(id);
      return {};
    }
  }
  scratch.symbols.clear();
  LOOM_TRY(add_symbols(word, budget, scratch));
  LOOM_TRY(merge_symbols(budget, scratch));
  for (const Scratch::Symbol& symbol : scratch.symbols) {
    if (symbol.alive) ids.push_back(symbol.id);
  }
  return {};
}

}  // namespace loom::core::text
