// Reads the member "model". Every id and every token that a merge names is checked here, so that
// encoding needs no checks.
#include "base/text.hpp"
#include "text/bpe.hpp"
#include "text/unicode.hpp"

namespace loom::core::text {

Status Bpe::read_options(const Node& model) {
  if (model.has_value("dropout")) {
    LOOM_ASSIGN(const Node dropout, model.child("dropout"));
    const Result<double> value = dropout.value().as_double(dropout.where());
    if (!dropout.value().is_number() || !value.ok()) return dropout.error("expected a number");
    if (*value != 0) return model.not_supported("dropout", "a value other than 0");
  }
  has_unk_ = model.has_value("unk_token");
  LOOM_ASSIGN(unk_token_, model.string_or("unk_token", ""));
  LOOM_ASSIGN(prefix_, model.string_or("continuing_subword_prefix", ""));
  LOOM_ASSIGN(suffix_, model.string_or("end_of_word_suffix", ""));
  LOOM_ASSIGN(fuse_unk_, model.boolean_or("fuse_unk", false));
  LOOM_ASSIGN(byte_fallback_, model.boolean_or("byte_fallback", false));
  LOOM_ASSIGN(ignore_merges_, model.boolean_or("ignore_merges", false));
  where_ = model.where();
  return {};
}

Status Bpe::read_vocabulary(const Node& node) {
  if (!node.value().is_object()) return node.error("expected an object");
  const auto& members = node.value().members();
  vocabulary_.reserve(members.size());
  index_.reserve(members.size());
  for (const auto& [token, value] : members) {
    const Result<int64_t> id = value.as_int({});
    if (!value.is_int() || !id.ok() || *id < 0 || *id > kMaxTokenId) {
      return node.error(
          cat("token '", printable(token), "': expected a token id from 0 to ", kMaxTokenId));
    }
    const auto small = static_cast<int32_t>(*id);
    if (!index_.emplace(small, static_cast<uint32_t>(vocabulary_.size())).second) {
      return node.error(cat("token '", printable(token), "': id ", small, " is taken already"));
    }
    if (!vocabulary_.insert(token, small)) {
      return node.error(cat("token '", printable(token), "' appears twice"));
    }
  }
  return {};
}

Status Bpe::add_merge(std::string_view left, std::string_view right, int32_t rank,
                      const Node& node) {
  const auto fail = [&](std::string_view token, std::string_view why) {
    return node.error(cat("merge ", rank, " ('", printable(left, 20), "', '", printable(right, 20),
                          "'): '", printable(token), "' ", why));
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

// "merge_ranks", which no file of Hugging Face has: merges made from SentencePiece scores share a
// rank where the scores are equal. Without it the place in the list is the rank.
Status Bpe::read_ranks(const Node& model, size_t merges, std::vector<int32_t>& ranks) const {
  if (!model.has("merge_ranks")) return {};
  LOOM_ASSIGN(const Node node, model.child("merge_ranks"));
  const auto& list = node.value().elements();
  if (list.size() != merges) return node.error("expected one rank for each merge");
  for (const JsonValue& value : list) {
    const Result<int64_t> rank = value.as_int({});
    if (!rank.ok() || *rank < 0 || *rank > INT32_MAX) return node.error("expected ranks");
    ranks.push_back(static_cast<int32_t>(*rank));
  }
  return {};
}

Status Bpe::read_merges(const Node& model, const Node& node) {
  if (!node.value().is_array()) return node.error("expected an array");
  const auto& list = node.value().elements();
  merges_.reserve(list.size());
  std::vector<int32_t> ranks;
  LOOM_TRY(read_ranks(model, list.size(), ranks));
  const bool as_strings = !list.empty() && list[0].is_string();
  int32_t index = 0;
  for (const JsonValue& entry : list) {
    const int32_t rank = ranks.empty() ? index : ranks[static_cast<size_t>(index)];
    if (as_strings) {
      const std::string& line = entry.text();
      if (entry.is_string() && line.rfind("#version", 0) == 0) continue;
      const size_t space = line.find(' ');
      const bool two = space != std::string::npos && line.find(' ', space + 1) == std::string::npos;
      if (!entry.is_string() || !two) {
        return node.error(cat("merge ", rank, ": expected a string \"left right\""));
      }
      const std::string_view view = line;
      LOOM_TRY(add_merge(view.substr(0, space), view.substr(space + 1), rank, node));
    } else {
      const auto& pair = entry.elements();
      if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
        return node.error(cat("merge ", rank, ": expected an array of two strings"));
      }
      LOOM_TRY(add_merge(pair[0].text(), pair[1].text(), rank, node));
    }
    ++index;
  }
  return {};
}

Result<Bpe> Bpe::parse(const Node& model) {
  if (!model.value().is_object()) return model.error("expected an object");
  // Files of the first generation have no type; a list of merges makes them BPE.
  if (model.has("type") || !model.has("merges")) {
    LOOM_ASSIGN(const std::string type, model.string("type"));
    if (type != "BPE") return model.not_supported("type", type);
  }
  LOOM_TRY(model.expect_keys({"type", "dropout", "unk_token", "continuing_subword_prefix",
                              "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges",
                              "vocab", "merges", "merge_ranks"}));
  Bpe bpe;
  LOOM_TRY(bpe.read_options(model));
  LOOM_ASSIGN(const Node vocab, model.child("vocab"));
  LOOM_TRY(bpe.read_vocabulary(vocab));
  LOOM_ASSIGN(const Node merges, model.child("merges"));
  LOOM_TRY(bpe.read_merges(model, merges));
  bpe.index_characters();
  return bpe;
}

}  // namespace loom::core::text
