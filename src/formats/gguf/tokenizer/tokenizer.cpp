// A SentencePiece vocabulary has no merges: any two neighbours whose join is a piece may merge, the
// highest score first, the leftmost of equals. So every split of a piece into two pieces is a
// merge, and its rank follows from the piece's score; equal scores share a rank.
#include "formats/gguf/tokenizer/tokenizer.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/text.hpp"
#include "families/family.hpp"
#include "formats/gguf/tokenizer/pre.hpp"
#include "io/bytes/utf8.hpp"

namespace loom::core {
namespace {

// Replaces each byte that is not UTF-8 by U+FFFD.
std::string valid_text(std::string_view bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size();) {
    const size_t length = utf8_length(bytes.substr(i));
    out += length == 0 ? "\xEF\xBF\xBD" : bytes.substr(i, length);
    i += std::max<size_t>(length, 1);
  }
  return out;
}

class TokenizerReader {
 public:
  explicit TokenizerReader(const Gguf& gguf) : gguf_(gguf) {}

  Result<std::optional<TokenizerSpec>> read() {
    std::optional<TokenizerSpec> none;
    LOOM_ASSIGN(const std::string_view model, gguf_.string("tokenizer.ggml.model"));
    if (model == "none" || model == "no_vocab") return none;
    const bool pieces = model == "llama";
    if (!pieces && model != "gpt2") {
      Error error = gguf_.key_error(
          "tokenizer.ggml.model",
          cat("is '", printable(model), "', which is not supported; gpt2 and llama are"));
      error.code = Code::unsupported;
      return error;
    }
    LOOM_TRY(read_tokens());
    if (gguf_.has(kGgufTokenizerJson)) return read_json();
    LOOM_TRY(read_strips(pieces));
    spec_.where = gguf_.where() + " (tokenizer)";
    add_tokens();
    LOOM_TRY(pieces ? add_pieces() : add_bpe());
    LOOM_TRY(add_template(pieces));
    return std::optional<TokenizerSpec>(std::move(spec_));
  }

 private:
  Status read_tokens() {
    LOOM_ASSIGN(const GgufValue* tokens, gguf_.array("tokenizer.ggml.tokens", GgufType::string));
    tokens_ = tokens->strings;
    if (tokens_.empty() || tokens_.size() > kMaxGgufTokens) {
      return gguf_.key_error("tokenizer.ggml.tokens",
                             cat("has ", tokens_.size(), " tokens; 1 to ", kMaxGgufTokens));
    }
    types_.assign(tokens_.size(), GgufToken::normal);
    constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
    if (!gguf_.has(kTypes)) return {};
    LOOM_ASSIGN(const GgufValue* types, gguf_.array(kTypes, GgufType::i32));
    if (types->count() != tokens_.size()) return count_error(kTypes, types->count());
    for (size_t i = 0; i < types_.size(); ++i) {
      const double type = types->number(i);
      if (type < 1 || type > 6) {
        return gguf_.key_error(
            kTypes, cat("gives token ", i, " the type ", static_cast<int64_t>(type), "; 1 to 6"));
      }
      types_[i] = static_cast<GgufToken>(static_cast<int32_t>(type));
    }
    return {};
  }

  // The source's own file has more than tokens and merges. Both must name the same tokens.
  Result<std::optional<TokenizerSpec>> read_json() const {
    LOOM_ASSIGN(const std::string_view json, gguf_.string(kGgufTokenizerJson));
    LOOM_ASSIGN(TokenizerSpec spec,
                parse_tokenizer_json(json, cat(gguf_.where(), ": ", kGgufTokenizerJson)));
    const auto check = [&](int64_t id, const std::string& token) -> Status {
      const auto at = static_cast<size_t>(id);
      if (id >= 0 && at < tokens_.size() && tokens_[at] == token) return {};
      return gguf_.key_error(kGgufTokenizerJson, cat("gives token ", id, " as '", printable(token),
                                                     "', and tokenizer.ggml.tokens does not"));
    };
    for (const auto& [token, id] : spec.model.vocabulary) LOOM_TRY(check(id, token));
    for (const text::AddedTokenSpec& token : spec.added) LOOM_TRY(check(token.id, token.content));
    return std::optional<TokenizerSpec>(std::move(spec));
  }

  // Which tokens absorb the white space next to them. GGUF has no standard key for that: Loom's
  // files have lists of ids; for others it follows from the family, as in llama.cpp.
  Status read_strips(bool pieces) {
    lstrip_.assign(tokens_.size(), false);
    rstrip_.assign(tokens_.size(), false);
    LOOM_TRY(read_strip_ids(kGgufLstrip, lstrip_));
    LOOM_TRY(read_strip_ids(kGgufRstrip, rstrip_));
    if (gguf_.has(kGgufLstrip) || gguf_.has(kGgufRstrip)) return {};
    if (const GgufRules* rules = pieces ? stripping_rules() : nullptr) {
      for (size_t i = 0; i < tokens_.size(); ++i) {
        const bool plain =
            std::ranges::find(rules->strip_except, tokens_[i]) != rules->strip_except.end();
        rstrip_[i] = (is_added(i) || tokens_[i] == "</s>") && !plain;
      }
    }
    if (optional_text("tokenizer.ggml.pre").substr(0, 8) == "jina-v2-") {
      for (size_t i = 0; i < tokens_.size(); ++i) lstrip_[i] = tokens_[i] == "<mask>";
    }
    return {};
  }

