// LlmBatch: several sequences of a LanguageModel that read their tokens in shared passes, so that
// weights are read once for all of them. Each has a KV cache and a position of its own; rows of a
// pass say where they belong (Session::place), and every op computes its rows one by one, so the
// logits of a sequence have the bits that it gets alone. Keys and values are kept in pages
// (PagePool), so that what several sequences begin with is kept, and read, once. On a device as
// well: its logits have bits of their own there, which no more depend on the other sequences.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "llm/model.hpp"
#include "llm/page_pool.hpp"
#include "llm/session_state.hpp"
#include "llm/token_reader.hpp"

namespace loom::core {

struct LlmBatchOptions {
  int64_t sequences = 4;
  int64_t context = 0;  // positions of each; 0: the model's maximum, at most 2048
  int64_t chunk = 256;  // tokens of a pass, of all sequences; at least one for each
  ActivationMode activations = ActivationMode::q8;
  DType cache = DType::f32;  // of keys and values (SessionOptions::cache)
  // That are kept for all sequences together, at least those of one; 0: as many as they could have.
  int64_t positions = 0;
  // On a device: when it fails, feed() reads what the sequences have read anew on the host, goes on
  // there, and calls this with what happened. Unset: it returns the error.
  std::function<void(const Error&)> device_failed;
  // Tokens before the last one of a piece whose logits may be asked for too: guesses that are
  // checked.
  int64_t guesses = 0;
};

class LlmBatch {
 public:
  // What a sequence reads in a pass, and after how many of its last tokens logits are computed: at
  // most LlmBatchOptions::guesses and one.
  struct Piece {
    int64_t sequence = 0;
    std::span<const TokenId> ids;
    int64_t logits = 1;
  };

  // Takes all memory that passes need. Errors: those of Session::create(); unsupported where a
  // layer looks at several rows of its input; out_of_range for a context beyond the model's.
  static Result<LlmBatch> create(const LanguageModel& model, const Ops& ops, ThreadPool& pool,
                                 const LlmBatchOptions& options);

  // One pass. Errors, after which nothing was read: a sequence twice or one that there is not, an
  // id outside the vocabulary, a full context, more than rows() tokens, logits of more of them than
  // there are or than was said.
  Status feed(std::span<const Piece> pieces);

  // Of the last pass, [vocab]; empty where it did not ask for them. Of several those after the last
  // token that the sequence has read, rewind() included.
  std::span<const float> logits(int64_t sequence) const { return at(sequence).logits; }
  // Of the last pass, after the token at this position, where it asked for them.
  std::span<const float> logits_at(int64_t sequence, int64_t position) const;
  // The tokens that a sequence has read.
  std::span<const TokenId> fed(int64_t sequence) const { return at(sequence).fed; }
  int64_t position(int64_t sequence) const { return static_cast<int64_t>(at(sequence).fed.size()); }
  void rewind(int64_t sequence, int64_t position);

  // The sequence forgets what it has read and begins with the longest prefix of `tokens` that some
  // sequence has read, as far as it is still kept; returns how many tokens that is.
  int64_t reuse(int64_t sequence, std::span<const TokenId> tokens);
  // Books memory for the first `positions` of a sequence, so that no feed() up to there fails for
  // want of it. False: there is not so much beside what others booked or have. 0: no more booked.
  bool book(int64_t sequence, int64_t positions) { return pool_.book(sequence, positions); }
  // `to` forgets what it has read and has read what `from` has; there are no logits of it.
  void fork(int64_t from, int64_t to);
  // Forgets what the sequence has read. From now on reuse() shares with equal salts alone.
  void set_salt(int64_t sequence, uint64_t salt) {
    park(sequence);
    pool_.set_salt(sequence, salt);
  }
  uint64_t salt(int64_t sequence) const { return pool_.salt(sequence); }
  // Lets reuse() find all that the sequence has read, and not its full pages alone.
  void publish(int64_t sequence) { pool_.publish(sequence, fed(sequence)); }
  // Forgets what the sequence has read; it can be found by reuse() while the memory is not needed.
  void park(int64_t sequence);
  // Forgets it for good, but for what another sequence has as well.
  void erase(int64_t sequence);
  const PagePool& pool() const { return pool_; }

  // What a sequence has read as a file, and back (LlmSession::save_state()); a session reads the
  // files of a batch and a batch those of a session. After an Error of load_state() the sequence
  // is as it was, or has read nothing where its memory was not enough.
  Status save_state(int64_t sequence, const FileRef& path) const;
  Status load_state(int64_t sequence, const FileRef& path);

  // One sequence as generation knows it; good as long as the batch stays where it is.
  std::unique_ptr<TokenReader> reader(int64_t sequence);

  int64_t sequences() const { return static_cast<int64_t>(states_.size()); }
  int64_t guesses() const { return options_.guesses; }  // at most chunk / sequences - 1
  int64_t rows() const { return rows_; }                // tokens that a pass can take
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
    std::vector<float> loaded;  // logits of load_state()
    bool named = false;         // by a piece of the pass that is being checked
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
  Result<Tensor> pass(int64_t wanted);
  Status read_pieces(std::span<const Piece> pieces);
  bool may_move_to_host() const;
  Status move_to_host();
  Status read_again(int64_t sequence);

  const LanguageModel* model_;
  Session session_;
  ThreadPool* threads_;
  LlmBatchOptions options_;
  int64_t rows_;
  std::vector<State> states_;
  PagePool pool_;
  std::vector<PagePool::Copy> copies_;
  std::vector<TokenId> ids_;      // of the pass, row by row
  std::vector<RowPlace> places_;  // likewise
};

}  // namespace loom::core
