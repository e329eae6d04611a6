// A SentencePiece vocabulary has no merges: any two neighbours whose join is a piece may merge, the
// highest score first, the leftmost of equals. So every way to cut a piece into two pieces is a
// merge, and its rank is that of the piece's score; equal scores share a rank ("merge_ranks", a
// member of our own in the model).
#include "llm/gguf_tokenizer.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/text.hpp"
#include "io/json.hpp"
#include "llm/gguf_pre.hpp"

namespace loom::core {
namespace {

JsonValue typed(std::string_view type) {
  return JsonValue::object({{"type", json_text(type)}});
}

JsonValue replacement(std::string_view from, std::string_view to) {
  JsonValue step = typed("Replace");
  step.add("pattern", JsonValue::object({{"String", json_text(from)}}));
  step.add("content", json_text(to));
  return step;
}

class TokenizerReader {
 public:
  explicit TokenizerReader(const Gguf& gguf) : gguf_(gguf) {}

  Result<std::string> read() {
    LOOM_ASSIGN(const std::string_view model, gguf_.string("tokenizer.ggml.model"));
    if (model == "none" || model == "no_vocab") return std::string();
    const bool pieces = model == "llama";
    if (!pieces && model != "gpt2") {
      Error error = gguf_.key_error(
          "tokenizer.ggml.model",
          cat("is '", printable(model), "', which is not supported; gpt2 and llama are"));
      error.code = Code::unsupported;
      return error;
    }
    LOOM_TRY(read_tokens());
    LOOM_TRY(read_strips(pieces));
    JsonValue root = JsonValue::object({{"version", json_text("1.0")}});
    root.add("added_tokens", added_tokens());
    LOOM_TRY(pieces ? add_pieces(root) : add_bpe(root));
    LOOM_ASSIGN(JsonValue processor, post_processor(pieces));
    root.add("post_processor", std::move(processor));
    return dump_json(root);
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

  // Which tokens take the white space beside them with them. GGUF has no standard key for that: our
  // files have lists of ids, for others it follows from the family, as in llama.cpp.
  Status read_strips(bool pieces) {
    lstrip_.assign(tokens_.size(), false);
    rstrip_.assign(tokens_.size(), false);
    LOOM_TRY(read_strip_ids(kGgufLstrip, lstrip_));
    LOOM_TRY(read_strip_ids(kGgufRstrip, rstrip_));
    if (gguf_.has(kGgufLstrip) || gguf_.has(kGgufRstrip)) return {};
    if (pieces && is_phi3()) {
      static constexpr std::string_view kPlain[] = {"<unk>", "<s>", "<|endoftext|>"};
      for (size_t i = 0; i < tokens_.size(); ++i) {
        const bool plain =
            std::find(std::begin(kPlain), std::end(kPlain), tokens_[i]) != std::end(kPlain);
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

  // By its architecture, or by its name where another one stands for it.
  bool is_phi3() const {
    const std::string name = to_lower_ascii(optional_text("general.name"));
    return optional_text("general.architecture") == "phi3" ||
           name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
  }

  bool is_special(size_t i) const {
    return types_[i] == GgufToken::control || types_[i] == GgufToken::unknown;
  }
  // Whether it is searched in the text as it is.
  bool is_added(size_t i) const {
    return is_special(i) || types_[i] == GgufToken::user_defined || lstrip_[i] || rstrip_[i];
  }

  Error count_error(std::string_view key, uint64_t count) const {
    return gguf_.key_error(key,
                           cat("has ", count, " elements, there are ", tokens_.size(), " tokens"));
  }

  // Tokens that are searched in the text as they are.
  JsonValue added_tokens() const {
    JsonValue list = JsonValue::array();
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (!is_added(i)) continue;
      JsonValue token = JsonValue::object({{"id", JsonValue::integer(static_cast<int64_t>(i))},
                                           {"content", json_text(tokens_[i])}});
      token.add("single_word", JsonValue::boolean(false));
      token.add("lstrip", JsonValue::boolean(lstrip_[i]));
      token.add("rstrip", JsonValue::boolean(rstrip_[i]));
      token.add("normalized", JsonValue::boolean(false));
      token.add("special", JsonValue::boolean(is_special(i)));
      list.push(std::move(token));
    }
    return list;
  }

  JsonValue vocabulary() const {
    std::vector<JsonValue::Member> members;
    members.reserve(tokens_.size());
    for (size_t i = 0; i < tokens_.size(); ++i)
      members.emplace_back(std::string(tokens_[i]), JsonValue::integer(static_cast<int64_t>(i)));
    return JsonValue::object(std::move(members));
  }

  Status add_bpe(JsonValue& root) {
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
    JsonValue merges = JsonValue::array();
    for (size_t i = 0; i < lines->strings.size(); ++i) {
      const std::string_view line = lines->strings[i];
      const size_t space = line.find(' ', 1);
      if (space == std::string_view::npos || space + 1 == line.size())
        return gguf_.key_error(kMerges, cat("has no two tokens in merge ", i));
      merges.push(
          JsonValue::array({json_text(line.substr(0, space)), json_text(line.substr(space + 1))}));
    }
    root.add("normalizer", normalizer_json(*pre_));
    root.add("pre_tokenizer", pre_tokenizer_json(*pre_));
    JsonValue decoder = typed("ByteLevel");
    for (const char* member : {"add_prefix_space", "trim_offsets", "use_regex"})
      decoder.add(member, JsonValue::boolean(true));
    root.add("decoder", std::move(decoder));
    JsonValue model = typed("BPE");
    model.add("ignore_merges", JsonValue::boolean(pre_->ignore_merges));
    model.add("vocab", vocabulary());
    model.add("merges", std::move(merges));
    root.add("model", std::move(model));
    return {};
  }

  Status add_pieces(JsonValue& root) {
    LOOM_ASSIGN(const bool prefix, flag("tokenizer.ggml.add_space_prefix", true));
    JsonValue normalizers = JsonValue::array();
    if (prefix) {
      JsonValue prepend = typed("Prepend");
      prepend.add("prepend", json_text(kSpace));
      normalizers.push(std::move(prepend));
    }
    normalizers.push(replacement(" ", kSpace));
    JsonValue normalizer = typed("Sequence");
    normalizer.add("normalizers", std::move(normalizers));
    root.add("normalizer", std::move(normalizer));
    root.add("pre_tokenizer", {});
    JsonValue decoders =
        JsonValue::array({replacement(kSpace, " "), typed("ByteFallback"), typed("Fuse")});
    if (prefix) {
      JsonValue strip = typed("Strip");
      strip.add("content", json_text(" "));
      strip.add("start", JsonValue::integer(1));
      strip.add("stop", JsonValue::integer(0));
      decoders.push(std::move(strip));
    }
    JsonValue decoder = typed("Sequence");
    decoder.add("decoders", std::move(decoders));
    root.add("decoder", std::move(decoder));
    JsonValue model = typed("BPE");
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (types_[i] != GgufToken::unknown || model.find("unk_token") != nullptr) continue;
      model.add("unk_token", json_text(tokens_[i]));
      model.add("fuse_unk", JsonValue::boolean(true));
    }
    model.add("byte_fallback", JsonValue::boolean(true));
    model.add("vocab", vocabulary());
    LOOM_TRY(add_merges(model));
    root.add("model", std::move(model));
    return {};
  }

  // Ranks of scores, the highest first; equal scores share one.
  Status read_ranks(std::vector<int64_t>& ranks) const {
    constexpr std::string_view kScores = "tokenizer.ggml.scores";
    LOOM_ASSIGN(const GgufValue* scores, gguf_.array(kScores, GgufType::f32));
    if (scores->count() != tokens_.size()) return count_error(kScores, scores->count());
    std::vector<double> sorted;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const double score = scores->number(i);
      if (!(score - score == 0))
        return gguf_.key_error(kScores, cat("gives token ", i, " a score that is no number"));
      sorted.push_back(-score);
    }
    std::vector<double> by_token = sorted;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    for (const double score : by_token)
      ranks.push_back(std::lower_bound(sorted.begin(), sorted.end(), score) - sorted.begin());
    return {};
  }

  // User-defined tokens are found in the text before pieces are.
  bool merges_into(size_t token) const {
    return types_[token] == GgufToken::normal || types_[token] == GgufToken::unused;
  }

  Status add_merges(JsonValue& model) const {
    std::vector<int64_t> token_ranks;
    LOOM_TRY(read_ranks(token_ranks));
    std::unordered_map<std::string_view, size_t> known;
    for (size_t i = 0; i < tokens_.size(); ++i)
      if (merges_into(i)) known.emplace(tokens_[i], i);
    JsonValue merges = JsonValue::array(), ranks = JsonValue::array();
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
        merges.push(
            JsonValue::array({json_text(whole.substr(0, cut)), json_text(whole.substr(cut))}));
        ranks.push(JsonValue::integer(token_ranks[i]));
      }
    }
    model.add("merges", std::move(merges));
    model.add("merge_ranks", std::move(ranks));
    return {};
  }

