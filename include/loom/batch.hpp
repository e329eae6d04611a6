// Batch: generates several texts with one model at the same time. All of them share each pass
// through the weights, so eight texts take little longer than one. A finished text makes room for
// the next, and prompts are read while other texts continue. Each text has the tokens of
// ModelSession::generate(): they do not depend on the other texts. On a GPU a session reads its
// prompt with other kernels, so its last bits may differ from those of a batch.
//
//   auto batch = loom::Batch::create(*model, {.sequences = 8});
//   for (int64_t i = 0; i < 8; ++i) batch->start(i, prompts[i]);
//   while (batch->running() > 0) batch->step();
//   for (int64_t i = 0; i < 8; ++i) use(*batch->take(i));
#pragma once

#include <memory>
#include <span>
#include <string>

#include "loom/language_model.hpp"

namespace loom {

struct BatchOptions {
  int64_t sequences = 4;  // texts at the same time
  // The options of each text. A pass reads `chunk` tokens of all texts together, or one of each
  // text if that is more.
  ModelSessionOptions session{};
  bool share_passes = true;  // false: texts alternate, each in passes of its own
  // Positions in the KV cache for all texts together; 0 means the maximum, sequences * context.
  // With fewer, a text starts when there is memory for its prompt and max_tokens, in order of
  // arrival. The minimum is the context of one text. Without shared passes there is no such bound.
  int64_t positions = 0;
  // Draft tokens that one pass may verify per text, 0 to 64; 0 disables speculation. This bounds
  // GenerateOptions::guesses. They come from `draft`, a smaller model with the same vocabulary, and
  // from the options of the text. Costs memory: that many more rows of logits per sequence, and the
  // draft model's own batch.
  int64_t guesses = 0;
  const Model* draft = nullptr;
};

// Counters of the KV cache of all texts.
struct BatchCounts {
  int64_t positions = 0;  // positions with memory for keys and values
  int64_t reused = 0;     // positions that reuse() found, over all calls
  int64_t evicted = 0;    // reusable positions that were evicted for memory
};

// Not thread-safe: one thread at a time.
class LOOM_API Batch {
 public:
  // Takes all memory that the texts need. Passes are not shared if a layer other than attention
  // reads several positions: then texts alternate (shares_passes()). Errors: those of
  // Model::session(), invalid_argument (sequences not in 1 to 4096, guesses not in 0 to 64, a draft
  // with another vocabulary).
  static Result<Batch> create(const Model& model, const BatchOptions& options = {});

  // Starts a text in a sequence that has none. Its prompt continues at position(sequence). Nothing
  // is computed yet. Errors: invalid_argument (options, an empty prompt, a sequence with a text),
  // out_of_range (a token outside the vocabulary). After an error the sequence has no text.
  Status start(int64_t sequence, std::span<const TokenId> prompt,
               const GenerateOptions& options = {}, const TextSink& sink = {});
  // Runs one pass: every running text reads its last token, or a part of its prompt. Prompts are
  // read in order of arrival. An Error ends all texts of the pass. An error of one text, such as a
  // prompt longer than the context, ends that text only; take() returns it.
  Status step();
  bool running(int64_t sequence) const;  // has a text that has not ended
  int64_t running() const;               // number of running texts
  // Ends a text with StopReason::cancelled and keeps its tokens so far.
  void cancel(int64_t sequence);
  // Returns the text of a sequence that has ended, and removes it from the sequence. Errors: the
  // error that ended it (a prompt longer than the context), invalid_argument (no text, or a running
  // one).
  Result<Generation> take(int64_t sequence);

  int64_t sequences() const;
  bool shares_passes() const;
  int64_t context() const;                   // positions per sequence
  int64_t position(int64_t sequence) const;  // tokens that it has read
  // Drops the positions from `position` on of a sequence without a text. If positions are bounded
  // (BatchOptions), a text that starts may make other sequences drop all of theirs.
  void rewind(int64_t sequence, int64_t position);
  // Drops all positions of a sequence without a text. reuse() no longer finds them, except for
  // prefixes that another sequence has as well.
  void erase(int64_t sequence);
  // Resets a sequence without a text to the longest cached prefix of `prompt` that any sequence has
  // read. The last token is excluded because its logits are needed. Returns the number of tokens
  // reused; start() continues with the rest. Common prefixes are stored once, in pages of 16
  // positions. Unused pages stay until their memory is needed, and are evicted least recently used
  // first. The tokens of a text do not depend on any of this. Without shared passes only the
  // sequence's own prefix is found.
  int64_t reuse(int64_t sequence, std::span<const TokenId> prompt);
  // Isolates sequences: reuse() finds only what sequences of the same salt have read. So its result
  // and timing reveal nothing about texts of another salt. A sequence without a text that gets a
  // new salt drops what it has read; the same salt changes nothing. The default is 0.
  void set_salt(int64_t sequence, uint64_t salt);
  uint64_t salt(int64_t sequence) const;
  // Saves and restores what a sequence without a text has read, in the file format of
  // ModelSession::save_state(). Errors: those of ModelSession, invalid_argument (the sequence has a
  // text), out_of_range (running texts need the memory; the sequence is then empty).
  Status save_state(int64_t sequence, const std::string& path) const;
  Status load_state(int64_t sequence, const std::string& path);
  BatchCounts counts() const;  // zero without shared passes
  int64_t bytes() const;       // memory in total; constant

  struct LOOM_LOCAL Impl;
  explicit Batch(std::unique_ptr<Impl> impl);
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom
