// Tokenizer: what a TokenizerSpec describes (BPE, WordPiece and Unigram models), with the same ids
// as the HF `tokenizers` library. Immutable once made and safe to share between threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "text/tokenizer_spec.hpp"

namespace loom::core {

using TokenId = int32_t;

class Tokenizer {
 public:
  // Errors: bad_file (ids that are absent or taken twice, merges of no tokens), unsupported (a
  // pattern outside the dialect), naming the piece by its path in tokenizer.json.
  static Result<Tokenizer> make(const TokenizerSpec& spec);
  // parse_tokenizer_json() and make(); `where` names the text in messages.
  static Result<Tokenizer> parse(std::string_view json, const std::string& where);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  struct EncodeOptions {
    bool add_special_tokens = true;    // run the post-processor (BOS and the like)
    bool parse_special_tokens = true;  // text that spells a special token becomes that token
    // Asked every few thousand bytes; true ends encoding with Code::cancelled. May be null.
    std::function<bool()> should_stop;
  };
  // Ids of `text`. Invalid UTF-8 is read as U+FFFD, one per maximal bad sequence.
  Result<std::vector<TokenId>> encode(std::string_view text, EncodeOptions options) const;
  Result<std::vector<TokenId>> encode(std::string_view text) const { return encode(text, {}); }

  // What encoders take: ids, and the type of each (0 or 1 for the first text and the second).
  struct Encoding {
    std::vector<TokenId> ids;
    std::vector<int32_t> types;
    bool truncated = false;
  };
  // Of `text`, or of a pair where `second` is not null, in their template. No more than `most` ids
  // (0: no limit), special tokens included: texts lose their last ids, of two the longer one first.
  // Errors: invalid (a limit that the special tokens alone exceed).
  Result<Encoding> encode_texts(std::string_view text, const std::string_view* second,
                                size_t most = 0, EncodeOptions options = {true, true}) const;

  // Text of `ids`; an id outside the vocabulary is an Error.
  Result<std::string> decode(std::span<const TokenId> ids, bool skip_special_tokens = true) const;

  int64_t vocab_size() const;  // highest id + 1, added tokens included
  // The id of a token as written in the vocabulary or the added tokens ("<|im_end|>"), or -1.
  TokenId token_id(std::string_view token) const;
  bool is_special(TokenId id) const;
  // False for ids that a model's vocabulary has beyond the tokenizer's.
  bool has_token(TokenId id) const;
  // The raw bytes one token stands for when decoding (byte-level and byte-fallback tokens may be
  // part of a UTF-8 sequence). Empty for special tokens.
  std::string token_bytes(TokenId id) const;

 private:
  Result<std::vector<TokenId>> text_ids(std::string_view text, const EncodeOptions& options) const;
  friend class StreamDecoder;
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Turns a stream of ids into a stream of text that never splits a UTF-8 character: text that later
// ids may still change is held back until they cannot, or until finish(). The concatenation of all
// pieces equals decode(ids), or with continue_after() what decode() of everything has beyond
// decode(before). Lives no longer than its tokenizer.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens = true);
  StreamDecoder(StreamDecoder&&) noexcept;
  StreamDecoder& operator=(StreamDecoder&&) noexcept;
  ~StreamDecoder();
  // The ids to come go on a text that is there already, so nothing is done to them that is meant
  // for the beginning of a text (Llama 2 drops its first space). Before the first push(). Ids
  // without a token count as nothing.
  Status continue_after(std::span<const TokenId> before);
  Result<std::string> push(TokenId id);  // the new text, maybe empty
  std::string finish();                  // what is held back, with U+FFFD for a broken end

 private:
  friend class Tokenizer;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace loom::core
