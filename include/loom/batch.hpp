// Batch: several texts of one model that are written together. All of them share each pass through
// the weights, so eight texts take little longer than one; whichever ends makes room for the next,
// and prompts are read beside texts that go on. The tokens of a text are those of
// ModelSession::generate(): they do not depend on the others, nor on who joins or leaves when. On a
// GPU they do not either, but a session, which reads its prompt by other kernels, may differ in the
// last bits there.
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
  // For each of them; `chunk` tokens of all together are read in a pass, or one for each where that
  // is more.
  ModelSessionOptions session{};
  bool share_passes = true;  // false: texts take turns, each in passes of its own
  // Positions whose keys and values are kept for all texts together; 0: as many as they could have
  // (sequences * context). With fewer, a text begins when there is memory for its prompt and
  // max_tokens, those that came first first; at least the context of one. Without shared passes
  // there is no such bound.
  int64_t positions = 0;
  // Guesses that a text may check in a pass (GenerateOptions::guesses, of which a text has at most
  // so many), up to 64; 0: none. They are those of `draft`, a smaller model with the same
  // vocabulary, and what the options of a text say beside that. Memory: logits of so many more rows
  // for each sequence, and the draft's own batch.
  int64_t guesses = 0;
  const Model* draft = nullptr;
};

// Of what is kept of all texts.
struct BatchCounts {
  int64_t positions = 0;  // whose keys and values there is memory for
  int64_t reused = 0;     // positions that reuse() found, of all calls
  int64_t evicted = 0;    // positions that could have been found and whose memory was needed
};

// Not thread-safe: one thread at a time.
class LOOM_API Batch {
 public:
  // Takes all memory that the texts need. For models with layers that look at several positions
  // otherwise than attention does, passes are not shared: texts take turns (shares_passes()).
  // Errors: those of Model::session(), invalid_argument for sequences out of 1 to 4096, for guesses
  // out of 0 to 64 or a draft with another vocabulary.
  static Result<Batch> create(const Model& model, const BatchOptions& options = {});

  // A text in a sequence that has none: its prompt goes on from position(sequence). Nothing is
  // computed yet. Errors: invalid_argument (options, an empty prompt, a sequence with a text),
  // out_of_range (a token outside the vocabulary), and then the sequence still has none.
  Status start(int64_t sequence, std::span<const TokenId> prompt,
               const GenerateOptions& options = {}, const TextSink& sink = {});
  // One pass, in which every text that runs reads its last token, or a part of its prompt. Prompts
  // that came first are read first. An Error ends all texts of the pass with it; what concerns one
  // text, such as a prompt longer than the context, ends that one alone and is told by take().
  Status step();
  bool running(int64_t sequence) const;  // has a text that has not ended
  int64_t running() const;               // how many have
  // Ends a text with StopReason::cancelled, whatever it has by now.
  void cancel(int64_t sequence);
  // The text of a sequence that has ended, and no more a text in it. Errors: the one that ended it
  // (a prompt longer than the context), invalid_argument where there is none, or one that runs.
  Result<Generation> take(int64_t sequence);

  int64_t sequences() const;
  bool shares_passes() const;
  int64_t context() const;                   // positions of a sequence
  int64_t position(int64_t sequence) const;  // tokens that it has read
  // Forgets what a sequence without a text has read from `position` on. Where positions are bounded
  // (BatchOptions), a text that starts may make the others forget all of it.
  void rewind(int64_t sequence, int64_t position);
  // A sequence without a text forgets what it has read, and no reuse() finds it any more, but for
  // beginnings that another sequence has as well.
  void erase(int64_t sequence);
  // A sequence without a text forgets what it has read and begins with the longest prefix of
  // `prompt` that any sequence has read, as far as that is still kept, but for the last token,
  // whose logits are needed. Returns how many tokens that is: start() goes on with the rest. What
  // sequences have in common is kept once, in pages of 16 positions; pages that no sequence has any
  // more stay until their memory is needed, and go one by one, the longest out of use first. The
  // tokens of a text do not depend on any of this. Without shared passes: the prefix that this
  // sequence itself has read.
  int64_t reuse(int64_t sequence, std::span<const TokenId> prompt);
  // Parts what texts have in common: reuse() finds what sequences of the same salt have read, and
  // nothing else, so that its result and time do not tell what the texts of another salt were. A
  // sequence without a text gets another salt, and forgets what it has read; with its own salt it
  // keeps that. 0 at first.
  void set_salt(int64_t sequence, uint64_t salt);
  uint64_t salt(int64_t sequence) const;
  // What a sequence without a text has read as a file, and back: ModelSession::save_state(), whose
  // files they are. Errors: as there, invalid_argument where the sequence has a text, out_of_range
  // where texts that run need the memory; the sequence has read nothing then.
  Status save_state(int64_t sequence, const std::string& path) const;
  Status load_state(int64_t sequence, const std::string& path);
  BatchCounts counts() const;  // zeros without shared passes
  int64_t bytes() const;       // memory of all; it stays the same

  struct LOOM_LOCAL Impl;
  explicit Batch(std::unique_ptr<Impl> impl);
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom
