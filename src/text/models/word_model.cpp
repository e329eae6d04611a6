#include "text/models/word_model.hpp"

#include "base/text.hpp"
#include "text/tokenizer_spec.hpp"

namespace loom::core::text {

Status WordModel::add_vocabulary(const std::vector<std::pair<std::string, int32_t>>& tokens,
                                 const std::string& where) {
  const auto fail = [&](std::string_view token, const std::string& what) {
    return bad_file(cat("token '", printable(token), "'", what), where + ".vocab");
  };
  vocabulary_.reserve(tokens.size());
  index_.reserve(tokens.size());
  for (const auto& [token, id] : tokens) {
    if (id < 0 || id > kMaxTokenId)
      return fail(token, cat(": expected a token id from 0 to ", kMaxTokenId));
    if (!index_.emplace(id, static_cast<uint32_t>(vocabulary_.size())).second)
      return fail(token, cat(": id ", id, " is taken already"));
    if (!vocabulary_.insert(token, id)) return fail(token, " appears twice");
  }
  return {};
}

std::optional<std::string_view> WordModel::token(int32_t id) const {
  const auto found = index_.find(id);
  if (found == index_.end()) return std::nullopt;
  return vocabulary_.key(found->second);
}

}  // namespace loom::core::text
