#include <algorithm>

#include "api/engine/impl.hpp"

namespace loom {
namespace {

core::LlmSession* draft_of(const GenerateOptions& options) {
  return options.draft != nullptr ? &options.draft->impl().session : nullptr;
}

}  // namespace

Generator::Generator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;
Generator::~Generator() = default;

Result<bool> Generator::step() {
  return impl_->generator.step();
}
const Generation& Generator::result() const {
  return impl_->generator.result();
}

ModelSession::ModelSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ModelSession::ModelSession(ModelSession&&) noexcept = default;
ModelSession& ModelSession::operator=(ModelSession&&) noexcept = default;
ModelSession::~ModelSession() = default;

Status ModelSession::feed(std::span<const TokenId> ids) {
  return impl_->session.feed(ids);
}
Status ModelSession::feed(std::span<const TokenId> ids,
                          const std::function<bool(int64_t done, int64_t total)>& progress) {
  constexpr size_t kPiece = 256;
  const auto total = static_cast<int64_t>(ids.size());
  if (!progress || position() + total > context()) return feed(ids);  // or its message
  for (size_t at = 0; at < ids.size(); at += kPiece) {
    const size_t count = std::min(kPiece, ids.size() - at);
    LOOM_TRY(feed(ids.subspan(at, count)));
    if (!progress(static_cast<int64_t>(at + count), total))
      return core::make_error(Code::cancelled, "reading the tokens was stopped");
  }
  return {};
}
std::span<const float> ModelSession::logits() const {
  return impl_->session.logits();
}
Status ModelSession::feed_all(std::span<const TokenId> ids, const LogitsSink& sink) {
  return impl_->session.feed_all(ids, sink);
}

Result<Generation> ModelSession::generate(std::span<const TokenId> prompt,
                                          const GenerateOptions& options, const TextSink& sink) {
  return core::generate(impl_->session, impl_->model->model, prompt, options, sink,
                        draft_of(options));
}

Result<Generation> ModelSession::generate(std::string_view prompt, const GenerateOptions& options,
                                          const TextSink& sink) {
  const core::LanguageModel& model = impl_->model->model;
  if (model.tokenizer() == nullptr) {
    return core::make_error(
        Code::not_found, "this model has no tokenizer; give it tokens, not text", model.source());
  }
  LOOM_ASSIGN(const std::vector<TokenId> ids, model.tokenizer()->encode(prompt));
  return generate(ids, options, sink);
}

Result<Generator> ModelSession::start(std::span<const TokenId> prompt,
                                      const GenerateOptions& options, const TextSink& sink) {
  core::LlmSession& session = impl_->session;
  LOOM_ASSIGN(core::Generator generator,
              core::Generator::begin(session, impl_->model->model, prompt, options, sink,
                                     static_cast<size_t>(session.chunk()), draft_of(options)));
  return Generator(std::make_unique<Generator::Impl>(Generator::Impl{std::move(generator)}));
}

int64_t ModelSession::position() const {
  return impl_->session.position();
}
int64_t ModelSession::context() const {
  return impl_->session.context();
}
void ModelSession::rewind(int64_t position) {
  impl_->session.rewind(position < 0 ? 0 : position);
}
Status ModelSession::save_state(const std::string& path) const {
  return impl_->session.save_state(path);
}
Status ModelSession::load_state(const std::string& path) {
  return impl_->session.load_state(path);
}
int64_t ModelSession::activation_bytes() const {
  return impl_->session.arena_bytes();
}
int64_t ModelSession::bytes() const {
  return activation_bytes() + cache_bytes();
}
int64_t ModelSession::cache_bytes() const {
  return impl_->session.state_bytes();
}

}  // namespace loom
