#include <algorithm>

#include "api/engine/impl.hpp"
#include "api/language/chat_messages.hpp"
#include "api/language/reply.hpp"
#include "base/text.hpp"
#include "convert/checkpoint.hpp"
#include "convert/language_model.hpp"
#include "grid/adapters/merge.hpp"
#include "io/bytes/hash.hpp"
#include "io/files/foreign_file.hpp"
#include "io/machine_memory.hpp"
#include "llm/sampling/text_rules.hpp"
#include "llm/sessions/perplexity.hpp"
#include "train_io/file_memory.hpp"

namespace loom::core {
namespace {

ModelInfo describe(const LanguageModel& model) {
  const DecoderConfig& c = model.config();
  ModelInfo info;
  info.source = model.source();
  info.notes = model.notes();
  info.architecture = c.architecture;
  info.dtype = static_cast<loom::DType>(model.dtype());
  info.layers = c.num_layers;
  info.width = c.hidden_size;
  info.inner_width = c.intermediate_size;
  info.heads = c.num_heads;
  info.kv_heads = c.num_kv_heads;
  info.head_dim = c.head_dim;
  info.vocab = c.vocab_size;
  info.context = c.max_positions;
  info.parameters = model.network().param_count();
  info.bytes = model.network().param_bytes();
  info.tied_head = c.tie_word_embeddings;
  info.has_tokenizer = model.tokenizer() != nullptr;
  info.has_chat_template = model.chat_template() != nullptr;
  info.encoder = model.encoder() != nullptr;
  info.reranker = info.encoder && model.encoder()->labels == 1;
  if (model.embedding() != nullptr)
    for (const auto& prompt : model.embedding()->prompts) info.prompts.push_back(prompt.first);
  for (const int64_t id : c.eos_token_ids) info.eos_ids.push_back(static_cast<TokenId>(id));
  return info;
}

std::shared_ptr<const Model::Impl> make_impl(const Engine& engine, LanguageModel model) {
  ModelInfo info = describe(model);
  for (const std::string& note : info.notes)
    engine.impl().log_line(LogLevel::warning, cat(info.source, ": ", note));
  ScopedMemoryUse weights(engine.impl().memory_tracker, MemoryKind::weights,
                          owned_bytes(model.network()));
  ScopedMemoryUse mapped(engine.impl().memory_tracker, MemoryKind::mapped,
                         mapped_bytes(model.network()));
  engine.impl().log_line(LogLevel::info,
                         cat(info.source, ": ", info.architecture, ", ", info.parameters,
                             " parameters in ", loom::dtype_name(info.dtype)));
  return std::make_shared<const Model::Impl>(Model::Impl{
      engine.share(), std::move(model), std::move(info), std::move(weights), std::move(mapped)});
}

Result<const Tokenizer*> tokenizer_of(const LanguageModel& model) {
  if (const Tokenizer* tokenizer = model.tokenizer()) return tokenizer;
  return make_error(Code::not_found,
                    "this model has no tokenizer.json, so it knows tokens but no text",
                    model.source());
}

}  // namespace

Result<LlmSession> make_session(const Model& model, const LlmSessionOptions& options) {
  Engine::Impl& engine = *model.impl().engine;
  if (model.impl().model.encoder() != nullptr) {
    return unsupported(cat(model.info().architecture,
                           " is an encoder: it makes vectors of texts and writes none; use embed"),
                       model.info().source);
  }
  return LlmSession::create(model.impl().model, *engine.ops, engine.pool, options);
}

}  // namespace loom::core

