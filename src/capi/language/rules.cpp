// Constraints and draft tokens of texts, beam search, perplexity, suggested options.
#include "capi/json_text.hpp"
#include "capi/options/read_options.hpp"
#include "capi/support.hpp"
#include "loom/beams.hpp"
#include "loom/lookup.hpp"

namespace {

using namespace loom;
using namespace loom::capi;

Result<BeamOptions> beam_options(const loom_beam_options* given) {
  LOOM_ASSIGN(const loom_beam_options from, options_of(given, "loom_beam_options"));
  LOOM_ASSIGN(BeamOptions to, read_options(from));
  to.session.context = from.context;
  if (from.progress != nullptr) {
    to.progress = [from, most = to.max_tokens](int64_t tokens) {
      return from.progress(from.user, tokens, most) == 0;
    };
  }
  return to;
}

void add_text(JsonText& json, const BeamText& text) {
  json.open('{');
  json.add("text", text.text);
  json.open('[', "token_ids");
  for (const TokenId id : text.token_ids) json.add({}, id);
  json.close(']');
  json.add("score", text.score);
  json.add("stop", static_cast<int>(text.stop));
  json.close('}');
}

}  // namespace

extern "C" {

loom_status loom_check_rules(const loom_generate_options* options) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const GenerateOptions how, generate_options(options));
    return check_rules(how);
  });
}

loom_status loom_model_compile_rules(const loom_model* model, const loom_generate_options* options,
                                     loom_rules** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Model* object, object_of(model));
    LOOM_ASSIGN(const GenerateOptions how, generate_options(options));
    LOOM_ASSIGN(std::shared_ptr<const CompiledRules> rules, object->compile_rules(how));
    if (rules == nullptr) return {};
    return give(out, std::move(rules));
  });
}

void loom_rules_free(loom_rules* rules) {
  free_handle(rules);
}

loom_status loom_lookup_text_create(const int32_t* ids, int64_t count, loom_lookup_text** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const auto tokens, list_of(ids, count, "ids"));
    return give(out, LookupText(tokens));
  });
}

loom_status loom_lookup_text_next(const loom_lookup_text* text, const int32_t* history,
                                  int64_t count, double share, int32_t* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const LookupText* object, object_of(text));
    LOOM_ASSIGN(const auto tokens, list_of(history, count, "history"));
    *out = object->next(tokens, share);
    return {};
  });
}

void loom_lookup_text_free(loom_lookup_text* text) {
  free_handle(text);
}

loom_status loom_model_perplexity(const loom_model* model, const int32_t* ids, int64_t count,
                                  const loom_perplexity_options* options, loom_perplexity* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const Model* object, object_of(model));
    LOOM_ASSIGN(const auto tokens, list_of(ids, count, "ids"));
    LOOM_ASSIGN(const loom_perplexity_options from, options_of(options, "loom_perplexity_options"));
    LOOM_ASSIGN(PerplexityOptions how, read_options(from));
    how.progress = progress_of(from.progress, from.user);
    if (from.reference != nullptr) {
      LOOM_ASSIGN(how.reference, object_of(from.reference));
    }
    LOOM_ASSIGN(const Perplexity found, object->perplexity(tokens, how));
    loom_perplexity report{};
    report.perplexity = found.perplexity;
    report.nats_per_token = found.nats_per_token;
    report.predictions = found.predictions;
    report.kl_divergence = found.kl_divergence;
    report.top_agreement = found.top_agreement;
    return give_report(out, report, "loom_perplexity");
  });
}

loom_status loom_beam_search(const loom_model* model, const int32_t* prompt, int64_t count,
                             const loom_beam_options* options, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Model* object, object_of(model));
    LOOM_ASSIGN(const auto ids, list_of(prompt, count, "prompt"));
    LOOM_ASSIGN(const BeamOptions how, beam_options(options));
    LOOM_ASSIGN(const std::vector<BeamText> texts, beam_search(*object, ids, how));
    JsonText json;
    json.open('[');
    for (const BeamText& text : texts) add_text(json, text);
    json.close(']');
    return give_text(out, json.text());
  });
}

loom_status loom_model_suggested_sampling(const loom_model* model, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Model* object, object_of(model));
    LOOM_ASSIGN(const std::optional<SamplerOptions> found, object->suggested_sampling());
    if (!found) return give_text(out, "null");
    JsonText json;
    json.open('{');
    json.add("temperature", found->temperature);
    json.add("top_k", found->top_k);
    json.add("top_p", found->top_p);
    json.add("min_p", found->min_p);
    json.add("repetition_penalty", found->repetition_penalty);
    json.add("repetition_window", found->repetition_window);
    json.close('}');
    return give_text(out, json.text());
  });
}

}  // extern "C"
