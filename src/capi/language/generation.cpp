// Conversations with language models: reading tokens, and drawing new ones.
#include "capi/options/read_options.hpp"
#include "capi/support.hpp"

namespace {

using namespace loom;
using namespace loom::capi;

static_assert(sizeof(loom_token_choice) == sizeof(TokenChoice));
static_assert(LOOM_STOP_CANCELLED == static_cast<int>(StopReason::cancelled));

// Tells the caller of each token. The text of a token is a part of a longer one, so it is copied to
// end with a NUL.
std::function<bool(const Token&)> token_sink(const loom_generate_options& from) {
  return [fn = from.on_token, user = from.user, text = std::string(),
          top = std::vector<loom_token_choice>()](const Token& token) mutable {
    text = token.text;
    top.clear();
    for (const TokenChoice& choice : token.top) top.push_back({choice.id, choice.logprob});
    loom_token seen{};
    seen.struct_size = sizeof(seen);
    seen.id = token.id;
    seen.text = text.c_str();
    seen.text_size = static_cast<int64_t>(text.size());
    seen.logprob = token.logprob;
    seen.top_count = static_cast<int32_t>(top.size());
    seen.top = top.data();
    return fn(user, &seen) == 0;
  };
}

}  // namespace

Result<loom::GenerateOptions> loom::capi::generate_options(const loom_generate_options* given) {
  LOOM_ASSIGN(const loom_generate_options from, options_of(given, "loom_generate_options"));
  LOOM_ASSIGN(GenerateOptions to, read_options(from));
  if (from.rules != nullptr) {
    LOOM_ASSIGN(const auto* rules, object_of(from.rules));
    to.rules = *rules;
  }
  if (from.lookup_text != nullptr) {
    LOOM_ASSIGN(to.lookup_text, object_of(from.lookup_text));
  }
  if (from.on_token != nullptr) to.on_token = token_sink(from);
  if (from.on_prefill != nullptr) {
    to.prefill_progress = [from](int64_t done, int64_t total) {
      return from.on_prefill(from.user, done, total) == 0;
    };
  }
  return to;
}

namespace {

Status give_generation(loom_generation** out, Result<Generation> made) {
  if (!made.ok()) return made.error();
  if (out == nullptr) return {};
  return give(out, *std::move(made));
}

}  // namespace

extern "C" {

loom_status loom_model_session_feed(loom_model_session* session, const int32_t* ids,
                                    int64_t count) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(ModelSession * object, object_of(session));
    LOOM_ASSIGN(const auto tokens, list_of(ids, count, "ids"));
    return object->feed(tokens);
  });
}

loom_status loom_model_session_feed_watched(loom_model_session* session, const int32_t* ids,
                                            int64_t count, loom_progress_fn progress, void* user) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(ModelSession * object, object_of(session));
    LOOM_ASSIGN(const auto tokens, list_of(ids, count, "ids"));
    return object->feed(tokens, [=](int64_t done, int64_t total) {
      return progress == nullptr || progress(user, done, total) == 0;
    });
  });
}

loom_status loom_model_session_feed_all(loom_model_session* session, const int32_t* ids,
                                        int64_t count, loom_logits_fn sink, void* user) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(ModelSession * object, object_of(session));
    LOOM_ASSIGN(const auto tokens, list_of(ids, count, "ids"));
    if (sink == nullptr) return invalid("'sink' is null; give a callback");
    return object->feed_all(tokens, [&](int64_t position, std::span<const float> logits) -> Status {
      const auto size = static_cast<int64_t>(logits.size());
      if (sink(user, position, logits.data(), size) == 0) return {};
      return Error{Code::cancelled, "the callback stopped the call", {}};
    });
  });
}

loom_status loom_model_session_logits(const loom_model_session* session, const float** out,
                                      int64_t* count) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_TRY(clear(count, "count"));
    LOOM_ASSIGN(const ModelSession* object, object_of(session));
    const std::span<const float> logits = object->logits();
    *out = logits.data();
    *count = static_cast<int64_t>(logits.size());
    return {};
  });
}

loom_status loom_model_session_generate(loom_model_session* session, const char* prompt,
                                        const loom_generate_options* options,
                                        loom_generation** out) {
  return guarded([&]() -> Status {
    if (out != nullptr) *out = nullptr;
    LOOM_ASSIGN(ModelSession * object, object_of(session));
    LOOM_ASSIGN(const std::string text, text_of(prompt, "prompt"));
    LOOM_ASSIGN(const GenerateOptions how, generate_options(options));
    return give_generation(out, object->generate(text, how));
  });
}