  Status read_strip_ids(std::string_view key, std::vector<bool>& strips) const {
    if (!gguf_.has(key)) return {};
    LOOM_ASSIGN(const GgufValue* ids, gguf_.array(key, GgufType::i32));
    for (uint64_t i = 0; i < ids->count(); ++i) {
      const double id = ids->number(i);
      if (id < 0 || id >= static_cast<double>(tokens_.size()))
        return gguf_.key_error(
            key, cat("names token ", static_cast<int64_t>(id), ", beyond the tokens"));
      strips[static_cast<size_t>(id)] = true;
    }
    return {};
  }

  std::string_view optional_text(std::string_view key) const {
    const Result<std::string_view> text = gguf_.string(key);
    return text.ok() ? *text : std::string_view();
  }

  // Those of the family whose special tokens absorb white space: by the architecture of the file,
  // or by its name if it has another family's architecture. Null if there is none.
  const GgufRules* stripping_rules() const {
    const std::string name = to_lower_ascii(optional_text("general.name"));
    const std::string_view architecture = optional_text("general.architecture");
    for (const DecoderFamily* family : decoder_families()) {
      const GgufRules& rules = family->gguf;
      const bool named = std::ranges::any_of(rules.strip_marks, [&](std::string_view mark) {
        return name.find(mark) != std::string::npos;
      });
      if (named || (!rules.strip_marks.empty() && rules.name == architecture)) return &rules;
    }
    return nullptr;
  }

  bool is_special(size_t i) const {
    return types_[i] == GgufToken::control || types_[i] == GgufToken::unknown;
  }
  // Whether it is matched literally in the text.
  bool is_added(size_t i) const {
    return is_special(i) || types_[i] == GgufToken::user_defined || lstrip_[i] || rstrip_[i];
  }

  Error count_error(std::string_view key, uint64_t count) const {
    return gguf_.key_error(key,
                           cat("has ", count, " elements, there are ", tokens_.size(), " tokens"));
  }

