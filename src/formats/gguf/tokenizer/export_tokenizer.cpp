#include "formats/gguf/tokenizer/export_tokenizer.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/text.hpp"
#include "formats/gguf/tokenizer/pre.hpp"
#include "formats/gguf/tokenizer/tokenizer.hpp"
#include "formats/gguf/tokenizer/tokenizer_limits.hpp"

namespace loom::core {
namespace {

// The score of pieces that no merge makes: below that of every merge.
constexpr float kNoMerge = -1e9f;

class TokenizerWriter {
 public:
  TokenizerWriter(const TokenizerSpec& spec, int64_t vocabulary, GgufMetadata& metadata)
      : spec_(spec), model_(spec.model), vocabulary_(vocabulary), metadata_(metadata) {}

  Status write() {
    pieces_ = model_.byte_fallback;
    LOOM_TRY(pieces_ ? check_gguf_pieces(spec_) : check_gguf_bytes(spec_));
    LOOM_TRY(collect());
    metadata_.string("tokenizer.ggml.model", pieces_ ? "llama" : "gpt2");
    if (pieces_) {
      metadata_.string("tokenizer.ggml.pre", "default");
      metadata_.boolean("tokenizer.ggml.add_space_prefix", space_prefix());
      metadata_.f32s("tokenizer.ggml.scores", scores());
    } else {
      metadata_.string("tokenizer.ggml.pre", recognize_gguf_pre(spec_)->name());
      std::vector<std::string> lines;
      for (const auto& [left, right] : model_.merges) lines.push_back(cat(left, " ", right));
      metadata_.strings("tokenizer.ggml.merges", lines);
    }
    metadata_.strings("tokenizer.ggml.tokens", tokens_);
    metadata_.i32s("tokenizer.ggml.token_type", types_);
    if (!lstrip_.empty()) metadata_.i32s(kGgufLstrip, lstrip_);
    if (!rstrip_.empty()) metadata_.i32s(kGgufRstrip, rstrip_);
    LOOM_ASSIGN(const GgufEnds ends, gguf_ends(spec_));
    metadata_.boolean("tokenizer.ggml.add_bos_token", ends.bos >= 0);
    metadata_.boolean("tokenizer.ggml.add_eos_token", ends.eos >= 0);
    return {};
  }

 private:
  void put(int64_t id, std::string_view token, GgufToken type) {
    const auto index = static_cast<size_t>(id);
    tokens_[index] = std::string(token);
    types_[index] = static_cast<int32_t>(type);
  }

  // Every id of the model's vocabulary has a token; ids without a name are unused.
  Status collect() {
    const int64_t size = vocabulary_;
    std::unordered_set<std::string_view> names, taken;
    for (const auto& [token, id] : model_.vocabulary) names.insert(token);
    taken = names;
    for (const text::AddedTokenSpec& token : spec_.added) taken.insert(token.content);
    for (int64_t id = 0; id < size; ++id) {
      std::string pad = cat("[PAD", id, "]");
      while (taken.contains(pad)) pad += ']';  // llama.cpp needs distinct tokens
      tokens_.push_back(std::move(pad));
      types_.push_back(static_cast<int32_t>(GgufToken::unused));
    }
    const auto check = [&](int64_t id) -> Status {
      if (id >= 0 && id < size) return {};
      return bad_file(cat("token id ", id, " is beyond the model's vocabulary of ", size),
                      spec_.where);
    };
    // Readers match a token of that type literally in a text, so the source must match it too.
    const auto is_unknown = [&](const std::string& token) {
      return !token.empty() && model_.unk_token == token;
    };
    for (const auto& [token, id] : model_.vocabulary) {
      LOOM_TRY(check(id));
      const bool byte = pieces_ && is_gguf_byte(token);
      put(id, token, byte ? GgufToken::byte : GgufToken::normal);
    }
    for (const text::AddedTokenSpec& token : spec_.added) {
      LOOM_TRY(check(token.id));
      if (token.lstrip) lstrip_.push_back(token.id);
      if (token.rstrip) rstrip_.push_back(token.id);
      GgufToken type = token.special ? GgufToken::control : GgufToken::user_defined;
      if (token.special && is_unknown(token.content)) type = GgufToken::unknown;
      // Runs of U+2581 never occur literally in a text; merges make them.
      const bool run = pieces_ && token.content.find(kSpace) != std::string::npos;
      if (run && type == GgufToken::user_defined && names.contains(token.content)) continue;
      put(token.id, token.content, type);
    }
    return {};
  }