  Result<bool> flag(std::string_view key, bool otherwise) const {
    if (!gguf_.has(key)) return otherwise;
    return gguf_.boolean(key);
  }

  // What surrounds a text; the null value: nothing.
  Result<JsonValue> post_processor(bool pieces) const {
    LOOM_ASSIGN(const bool first, flag("tokenizer.ggml.add_bos_token",
                                       pieces || (pre_ != nullptr && pre_->adds_bos)));
    LOOM_ASSIGN(const bool last, flag("tokenizer.ggml.add_eos_token", false));
    JsonValue single = JsonValue::array(), specials = JsonValue::object();
    const auto add = [&](const char* key) -> Status {
      if (!gguf_.has(key)) return {};
      LOOM_ASSIGN(const uint32_t id, gguf_.u32(key));
      if (id >= tokens_.size()) return gguf_.key_error(key, cat("is ", id, ", beyond the tokens"));
      const std::string name(tokens_[id]);
      single.push(JsonValue::object(
          {{"SpecialToken",
            JsonValue::object({{"id", json_text(name)}, {"type_id", JsonValue::integer(0)}})}}));
      if (specials.find(name) != nullptr) return {};
      specials.add(name, JsonValue::object({{"id", json_text(name)},
                                            {"ids", JsonValue::array({JsonValue::integer(id)})},
                                            {"tokens", JsonValue::array({json_text(name)})}}));
      return {};
    };
    if (first) LOOM_TRY(add("tokenizer.ggml.bos_token_id"));
    single.push(JsonValue::object(
        {{"Sequence",
          JsonValue::object({{"id", json_text("A")}, {"type_id", JsonValue::integer(0)}})}}));
    if (last) LOOM_TRY(add("tokenizer.ggml.eos_token_id"));
    if (specials.members().empty()) return JsonValue();
    JsonValue processor = typed("TemplateProcessing");
    processor.add("single", std::move(single));
    processor.add("pair", JsonValue::array());
    processor.add("special_tokens", std::move(specials));
    return processor;
  }

  const Gguf& gguf_;
  std::vector<std::string_view> tokens_;
  std::vector<GgufToken> types_;
  std::vector<bool> lstrip_, rstrip_;  // by token
  const GgufPre* pre_ = nullptr;
};

}  // namespace

Result<std::string> read_gguf_tokenizer(const Gguf& gguf) {
  if (!gguf.has("tokenizer.ggml.model")) return std::string();
  return TokenizerReader(gguf).read();
}

}  // namespace loom::core
