// LlmSession: one conversation with a LanguageModel: KV cache, position, logits. Pieces of any size
// give the same bits.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "llm/model.hpp"
#include "llm/sessions/session_state.hpp"
#include "llm/sessions/state_progress.hpp"
#include "llm/token_reader.hpp"
#include "ops/recording/device.hpp"

namespace loom::core {

struct LlmSessionOptions {
  int64_t context = 0;    // positions in the cache; 0 means the model's maximum, at most 2048
  int64_t chunk = 0;      // tokens per forward pass of a prompt; 0 means 256, or 2048 on a device
  int64_t head_rows = 0;  // logits computed at a time; 0 means 16, or 1 on a device
  ActivationMode activations = ActivationMode::q8;
  DType cache = DType::f32;  // of keys and values (SessionOptions::cache)
  // Called if a device fails: feed() and feed_sampled() then start again on the host with the
  // tokens so far. If it is unset, they return the error.
  std::function<void(const Error&)> device_failed;
};

class LlmSession : public TokenReader {
 public:
  static Result<LlmSession> create(const LanguageModel& model, const Ops& ops, ThreadPool& pool,
                                   const LlmSessionOptions& options);

  // Feeds tokens and keeps the logits of the last one. An id outside the vocabulary or a full
  // context is an Error, and then nothing was fed.
  Status feed(std::span<const TokenId> ids) override;
  // Feeds tokens and hands the logits of every position to `sink(position in ids, logits)`.
  Status feed_all(std::span<const TokenId> ids,
                  const std::function<Status(int64_t, std::span<const float>)>& sink) override;

  // States [T, width] of a whole text of T tokens after the last norm, valid until the next call.
  // Drops everything that was fed before. Errors: as feed(); unsupported (a network without such a
  // norm).
  Result<Tensor> hidden(std::span<const TokenId> ids);

  // Feeds `id` and count - 1 tokens, each sampled by `how` from the logits after the previous one.
  // Appends all `count` sampled tokens to `found`; the last one is not fed. On a device the host
  // waits once.
  Status feed_sampled(TokenId id, int64_t count, const DeviceSampling& how,
                      std::vector<TokenId>& found) override;
  // How many tokens feed_sampled() should find at a time. On a device as many as it samples in a
  // twentieth of a second, 2 to 64. 1 means that more has no benefit.
  int64_t sample_batch() const override;

  // Logits after the last feed(): [vocab].
  std::span<const float> logits() const override { return logits_; }
  int64_t position() const override { return session_.position(); }
  // The tokens fed, up to position().
  std::span<const TokenId> fed() const override { return fed_; }
  int64_t context() const override { return options_.context; }
  int64_t vocab() const override { return model_->config().vocab_size; }
  int64_t chunk() const { return options_.chunk; }
  const LanguageModel& model() const { return *model_; }
  // Recurrent states go back to the start, or to the last pass (StateProgress). The tokens from
  // there to `position` are read again by the next call that feeds.
  void rewind(int64_t position) override;
  // Tokens that were read again after rewind(), over all calls.
  int64_t read_again() const { return read_again_; }

  // Saves what the session has read, with keys, values and logits, to a file (session_state.cpp),
  // and restores it with the same bits. load_state() needs the same weights, types and numerics,
  // and room for the tokens; after an Error the session is unchanged. Errors: unsupported (on a
  // GPU, layers whose sequences cannot share a pass), bad_file, out_of_range (a context that is too
  // small), those of files.
  Status save_state(const FileRef& path) const;
  Status load_state(const FileRef& path);

  int64_t arena_bytes() const { return session_.arena_bytes(); }
  int64_t state_bytes() const { return session_.state_bytes(); }
  // Number of recorded passes; other passes reused recorded commands (Session::recordings). It is 0
  // for sessions on a device and for recurrent layers, which record each pass.
  int64_t recordings() const { return session_.recordings(); }
  void set_profile(OpProfile* profile);

 private:
  LlmSession(const LanguageModel& model, Session session, ThreadPool& pool,
             const LlmSessionOptions& options);
  static Result<Session> make_session(const LanguageModel& model, const Ops& ops, ThreadPool& pool,
                                      const LlmSessionOptions& options);
  Status check_state() const;
  StateTarget target() const;
  bool may_move_to_host() const;
  Status move_to_host();
  // Runs try_it(), and again on the host if the device fails.
  template <class F>
  Status on_either(const F& try_it);
  Status feed_piece(std::span<const TokenId> piece, bool last);
  void advance(int64_t count);
  Status catch_up();
  Status draw(TokenId id, int64_t count, const DeviceSampling& how);
  Status choose(const Tensor& logits, const DeviceSampling& how, int64_t index);
  Tensor drawn(int64_t index, int64_t count) const;
  Status check(std::span<const TokenId> ids) const;
  Status feed_placed(std::span<const TokenId> piece, bool last);
  Result<Tensor> feed_whole(std::span<const TokenId> piece);
  Status set_row_positions(int64_t count, bool last_first);
  Tensor ids_of(std::span<const TokenId> piece);
  Status check_logits(const Tensor& logits, int64_t rows) const;
  Result<Tensor> body(const Tensor& ids);  // hidden states [1, T, width]
  // Logits [rows, vocab]; `fetch`: whether the host reads them.
  Result<Tensor> head(const Tensor& hidden, int64_t row, int64_t rows, bool fetch = true);

  const LanguageModel* model_;
  Session session_;
  ThreadPool* pool_;
  LlmSessionOptions options_;
  std::vector<TokenId> ids_;
  std::vector<RowPosition> places_;  // of the rows of a pass, if the session is ragged
  std::vector<TokenId> fed_;         // up to position()
  StateProgress progress_;
  int64_t read_again_ = 0;
  int64_t batch_;  // sample_batch() of a device
  Buffer drawn_;   // found tokens of feed_sampled(), read by the next step; candidates
  Attached drawn_attached_;
  std::span<const float> logits_;
  std::vector<float> hidden_;  // of hidden()
  std::vector<float> loaded_;  // those of load_state()
};

}  // namespace loom::core
