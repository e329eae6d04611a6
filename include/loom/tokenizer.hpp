// Tokenizer: converts text to token ids and back, without the weights of a model.
//
//   Tokenizer tokenizer = Tokenizer::load("models/stories.entity").or_exit();
//   std::vector<TokenId> ids = tokenizer.encode("Once upon a time").or_exit();
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/engine.hpp"
#include "loom/export.hpp"
#include "loom/files.hpp"
#include "loom/generation.hpp"
#include "loom/result.hpp"
#include "loom/text_options.hpp"

namespace loom {

// Upper bound of memory for encoding, in bytes per byte of text: its pieces and its ids. Texts
// beyond the engine's limit are refused by it.
constexpr uint64_t kMemoryPerTextByte = 16;

// A handle: copies share the tokenizer, which never changes. Thread-safe.
class LOOM_API Tokenizer {
 public:
  // Loads the tokenizer of a model (.entity, .gguf, a Hugging Face folder), or a tokenizer.json.
  // The memory limit is that of `engine`; unset means Engine::shared(). Errors: not_found,
  // bad_file, unsupported (an unknown step, by name), out_of_memory.
  static Result<Tokenizer> load(const std::string& path, const std::optional<Engine>& engine = {});

  // Loads a tokenizer.json, an .entity or a GGUF file in memory.
  static Result<Tokenizer> load(const FileBytes& file, const std::optional<Engine>& engine = {});

  // Adds the tokens around a text (such as BOS) unless `add_special_tokens` is false. Text that
  // spells a special token becomes that token.
  Result<std::vector<TokenId>> encode(std::string_view text, bool add_special_tokens = true) const;
  Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions& options) const;
  // Broken UTF-8 becomes U+FFFD. Errors: out_of_range (an id without a token).
  Result<std::string> decode(std::span<const TokenId> ids, bool skip_special_tokens = true) const;
  int64_t vocab_size() const;  // the highest id + 1
  // The bytes that a token adds to a text, which may be a part of a character; the name of a
  // special token. Errors: out_of_range (no such token).
  Result<std::string> token_bytes(TokenId id) const;
  // Special tokens, ascending: the beginning of a text, turns of a chat. decode() with
  // skip_special_tokens false gives their names.
  std::vector<TokenId> special_tokens() const;
  // The id of a token as the vocabulary writes it ("<|im_end|>"). Errors: not_found.
  Result<TokenId> token_id(std::string_view token) const;

  struct LOOM_LOCAL Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl);

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace loom
