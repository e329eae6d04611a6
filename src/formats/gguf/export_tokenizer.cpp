#include "formats/gguf/export_tokenizer.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/text.hpp"
#include "formats/gguf/pre.hpp"
#include "formats/gguf/tokenizer.hpp"

namespace loom::core {
namespace {

// Of pieces that no merge makes: below the score of every merge.
constexpr float kNoMerge = -1e9f;

bool is_byte_piece(std::string_view token) {
  return token.size() == 6 && token.substr(0, 3) == "<0x" && token[5] == '>';
}

class TokenizerWriter {
 public:
  TokenizerWriter(const TokenizerSpec& spec, int64_t vocabulary, GgufMetadata& metadata)
      : spec_(spec), model_(spec.model), vocabulary_(vocabulary), metadata_(metadata) {}

  Status write() {
    pieces_ = model_.byte_fallback;
    LOOM_TRY(collect());
    metadata_.string("tokenizer.ggml.model", pieces_ ? "llama" : "gpt2");
    if (pieces_) {
      LOOM_ASSIGN(const bool prefix, space_prefix());
      metadata_.string("tokenizer.ggml.pre", "default");
      metadata_.boolean("tokenizer.ggml.add_space_prefix", prefix);
      metadata_.f32s("tokenizer.ggml.scores", scores());
    } else {
      const GgufPre* pre = recognize_gguf_pre(spec_);
      if (pre == nullptr) {
        return unsupported("GGUF has no name for the pre-tokenizer or normalizer of this tokenizer",
                           spec_.where);
      }
      metadata_.string("tokenizer.ggml.pre", pre->name());
      std::vector<std::string> lines;
      for (const auto& [left, right] : model_.merges) lines.push_back(cat(left, " ", right));
      metadata_.strings("tokenizer.ggml.merges", lines);
    }
    metadata_.strings("tokenizer.ggml.tokens", tokens_);
    metadata_.i32s("tokenizer.ggml.token_type", types_);
    if (!lstrip_.empty()) metadata_.i32s(kGgufLstrip, lstrip_);
    if (!rstrip_.empty()) metadata_.i32s(kGgufRstrip, rstrip_);
    write_template();
    return {};
  }

 private:
  void put(int64_t id, std::string_view token, GgufToken type) {
    const auto index = static_cast<size_t>(id);
    tokens_[index] = std::string(token);
    types_[index] = static_cast<int32_t>(type);
  }

  // Every id of the model's vocabulary has a token; those that nothing names are unused.
  Status collect() {
    const int64_t size = vocabulary_;
    for (int64_t id = 0; id < size; ++id) {
      tokens_.push_back(cat("[PAD", id, "]"));
      types_.push_back(static_cast<int32_t>(GgufToken::unused));
    }
    const auto check = [&](int64_t id) -> Status {
      if (id >= 0 && id < size) return {};
      return bad_file(cat("token id ", id, " is beyond the model's vocabulary of ", size),
                      spec_.where);
    };
    const auto is_unknown = [&](const std::string& token) {
      return !token.empty() && model_.unk_token == token;
    };
    std::unordered_set<std::string_view> names;
    for (const auto& [token, id] : model_.vocabulary) {
      LOOM_TRY(check(id));
      names.insert(token);
      const bool byte = pieces_ && is_byte_piece(token);
      put(id, token,
          byte                ? GgufToken::byte
          : is_unknown(token) ? GgufToken::unknown
                              : GgufToken::normal);
    }
    for (const text::AddedTokenSpec& token : spec_.added) {
      LOOM_TRY(check(token.id));
      if (token.lstrip) lstrip_.push_back(token.id);
      if (token.rstrip) rstrip_.push_back(token.id);
      GgufToken type = token.special ? GgufToken::control : GgufToken::user_defined;
      if (is_unknown(token.content)) type = GgufToken::unknown;
      // Runs of U+2581 never stand in a text as written; merges make them.
      const bool run = pieces_ && token.content.find(kSpace) != std::string::npos;
      if (run && type == GgufToken::user_defined && names.contains(token.content)) continue;
      put(token.id, token.content, type);
    }
    return {};
  }

  // SentencePiece: is a space put before a text? Also refuses what is no SentencePiece tokenizer.
  Result<bool> space_prefix() const {
    if (spec_.pre_tokenizer.size() == 1 &&
        spec_.pre_tokenizer[0].kind == text::PreTokenizerKind::metaspace)
      return spec_.pre_tokenizer[0].prepend != text::PrependScheme::never;
    bool replaces = false, prepends = false;
    for (const text::NormalizerStep& step : spec_.normalizer) {
      using text::NormalizerKind;
      const bool marks = step.content == kSpace;
      const bool spaces = !step.find.regex && step.find.text == " ";
      replaces = replaces || (step.kind == NormalizerKind::replace && marks && spaces);
      prepends = prepends || (step.kind == NormalizerKind::prepend && marks);
    }
    if (!replaces) {
      return unsupported("a tokenizer with byte fallback that does not write spaces as U+2581",
                         spec_.where);
    }
    return prepends;
  }

  // Minus the rank of the first merge that makes a piece; ranks below 2^24 are exact in f32.
  std::vector<float> scores() const {
    std::unordered_map<std::string, size_t> ranks;
    for (size_t i = 0; i < model_.merges.size(); ++i) {
      const size_t rank = model_.ranks.empty() ? i : static_cast<size_t>(model_.ranks[i]);
      const auto [at, is_new] =
          ranks.emplace(cat(model_.merges[i].first, model_.merges[i].second), rank);
      if (!is_new) at->second = std::min(at->second, rank);
    }
    std::vector<float> out;
    for (const std::string& token : tokens_) {
      const auto found = ranks.find(token);
      out.push_back(found == ranks.end() ? kNoMerge : -static_cast<float>(found->second));
    }
    return out;
  }

  // Which special tokens the post-processor puts around a text.
  void write_template() {
    bool before = false, after = false, seen_text = false;
    if (spec_.post_processor) {
      for (const text::TemplatePart& part : *spec_.post_processor) {
        seen_text = seen_text || part.is_text;
        if (!part.is_text) (seen_text ? after : before) = true;
      }
    }
    metadata_.boolean("tokenizer.ggml.add_bos_token", before);
    metadata_.boolean("tokenizer.ggml.add_eos_token", after);
  }

  const TokenizerSpec& spec_;
  const text::BpeSpec& model_;
  int64_t vocabulary_;  // of the network
  GgufMetadata& metadata_;
  bool pieces_ = false;
  std::vector<std::string> tokens_;
  std::vector<int32_t> types_;
  std::vector<int32_t> lstrip_, rstrip_;  // ids
};

void write_ids(const DecoderConfig& config, GgufMetadata& metadata) {
  const auto put = [&](const char* key, int64_t id) {
    if (id >= 0) metadata.u32(key, static_cast<uint32_t>(id));
  };
  put("tokenizer.ggml.bos_token_id", config.bos_token_id);
  const std::vector<int64_t>& ends = config.eos_token_ids;
  const char* keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                        "tokenizer.ggml.eom_token_id"};
  for (size_t i = 0; i < ends.size() && i < std::size(keys); ++i) put(keys[i], ends[i]);
}

}  // namespace

Status write_gguf_tokenizer(const ModelSource& source, GgufMetadata& metadata) {
  LOOM_ASSIGN(const std::optional<TokenizerSpec> spec, tokenizer_spec(source));
  if (!spec) {
    metadata.string("tokenizer.ggml.model", "no_vocab");
  } else if (spec->word_piece || spec->unigram) {
    return unsupported("a WordPiece or Unigram tokenizer is not written as GGUF", spec->where);
  } else {
    LOOM_TRY(TokenizerWriter(*spec, source.config.vocab_size, metadata).write());
  }
  write_ids(source.config, metadata);
  if (!source.chat_template.empty())
    metadata.string("tokenizer.chat_template", source.chat_template);
  return {};
}

}  // namespace loom::core
