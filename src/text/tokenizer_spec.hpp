// TokenizerSpec: everything that defines a tokenizer, as plain data. Readers of files fill it
// (tokenizer.json, vocab.txt: below; GGUF: formats/gguf), Tokenizer::make() runs it, writers write
// it. The steps are those of HF `tokenizers` (https://huggingface.co/docs/tokenizers/components).
// It is unchecked: ids may be absent or duplicate, patterns may not compile; make() reports that.
// Invariant: every text is valid UTF-8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core {
namespace text {

inline constexpr int32_t kMaxTokenId = (1 << 24) - 1;

// `where`, here and below, names the part in messages: "tokenizer.json: normalizer.pattern.Regex".
struct PatternSpec {
  std::string text;
  bool regex = false;  // false: a literal
  std::string where;
  bool operator==(const PatternSpec&) const = default;
};

// bert: BERT's normalization: removes controls, makes white space spaces, adds spaces around
// ideographs, removes accents, lowercases. charsmap: see charsmap.hpp.
enum class NormalizerKind : uint8_t { form, lowercase, replace, prepend, strip, bert, charsmap };
struct NormalizerStep {
  NormalizerKind kind = NormalizerKind::form;
  NormalForm form = NormalForm::nfc;
  PatternSpec find;                  // replace
  std::string content;               // replace: the new text; prepend; charsmap: in base64
  bool left = false, right = false;  // strip
  // bert
  bool clean_text = false, spaces_ideographs = false, lowercases = false;
  std::optional<bool> strips_accents;  // unset: if it lowercases
  std::string where;
  bool operator==(const NormalizerStep&) const = default;
};

// split: at matches of `find`; words: removes everything except words and runs of symbols; bert:
// removes white space and makes each punctuation mark a word.
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
  std::string replacement;                           // metaspace: replacement of a space
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
  size_t start = 0, stop = 0;  // strip: how many to remove, at the ends
  bool keeps_first = false;    // metaspace with prepend_scheme "never"
  bool cleanup = false;        // word_piece
  std::string where;
  bool operator==(const DecoderStep&) const = default;
};

// Byte-pair encoding. The rank of a merge is its index, or its entry in `ranks`, where several may
// be equal (merges derived from the scores of SentencePiece).
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
  std::string prefix = "##";    // continuing_subword_prefix
  size_t max_characters = 100;  // of a word: max_input_chars_per_word
  bool operator==(const WordPieceSpec&) const = default;
};

// Unigram: see unigram.hpp. Ids are indices in the list.
struct UnigramSpec {
  std::vector<std::pair<std::string, double>> vocabulary;  // and scores
  std::optional<int32_t> unk_id;
  bool byte_fallback = false;
  bool operator==(const UnigramSpec&) const = default;
};

// A string that becomes one id anywhere in a text.
struct AddedTokenSpec {
  int32_t id = 0;
  std::string content;
  bool single_word = false, lstrip = false, rstrip = false, normalized = false, special = false;
  bool operator==(const AddedTokenSpec&) const = default;
};

// A part of a template for a text, or for a pair of texts: one of them, or ids around it.
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
  text::BpeSpec model;  // unless another kind is set:
  std::optional<text::WordPieceSpec> word_piece;
  std::optional<text::UnigramSpec> unigram;
  std::vector<text::AddedTokenSpec> added;
  std::vector<text::NormalizerStep> normalizer;
  std::vector<text::PreTokenizerStep> pre_tokenizer;
  std::vector<text::DecoderStep> decoder;
  std::optional<std::vector<text::TemplatePart>> post_processor;  // unset: the text alone
  std::vector<text::TemplatePart> pair_processor;                 // the same for two texts
  std::string where;                                              // the file, for messages
  bool operator==(const TokenizerSpec&) const = default;
};

// Parses the text of a tokenizer.json strictly: an unknown key is an Error that names its path.
// Errors: bad_file, unsupported (an unsupported kind of step or model).
Result<TokenizerSpec> parse_tokenizer_json(std::string_view json, const std::string& where);

// BERT's tokenizer: WordPiece over the tokens of a vocab.txt, one per line.
struct BertTextOptions {
  bool lowercases = true;
  bool spaces_ideographs = true;
  std::optional<bool> strips_accents;  // unset: if it lowercases
  std::string unk = "[UNK]", cls = "[CLS]", sep = "[SEP]", pad = "[PAD]", mask = "[MASK]";
};
// Errors: bad_file (an invalid file: empty, not UTF-8, a duplicate token, no cls, sep or unk).
Result<TokenizerSpec> bert_tokenizer_spec(std::string_view vocabulary,
                                          const BertTextOptions& options, const std::string& where);

// A tokenizer.json that reads back as `spec`, except every `where`.
std::string tokenizer_json(const TokenizerSpec& spec);

}  // namespace loom::core