  // The vocabulary, and the tokens that are matched literally in the text.
  void add_tokens() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const auto id = static_cast<int32_t>(i);
      std::string token = valid_text(tokens_[i]);
      if (is_added(i)) {
        spec_.added.push_back({.id = id,
                               .content = token,
                               .lstrip = lstrip_[i],
                               .rstrip = rstrip_[i],
                               .special = is_special(i)});
      }
      spec_.model.vocabulary.emplace_back(std::move(token), id);
    }
  }

  Status add_bpe() {
    constexpr std::string_view kPre = "tokenizer.ggml.pre", kMerges = "tokenizer.ggml.merges";
    std::string_view name = "default";
    if (gguf_.has(kPre)) {
      LOOM_ASSIGN(name, gguf_.string(kPre));
    }
    pre_ = find_gguf_pre(name);
    if (pre_ == nullptr) {
      Error error = gguf_.key_error(
          kPre, cat("is '", printable(name), "', a pre-tokenizer that is not known here"));
      error.code = Code::unsupported;
      return error;
    }
    LOOM_ASSIGN(const GgufValue* lines, gguf_.array(kMerges, GgufType::string));
    for (size_t i = 0; i < lines->strings.size(); ++i) {
      const std::string_view line = lines->strings[i];
      const size_t space = line.find(' ', 1);
      if (space == std::string_view::npos || space + 1 == line.size())
        return gguf_.key_error(kMerges, cat("has no two tokens in merge ", i));
      spec_.model.merges.emplace_back(valid_text(line.substr(0, space)),
                                      valid_text(line.substr(space + 1)));
    }
    add_gguf_pre(*pre_, spec_);
    spec_.decoder.push_back({.kind = text::DecoderKind::byte_level});
    spec_.model.ignore_merges = pre_->ignore_merges;
    return {};
  }

  // Pieces have U+2581 for spaces, and one is added before a text.
  Status add_pieces() {
    LOOM_ASSIGN(const bool prefix, flag("tokenizer.ggml.add_space_prefix", true));
    const std::string space(kSpace);
    using text::DecoderKind;
    using text::NormalizerKind;
    if (prefix) spec_.normalizer.push_back({.kind = NormalizerKind::prepend, .content = space});
    spec_.normalizer.push_back(
        {.kind = NormalizerKind::replace, .find = {" ", false, {}}, .content = space});
    spec_.decoder.push_back(
        {.kind = DecoderKind::replace, .find = {space, false, {}}, .content = " "});
    spec_.decoder.push_back({.kind = DecoderKind::byte_fallback});
    spec_.decoder.push_back({.kind = DecoderKind::fuse});
    if (prefix)
      spec_.decoder.push_back({.kind = DecoderKind::strip, .character = U' ', .start = 1});
    for (size_t i = 0; i < tokens_.size() && !spec_.model.unk_token; ++i) {
      if (types_[i] != GgufToken::unknown) continue;
      spec_.model.unk_token = valid_text(tokens_[i]);
      spec_.model.fuse_unk = true;
    }
    spec_.model.byte_fallback = true;
    return add_merges();
  }

  // Ranks of scores, the highest first; equal scores share one.
  Status read_ranks(std::vector<int32_t>& ranks) const {
    constexpr std::string_view kScores = "tokenizer.ggml.scores";
    LOOM_ASSIGN(const GgufValue* scores, gguf_.array(kScores, GgufType::f32));
    if (scores->count() != tokens_.size()) return count_error(kScores, scores->count());
    std::vector<double> sorted;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const double score = scores->number(i);
      if (!(score - score == 0))
        return gguf_.key_error(kScores, cat("gives token ", i, " a score that is not a number"));
      sorted.push_back(-score);
    }
    std::vector<double> by_token = sorted;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    for (const double score : by_token)
      ranks.push_back(static_cast<int32_t>(std::lower_bound(sorted.begin(), sorted.end(), score) -
                                           sorted.begin()));
    return {};
  }

  // User-defined tokens are matched before pieces.
  bool merges_into(size_t token) const {
    return types_[token] == GgufToken::normal || types_[token] == GgufToken::unused;
  }

  Status add_merges() {
    std::vector<int32_t> token_ranks;
    LOOM_TRY(read_ranks(token_ranks));
    std::unordered_map<std::string_view, size_t> known;
    for (size_t i = 0; i < tokens_.size(); ++i)
      if (merges_into(i)) known.emplace(tokens_[i], i);
    size_t bytes = 0;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const std::string_view whole = tokens_[i];
      if (!merges_into(i)) continue;
      if (whole.size() > kMaxGgufPiece) {
        return gguf_.key_error(
            "tokenizer.ggml.tokens",
            cat("has a piece of ", whole.size(), " bytes; the limit is ", kMaxGgufPiece));
      }
      for (size_t cut = 1; cut < whole.size(); ++cut) {
        if (!known.contains(whole.substr(0, cut)) || !known.contains(whole.substr(cut))) continue;
        bytes += whole.size();
        if (bytes > kMaxGgufMergeBytes)
          return gguf_.key_error("tokenizer.ggml.tokens", "has pieces with too many merges");
        spec_.model.merges.emplace_back(valid_text(whole.substr(0, cut)),
                                        valid_text(whole.substr(cut)));
        spec_.model.ranks.push_back(token_ranks[i]);
      }
    }
    return {};
  }

  Result<bool> flag(std::string_view key, bool otherwise) const {
    if (!gguf_.has(key)) return otherwise;
    return gguf_.boolean(key);
  }

  // Adds the tokens around a text.
  Status add_template(bool pieces) {
    LOOM_ASSIGN(const bool first, flag("tokenizer.ggml.add_bos_token",
                                       pieces || (pre_ != nullptr && pre_->adds_bos)));
    LOOM_ASSIGN(const bool last, flag("tokenizer.ggml.add_eos_token", false));
    std::vector<text::TemplatePart> parts;
    const auto add = [&](const char* key) -> Status {
      if (!gguf_.has(key)) return {};
      LOOM_ASSIGN(const uint32_t id, gguf_.u32(key));
      if (id >= tokens_.size()) return gguf_.key_error(key, cat("is ", id, ", beyond the tokens"));
      const std::string name = valid_text(tokens_[id]);
      parts.push_back({false, name, {{static_cast<int32_t>(id), name, spec_.where}}});
      return {};
    };
    if (first) LOOM_TRY(add("tokenizer.ggml.bos_token_id"));
    parts.push_back({true, "A", {}});
    if (last) LOOM_TRY(add("tokenizer.ggml.eos_token_id"));
    if (parts.size() > 1) spec_.post_processor = std::move(parts);
    return {};
  }

  const Gguf& gguf_;
  std::vector<std::string_view> tokens_;
  std::vector<GgufToken> types_;
  std::vector<bool> lstrip_, rstrip_;  // by token
  TokenizerSpec spec_;
  const GgufPre* pre_ = nullptr;
};

}  // namespace

Result<std::optional<TokenizerSpec>> read_gguf_tokenizer(const Gguf& gguf) {
  if (!gguf.has("tokenizer.ggml.model")) return std::optional<TokenizerSpec>();
  return TokenizerReader(gguf).read();
}

}  // namespace loom::core
