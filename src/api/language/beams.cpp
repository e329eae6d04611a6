#include "loom/beams.hpp"

#include "api/engine/impl.hpp"
#include "llm/sessions/beam_search.hpp"
#include "ops/ops.hpp"

namespace loom {

Result<std::vector<BeamText>> beam_search(const Model& model, std::span<const TokenId> prompt,
                                          const BeamOptions& options) {
  const core::LanguageModel& core_model = model.impl().model;
  const Engine::Impl& engine = *model.impl().engine;
  LOOM_ASSIGN(const core::LlmSessionOptions one, core::session_options(model, options.session));
  core::LlmBatchOptions memory;
  memory.context = one.context;
  memory.chunk = one.chunk;
  memory.activations = one.activations;
  memory.cache = one.cache;
  core::BeamSearch search;
  search.beams = options.num_beams;
  search.max_tokens = options.max_tokens;
  search.length_penalty = options.length_penalty;
  search.early_stopping = options.early_stopping;
  search.progress = options.progress;
  if (!options.ignore_eos) {
    search.eos = options.eos_ids;
    for (const int64_t id : core_model.config().eos_token_ids) {
      if (options.eos_ids.empty()) search.eos.push_back(static_cast<TokenId>(id));
    }
  }
  LOOM_ASSIGN(std::vector<core::BeamFound> found,
              core::beam_search(core_model, core::host_ops(*engine.ops), model.impl().engine->pool,
                                memory, prompt, search));
  std::vector<BeamText> texts;
  for (core::BeamFound& one_found : found) {
    BeamText text;
    text.token_ids = std::move(one_found.ids);
    text.score = one_found.score;
    const bool full = static_cast<int64_t>(text.token_ids.size()) < options.max_tokens;
    text.stop =
        one_found.ended ? StopReason::eos : (full ? StopReason::context : StopReason::length);
    if (model.info().has_tokenizer) {
      LOOM_ASSIGN(text.text, model.detokenize(text.token_ids));
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace loom
