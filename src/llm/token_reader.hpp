// TokenReader: what a text is written through: it has read tokens, and tells the logits after the
// last one. A session of its own (LlmSession), or one sequence of several that share passes
// (LlmBatch).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "llm/device_sampling.hpp"
#include "loom/generation.hpp"

namespace loom::core {

class TokenReader {
 public:
  virtual ~TokenReader() = default;
  // Reads tokens and keeps the logits of the last one. An id outside the vocabulary or a full
  // context is an Error, and then nothing was read.
  virtual Status feed(std::span<const TokenId> ids) = 0;
  // [vocab]; empty where there are none.
  virtual std::span<const float> logits() const = 0;
  // Of the last pass that others asked for (LlmBatch), after the token at this position; empty
  // where there are none.
  virtual std::span<const float> logits_at(int64_t /*position*/) const { return {}; }
  // The tokens read, up to position().
  virtual std::span<const TokenId> fed() const = 0;
  virtual int64_t position() const = 0;
  virtual int64_t context() const = 0;
  virtual int64_t vocab() const = 0;  // of the model that reads
  // Forgets everything from `position` on.
  virtual void rewind(int64_t position) = 0;

  // Reads tokens and hands the logits after each to `sink`; an Error from it ends this.
  using LogitsSink = std::function<Status(int64_t position, std::span<const float> logits)>;
  virtual Status feed_all(std::span<const TokenId> ids, const LogitsSink& sink) {
    for (size_t i = 0; i < ids.size(); ++i) {
      LOOM_TRY(feed(ids.subspan(i, 1)));
      LOOM_TRY(sink(static_cast<int64_t>(i), logits()));
    }
    return {};
  }

  // How many tokens feed_sampled() should find at a time. 1: there is no gain in more.
  virtual int64_t sample_batch() const { return 1; }
  // Feeds `id` and count - 1 tokens, each chosen as `how` says from the logits after the one
  // before, and appends all `count` that were found to `found`; the last one is not fed.
  virtual Status feed_sampled(TokenId id, int64_t count, const DeviceSampling& how,
                              std::vector<TokenId>& found) {
    (void)id, (void)count, (void)how, (void)found;
    return unsupported("tokens are drawn on the host here");
  }
};

}  // namespace loom::core
