// Texts as vectors, and documents by their scores: prompts, truncation and pooling around the
// sessions of encoders and decoders.
#include <algorithm>

#include "api/engine/impl.hpp"
#include "base/numbers/dmath.hpp"
#include "base/text.hpp"
#include "llm/sessions/encoder_session.hpp"
#include "train_io/file_memory.hpp"

namespace loom::core {
namespace {

using Encoding = Tokenizer::Encoding;

// The resolved settings of embed(), from options and model.
struct Vectors {
  EncoderPooling pooling = EncoderPooling::mean;
  bool normalize = true;
  std::string prompt;
  int64_t most = 0;  // tokens of a text
};

Result<std::string> prompt_of(const LanguageModel& model, const EmbedOptions& options) {
  if (options.prompt) return *options.prompt;
  const EmbeddingSettings none;
  const EmbeddingSettings& own = model.embedding() != nullptr ? *model.embedding() : none;
  const std::string& name = options.prompt_name.empty() ? own.default_prompt : options.prompt_name;
  if (name.empty()) return std::string();
  std::vector<std::string> known;
  for (const auto& [prompt, text] : own.prompts) {
    if (prompt == name) return text;
    known.push_back(prompt);
  }
  return make_error(Code::not_found,
                    cat("this model has no prompt '", printable(name), "'; ",
                        known.empty() ? "it has none" : "it has " + join(known, ", ")),
                    model.source());
}

// Maximum tokens of a text: the limits of the model, of its files and of the caller.
int64_t token_limit(const LanguageModel& model, int64_t requested) {
  int64_t most = model.config().max_positions;
  if (requested > 0) return std::min(most, requested);
  if (model.embedding() != nullptr && model.embedding()->max_tokens > 0)
    most = std::min(most, model.embedding()->max_tokens);
  return most;
}

Result<Vectors> vectors_of(const LanguageModel& model, const EmbedOptions& options) {
  Vectors how;
  const bool decoder = model.encoder() == nullptr;
  how.pooling = decoder ? EncoderPooling::last : EncoderPooling::mean;
  if (model.embedding() != nullptr) {
    how.pooling = model.embedding()->pooling;
    how.normalize = model.embedding()->normalize;
  }
  if (options.pooling) how.pooling = static_cast<EncoderPooling>(*options.pooling);
  if (options.normalize) how.normalize = *options.normalize;
  LOOM_ASSIGN(how.prompt, prompt_of(model, options));
  if (options.max_tokens < 0) return invalid("max_tokens must be 0 or more");
  how.most = token_limit(model, options.max_tokens);
  const int64_t width = model.config().hidden_size;
  if (options.dimensions < 0 || options.dimensions > width) {
    return make_error(Code::out_of_range, cat("dimensions must be 0 to ", width, ", the width of ",
                                              "this model; got ", options.dimensions));
  }
  return how;
}

Result<const Tokenizer*> text_tokenizer(const LanguageModel& model) {
  if (const Tokenizer* tokenizer = model.tokenizer()) return tokenizer;
  return make_error(Code::not_found, "this model has no tokenizer, so it knows tokens but no text",
                    model.source());
}

Error too_many_tokens(std::string_view what, size_t index, int64_t tokens, int64_t most) {
  return make_error(Code::out_of_range,
                    cat(what, " ", index, " has ", tokens, " tokens, more than ", most,
                        "; shorten it, or let it be truncated"));
}

// A long text asks as well, before there is any result.
Tokenizer::EncodeOptions stopped_by(const std::function<bool(int64_t, int64_t)>& progress,
                                    size_t total) {
  Tokenizer::EncodeOptions options;
  if (progress)
    options.should_stop = [&progress, total] { return !progress(0, static_cast<int64_t>(total)); };
  return options;
}

// Texts with their prompt, no longer than allowed.
Result<std::vector<Encoding>> encode_all(const LanguageModel& model, const Vectors& how,
                                         std::span<const std::string> texts,
                                         const EmbedOptions& options) {
  LOOM_ASSIGN(const Tokenizer* tokenizer, text_tokenizer(model));
  const Tokenizer::EncodeOptions encoding = stopped_by(options.progress, texts.size());
  std::vector<Encoding> out;
  for (size_t i = 0; i < texts.size(); ++i) {
    LOOM_ASSIGN(Encoding text, tokenizer->encode_texts(how.prompt + texts[i], nullptr,
                                                       static_cast<size_t>(how.most), encoding));
    if (text.truncated && !options.truncate) {
      LOOM_ASSIGN(const Encoding whole, tokenizer->encode_texts(how.prompt + texts[i], nullptr));
      return too_many_tokens("text", i, static_cast<int64_t>(whole.ids.size()), how.most);
    }
    if (text.ids.empty())
      return make_error(Code::out_of_range, cat("text ", i, " has no token, so it has no vector"));
    out.push_back(std::move(text));
  }
  return out;
}

size_t longest_of(std::span<const Encoding> texts) {
  size_t longest = 1;
  for (const Encoding& text : texts) longest = std::max(longest, text.ids.size());
  return longest;
}

// Runs texts through whichever kind of model it is: its states, [T, width].
class States {
 public:
  static Result<States> create(const loom::Model& model, int64_t longest) {
    Engine::Impl& engine = *model.impl().engine;
    const LanguageModel& own = model.impl().model;
    States states;
    int64_t bytes = 0;
    if (own.encoder() != nullptr) {
      LOOM_ASSIGN(EncoderSession session, EncoderSession::create(own, *engine.ops, engine.pool,
                                                                 longest, engine.activations));
      bytes = session.bytes();
      states.encoder_.emplace(std::move(session));
    } else {
      LlmSessionOptions options;
      options.context = longest;
      options.head_rows = 32;
      options.activations = engine.activations;
      LOOM_ASSIGN(LlmSession session, make_session(model, options));
      bytes = session.arena_bytes() + session.state_bytes();
      states.decoder_.emplace(std::move(session));
    }
    states.held_ = ScopedMemoryUse(engine.memory_tracker, MemoryKind::sessions, bytes);
    return states;
  }
  Result<Tensor> of(const Encoding& text) {
    return encoder_ ? encoder_->hidden(text) : decoder_->hidden(text.ids);
  }

