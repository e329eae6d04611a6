// LlmBatch: several sequences of a LanguageModel that read their tokens in shared passes, so that
// weights are read once for all of them. Each has a KV cache and a position of its own; rows of a
// pass say where they belong (Session::place), and every op computes its rows one by one, so the
// logits of a sequence have the bits that it gets alone. On the CPU.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "llm/model.hpp"
#include "llm/token_reader.hpp"

namespace loom::core {

struct LlmBatchOptions {
  int64_t sequences = 4;
  int64_t context = 0;  // positions of each; 0: the model's maximum, at most 2048
  int64_t chunk = 256;  // tokens of a pass, of all sequences; at least one for each
  ActivationMode activations = ActivationMode::q8;
  DType cache = DType::f32;  // of keys and values (SessionOptions::cache)
};

class LlmBatch {
 public:
  // What a sequence reads in a pass. Without `logits` those of its last token are not computed.
  struct Piece {
    int64_t sequence = 0;
    std::span<const TokenId> ids;
    bool logits = true;
  };

  // Takes all memory that passes need. Errors: those of Session::create(); unsupported on a device,
  // and where a layer looks at several rows of its input; out_of_range for a context beyond the
  // model's.
  static Result<LlmBatch> create(const LanguageModel& model, const Ops& ops, ThreadPool& pool,
                                 const LlmBatchOptions& options);

  // One pass. Errors, after which nothing was read: a sequence twice or one that there is not, an
  // id outside the vocabulary, a full context, more than rows() tokens.
  Status feed(std::span<const Piece> pieces);

  // Of the last pass, [vocab]; empty where it did not ask for them.
  std::span<const float> logits(int64_t sequence) const { return at(sequence).logits; }
  // The tokens that a sequence has read.
  std::span<const TokenId> fed(int64_t sequence) const { return at(sequence).fed; }
  int64_t position(int64_t sequence) const { return static_cast<int64_t>(at(sequence).fed.size()); }
  void rewind(int64_t sequence, int64_t position);
  // One sequence as generation knows it; good as long as the batch stays where it is.
  std::unique_ptr<TokenReader> reader(int64_t sequence);

  int64_t sequences() const { return static_cast<int64_t>(states_.size()); }
  int64_t rows() const { return rows_; }  // tokens that a pass can take
  int64_t context() const { return context_; }
  int64_t arena_bytes() const { return session_.arena_bytes(); }
  int64_t state_bytes() const { return session_.state_bytes(); }
  void set_profile(OpProfile* profile) { session_.recorder().set_profile(profile); }

 private:
  struct State {
    std::vector<TokenId> fed;
    std::span<const float> logits;
    bool named = false;  // by a piece of the pass that is being checked
  };
  LlmBatch(const LanguageModel& model, Session session, const LlmBatchOptions& options);
  const State& at(int64_t sequence) const { return states_[static_cast<size_t>(sequence)]; }
  Status check(std::span<const Piece> pieces);
  int64_t lay_out(std::span<const Piece> pieces);
  Result<Tensor> pass(int64_t wanted);

  const LanguageModel* model_;
  Session session_;
  int64_t rows_, context_;
  std::vector<State> states_;
  std::vector<TokenId> ids_;      // of the pass, row by row
  std::vector<RowPlace> places_;  // likewise
};

}  // namespace loom::core
