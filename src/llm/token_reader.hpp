// TokenReader: the interface of generation to a model. It has read tokens, and has the logits after
// the last one. It is a session (LlmSession), or one sequence of several that share passes
// (LlmBatch).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "llm/sampling/device_sampling.hpp"
#include "loom/generation.hpp"

namespace loom::core {

class TokenReader {
 public:
  virtual ~TokenReader() = default;
  // Reads tokens and keeps the logits of the last one. An id outside the vocabulary or a full
  // context is an Error, and then nothing was read.
  virtual Status feed(std::span<const TokenId> ids) = 0;
  // [vocab]; may be empty.
  virtual std::span<const float> logits() const = 0;
  // Logits of the last pass of a batch (LlmBatch) after the token at this position; may be empty.
  virtual std::span<const float> logits_at(int64_t /*position*/) const { return {}; }
  // The tokens read, up to position().
  virtual std::span<const TokenId> fed() const = 0;
  virtual int64_t position() const = 0;
  virtual int64_t context() const = 0;
  virtual int64_t vocab() const = 0;  // of the model that reads
  // Drops everything from `position` on.
  virtual void rewind(int64_t position) = 0;

  // Reads tokens and passes the logits after each to `sink`; an Error of the sink ends it.
  using LogitsSink = std::function<Status(int64_t position, std::span<const float> logits)>;
  virtual Status feed_all(std::span<const TokenId> ids, const LogitsSink& sink) {
    for (size_t i = 0; i < ids.size(); ++i) {
      LOOM_TRY(feed(ids.subspan(i, 1)));
      LOOM_TRY(sink(static_cast<int64_t>(i), logits()));
    }
    return {};
  }

  // How many tokens feed_sampled() should find at a time. 1 means that more has no benefit.
  virtual int64_t sample_batch() const { return 1; }
  // Feeds `id` and count - 1 tokens, each sampled by `how` from the logits after the previous one.
  // Appends all `count` sampled tokens to `found`; the last one is not fed.
  virtual Status feed_sampled(TokenId id, int64_t count, const DeviceSampling& how,
                              std::vector<TokenId>& found) {
    (void)id, (void)count, (void)how, (void)found;
    return unsupported("tokens are drawn on the host here");
  }
};

}  // namespace loom::core
