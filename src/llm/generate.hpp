// generate(): prompt in, text out, token by token. It feeds no token whose logits nobody will read:
// the last token drawn is not fed, so a session that goes on must feed it first.
#pragma once

#include <memory>
#include <span>

#include "llm/llm_session.hpp"
#include "llm/model.hpp"
#include "loom/generation.hpp"

namespace loom::core {

// A text on its way, a step at a time: one thread can take turns among conversations.
class Generator {
 public:
  // Feeds `prompt` to the session and draws tokens until a StopReason. An empty prompt goes on from
  // the logits that the session holds. The repetition window covers what the session had read, this
  // prompt and what was drawn, so a text does not depend on how much of it was read before.
  // A model without tokenizer gives tokens and no text. The session stays with the generator until
  // the text has ended. Errors: bad options, an empty prompt at the start of a session, a prompt
  // longer than the context.
  // piece: tokens of the prompt in a step; 0: all at once. draft: a smaller model that guesses; it
  // stays with the generator as well.
  static Result<Generator> begin(TokenReader& session, const LanguageModel& model,
                                 std::span<const TokenId> prompt, GenerateOptions options,
                                 TextSink sink, size_t piece, TokenReader* draft = nullptr);
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;
  ~Generator();

  // Reads a piece of the prompt, or draws the next token (on a device the next few); false when the
  // text has ended. After an Error it has ended too.
  Result<bool> step();

  // The halves of a step, between which somebody else feeds the tokens: those of several texts in
  // one pass (LlmBatch). wants(): what comes next, at most `most` tokens and at least one, the last
  // of them at most `guesses` that were guessed; nothing when the text has ended, which may happen
  // here. They are good until took().
  Result<std::span<const TokenId>> wants(size_t most, size_t guesses = 0);
  // After how many of the last tokens that wants() gave the logits are needed.
  int64_t wants_logits() const;
  // It was fed, and this text's part of the pass took so many seconds. Draws the next token where
  // all of the prompt is read; false when the text has ended.
  Result<bool> took(double seconds);

  // Ends the text with StopReason::cancelled.
  void cancel();
  // The text so far; whole when step() gave false.
  const Generation& result() const;
  Generation take();

 private:
  struct Parts;
  struct State;
  explicit Generator(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// All steps of a Generator.
Result<Generation> generate(TokenReader& session, const LanguageModel& model,
                            std::span<const TokenId> prompt, const GenerateOptions& options,
                            const TextSink& sink = {}, TokenReader* draft = nullptr);

}  // namespace loom::core
