#include "loom/tokenizer.hpp"

#include "api/engine/impl.hpp"
#include "api/network/network_impl.hpp"
#include "base/text.hpp"
#include "convert/checkpoint.hpp"
#include "train_io/file_memory.hpp"

namespace loom {

static_assert(kMemoryPerTextByte == core::kMemoryPerTextByte);

namespace {

std::shared_ptr<const Tokenizer::Impl> owned(core::Tokenizer tokenizer,
                                             const core::MemoryBudget& budget) {
  return std::make_shared<const Tokenizer::Impl>(
      Tokenizer::Impl{std::make_shared<const core::Tokenizer>(std::move(tokenizer)), budget});
}

}  // namespace

Tokenizer::Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Result<Tokenizer> Tokenizer::load(const std::string& path, const std::optional<Engine>& engine) {
  LOOM_ASSIGN(const Engine on, core::engine_or_shared(engine));
  LOOM_TRY(core::check_opening(path, on.impl().budget()));
  LOOM_ASSIGN(core::Tokenizer tokenizer, core::load_tokenizer(path));
  return Tokenizer(owned(std::move(tokenizer), on.impl().budget()));
}

Result<Tokenizer> Tokenizer::load(const FileBytes& file, const std::optional<Engine>& engine) {
  LOOM_ASSIGN(const Engine on, core::engine_or_shared(engine));
  const core::MemoryBudget& budget = on.impl().budget();
  LOOM_ASSIGN(const core::FileRef ref, core::file_ref(file, false, budget));
  LOOM_TRY(core::check_opening(ref, budget));
  LOOM_ASSIGN(core::Tokenizer tokenizer, core::load_tokenizer(ref));
  return Tokenizer(owned(std::move(tokenizer), budget));
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text,
                                               bool add_special_tokens) const {
  return encode(text, EncodeOptions{.add_special_tokens = add_special_tokens});
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text,
                                               const EncodeOptions& options) const {
  LOOM_TRY(core::check_text(text.size(), impl_->budget, "the text"));
  return impl_->tokenizer->encode(text, options);
}

Result<std::string> Tokenizer::decode(std::span<const TokenId> ids,
                                      bool skip_special_tokens) const {
  return impl_->tokenizer->decode(ids, skip_special_tokens);
}

int64_t Tokenizer::vocab_size() const {
  return impl_->tokenizer->vocab_size();
}

Result<std::string> Tokenizer::token_bytes(TokenId id) const {
  const bool known = id >= 0 && id < vocab_size() && impl_->tokenizer->has_token(id);
  if (!known) return core::make_error(Code::out_of_range, core::cat("no token has id ", id));
  if (impl_->tokenizer->is_special(id)) return decode(std::span(&id, 1), false);
  return impl_->tokenizer->token_bytes(id);
}

std::vector<TokenId> Tokenizer::special_tokens() const {
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < vocab_size(); ++id) {
    if (impl_->tokenizer->is_special(id)) ids.push_back(id);
  }
  return ids;
}

Result<TokenId> Tokenizer::token_id(std::string_view token) const {
  const TokenId id = impl_->tokenizer->token_id(token);
  if (id >= 0) return id;
  return core::make_error(Code::not_found,
                          core::cat("the vocabulary has no token '", core::printable(token), "'"));
}

}  // namespace loom
