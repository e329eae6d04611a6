// Reads BERT's vocab.txt, of folders older than tokenizer.json, as a TokenizerSpec.
#include <algorithm>

#include "base/text.hpp"
#include "text/normalizers/unicode.hpp"
#include "text/tokenizer_spec.hpp"

namespace loom::core {
namespace text {
namespace {

// One token per line; the last line may have no end. Windows ends of lines are ends too.
Result<std::vector<std::pair<std::string, int32_t>>> read_lines(std::string_view file,
                                                                const std::string& where) {
  if (!is_valid_utf8(file)) return bad_file("is not a vocabulary: it is not UTF-8", where);
  std::vector<std::pair<std::string, int32_t>> tokens;
  while (!file.empty()) {
    const size_t end = std::min(file.find('\n'), file.size());
    std::string_view line = file.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (tokens.size() > kMaxTokenId) return bad_file("has too many lines", where);
    tokens.emplace_back(line, static_cast<int32_t>(tokens.size()));
    file.remove_prefix(std::min(end + 1, file.size()));
  }
  if (tokens.empty()) return bad_file("is not a vocabulary: it is empty", where);
  return tokens;
}

int32_t find_token(const WordPieceSpec& model, const std::string& token) {
  const auto found = std::find_if(model.vocabulary.begin(), model.vocabulary.end(),
                                  [&](const auto& entry) { return entry.first == token; });
  return found == model.vocabulary.end() ? -1 : found->second;
}

}  // namespace
}  // namespace text

Result<TokenizerSpec> bert_tokenizer_spec(std::string_view vocabulary,
                                          const BertTextOptions& options,
                                          const std::string& where) {
  TokenizerSpec spec;
  spec.where = where;
  text::WordPieceSpec& model = spec.word_piece.emplace();
  LOOM_ASSIGN(model.vocabulary, text::read_lines(vocabulary, where));
  model.unk_token = options.unk;
  for (const std::string* token :
       {&options.pad, &options.unk, &options.cls, &options.sep, &options.mask}) {
    const int32_t id = text::find_token(model, *token);
    if (id < 0 && (token == &options.pad || token == &options.mask)) continue;
    if (id < 0) return bad_file(cat("has no token '", printable(*token), "'"), where);
    spec.added.push_back({.id = id, .content = *token, .special = true});
  }
  spec.normalizer.push_back({.kind = text::NormalizerKind::bert,
                             .clean_text = true,
                             .spaces_ideographs = options.spaces_ideographs,
                             .lowercases = options.lowercases,
                             .strips_accents = options.strips_accents});
  spec.pre_tokenizer.push_back({.kind = text::PreTokenizerKind::bert});
  spec.decoder.push_back(
      {.kind = text::DecoderKind::word_piece, .content = model.prefix, .cleanup = true});
  const auto mark = [&](const std::string& token, int32_t type) {
    return text::TemplatePart{false, token, {{text::find_token(model, token), token, where}}, type};
  };
  spec.post_processor = {mark(options.cls, 0), {true, "A", {}}, mark(options.sep, 0)};
  spec.pair_processor = *spec.post_processor;
  spec.pair_processor.push_back({true, "B", {}, 1});
  spec.pair_processor.push_back(mark(options.sep, 1));
  return spec;
}

}  // namespace loom::core
