// LlmBatch: several sequences of a LanguageModel that read their tokens in shared passes, so that
// weights are read once for all of them. Each has its own KV cache and position. Rows of a pass
// name their sequence (Session::place), and every op computes each row separately. So the logits of
// a sequence have the same bits as in a separate session. Keys and values are in pages (PagePool),
// so a common prefix is read and stored once. On a device, logits have other bits, but do not
// depend on the other sequences either.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "llm/model.hpp"
#include "llm/sessions/page_pool.hpp"
#include "llm/sessions/session_state.hpp"
#include "llm/sessions/state_progress.hpp"
#include "llm/token_reader.hpp"

namespace loom::core {

struct LlmBatchOptions {
  int64_t sequences = 4;
  int64_t context = 0;  // positions of each; 0 means the model's maximum, at most 2048
  int64_t chunk = 256;  // tokens of a pass, over all sequences; at least one for each
  ActivationMode activations = ActivationMode::q8;
  DType cache = DType::f32;  // of keys and values (SessionOptions::cache)
  // Positions in the cache for all sequences, at least those of one; 0 means the maximum.
  int64_t positions = 0;
  // Called if a device fails: feed() then reads the tokens of all sequences again on the host and
  // continues there. If it is unset, feed() returns the error.
  std::function<void(const Error&)> device_failed;
  // Tokens before the last one of a piece whose logits may be requested too: draft tokens to
  // verify.
  int64_t guesses = 0;
};

class LlmBatch {
 public:
  // The tokens of a sequence in a pass, and for how many of its last tokens logits are computed: at
  // most LlmBatchOptions::guesses + 1.
  struct Piece {
    int64_t sequence = 0;
    std::span<const TokenId> ids;
    int64_t logits = 1;
  };

  // Takes all memory that passes need. Errors: those of Session::create(); unsupported (a layer
  // that reads several rows of its input); out_of_range (a context beyond the model's).
  static Result<LlmBatch> create(const LanguageModel& model, const Ops& ops, ThreadPool& pool,
                                 const LlmBatchOptions& options);

  // Runs one pass. After an error nothing was read. Errors: a repeated or unknown sequence, an id
  // outside the vocabulary, a full context, more than rows() tokens; logits of more tokens than the
  // piece has or the options allow.
  Status feed(std::span<const Piece> pieces);

  // Logits of the last pass, [vocab]; empty if they were not requested. If it has several, those
  // after the last token that the sequence has read, rewind() included.
  std::span<const float> logits(int64_t sequence) const { return at(sequence).logits; }
  // Logits of the last pass after the token at this position, if they were requested.
  std::span<const float> logits_at(int64_t sequence, int64_t position) const;
  // All tokens that a sequence has read.
  std::span<const TokenId> fed(int64_t sequence) const { return at(sequence).fed; }
  int64_t position(int64_t sequence) const { return static_cast<int64_t>(at(sequence).fed.size()); }
  // Recurrent states go back to the start, or to the last pass (StateProgress). The tokens from
  // there to `position` are read again before the next pass of the sequence.
  void rewind(int64_t sequence, int64_t position);
  // Tokens that were read again after rewind(), over all calls.
  int64_t read_again() const { return read_again_; }

  // Resets the sequence to the longest cached prefix of `tokens` that some sequence has read.
  // Returns the number of tokens in it. With recurrent states, only the sequence itself counts, and
  // only if it need not be read from the start again.
  int64_t reuse(int64_t sequence, std::span<const TokenId> tokens);
  // Reserves memory for the first `positions` of a sequence, so that no feed() up to there fails
  // for lack of memory. Returns false if the others have or reserved too much. 0 cancels the
  // reservation.
  bool book(int64_t sequence, int64_t positions) { return pool_.book(sequence, positions); }
  // Replaces the contents of `to` by those of `from`, without logits.
  void fork(int64_t from, int64_t to);
  // Drops what the sequence has read. From now on reuse() shares only with equal salts.
  void set_salt(int64_t sequence, uint64_t salt) {
    park(sequence);
    pool_.set_salt(sequence, salt);
  }
  uint64_t salt(int64_t sequence) const { return pool_.salt(sequence); }
  // Lets reuse() find all tokens of the sequence, not only its full pages.
  void publish(int64_t sequence) { pool_.publish(sequence, fed(sequence)); }
  // Drops what the sequence has read; reuse() finds it while its memory is not needed.
  void park(int64_t sequence);
  // Drops it permanently, except what another sequence has too.
  void erase(int64_t sequence);
  const PagePool& pool() const { return pool_; }

  // Saves and restores what a sequence has read (LlmSession::save_state()). A session reads the
  // files of a batch and vice versa. After an Error of load_state() the sequence is unchanged, or
  // empty if memory was insufficient.
  Status save_state(int64_t sequence, const FileRef& path) const;
  Status load_state(int64_t sequence, const FileRef& path);

  // One sequence as a TokenReader; valid while the batch is not moved.
  std::unique_ptr<TokenReader> reader(int64_t sequence);

  int64_t sequences() const { return static_cast<int64_t>(states_.size()); }
  int64_t drafts() const { return options_.guesses; }  // at most chunk / sequences - 1
  int64_t rows() const { return rows_; }               // maximum tokens of a pass
  int64_t context() const { return options_.context; }
  int64_t vocab() const { return model_->config().vocab_size; }
  int64_t recordings() const { return session_.recordings(); }
  int64_t arena_bytes() const { return session_.arena_bytes(); }
  int64_t state_bytes() const { return session_.state_bytes(); }
  void set_profile(OpProfile* profile);

 private:
  struct State {
    std::vector<TokenId> fed;
    std::span<const float> logits;
    Tensor rows;  // logits of the last pass, and the position of the first
    int64_t first_row = 0;
    std::vector<float> loaded;  // logits from load_state()
    bool named = false;         // named by a piece of the pass being checked
  };
  LlmBatch(const LanguageModel& model, Session session, ThreadPool& threads,
           const LlmBatchOptions& options);
  static Result<Session> make_session(const LanguageModel& model, const Ops& ops,
                                      ThreadPool& threads, const LlmBatchOptions& options);
  const State& at(int64_t sequence) const { return states_[static_cast<size_t>(sequence)]; }
  Status check(std::span<const Piece> pieces);
  Status make_room(int64_t sequence, int64_t count);
  StateTarget target(int64_t sequence) const;
  std::span<const int32_t> pages_of(int64_t sequence) const;
  int64_t lay_out(std::span<const Piece> pieces);
  Result<Tensor> pass(int64_t requested);
  Status read_pieces(std::span<const Piece> pieces);
  bool may_move_to_host() const;
  Status move_to_host();
  Status read_again(int64_t sequence, int64_t from);
  Status catch_up(std::span<const Piece> pieces);
  int64_t reuse_state(int64_t sequence, std::span<const TokenId> tokens);

  const LanguageModel* model_;
  Session session_;
  ThreadPool* threads_;
  LlmBatchOptions options_;
  int64_t rows_;
  std::vector<State> states_;
  PagePool pool_;
  StateProgress progress_;
  int64_t read_again_ = 0;
  std::vector<PagePool::Copy> copies_;
  std::vector<TokenId> ids_;         // of the pass, row by row
  std::vector<RowPosition> places_;  // likewise
};

}  // namespace loom::core