  // Whether a space is added before a text.
  bool space_prefix() const {
    for (const text::PreTokenizerStep& step : spec_.pre_tokenizer)
      if (step.kind == text::PreTokenizerKind::metaspace)
        return step.prepend != text::PrependScheme::never;
    return std::ranges::any_of(spec_.normalizer, [](const text::NormalizerStep& step) {
      return step.kind == text::NormalizerKind::prepend;
    });
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

  const TokenizerSpec& spec_;
  const text::BpeSpec& model_;
  int64_t vocabulary_;  // of the network
  GgufMetadata& metadata_;
  bool pieces_ = false;
  std::vector<std::string> tokens_;
  std::vector<int32_t> types_;
  std::vector<int32_t> lstrip_, rstrip_;  // ids
};

// Data of the source that GGUF has no key for; a reader of Loom prefers it.
Status keep_exactly(const TokenizerSpec& spec, GgufMetadata& metadata) {
  std::string bytes;
  LOOM_TRY(write_gguf_to(
      [&](std::span<const std::byte> piece) -> Status {
        bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        return {};
      },
      metadata, {}));
  LOOM_ASSIGN(const Gguf gguf, Gguf::parse(std::as_bytes(std::span(bytes)), spec.where));
  LOOM_ASSIGN(const std::optional<TokenizerSpec> back, read_gguf_tokenizer(gguf));
  if (!back || !same_tokenizer(spec, *back))
    metadata.string(kGgufTokenizerJson, tokenizer_json(spec));
  const std::vector<std::string> notes = gguf_tokenizer_notes(spec);
  if (!notes.empty()) metadata.strings(kGgufNotes, notes);
  return {};
}

// The ids before and after texts: those of the post-processor take precedence.
Status write_ids(const DecoderConfig& config, const GgufEnds& around, GgufMetadata& metadata) {
  const auto put = [&](const char* key, int64_t id) {
    if (id >= 0) metadata.u32(key, static_cast<uint32_t>(id));
  };
  put("tokenizer.ggml.bos_token_id", around.bos >= 0 ? around.bos : config.bos_token_id);
  std::vector<int64_t> ends = config.eos_token_ids;
  if (around.eos >= 0) {
    const auto at = std::ranges::find(ends, around.eos);
    if (at == ends.end() && !ends.empty())
      return unsupported(
          cat("post_processor: puts token ", around.eos,
              " after a text, and eos_token_id does not have it; GGUF has one list"));
    if (at == ends.end()) ends.push_back(around.eos);
    std::rotate(ends.begin(), std::ranges::find(ends, around.eos), ends.end());
  }
  const char* keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                        "tokenizer.ggml.eom_token_id"};
  for (size_t i = 0; i < ends.size() && i < std::size(keys); ++i) put(keys[i], ends[i]);
  if (ends.size() <= std::size(keys)) return {};
  metadata.i32s(kGgufEnds, std::vector<int32_t>(ends.begin(), ends.end()));
  return {};
}

}  // namespace

Status write_gguf_tokenizer(const ModelSource& source, GgufMetadata& metadata) {
  LOOM_ASSIGN(const std::optional<TokenizerSpec> spec, tokenizer_spec(source));
  GgufEnds around;
  GgufMetadata own;
  if (!spec) {
    metadata.string("tokenizer.ggml.model", "no_vocab");
  } else if (spec->word_piece || spec->unigram) {
    return unsupported("a WordPiece or Unigram tokenizer is not written as GGUF", spec->where);
  } else {
    LOOM_ASSIGN(around, gguf_ends(*spec));
    LOOM_TRY(TokenizerWriter(*spec, source.config.vocab_size, own).write());
  }
  LOOM_TRY(write_ids(source.config, around, own));
  if (spec) LOOM_TRY(keep_exactly(*spec, own));
  metadata.add_all(own);
  if (!source.chat_template.empty())
    metadata.string("tokenizer.chat_template", source.chat_template);
  return {};
}

}  // namespace loom::core
