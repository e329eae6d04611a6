// Reads the member "model". Bpe::make() checks that merges name existing tokens; see also
// word_piece.hpp.
#include "base/text.hpp"
#include "text/tokenizer_json.hpp"

namespace loom::core::text {
namespace {

Status read_options(const Node& model, BpeSpec& spec) {
  if (model.has_value("dropout")) {
    LOOM_ASSIGN(const Node dropout, model.child("dropout"));
    const Result<double> value = dropout.value().as_double(dropout.where());
    if (!dropout.value().is_number() || !value.ok()) return dropout.error("expected a number");
    if (*value != 0) return model.not_supported("dropout", "a value other than 0");
  }
  if (model.has_value("unk_token")) {
    LOOM_ASSIGN(spec.unk_token, model.string("unk_token"));
  }
  LOOM_ASSIGN(spec.prefix, model.string_or("continuing_subword_prefix", ""));
  LOOM_ASSIGN(spec.suffix, model.string_or("end_of_word_suffix", ""));
  LOOM_ASSIGN(spec.fuse_unk, model.boolean_or("fuse_unk", false));
  LOOM_ASSIGN(spec.byte_fallback, model.boolean_or("byte_fallback", false));
  LOOM_ASSIGN(spec.ignore_merges, model.boolean_or("ignore_merges", false));
  return {};
}

using Vocabulary = std::vector<std::pair<std::string, int32_t>>;

Status read_vocabulary(const Node& node, Vocabulary& vocabulary) {
  if (!node.value().is_object()) return node.error("expected an object");
  vocabulary.reserve(node.value().members().size());
  for (const auto& [token, value] : node.value().members()) {
    const Result<int64_t> id = value.as_int({});
    if (!value.is_int() || !id.ok() || *id < 0 || *id > kMaxTokenId) {
      return node.error(
          cat("token '", printable(token), "': expected a token id from 0 to ", kMaxTokenId));
    }
    vocabulary.emplace_back(token, static_cast<int32_t>(*id));
  }
  return {};
}

// "merge_ranks", which is not in files of Hugging Face: see BpeSpec.
Status read_ranks(const Node& model, size_t merges, BpeSpec& spec) {
  if (!model.has("merge_ranks")) return {};
  LOOM_ASSIGN(const Node node, model.child("merge_ranks"));
  const auto& list = node.value().elements();
  if (list.size() != merges) return node.error("expected one rank for each merge");
  for (const JsonValue& value : list) {
    const Result<int64_t> rank = value.as_int({});
    if (!rank.ok() || *rank < 0 || *rank > INT32_MAX) return node.error("expected ranks");
    spec.ranks.push_back(static_cast<int32_t>(*rank));
  }
  return {};
}

Status read_merges(const Node& model, const Node& node, BpeSpec& spec) {
  if (!node.value().is_array()) return node.error("expected an array");
  const auto& list = node.value().elements();
  spec.merges.reserve(list.size());
  LOOM_TRY(read_ranks(model, list.size(), spec));
  const bool as_strings = !list.empty() && list[0].is_string();
  for (const JsonValue& entry : list) {
    const size_t index = spec.merges.size();
    const auto rank = [&] {
      return spec.ranks.empty() ? static_cast<int32_t>(index) : spec.ranks[index];
    };
    if (as_strings) {
      const std::string& line = entry.text();
      if (entry.is_string() && line.rfind("#version", 0) == 0) continue;
      const size_t space = line.find(' ');
      const bool two = space != std::string::npos && line.find(' ', space + 1) == std::string::npos;
      if (!entry.is_string() || !two) {
        return node.error(cat("merge ", rank(), ": expected a string \"left right\""));
      }
      spec.merges.emplace_back(line.substr(0, space), line.substr(space + 1));
    } else {
      const auto& pair = entry.elements();
      if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
        return node.error(cat("merge ", rank(), ": expected an array of two strings"));
      }
      spec.merges.emplace_back(pair[0].text(), pair[1].text());
    }
  }
  if (!spec.ranks.empty()) spec.ranks.resize(spec.merges.size());  // skips a "#version" line
  return {};
}

Result<BpeSpec> read_bpe(const Node& model) {
  LOOM_TRY(model.expect_keys({"type", "dropout", "unk_token", "continuing_subword_prefix",
                              "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges",
                              "vocab", "merges", "merge_ranks"}));
  BpeSpec spec;
  LOOM_TRY(read_options(model, spec));
  LOOM_ASSIGN(const Node vocab, model.child("vocab"));
  LOOM_TRY(read_vocabulary(vocab, spec.vocabulary));
  LOOM_ASSIGN(const Node merges, model.child("merges"));
  LOOM_TRY(read_merges(model, merges, spec));
  return spec;
}

Result<WordPieceSpec> read_word_piece(const Node& model) {
  LOOM_TRY(model.expect_keys(
      {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"}));
  WordPieceSpec spec;
  LOOM_ASSIGN(spec.unk_token, model.string_or("unk_token", spec.unk_token));
  LOOM_ASSIGN(spec.prefix, model.string_or("continuing_subword_prefix", spec.prefix));
  if (model.has_value("max_input_chars_per_word")) {
    LOOM_ASSIGN(const int64_t most, model.count("max_input_chars_per_word"));
    spec.max_characters = static_cast<size_t>(most);
  }
  LOOM_ASSIGN(const Node vocab, model.child("vocab"));
  LOOM_TRY(read_vocabulary(vocab, spec.vocabulary));
  return spec;
}

// [["token", score], ...]
Result<UnigramSpec> read_unigram(const Node& model) {
  LOOM_TRY(model.expect_keys({"type", "unk_id", "vocab", "byte_fallback"}));
  UnigramSpec spec;
  LOOM_ASSIGN(const Node vocab, model.child("vocab"));
  if (!vocab.value().is_array()) return vocab.error("expected an array");
  spec.vocabulary.reserve(vocab.value().elements().size());
  for (const JsonValue& entry : vocab.value().elements()) {
    const auto& pair = entry.elements();
    const bool fits = pair.size() == 2 && pair[0].is_string() && pair[1].is_number();
    const Result<double> score = fits ? pair[1].as_double({}) : Result<double>(0.0);
    if (!fits || !score.ok()) {
      return vocab.error(
          cat("token ", spec.vocabulary.size(), ": expected an array of a string and a score"));
    }
    spec.vocabulary.emplace_back(pair[0].text(), *score);
  }
  if (model.has_value("unk_id")) {
    LOOM_ASSIGN(spec.unk_id, model.token_id("unk_id"));
  }
  LOOM_ASSIGN(spec.byte_fallback, model.boolean_or("byte_fallback", false));
  return spec;
}

}  // namespace

Status read_model(const Node& model, TokenizerSpec& spec) {
  if (!model.value().is_object()) return model.error("expected an object");
  // Files of the first generation have no type; a list of merges makes them BPE.
  std::string type = "BPE";
  if (model.has("type") || !model.has("merges")) {
    LOOM_ASSIGN(type, model.string("type"));
  }
  if (type == "BPE") {
    LOOM_ASSIGN(spec.model, read_bpe(model));
  } else if (type == "WordPiece") {
    LOOM_ASSIGN(spec.word_piece, read_word_piece(model));
  } else if (type == "Unigram") {
    LOOM_ASSIGN(spec.unigram, read_unigram(model));
  } else {
    return model.not_supported("type", type);
  }
  return {};
}

}  // namespace loom::core::text
