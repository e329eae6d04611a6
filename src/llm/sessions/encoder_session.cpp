#include "llm/sessions/encoder_session.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "llm/encoder.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core {
namespace {

double pooling_weight(EncoderPooling how, int64_t row) {
  return how == EncoderPooling::weighted_mean ? static_cast<double>(row + 1) : 1.0;
}

// Divides the sum of the weighted rows to get the requested mean.
void average_rows(const Tensor& rows, EncoderPooling how, std::vector<float>& out) {
  std::vector<double> sums(static_cast<size_t>(rows.cols()), 0.0);
  double total = 0.0;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const double weight = pooling_weight(how, r);
    const float* row = rows.f32_row(r);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += weight * static_cast<double>(row[i]);
    total += weight;
  }
  if (how == EncoderPooling::mean_sqrt_len) total = __builtin_sqrt(total);
  for (const double sum : sums) out.push_back(static_cast<float>(sum / total));
}

}  // namespace

void pool_rows(const Tensor& rows, EncoderPooling how, std::vector<float>& out) {
  const auto append = [&](int64_t r) {
    out.insert(out.end(), rows.f32_row(r), rows.f32_row(r) + rows.cols());
  };
  out.clear();
  switch (how) {
    case EncoderPooling::cls: append(0); return;
    case EncoderPooling::last: append(rows.rows() - 1); return;
    case EncoderPooling::none:
      for (int64_t r = 0; r < rows.rows(); ++r) append(r);
      return;
    case EncoderPooling::max:
      append(0);
      for (int64_t r = 1; r < rows.rows(); ++r)
        for (size_t i = 0; i < out.size(); ++i) out[i] = std::max(out[i], rows.f32_row(r)[i]);
      return;
    default: average_rows(rows, how, out);
  }
}

void normalize_rows(std::vector<float>& values, int64_t rows) {
  const size_t width = rows > 0 ? values.size() / static_cast<size_t>(rows) : 0;
  for (size_t begin = 0; begin + width <= values.size() && width > 0; begin += width) {
    double sum = 0.0;
    for (size_t i = begin; i < begin + width; ++i)
      sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    const double length = std::max(__builtin_sqrt(sum), 1e-12);
    for (size_t i = begin; i < begin + width; ++i)
      values[i] = static_cast<float>(static_cast<double>(values[i]) / length);
  }
}

EncoderSession::EncoderSession(const LanguageModel& model, Session session, int64_t longest)
    : model_(&model), session_(std::move(session)), longest_(longest) {}

Result<EncoderSession> EncoderSession::create(const LanguageModel& model, const Ops& ops,
                                              ThreadPool& pool, int64_t longest,
                                              ActivationMode activations) {
  if (model.encoder() == nullptr) {
    return unsupported(cat(model.config().architecture, " is not an encoder"), model.source());
  }
  const EncoderConfig& config = *model.encoder();
  if (longest < 1 || longest > config.max_positions) {
    return make_error(Code::out_of_range,
                      cat("texts of ", longest, " tokens were asked for; this model takes 1 to ",
                          config.max_positions),
                      model.source());
  }
  SessionOptions options;
  options.max_positions = longest;
  options.activations = activations;
  const size_t body = encoder_body_cells(model.network(), config);
  if (body < model.network().cells().size()) {
    options.logits_from_cell = body;
    options.num_logits_rows = 1;
  }
  LOOM_ASSIGN(Session session,
              Session::create(model.network(), ops, pool, Shape{longest, 1}, options));
  return EncoderSession(model, std::move(session), longest);
}

Tensor EncoderSession::column(std::vector<int32_t>& ids) const {
  Tensor t;
  t.dtype = DType::i32;
  t.shape = Shape{static_cast<int64_t>(ids.size()), 1};
  t.row_stride = 1;
  t.data = reinterpret_cast<std::byte*>(ids.data());
  return t;
}

Result<Tensor> EncoderSession::hidden(const Tokenizer::Encoding& text) {
  const EncoderConfig& config = *model_->encoder();
  const auto count = static_cast<int64_t>(text.ids.size());
  if (count < 1 || count > longest_) {
    return make_error(Code::out_of_range,
                      cat("a text has ", count, " tokens; this session takes ", "1 to ", longest_));
  }
  for (const TokenId id : text.ids) {
    if (id >= 0 && id < config.vocab_size) continue;
    return make_error(Code::out_of_range,
                      cat("token id ", id, " is outside the vocabulary of ", config.vocab_size));
  }
  ids_ = text.ids;
  types_ = text.types;
  types_.resize(ids_.size(), 0);
  for (int32_t& type : types_) type = std::min(type, static_cast<int32_t>(config.types) - 1);
  positions_.resize(ids_.size());
  for (size_t i = 0; i < positions_.size(); ++i)
    positions_[i] = static_cast<int32_t>(config.position_offset) + static_cast<int32_t>(i);
  std::vector<Tensor> more;
  if (config.position_rows > 0) more.push_back(column(positions_));
  if (config.types > 0) more.push_back(column(types_));
  LOOM_TRY(session_.give(more));
  session_.rewind(0);
  const size_t body = encoder_body_cells(model_->network(), config);
  LOOM_ASSIGN(const Tensor found, session_.forward(column(ids_), 0, body));
  LOOM_TRY(to_host(session_.recorder().ops(), {found}));
  return f32_matrix(found.f32(), count, config.hidden_size);
}

Result<std::span<const float>> EncoderSession::labels(const Tokenizer::Encoding& text) {
  const EncoderConfig& config = *model_->encoder();
  if (config.labels == 0) {
    return unsupported(cat(config.architecture, " has no head that scores; give a model for ",
                           "sequence classification with one label"),
                       model_->source());
  }
  LOOM_ASSIGN(const Tensor rows, hidden(text));
  pool_rows(rows, config.head_pooling, pooled_);
  Tensor one = f32_matrix(pooled_.data(), 1, config.hidden_size);
  one.shape = Shape{1, 1, config.hidden_size};
  const size_t body = encoder_body_cells(model_->network(), config);
  LOOM_ASSIGN(const Tensor scores, session_.forward(one, body, model_->network().cells().size()));
  return std::span<const float>(scores.f32(), static_cast<size_t>(config.labels));
}

}  // namespace loom::core
