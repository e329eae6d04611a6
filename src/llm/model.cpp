#include "llm/model.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "base/threads/thread_pool.hpp"
#include "bridge/finite_weight.hpp"
#include "dtype/dtype_tally.hpp"
#include "llm/decoder.hpp"
#include "llm/decoder_role.hpp"
#include "llm/positions.hpp"

namespace loom::core {
namespace {

// `config` replaces that of the source.
Result<Network> make_network(const ModelSource& source, const DecoderConfig& config) {
  LOOM_ASSIGN(const GridSpec grid, source.encoder ? model_grid(source) : decoder_grid(config));
  return Network::finalize(grid, Shape{1, 1});
}

}  // namespace

std::shared_ptr<const grammar::Vocabulary> LanguageModel::vocabulary(bool marks) const {
  LazyVocabulary& lazy = marks ? *marks_ : *vocabulary_;
  std::call_once(lazy.once, [&] {
    std::vector<std::string> bytes(static_cast<size_t>(config_.vocab_size));
    for (size_t i = 0; i < bytes.size() && tokenizer_.has_value(); ++i) {
      const auto id = static_cast<TokenId>(i);
      if (!tokenizer_->has_token(id)) continue;
      const bool ends = std::ranges::find(config_.eos_token_ids, id) != config_.eos_token_ids.end();
      const TokenId one[] = {id};
      bytes[i] = marks && tokenizer_->is_special(id) && !ends
                     ? tokenizer_->decode(one, false).value_or(std::string())
                     : tokenizer_->token_bytes(id);
    }
    lazy.made = std::make_shared<const grammar::Vocabulary>(std::move(bytes));
  });
  return lazy.made;
}

size_t LanguageModel::body_cells() const {
  const std::vector<GridNode>& cells = network_->cells();
  size_t count = cells.size();
  while (count > 0 && cells[count - 1].at.z == cells.back().at.z) --count;
  return count;
}

Status LanguageModel::take_text(const ModelSource& source) {
  bos_ = source.bos;
  eos_ = source.eos;
  generation_json_ = source.generation_json;
  LOOM_ASSIGN(const std::optional<TokenizerSpec> spec, tokenizer_spec(source));
  if (spec) {
    LOOM_ASSIGN(tokenizer_, Tokenizer::make(*spec));
    if (tokenizer_->vocab_size() > config_.vocab_size) {
      return bad_file(cat("the tokenizer has ", tokenizer_->vocab_size(),
                          " ids, but the model's vocab_size is ", config_.vocab_size),
                      source.path);
    }
  }
  // A template beyond our subset must not keep the model from running; --chat reports it.
  chat_problem_ =
      unsupported(source.chat_problem.empty() ? "it has no chat template" : source.chat_problem);
  if (source.chat_template.empty()) return {};
  const std::string where = "its chat template cannot be used";
  Result<ChatTemplate> parsed = ChatTemplate::parse(source.chat_template, where);
  if (parsed.ok()) {
    chat_ = std::move(*parsed);
    chat_source_ = source.chat_template;
  }
  if (!chat_) {
    chat_problem_ = parsed.error();
    if (chat_problem_.code != Code::unsupported) chat_problem_.code = Code::bad_file;
  }
  return {};
}

Status LanguageModel::load_weights(const ModelSource& source, const LoadModelOptions& options,
                                   ThreadPool& pool) {
  const auto total = static_cast<int64_t>(network_->params().size());
  DTypeTally types;
  bool first_matrix = true;
  for (int64_t i = 0; i < total; ++i) {
    const Param& param = network_->params()[static_cast<size_t>(i)];
    LOOM_ASSIGN(const SourceWeight weight, finite_weight(source, param));
    const DType requested = options.dtype ? *options.dtype : weight.stored;
    if (param.spec.matrix() && first_matrix) dtype_ = requested;
    if (param.spec.matrix() && !is_model_table(param, source))
      types.add(requested, param.spec.shape.count());
    first_matrix = first_matrix && !param.spec.matrix();
    const DType dtype = options.dtype ? model_dtype(param, source, requested) : requested;
    LOOM_TRY(load_weight(*network_, static_cast<int>(i), dtype, weight, pool));
    if (weight.release) weight.release();
    if (options.progress && !options.progress(i + 1, total))
      return make_error(Code::cancelled, "loading was stopped");
  }
  if (!types.empty()) dtype_ = types.most();
  return {};
}

Result<LanguageModel> LanguageModel::load(const ModelSource& source,
                                          const LoadModelOptions& options, ThreadPool& pool) {
  LanguageModel model;
  model.source_ = source.path;
  model.notes_ = source.notes;
  model.config_ = source.config;
  model.encoder_ = source.encoder;
  model.embedding_ = source.embedding;
  LOOM_TRY(model.take_text(source));
  if (!options.chat_template.empty()) {
    LOOM_ASSIGN(model.chat_, ChatTemplate::parse(options.chat_template, "the chat template"));
    model.chat_source_ = options.chat_template;
  }
  const bool scaled = !options.rope_scaling.empty();
  if (scaled && source.encoder) return unsupported("rope scaling is for decoders", source.path);
  if (scaled) LOOM_TRY(choose_rope_scaling(options.rope_scaling, model.config_));
  const bool as_it_lies =
      !scaled && source.packed && options.dtype.value_or(*source.packed) == *source.packed;
  LOOM_ASSIGN(Network network, as_it_lies ? source.map() : make_network(source, model.config_));
  model.network_ = std::make_unique<Network>(std::move(network));
  if (as_it_lies) {
    model.dtype_ = *source.packed;
  } else {
    LOOM_TRY(model.load_weights(source, options, pool));
  }
  return model;
}

Status LanguageModel::add_adapters(const std::vector<ModelAdapter>& adapters, ThreadPool& pool) {
  if (encoder_) return unsupported("adapters are for decoders", source_);
  std::shared_ptr<const Network> base = std::move(network_);
  LOOM_ASSIGN(Network network, with_model_adapters(std::move(base), adapters, pool));
  network_ = std::make_unique<Network>(std::move(network));
  return {};
}

Result<LanguageModel> LanguageModel::random(const DecoderConfig& config, DType dtype, uint64_t seed,
                                            ThreadPool& pool) {
  LoadModelOptions options;
  options.dtype = dtype;
  LOOM_ASSIGN(const std::unique_ptr<ModelSource> source, random_source(config, seed, pool));
  return load(*source, options, pool);
}

Result<int64_t> checked_context(const LanguageModel& model, int64_t requested) {
  const int64_t limit = model.config().max_positions;
  if (requested <= 0) return std::min<int64_t>(limit, 2048);
  if (requested <= limit) return requested;
  return make_error(
      Code::out_of_range,
      cat("a context of ", requested, " positions was asked for; this model was made for ", limit));
}

Status check_tokens(const LanguageModel& model, std::span<const TokenId> ids) {
  const int64_t vocab = model.config().vocab_size;
  for (const TokenId id : ids) {
    if (id < 0 || id >= vocab) {
      return make_error(Code::out_of_range,
                        cat("token id ", id, " is outside the vocabulary of ", vocab));
    }
  }
  return {};
}

Status check_room(int64_t position, int64_t count, int64_t context) {
  if (count <= context - position) return {};
  return make_error(Code::out_of_range, cat("the context is full: ", position, " positions used, ",
                                            count, " more wanted, ", context, " available"));
}

}  // namespace loom::core