 private:
  States() = default;
  std::optional<EncoderSession> encoder_;
  std::optional<LlmSession> decoder_;
  ScopedMemoryUse held_;
};

// The first values of each row.
void cut_rows(std::vector<float>& values, int64_t rows, int64_t width) {
  const auto whole = static_cast<int64_t>(values.size()) / rows;
  if (width == 0 || width == whole) return;
  for (int64_t r = 0; r < rows; ++r)
    std::copy_n(values.begin() + r * whole, width, values.begin() + r * width);
  values.resize(static_cast<size_t>(rows * width));
}

Result<std::vector<loom::TextEmbedding>> embed_all(const loom::Model& model, const Vectors& how,
                                                   std::span<const Encoding> texts,
                                                   const EmbedOptions& options) {
  std::vector<loom::TextEmbedding> out;
  if (texts.empty()) return out;
  LOOM_ASSIGN(States states, States::create(model, static_cast<int64_t>(longest_of(texts))));
  for (const Encoding& text : texts) {
    LOOM_ASSIGN(const Tensor rows, states.of(text));
    loom::TextEmbedding made;
    made.tokens = static_cast<int64_t>(text.ids.size());
    made.truncated = text.truncated;
    made.rows = how.pooling == EncoderPooling::none ? made.tokens : 1;
    pool_rows(rows, how.pooling, made.values);
    cut_rows(made.values, made.rows, options.dimensions);
    if (how.normalize) normalize_rows(made.values, made.rows);
    out.push_back(std::move(made));
    if (options.progress &&
        !options.progress(static_cast<int64_t>(out.size()), static_cast<int64_t>(texts.size())))
      return make_error(Code::cancelled, "embedding was stopped");
  }
  return out;
}

float logistic(float x) {
  return static_cast<float>(1.0 /
                            (1.0 + dmath::exp(std::clamp(-static_cast<double>(x), -700.0, 700.0))));
}

Status check_texts(const Engine::Impl& engine, std::span<const std::string> texts) {
  size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  return check_text(bytes, engine.budget(), "the texts");
}

// (query, document) pairs as the model takes them.
Result<std::vector<Encoding>> encode_pairs(const LanguageModel& model, std::string_view query,
                                           std::span<const std::string> documents,
                                           const RerankOptions& options) {
  LOOM_ASSIGN(const Tokenizer* tokenizer, text_tokenizer(model));
  const int64_t most = token_limit(model, options.max_tokens);
  const Tokenizer::EncodeOptions encoding = stopped_by(options.progress, documents.size());
  std::vector<Encoding> pairs;
  for (size_t i = 0; i < documents.size(); ++i) {
    const std::string_view document = documents[i];
    LOOM_ASSIGN(Encoding pair,
                tokenizer->encode_texts(query, &document, static_cast<size_t>(most), encoding));
    if (pair.truncated && !options.truncate) {
      LOOM_ASSIGN(const Encoding whole, tokenizer->encode_texts(query, &document));
      return too_many_tokens("the query with document", i, static_cast<int64_t>(whole.ids.size()),
                             most);
    }
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

}  // namespace
}  // namespace loom::core

namespace loom {

float cosine(std::span<const float> a, std::span<const float> b) {
  double dot = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double x = a[i], y = b[i];
    dot += x * y;
    aa += x * x;
    bb += y * y;
  }
  const double length = __builtin_sqrt(aa) * __builtin_sqrt(bb);
  return length > 0 ? static_cast<float>(dot / length) : 0.0f;
}

Result<std::vector<TextEmbedding>> Model::embed(std::span<const std::string> texts,
                                                const EmbedOptions& options) const {
  LOOM_ASSIGN(const core::Vectors how, core::vectors_of(impl_->model, options));
  LOOM_TRY(core::check_texts(*impl_->engine, texts));
  LOOM_ASSIGN(const std::vector<core::Encoding> encoded,
              core::encode_all(impl_->model, how, texts, options));
  return core::embed_all(*this, how, encoded, options);
}

Result<std::vector<TextEmbedding>> Model::embed_tokens(std::span<const std::vector<TokenId>> texts,
                                                       const EmbedOptions& options) const {
  LOOM_ASSIGN(const core::Vectors how, core::vectors_of(impl_->model, options));
  std::vector<core::Encoding> encoded;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto count = static_cast<int64_t>(texts[i].size());
    if (count == 0)
      return core::make_error(Code::out_of_range,
                              core::cat("text ", i, " has no token, so it has no vector"));
    if (count > how.most && !options.truncate)
      return core::too_many_tokens("text", i, count, how.most);
    core::Encoding text;
    text.truncated = count > how.most;
    text.ids.assign(texts[i].begin(), texts[i].begin() + std::min(count, how.most));
    text.types.assign(text.ids.size(), 0);
    encoded.push_back(std::move(text));
  }
  return core::embed_all(*this, how, encoded, options);
}

Result<std::vector<Ranked>> Model::rerank(std::string_view query,
                                          std::span<const std::string> documents,
                                          const RerankOptions& options) const {
  const core::LanguageModel& model = impl_->model;
  if (!impl_->info.reranker) {
    return core::unsupported(
        core::cat(impl_->info.architecture,
                  " does not rank; give a model for sequence classification with one label"),
        model.source());
  }
  LOOM_TRY(core::check_texts(*impl_->engine, documents));
  LOOM_ASSIGN(const std::vector<core::Encoding> pairs,
              core::encode_pairs(model, query, documents, options));
  std::vector<Ranked> ranked;
  if (pairs.empty()) return ranked;
  Engine::Impl& engine = *impl_->engine;
  LOOM_ASSIGN(core::EncoderSession session,
              core::EncoderSession::create(model, *engine.ops, engine.pool,
                                           static_cast<int64_t>(core::longest_of(pairs)),
                                           engine.activations));
  const core::ScopedMemoryUse held(engine.memory_tracker, core::MemoryKind::sessions,
                                   session.bytes());
  for (size_t i = 0; i < pairs.size(); ++i) {
    LOOM_ASSIGN(const std::span<const float> found, session.labels(pairs[i]));
    ranked.push_back({static_cast<int64_t>(i), found[0], core::logistic(found[0]),
                      static_cast<int64_t>(pairs[i].ids.size())});
    if (options.progress &&
        !options.progress(static_cast<int64_t>(i + 1), static_cast<int64_t>(pairs.size())))
      return core::make_error(Code::cancelled, "ranking was stopped");
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Ranked& a, const Ranked& b) { return a.logit > b.logit; });
  return ranked;
}

}  // namespace loom
