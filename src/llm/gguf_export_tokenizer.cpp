#include "llm/gguf_export_tokenizer.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/text.hpp"
#include "io/json.hpp"
#include "llm/gguf_pre.hpp"
#include "llm/gguf_tokenizer.hpp"

namespace loom::core {
namespace {

// Of pieces that no merge makes: below the score of every merge.
constexpr float kNoMerge = -1e9f;

bool truth(const JsonValue& object, std::string_view key, bool otherwise) {
  const JsonValue* value = object.find(key);
  return value != nullptr && value->is_bool() ? *value->as_bool("") : otherwise;
}

std::string_view member_text(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  return value == nullptr ? std::string_view() : std::string_view(value->text());
}

bool is_byte_piece(std::string_view token) {
  return token.size() == 6 && token.substr(0, 3) == "<0x" && token[5] == '>';
}

class TokenizerWriter {
 public:
  TokenizerWriter(const ModelSource& source, const JsonValue& root, GgufMetadata& metadata)
      : source_(source), root_(root), model_(*root.find("model")), metadata_(metadata) {}

  Status write() {
    pieces_ = truth(model_, "byte_fallback", false);
    LOOM_TRY(read_merges());
    LOOM_TRY(collect());
    metadata_.string("tokenizer.ggml.model", pieces_ ? "llama" : "gpt2");
    if (pieces_) {
      LOOM_ASSIGN(const bool prefix, space_prefix());
      metadata_.string("tokenizer.ggml.pre", "default");
      metadata_.boolean("tokenizer.ggml.add_space_prefix", prefix);
      metadata_.f32s("tokenizer.ggml.scores", scores());
    } else {
      const GgufPre* pre = recognize_gguf_pre(root_);
      if (pre == nullptr) {
        return unsupported("GGUF has no name for the pre-tokenizer or normalizer of this tokenizer",
                           source_.tokenizer_where);
      }
      metadata_.string("tokenizer.ggml.pre", pre->name());
      std::vector<std::string> lines;
      for (const auto& [left, right] : merges_) lines.push_back(cat(left, " ", right));
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
  Status read_merges() {
    const JsonValue* list = model_.find("merges");
    if (list == nullptr) return bad_file("the model has no merges", source_.tokenizer_where);
    for (const JsonValue& entry : list->elements()) {
      const std::string_view line = entry.text();
      const auto& pair = entry.elements();
      const size_t space = line.find(' ');
      if (pair.size() == 2) {
        merges_.emplace_back(pair[0].text(), pair[1].text());
      } else if (space != std::string_view::npos && line.rfind("#version", 0) != 0) {
        merges_.emplace_back(line.substr(0, space), line.substr(space + 1));
      }
    }
    return {};
  }

  void put(int64_t id, std::string_view token, GgufToken type) {
    const auto index = static_cast<size_t>(id);
    tokens_[index] = std::string(token);
    types_[index] = static_cast<int32_t>(type);
  }

  // Every id of the model's vocabulary has a token; those that nothing names are unused.
  Status collect() {
    const int64_t size = source_.config.vocab_size;
    for (int64_t id = 0; id < size; ++id) {
      tokens_.push_back(cat("[PAD", id, "]"));
      types_.push_back(static_cast<int32_t>(GgufToken::unused));
    }
    const auto check = [&](int64_t id) -> Status {
      if (id >= 0 && id < size) return {};
      return bad_file(cat("token id ", id, " is beyond the model's vocabulary of ", size),
                      source_.tokenizer_where);
    };
    const std::string_view unknown = member_text(model_, "unk_token");
    const JsonValue* vocabulary = model_.find("vocab");
    if (vocabulary == nullptr) return bad_file("the model has no vocab", source_.tokenizer_where);
    for (const auto& [token, value] : vocabulary->members()) {
      LOOM_ASSIGN(const int64_t id, value.as_int(source_.tokenizer_where));
      LOOM_TRY(check(id));
      const bool byte = pieces_ && is_byte_piece(token);
      const bool is_unknown = !unknown.empty() && token == unknown;
      put(id, token, byte ? GgufToken::byte : is_unknown ? GgufToken::unknown : GgufToken::normal);
    }
    const JsonValue* added = root_.find("added_tokens");
    if (added == nullptr) return {};
    for (const JsonValue& token : added->elements()) {
      const JsonValue* number = token.find("id");
      if (number == nullptr) return bad_file("an added token without id", source_.tokenizer_where);
      LOOM_ASSIGN(const int64_t id, number->as_int(source_.tokenizer_where));
      LOOM_TRY(check(id));
      const std::string_view content = member_text(token, "content");
      if (truth(token, "lstrip", false)) lstrip_.push_back(static_cast<int32_t>(id));
      if (truth(token, "rstrip", false)) rstrip_.push_back(static_cast<int32_t>(id));
      GgufToken type =
          truth(token, "special", false) ? GgufToken::control : GgufToken::user_defined;
      if (!unknown.empty() && content == unknown) type = GgufToken::unknown;
      // Runs of U+2581 never stand in a text as written; merges make them.
      const bool run = pieces_ && content.find(kSpace) != std::string_view::npos;
      if (run && type == GgufToken::user_defined && vocabulary->find(content) != nullptr) continue;
      put(id, content, type);
    }
    return {};
  }

  // SentencePiece: is a space put before a text? Also refuses what is no SentencePiece tokenizer.
  Result<bool> space_prefix() const {
    const JsonValue *normalizer = root_.find("normalizer"), *pre = root_.find("pre_tokenizer");
    if (pre != nullptr && member_text(*pre, "type") == "Metaspace") {
      const std::string_view scheme = member_text(*pre, "prepend_scheme");
      return scheme != "never" && truth(*pre, "add_prefix_space", true);
    }
    bool replaces = false, prepends = false;
    const auto look = [&](const JsonValue& step) {
      const JsonValue* pattern = step.find("pattern");
      replaces = replaces || (member_text(step, "content") == kSpace && pattern != nullptr &&
                              member_text(*pattern, "String") == " ");
      prepends = prepends || member_text(step, "prepend") == kSpace;
    };
    if (normalizer != nullptr) {
      look(*normalizer);
      if (const JsonValue* steps = normalizer->find("normalizers"))
        for (const JsonValue& step : steps->elements()) look(step);
    }
    if (!replaces) {
      return unsupported("a tokenizer with byte fallback that does not write spaces as U+2581",
                         source_.tokenizer_where);
    }
    return prepends;
  }

  // Minus the rank of the first merge that makes a piece; ranks below 2^24 are exact in f32.
  std::vector<float> scores() const {
    std::unordered_map<std::string, size_t> ranks;
    const JsonValue* given = model_.find("merge_ranks");
    for (size_t i = 0; i < merges_.size(); ++i) {
      size_t rank = i;
      if (given != nullptr && i < given->elements().size())
        rank = static_cast<size_t>(*given->elements()[i].as_int(""));
      const auto [at, is_new] = ranks.emplace(cat(merges_[i].first, merges_[i].second), rank);
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
    const auto look = [&](const JsonValue& step) {
      const JsonValue* single = step.find("single");
      if (single == nullptr) return;
      for (const JsonValue& piece : single->elements()) {
        seen_text = seen_text || piece.find("Sequence") != nullptr;
        if (piece.find("SpecialToken") != nullptr) (seen_text ? after : before) = true;
      }
    };
    if (const JsonValue* processor = root_.find("post_processor")) {
      look(*processor);
      if (const JsonValue* steps = processor->find("processors"))
        for (const JsonValue& step : steps->elements()) look(step);
    }
    metadata_.boolean("tokenizer.ggml.add_bos_token", before);
    metadata_.boolean("tokenizer.ggml.add_eos_token", after);
  }

  const ModelSource& source_;
  const JsonValue &root_, &model_;
  GgufMetadata& metadata_;
  bool pieces_ = false;
  std::vector<std::string> tokens_;
  std::vector<int32_t> types_;
  std::vector<int32_t> lstrip_, rstrip_;  // ids
  std::vector<std::pair<std::string, std::string>> merges_;
};

void write_ids(const HfConfig& config, GgufMetadata& metadata) {
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
  if (source.tokenizer_json.empty()) {
    metadata.string("tokenizer.ggml.model", "no_vocab");
  } else {
    LOOM_ASSIGN(const JsonValue root, parse_json(source.tokenizer_json, source.tokenizer_where));
    if (root.find("model") == nullptr) return bad_file("no model", source.tokenizer_where);
    LOOM_TRY(TokenizerWriter(source, root, metadata).write());
  }
  write_ids(source.config, metadata);
  if (!source.chat_template.empty())
    metadata.string("tokenizer.chat_template", source.chat_template);
  return {};
}

}  // namespace loom::core
