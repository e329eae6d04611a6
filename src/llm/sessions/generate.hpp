// generate(): prompt in, text out, token by token. It feeds no token whose logits are not needed.
// So the last sampled token is not fed; a caller that continues must feed it first.
#pragma once

#include <memory>
#include <span>

#include "llm/model.hpp"
#include "llm/sessions/llm_session.hpp"
#include "loom/generation.hpp"

namespace loom::core {

// A running generation, one step at a time: one thread can alternate between conversations.
class Generator {
 public:
  // Feeds `prompt` to the session and samples tokens until a StopReason. An empty prompt continues
  // from the session's logits. The repetition window covers all that the session has read, this
  // prompt and the sampled tokens. So a text does not depend on how much of it was read before. A
  // model without a tokenizer gives tokens and no text. Until the text has ended, the generator
  // uses the session, and the draft model if there is one. piece: prompt tokens per step; 0 means
  // all at once. draft: a smaller model for draft tokens. Errors: bad options, an empty prompt at
  // the start of a session, a prompt longer than the context.
  static Result<Generator> begin(TokenReader& session, const LanguageModel& model,
                                 std::span<const TokenId> prompt, GenerateOptions options,
                                 TextSink sink, size_t piece, TokenReader* draft = nullptr);
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;
  ~Generator();

  // Reads a piece of the prompt, or samples the next token (on a device the next few). Returns
  // false when the text has ended. It has also ended after an Error.
  Result<bool> step();

  // The halves of a step. Between them LlmBatch feeds the tokens of several texts in one pass.
  // wants() returns the next tokens: at least one and at most `most`; at most `max_drafts` of them,
  // the last ones, are draft tokens. It returns nothing when the text has ended, which may happen
  // here. The span is valid until took().
  Result<std::span<const TokenId>> wants(size_t most, size_t max_drafts = 0);
  // For how many of the last tokens of wants() logits are needed.
  int64_t wants_logits() const;
  // Call it after the tokens were fed; `seconds` is this text's share of the pass. Samples the next
  // token once the whole prompt is read. Returns false when the text has ended.
  Result<bool> took(double seconds);

  // Ends the text with StopReason::cancelled.
  void cancel();
  // The text so far; complete after step() returned false.
  const Generation& result() const;
  Generation take();

 private:
  struct Parts;
  struct State;
  explicit Generator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Runs all steps of a Generator.
Result<Generation> generate(TokenReader& session, const LanguageModel& model,
                            std::span<const TokenId> prompt, const GenerateOptions& options,
                            const TextSink& sink = {}, TokenReader* draft = nullptr);

}  // namespace loom::core