loom_status loom_model_session_generate_ids(loom_model_session* session, const int32_t* prompt,
                                            int64_t count, const loom_generate_options* options,
                                            loom_generation** out) {
  return guarded([&]() -> Status {
    if (out != nullptr) *out = nullptr;
    LOOM_ASSIGN(ModelSession * object, object_of(session));
    LOOM_ASSIGN(const auto tokens, list_of(prompt, count, "prompt"));
    LOOM_ASSIGN(const GenerateOptions how, generate_options(options));
    return give_generation(out, object->generate(tokens, how));
  });
}

loom_status loom_model_session_position(const loom_model_session* session, int64_t* position,
                                        int64_t* context) {
  return guarded([&]() -> Status {
    if (position != nullptr) *position = 0;
    if (context != nullptr) *context = 0;
    LOOM_ASSIGN(const ModelSession* object, object_of(session));
    if (position != nullptr) *position = object->position();
    if (context != nullptr) *context = object->context();
    return {};
  });
}

loom_status loom_model_session_get_info(const loom_model_session* session,
                                        loom_model_session_info* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const ModelSession* object, object_of(session));
    loom_model_session_info info{};
    info.position = object->position();
    info.context = object->context();
    info.activation_bytes = object->activation_bytes();
    info.cache_bytes = object->cache_bytes();
    info.bytes = object->bytes();
    return give_report(out, info, "loom_model_session_info");
  });
}

loom_status loom_model_session_bytes(const loom_model_session* session, int64_t* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const ModelSession* object, object_of(session));
    *out = object->bytes();
    return {};
  });
}

loom_status loom_model_session_rewind(loom_model_session* session, int64_t position) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(ModelSession * object, object_of(session));
    if (position < 0 || position > object->position()) {
      return Error{
          Code::out_of_range,
          "position " + std::to_string(position) + " of " + std::to_string(object->position()),
          {}};
    }
    object->rewind(position);
    return {};
  });
}

loom_status loom_model_session_save_state(const loom_model_session* session, const char* path) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const ModelSession* object, object_of(session));
    LOOM_ASSIGN(const std::string to, text_of(path, "path"));
    return object->save_state(to);
  });
}

loom_status loom_model_session_load_state(loom_model_session* session, const char* path) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(ModelSession * object, object_of(session));
    LOOM_ASSIGN(const std::string from, text_of(path, "path"));
    return object->load_state(from);
  });
}

void loom_model_session_free(loom_model_session* session) {
  free_handle(session);
}

loom_status loom_generation_text(const loom_generation* generation, const char** out,
                                 int64_t* size) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    if (size != nullptr) *size = 0;
    LOOM_ASSIGN(const Generation* object, object_of(generation));
    *out = object->text.c_str();
    if (size != nullptr) *size = static_cast<int64_t>(object->text.size());
    return {};
  });
}

loom_status loom_generation_ids(const loom_generation* generation, const int32_t** out,
                                int64_t* count) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_TRY(clear(count, "count"));
    LOOM_ASSIGN(const Generation* object, object_of(generation));
    *out = object->token_ids.data();
    *count = static_cast<int64_t>(object->token_ids.size());
    return {};
  });
}

loom_status loom_generation_logprobs(const loom_generation* generation, const float** out,
                                     int64_t* count) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_TRY(clear(count, "count"));
    LOOM_ASSIGN(const Generation* object, object_of(generation));
    *out = object->logprobs.data();
    *count = static_cast<int64_t>(object->logprobs.size());
    return {};
  });
}

loom_status loom_generation_get_info(const loom_generation* generation, loom_generation_info* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const Generation* object, object_of(generation));
    loom_generation_info info{};
    info.stop = static_cast<loom_stop>(object->stop);
    info.prompt_tokens = object->prompt_tokens;
    info.tokens = static_cast<int64_t>(object->token_ids.size());
    info.unknown_tokens = object->unknown_tokens;
    info.decode_steps = object->decode_steps;
    info.prefill_seconds = object->prefill_seconds;
    info.decode_seconds = object->decode_seconds;
    info.guessed = object->guessed;
    info.accepted = object->accepted;
    return give_report(out, info, "loom_generation_info");
  });
}

void loom_generation_free(loom_generation* generation) {
  free_handle(generation);
}

}  // extern "C"
