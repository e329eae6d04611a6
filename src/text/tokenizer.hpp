// Tokenizer: runs a TokenizerSpec (BPE, WordPiece and Unigram models), with the same ids as the HF
// `tokenizers` library. Immutable and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "loom/text_options.hpp"
#include "text/tokenizer_spec.hpp"

namespace loom::core {

using TokenId = int32_t;

class Tokenizer {
 public:
  // Errors: bad_file (ids that are absent or duplicate, merges of unknown tokens), unsupported (a
  // pattern outside the dialect), naming the part by its path in tokenizer.json.
  static Result<Tokenizer> make(const TokenizerSpec& spec);
  // parse_tokenizer_json() and make(); `where` names the text in messages.
  static Result<Tokenizer> parse(std::string_view json, const std::string& where);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  using EncodeOptions = loom::EncodeOptions;
  // Ids of `text`. Invalid UTF-8 is read as U+FFFD, one per maximal bad sequence.
  Result<std::vector<TokenId>> encode(std::string_view text, EncodeOptions options) const;
  Result<std::vector<TokenId>> encode(std::string_view text) const { return encode(text, {}); }

  // Input of encoders: ids, and the type of each (0 or 1 for the first and the second text).
  struct Encoding {
    std::vector<TokenId> ids;
    std::vector<int32_t> types;
    bool truncated = false;
  };
  // Encodes `text`, or a pair if `second` is not null, in their template. There are at most `most`
  // ids (0 means no limit), special tokens included: texts lose their last ids, the longer of two
  // first. Errors: invalid (a limit that the special tokens alone exceed).
  Result<Encoding> encode_texts(std::string_view text, const std::string_view* second,
                                size_t most = 0, EncodeOptions options = {true, true}) const;

  // Text of `ids`; an id outside the vocabulary is an Error.
  Result<std::string> decode(std::span<const TokenId> ids, bool skip_special_tokens = true) const;

  int64_t vocab_size() const;  // highest id + 1, added tokens included
  // The id of a token as written in the vocabulary or the added tokens ("<|im_end|>"), or -1.
  TokenId token_id(std::string_view token) const;
  bool is_special(TokenId id) const;
  // False for ids that only the model's vocabulary has.
  bool has_token(TokenId id) const;
  // The raw bytes of one token in decoding (byte-level and byte-fallback tokens may be part of a
  // UTF-8 sequence). Empty for special tokens.
  std::string token_bytes(TokenId id) const;

 private:
  Result<std::vector<TokenId>> text_ids(std::string_view text, const EncodeOptions& options) const;
  friend class StreamDecoder;
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Turns a stream of ids into a stream of text that never splits a UTF-8 character. Text that later
// ids may change is buffered until it is final, or until finish(). All pieces together equal
// decode(ids). After continue_after() they equal the part of decode() of everything beyond
// decode(before). It must not outlive its tokenizer.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens = true);
  StreamDecoder(StreamDecoder&&) noexcept;
  StreamDecoder& operator=(StreamDecoder&&) noexcept;
  ~StreamDecoder();
  // The following ids continue an existing text, so changes at the beginning of a text do not apply
  // (Llama 2 drops its first space). Call it before the first push(). Ids without a token are
  // ignored.
  Status continue_after(std::span<const TokenId> before);
  Result<std::string> push(TokenId id);  // the new text, maybe empty
  std::string finish();                  // buffered text, with U+FFFD for an incomplete end

 private:
  friend class Tokenizer;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace loom::core
