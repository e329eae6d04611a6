#include "text/models/word_piece.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::text {

Result<std::unique_ptr<WordModel>> WordPiece::make(const WordPieceSpec& spec,
                                                   const std::string& where) {
  auto model = std::make_unique<WordPiece>();
  model->where_ = where;
  model->unk_token_ = spec.unk_token;
  model->prefix_ = spec.prefix;
  model->max_characters_ = spec.max_characters;
  LOOM_TRY(model->add_vocabulary(spec.vocabulary, where));
  for (const auto& [token, id] : spec.vocabulary)
    model->longest_token_ = std::max(model->longest_token_, token.size());
  return std::unique_ptr<WordModel>(std::move(model));
}

int32_t WordPiece::longest(std::string_view rest, bool first, Scratch& scratch,
                           size_t& taken) const {
  // No token is longer than the longest, so that a long word costs no more than its length.
  size_t end = std::min(rest.size(), longest_token_);
  while (end < rest.size() && (static_cast<unsigned char>(rest[end]) & 0xC0) == 0x80) --end;
  scratch.key = cat(first ? std::string_view() : prefix_, rest.substr(0, end));
  const size_t front = scratch.key.size() - end;
  while (end > 0) {
    const int32_t id = vocabulary_.find(std::string_view(scratch.key).substr(0, front + end));
    taken = end;
    if (id >= 0) return id;
    end -= code_point_before(rest, end).length;
  }
  return -1;
}

Status WordPiece::encode(std::string_view word, Budget& budget, Scratch& scratch,
                         std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  bool fits = count_code_points(word) <= max_characters_;
  for (size_t at = 0; fits && at < word.size();) {
    if (budget.stopped(std::min(longest_token_, word.size() - at))) return Budget::stop_error();
    size_t taken = 0;
    const int32_t id = longest(word.substr(at), at == 0, scratch, taken);
    fits = id >= 0;
    if (fits) ids.push_back(id);
    at += taken;
  }
  if (fits) return {};
  ids.resize(before);
  const int32_t unknown = vocabulary_.find(unk_token_);
  if (unknown < 0) {
    return bad_file(cat("the text needs unk_token '", printable(unk_token_),
                        "', which is not in the vocabulary"),
                    where_);
  }
  ids.push_back(unknown);
  return {};
}

}  // namespace loom::core::text
