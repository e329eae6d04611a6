// EncoderSession: runs texts through an encoder, one at a time. The bits of a result depend only on
// the text and the model. One thread at a time.
#pragma once

#include <span>
#include <vector>

#include "llm/model.hpp"

namespace loom::core {

// Pools `rows` [T, width] to one vector [width] (EncoderPooling::none: all rows). Sums are in
// double precision, positions ascending.
void pool_rows(const Tensor& rows, EncoderPooling how, std::vector<float>& out);
// Divides each of `rows` vectors of `values` by its Euclidean length, or by 1e-12 if that is
// larger.
void normalize_rows(std::vector<float>& values, int64_t rows);

class EncoderSession {
 public:
  // `longest`: tokens of the longest text. Errors: unsupported (the model is not an encoder).
  static Result<EncoderSession> create(const LanguageModel& model, const Ops& ops, ThreadPool& pool,
                                       int64_t longest, ActivationMode activations);

  // Hidden states [T, width] of a text, valid until the next call. Errors: out_of_range (an id
  // outside the vocabulary, too many tokens, none).
  Result<Tensor> hidden(const Tokenizer::Encoding& text);
  // The head's output for a text: [labels]. Errors: unsupported (a model without a head).
  Result<std::span<const float>> labels(const Tokenizer::Encoding& text);

  int64_t bytes() const { return session_.arena_bytes() + session_.state_bytes(); }

 private:
  EncoderSession(const LanguageModel& model, Session session, int64_t longest);
  Tensor column(std::vector<int32_t>& ids) const;

  const LanguageModel* model_;
  Session session_;
  int64_t longest_;
  std::vector<int32_t> ids_, positions_, types_;
  std::vector<float> pooled_;
};

}  // namespace loom::core
