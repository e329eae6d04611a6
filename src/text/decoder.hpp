// The decoder of tokenizer.json: converts the spellings of tokens back to text, as a chain of
// steps.
//
// DecodeRun pushes one token at a time through the chain. Lists of ids and streams use the same
// run, so both give the same bytes. A step that needs more input buffers text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/splitting/pattern.hpp"

namespace loom::core::text {

class Decoder {
 public:
  static Result<Decoder> make(std::vector<DecoderStep> steps);
  // The bytes of `token` in the middle of a text.
  std::string token_bytes(std::string_view token) const;

 private:
  friend class DecodeRun;
  struct Step : DecoderStep {
    Pattern pattern;     // find, compiled
    bool fused = false;  // an earlier step has fused all tokens
  };
  // Converts one token; `first` and `last` are its position in the list.
  static Result<std::string> convert(const Step& step, std::string_view token, bool first,
                                     bool last, Budget& budget);
  std::vector<Step> steps_;
};

class DecodeRun {
 public:
  explicit DecodeRun(const Decoder& decoder)
      : decoder_(&decoder), states_(decoder.steps_.size()), budget_(Budget::for_text(0)) {}
  // Appends the text that is final after `token`.
  Status push(std::string_view token, std::string& out);
  // Appends buffered text; ends the run.
  Status finish(std::string& out);

 private:
  struct State {
    std::string held;
    bool first = true;  // no token has come yet
    bool holding = false;
    size_t stripped = 0;  // strip of a fused text: characters removed so far
    bool stripping = true;
  };
  Status feed(size_t index, std::string_view token, std::string& out);
  Status feed_fused(size_t index, std::string_view token, std::string& out);
  Status feed_bytes(size_t index, std::string_view token, std::string& out);
  Status flush_bytes(size_t index, std::string& out);
  const Decoder* decoder_;
  std::vector<State> states_;
  Budget budget_;
};

}  // namespace loom::core::text