namespace loom {

Model::Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

const ModelInfo& Model::info() const {
  return impl_->info;
}

namespace {

Result<core::LanguageModel> load_model(const Engine& engine, const core::FileRef& path,
                                       const ModelOptions& options) {
  core::LoadModelOptions load;
  load.progress = options.progress;
  load.chat_template = options.chat_template;
  load.rope_scaling = options.rope_scaling;
  load.lora = options.lora;
  load.allow_nonfinite = options.allow_nonfinite;
  if (options.dtype) load.dtype = static_cast<core::DType>(*options.dtype);
  LOOM_TRY(core::check_model_folder(path));
  LOOM_TRY(core::check_opening(path, engine.impl().budget()));
  Result<core::LanguageModel> model = core::load_language_model(path, load, engine.impl().pool);
  // The template, the scaling and adapters may be the caller's; the rest is from the file.
  const bool own =
      !options.chat_template.empty() || !options.rope_scaling.empty() || !options.lora.empty();
  if (model.ok() || own) return model;
  return core::file_error(model.error(), path);
}

}  // namespace

Result<Model> Model::load(const Engine& engine, const std::string& path,
                          const ModelOptions& options) {
  LOOM_ASSIGN(core::LanguageModel model, load_model(engine, path, options));
  return Model(core::make_impl(engine, std::move(model)));
}

Result<Model> Model::load(const Engine& engine, const FileBytes& file,
                          const ModelOptions& options) {
  LOOM_ASSIGN(const core::FileRef ref, core::file_ref(file, true, engine.impl().budget()));
  LOOM_ASSIGN(core::LanguageModel model, load_model(engine, ref, options));
  return Model(core::make_impl(engine, std::move(model)));
}

Result<Model> Model::random(const Engine& engine, std::string_view shape, DType dtype,
                            uint64_t seed) {
  LOOM_ASSIGN(const core::DecoderConfig config, core::shape_config(shape));
  LOOM_ASSIGN(core::LanguageModel model,
              core::LanguageModel::random(config, static_cast<core::DType>(dtype), seed,
                                          engine.impl().pool));
  return Model(core::make_impl(engine, std::move(model)));
}

Result<std::vector<TokenId>> Model::tokenize(std::string_view text, bool add_special_tokens) const {
  LOOM_ASSIGN(const Tokenizer own, tokenizer());
  return own.encode(text, add_special_tokens);
}

Engine Model::engine() const {
  return Engine(impl_->engine);
}

std::string_view Model::chat_template() const {
  return impl_->model.chat_source();
}

Result<Tokenizer> Model::tokenizer() const {
  LOOM_ASSIGN(const core::Tokenizer* own, core::tokenizer_of(impl_->model));
  return Tokenizer(std::make_shared<const Tokenizer::Impl>(Tokenizer::Impl{
      std::shared_ptr<const core::Tokenizer>(impl_, own), impl_->engine->budget()}));
}

std::string Model::fingerprint(DType cache_type) const {
  core::BytesHash hash;
  hash.add(std::as_bytes(std::span(kNumericsContract)));
  hash.add(std::as_bytes(std::span(dtype_name(impl_->info.dtype))));
  if (cache_type != DType::float32) hash.add(std::as_bytes(std::span(dtype_name(cache_type))));
  for (const core::Param& param : impl_->model.network().params()) {
    hash.add(
        {static_cast<const std::byte*>(param.tensor.data), static_cast<size_t>(param.bytes())});
  }
  const std::vector<double> scales = core::adapter_scales(impl_->model.network());
  hash.add(std::as_bytes(std::span(scales)));
  return hash.hex().substr(0, 16);
}

Result<std::shared_ptr<const CompiledRules>> Model::compile_rules(
    const GenerateOptions& options) const {
  return core::compile_rules(impl_->model, options);
}

Result<std::string> Model::detokenize(std::span<const TokenId> ids,
                                      bool skip_special_tokens) const {
  LOOM_ASSIGN(const core::Tokenizer* tokenizer, core::tokenizer_of(impl_->model));
  std::vector<TokenId> known;
  for (const TokenId id : ids) {
    if (id < 0 || id >= std::max(impl_->info.vocab, tokenizer->vocab_size()))
      return core::make_error(Code::out_of_range, core::cat("no token has id ", id));
    if (tokenizer->has_token(id)) known.push_back(id);
  }
  return tokenizer->decode(known, skip_special_tokens);
}

namespace {

// A model without a template cannot chat, nor can one whose template needs unsupported features. An
// invalid template is a damaged file.
Error no_template(const core::LanguageModel& model) {
  const Error& problem = model.chat_problem();
  return core::make_error(
      problem.code, core::cat("this model cannot chat: ", problem.str(), "; give it plain text"),
      model.source());
}

Result<std::string> rendered(const core::LanguageModel& model,
                             std::vector<core::ChatMessage> messages, const ChatOptions& options) {
  if (model.chat_template() == nullptr) return no_template(model);
  LOOM_TRY(core::check_calls(messages, model.chat_source()));
  LOOM_ASSIGN(core::ChatInputs inputs, core::chat_inputs(std::move(messages), options));
  inputs.now = core::utc_now();
  if (!options.date.empty()) {
    LOOM_ASSIGN(inputs.now, core::parse_date(options.date));
  }
  inputs.bos_token = model.bos_token();
  inputs.eos_token = model.eos_token();
  return model.chat_template()->render(inputs);
}

}  // namespace

Result<std::string> Model::render_chat(std::span<const ChatTurn> turns,
                                       const ChatOptions& options) const {
  LOOM_ASSIGN(std::vector<core::ChatMessage> messages, core::turn_messages(turns));
  return rendered(impl_->model, std::move(messages), options);
}

Result<std::string> Model::render_chat(std::string_view messages,
                                       const ChatOptions& options) const {
  LOOM_ASSIGN(std::vector<core::ChatMessage> read, core::read_messages(messages));
  return rendered(impl_->model, std::move(read), options);
}

Result<std::vector<TokenId>> Model::tokenize_chat(std::span<const ChatTurn> turns,
                                                  const ChatOptions& options) const {
  LOOM_ASSIGN(const std::string text, render_chat(turns, options));
  return tokenize(text, false);
}

Result<std::vector<TokenId>> Model::tokenize_chat(std::string_view messages,
                                                  const ChatOptions& options) const {
  LOOM_ASSIGN(const std::string text, render_chat(messages, options));
  return tokenize(text, false);
}

Result<core::LlmSessionOptions> core::session_options(const Model& model,
                                                      const ModelSessionOptions& options) {
  core::LlmSessionOptions o;
  if (options.context < 0 || options.chunk < 0) {
    return core::invalid(core::cat("a session needs context >= 0 and chunk >= 0; got ",
                                   options.context, " and ", options.chunk));
  }
  o.context = options.context;
  o.chunk = options.chunk;
  o.cache = static_cast<core::DType>(options.cache_type);
  if (options.device_failed) {
    o.device_failed = [engine = model.impl().engine,
                       on_failure = options.device_failed](const Error& why) {
      engine->log_line(LogLevel::warning,
                       core::cat("the GPU failed, the CPU goes on: ", why.str()));
      on_failure(why);
    };
  }
  o.activations = core::activation_mode(options.activations, model.impl().engine->activations);
  return o;
}

Result<ModelSession> Model::session(const ModelSessionOptions& options) const {
  LOOM_ASSIGN(const core::LlmSessionOptions o, core::session_options(*this, options));
  LOOM_ASSIGN(core::LlmSession session, core::make_session(*this, o));
  core::ScopedMemoryUse held(impl_->engine->memory_tracker, core::MemoryKind::sessions,
                             session.arena_bytes() + session.state_bytes());
  return ModelSession(std::make_unique<ModelSession::Impl>(
      ModelSession::Impl{impl_, std::move(session), std::move(held)}));
}

Result<Perplexity> Model::perplexity(std::span<const TokenId> ids,
                                     const PerplexityOptions& options) const {
  core::LlmSessionOptions o;
  o.context = options.window;
  o.chunk = 256;
  o.head_rows = 32;
  o.activations = impl_->engine->activations;
  LOOM_ASSIGN(core::LlmSession session, core::make_session(*this, o));
  if (options.reference == nullptr) return core::measure_perplexity(session, ids, options);
  const int64_t own = info().vocab, other = options.reference->info().vocab;
  if (own != other)
    return core::invalid(core::cat("the reference has ", other, " tokens, this model ", own,
                                   "; choose a reference with the same vocabulary"));
  LOOM_ASSIGN(core::LlmSession reference, core::make_session(*options.reference, o));
  return core::measure_perplexity(session, ids, options, &reference);
}

}  // namespace loom
