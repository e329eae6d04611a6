// TokenizerSpec: everything that makes a tokenizer, as plain data. Readers of files fill it
// (tokenizer.json, vocab.txt: below; GGUF: formats/gguf), Tokenizer::make() runs it, writers write
// it. The steps are those of HF `tokenizers` (https://huggingface.co/docs/tokenizers/components).
// Nothing in it is checked: ids may be absent or taken twice, patterns may not compile; make() says
// so. Invariant: every text is valid UTF-8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "text/unicode.hpp"

namespace loom::core {
namespace text {

inline constexpr int32_t kMaxTokenId = (1 << 24) - 1;

// `where`, here and below, names the piece in messages: "tokenizer.json: normalizer.pattern.Regex".
struct PatternSpec {
  std::string text;
  bool regex = false;  // else a literal
  std::string where;
  bool operator==(const PatternSpec&) const = default;
};

// bert: what BERT does to a text: controls removed and white space made spaces, spaces around
// ideographs, accents removed, small letters. charsmap: see charsmap.hpp.
enum class NormalizerKind : uint8_t { form, lowercase, replace, prepend, strip, bert, charsmap };
struct NormalizerStep {
  NormalizerKind kind = NormalizerKind::form;
  NormalForm form = NormalForm::nfc;
  PatternSpec find;                  // replace
  std::string content;               // replace: the new text; prepend; charsmap: in base64
  bool left = false, right = false;  // strip
  // bert
  bool clean_text = false, spaces_ideographs = false, lowercases = false;
  std::optional<bool> strips_accents;  // none: where it lowercases
  std::string where;
  bool operator==(const NormalizerStep&) const = default;
};

// split: at matches of `find`; words: what is neither a word nor a run of symbols is removed; bert:
// white space is removed and each punctuation mark is a word.
enum class PreTokenizerKind : uint8_t {
  split,
  byte_level,
  digits,
  punctuation,
  white_space,
  words,
  metaspace,
  bert
};
enum class SplitBehavior : uint8_t {
  removed,
  isolated,
  merged_with_previous,
  merged_with_next,
  contiguous
};
enum class PrependScheme : uint8_t { always, first, never };
struct PreTokenizerStep {
  PreTokenizerKind kind = PreTokenizerKind::split;
  SplitBehavior behavior = SplitBehavior::isolated;  // split, digits, punctuation
  PatternSpec find;                                  // split
  bool invert = false;                               // split
  bool prefix_space = false;                         // byte_level
  bool splits = true;                                // byte_level: use_regex; metaspace: split
  PrependScheme prepend = PrependScheme::always;     // metaspace
  std::string replacement;                           // metaspace: what stands for a space
  std::string where;
  bool operator==(const PreTokenizerStep&) const = default;
};

enum class DecoderKind : uint8_t {
  join_spaces,
  byte_level,
  byte_fallback,
  metaspace,
  replace,
  fuse,
  strip,
  word_piece,
  word_suffix
};
struct DecoderStep {
  DecoderKind kind = DecoderKind::fuse;
  PatternSpec find;            // replace
  std::string content;         // replace: the new text; word_piece: prefix; word_suffix: suffix
  char32_t character = 0;      // metaspace, strip
  size_t start = 0, stop = 0;  // strip: how many of it, at the ends
  bool keeps_first = false;    // metaspace with prepend_scheme "never"
  bool cleanup = false;        // word_piece
  std::string where;
  bool operator==(const DecoderStep&) const = default;
};

// Byte-pair encoding. Merges are ranked by their place, or by `ranks`, one for each, where several
// share one (merges that were made of the scores of SentencePiece).
struct BpeSpec {
  std::vector<std::pair<std::string, int32_t>> vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;
  std::vector<int32_t> ranks;
  std::optional<std::string> unk_token;
  std::string prefix, suffix;  // continuing_subword_prefix, end_of_word_suffix
  bool fuse_unk = false, byte_fallback = false, ignore_merges = false;
  bool operator==(const BpeSpec&) const = default;
};

// WordPiece: see word_piece.hpp.
struct WordPieceSpec {
  std::vector<std::pair<std::string, int32_t>> vocabulary;
  std::string unk_token = "[UNK]";
  std::string prefix = "##";     // continuing_subword_prefix
  size_t most_characters = 100;  // of a word: max_input_chars_per_word
  bool operator==(const WordPieceSpec&) const = default;
};

// Unigram: see unigram.hpp. Ids are places in the list.
struct UnigramSpec {
  std::vector<std::pair<std::string, double>> vocabulary;  // and scores
  std::optional<int32_t> unk_id;
  bool byte_fallback = false;
  bool operator==(const UnigramSpec&) const = default;
};

// A string that becomes one id wherever it stands in a text.
struct AddedTokenSpec {
  int32_t id = 0;
  std::string content;
  bool single_word = false, lstrip = false, rstrip = false, normalized = false, special = false;
  bool operator==(const AddedTokenSpec&) const = default;
};

// A piece of what is made of a text, or of a pair of texts: one of them, or ids beside it.
struct TemplateId {
  int32_t id = 0;
  std::string token, where;
  bool operator==(const TemplateId&) const = default;
};
struct TemplatePart {
  bool is_text = false;
  std::string name;  // of the ids; of a text: "A", the first, or "B", the second
  std::vector<TemplateId> ids;
  int32_t type = 0;  // of its ids: token_type_ids
  bool operator==(const TemplatePart&) const = default;
};

}  // namespace text

struct TokenizerSpec {
  text::BpeSpec model;  // unless there is one of another kind:
  std::optional<text::WordPieceSpec> word_piece;
  std::optional<text::UnigramSpec> unigram;
  std::vector<text::AddedTokenSpec> added;
  std::vector<text::NormalizerStep> normalizer;
  std::vector<text::PreTokenizerStep> pre_tokenizer;
  std::vector<text::DecoderStep> decoder;
  std::optional<std::vector<text::TemplatePart>> post_processor;  // none: the text alone
  std::vector<text::TemplatePart> pair_processor;                 // the same for two texts
  std::string where;                                              // the file, for messages
  bool operator==(const TokenizerSpec&) const = default;
};

// Of the text of a tokenizer.json, strictly: a key that nobody knows is an Error that names its
// path. Errors: bad_file, unsupported (a kind of step or of model that does not run here).
Result<TokenizerSpec> parse_tokenizer_json(std::string_view json, const std::string& where);

// BERT's tokenizer: WordPiece over the tokens of a vocab.txt, one per line.
struct BertTextOptions {
  bool lowercases = true;
  bool spaces_ideographs = true;
  std::optional<bool> strips_accents;  // none: where it lowercases
  std::string unk = "[UNK]", cls = "[CLS]", sep = "[SEP]", pad = "[PAD]", mask = "[MASK]";
};
// Errors: bad_file (no such file can be: empty, not UTF-8, a token that stands twice, no cls, sep
// or unk).
Result<TokenizerSpec> bert_tokenizer_spec(std::string_view vocabulary,
                                          const BertTextOptions& options, const std::string& where);

// A tokenizer.json that reads back as `spec`, but for every `where`.
std::string tokenizer_json(const TokenizerSpec& spec);

}  // namespace loom::core
