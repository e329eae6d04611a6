// The decoder of tokenizer.json: from the spellings of tokens back to text, as a chain of steps.
//
// DecodeRun pushes one token at a time through the chain; decoding a list of ids and decoding a
// stream are the same run, so that both give the same bytes. A step that must see more holds text
// back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/pattern.hpp"

namespace loom::core::text {

class Decoder {
 public:
  static Result<Decoder> make(std::vector<DecoderStep> steps);
  // The bytes that `token` stands for in the middle of a text.
  std::string token_bytes(std::string_view token) const;

 private:
  friend class DecodeRun;
  struct Step : DecoderStep {
    Pattern pattern;     // find, compiled
    bool fused = false;  // an earlier step has made one token of all
  };
  // One token on its own; `first` and `last` say where it stands in the list.
  static Result<std::string> convert(const Step& step, std::string_view token, bool first,
                                     bool last, Budget& budget);
  std::vector<Step> steps_;
};

class DecodeRun {
 public:
  explicit DecodeRun(const Decoder& decoder)
      : decoder_(&decoder), states_(decoder.steps_.size()), budget_(Budget::for_text(0)) {}
  // Appends to `out` the text that is certain after `token`.
  Status push(std::string_view token, std::string& out);
  // Appends what was held back; the run is over.
  Status finish(std::string& out);

 private:
  struct State {
    std::string held;
    bool first = true;  // no token has come yet
    bool holding = false;
    size_t stripped = 0;  // strip of a fused text: characters cut so far
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
