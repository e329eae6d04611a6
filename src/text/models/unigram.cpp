// Ids are those of HF `tokenizers`: scores in double precision; of equal paths the one found first,
// where shorter tokens come before longer ones.
#include "text/models/unigram.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::text {
namespace {

constexpr double kUnknownPenalty = 10.0;  // below the least score of a token

}  // namespace

Result<std::unique_ptr<WordModel>> Unigram::make(const UnigramSpec& spec,
                                                 const std::string& where) {
  auto model = std::make_unique<Unigram>();
  model->where_ = where;
  model->byte_fallback_ = spec.byte_fallback;
  std::vector<std::pair<std::string, int32_t>> tokens;
  tokens.reserve(spec.vocabulary.size());
  double least = 0;
  for (const auto& [token, score] : spec.vocabulary) {
    const auto id = static_cast<int32_t>(tokens.size());
    if (id > kMaxTokenId) return bad_file("has too many tokens", where + ".vocab");
    least = tokens.empty() ? score : std::min(least, score);
    tokens.emplace_back(token, id);
    model->scores_.push_back(score);
    model->longest_token_ = std::max(model->longest_token_, token.size());
  }
  LOOM_TRY(model->add_vocabulary(tokens, where));
  model->unknown_score_ = least - kUnknownPenalty;
  if (spec.unk_id) {
    if (*spec.unk_id < 0 || static_cast<size_t>(*spec.unk_id) >= tokens.size())
      return bad_file(cat("no token has id ", *spec.unk_id), where + ".unk_id");
    model->unknown_ = *spec.unk_id;
  }
  static constexpr char kHex[] = "0123456789ABCDEF";
  for (size_t byte = 0; byte < 256; ++byte) {
    model->byte_tokens_[byte] =
        model->vocabulary_.find(cat("<0x", kHex[byte >> 4], kHex[byte & 15], ">"));
  }
  return std::unique_ptr<WordModel>(std::move(model));
}

// Offers every token that starts at `at` as the end of a path to the position after it.
void Unigram::extend(std::string_view word, size_t at, Scratch& scratch) const {
  const double before = scratch.best_at[at].score;
  const auto offer = [&](size_t end, int32_t id, double score) {
    Scratch::Best& best = scratch.best_at[end];
    if (best.from >= 0 && !(before + score > best.score)) return;
    best = {before + score, static_cast<int32_t>(at), id};
  };
  const size_t first = code_point_at(word, at).length;
  const size_t last = std::min(word.size(), at + longest_token_);
  bool single = false;
  for (size_t end = at + first; end <= last;) {
    const int32_t id = vocabulary_.find(word.substr(at, end - at));
    if (id >= 0) {
      offer(end, id, scores_[static_cast<size_t>(id)]);
      single = single || end == at + first;
    }
    if (end == word.size()) break;
    end += code_point_at(word, end).length;
  }
  if (!single) offer(at + first, unknown_, unknown_score_);
}

// Appends the id of a piece that is a token, or the ids of an unknown one.
Status Unigram::append(std::string_view piece, std::vector<int32_t>& ids) const {
  const int32_t id = vocabulary_.find(piece);
  if (id >= 0) {
    ids.push_back(id);
    return {};
  }
  const auto token = [&](char c) { return byte_tokens_[static_cast<unsigned char>(c)]; };
  if (byte_fallback_ &&
      std::all_of(piece.begin(), piece.end(), [&](char c) { return token(c) >= 0; })) {
    for (const char c : piece) ids.push_back(token(c));
    return {};
  }
  if (unknown_ < 0)
    return bad_file("the text needs an unknown token, but the model has no unk_id", where_);
  ids.push_back(unknown_);
  return {};
}

Status Unigram::encode(std::string_view word, Budget& budget, Scratch& scratch,
                       std::vector<int32_t>& ids) const {
  if (word.empty()) return {};
  if (word.size() >= INT32_MAX) return invalid("a word of more than 2 GiB");
  scratch.best_at.assign(word.size() + 1, {});
  for (size_t at = 0; at < word.size(); at += code_point_at(word, at).length) {
    if (budget.stopped(std::min(longest_token_, word.size() - at))) return Budget::stop_error();
    extend(word, at, scratch);
  }
  // Back along the best path; runs of unknown characters are one piece.
  std::vector<std::pair<size_t, size_t>>& pieces = scratch.pieces;
  pieces.clear();
  bool fusing = false;
  for (size_t end = word.size(); end > 0;) {
    if (budget.stopped(1)) return Budget::stop_error();
    const Scratch::Best& best = scratch.best_at[end];
    const auto from = static_cast<size_t>(best.from);
    const bool unknown = unknown_ >= 0 && best.id == unknown_;
    if (unknown && fusing) {
      pieces.back().first = from;
    } else {
      pieces.emplace_back(from, end);
    }
    fusing = unknown;
    end = from;
  }
  for (size_t i = pieces.size(); i-- > 0;) {
    if (budget.stopped(1)) return Budget::stop_error();
    LOOM_TRY(append(word.substr(pieces[i].first, pieces[i].second - pieces[i].first), ids));
  }
  return {};
}

}  // namespace loom::core::text
