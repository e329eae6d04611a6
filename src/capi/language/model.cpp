// Language models.
#include "capi/support.hpp"

namespace {

using namespace loom;
using namespace loom::capi;

Result<ModelOptions> model_options(const loom_model_options* given) {
  LOOM_ASSIGN(const loom_model_options from, options_of(given, "loom_model_options"));
  ModelOptions options;
  if (from.has_dtype != 0) {
    LOOM_ASSIGN(options.dtype, dtype_of(from.dtype));
  }
  if (from.progress != nullptr) {
    options.progress = [from](int64_t done, int64_t total) {
      return from.progress(from.user, done, total) == 0;
    };
  }
  options.allow_nonfinite = from.allow_nonfinite != 0;
  if (from.chat_template != nullptr) options.chat_template = from.chat_template;
  if (from.rope_scaling != nullptr) options.rope_scaling = from.rope_scaling;
  LOOM_ASSIGN(options.lora, texts_of(from.lora, from.lora_count, "lora"));
  return options;
}

loom_model_info info_of(const ModelInfo& from) {
  loom_model_info info{};
  info.layers = from.layers;
  info.width = from.width;
  info.inner_width = from.inner_width;
  info.heads = from.heads;
  info.kv_heads = from.kv_heads;
  info.head_dim = from.head_dim;
  info.vocab = from.vocab;
  info.context = from.context;
  info.parameters = from.parameters;
  info.bytes = from.bytes;
  info.tied_head = from.tied_head ? 1 : 0;
  info.has_tokenizer = from.has_tokenizer ? 1 : 0;
  info.has_chat_template = from.has_chat_template ? 1 : 0;
  copy_text(info.architecture, from.architecture);
  info.dtype = static_cast<loom_dtype>(from.dtype);
  return info;
}

Result<ChatOptions> chat_options(const loom_chat_options* options) {
  LOOM_ASSIGN(const loom_chat_options from, options_of(options, "loom_chat_options"));
  ChatOptions made;
  made.reply = from.no_reply == 0;
  made.date = text_or(from.date, "");
  made.tools = text_or(from.tools, "");
  made.documents = text_or(from.documents, "");
  made.variables = text_or(from.variables, "");
  made.continue_final_message = from.continue_final_message != 0;
  return made;
}

struct Conversation {
  std::vector<ChatTurn> turns;
  ChatOptions options;
};

Result<Conversation> conversation_of(const loom_chat_turn* turns, int64_t count,
                                     const loom_chat_options* options) {
  Conversation made;
  LOOM_ASSIGN(const auto each, list_of(turns, count, "turns"));
  for (const loom_chat_turn& turn : each) {
    LOOM_ASSIGN(std::string role, text_of(turn.role, "turns.role"));
    LOOM_ASSIGN(std::string content, text_of(turn.content, "turns.content"));
    made.turns.push_back({std::move(role), std::move(content)});
  }
  LOOM_ASSIGN(made.options, chat_options(options));
  return made;
}

}  // namespace

extern "C" {

loom_status loom_model_load(loom_engine* engine, const char* path,
                            const loom_model_options* options, loom_model** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string file, text_of(path, "path"));
    LOOM_ASSIGN(const Engine on, engine_of(engine));
    LOOM_ASSIGN(const ModelOptions how, model_options(options));
    LOOM_ASSIGN(Model model, Model::load(on, file, how));
    return give(out, std::move(model));
  });
}

loom_status loom_model_load_memory(loom_engine* engine, const void* bytes, int64_t size,
                                   const char* name, const loom_model_options* options,
                                   loom_model** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const loom_model_options from, options_of(options, "loom_model_options"));
    LOOM_ASSIGN(const FileBytes file, file_of(bytes, size, name, from.borrow != 0));
    LOOM_ASSIGN(const Engine on, engine_of(engine));
    LOOM_ASSIGN(const ModelOptions how, model_options(options));
    LOOM_ASSIGN(Model model, Model::load(on, file, how));
    return give(out, std::move(model));
  });
}

loom_status loom_model_random(loom_engine* engine, const char* shape, loom_dtype dtype,
                              uint64_t seed, loom_model** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string which, text_of(shape, "shape"));
    LOOM_ASSIGN(const Engine on, engine_of(engine));
    LOOM_ASSIGN(const DType type, dtype_of(dtype));
    LOOM_ASSIGN(Model model, Model::random(on, which, type, seed));
    return give(out, std::move(model));
  });
}

loom_status loom_model_get_info(const loom_model* model, loom_model_info* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const Model* object, object_of(model));
    return give_report(out, info_of(object->info()), "loom_model_info");
  });
}

void loom_model_free(loom_model* model) {
  free_handle(model);
}

loom_status loom_model_tokenize(const loom_model* model, const char* text, int32_t special_tokens,
                                int32_t** ids, int64_t* count) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(ids, "ids"));
    LOOM_TRY(clear(count, "count"));
    LOOM_ASSIGN(const Model* object, object_of(model));
    LOOM_ASSIGN(const std::string from, text_of(text, "text"));
    LOOM_ASSIGN(const std::vector<TokenId> made, object->tokenize(from, special_tokens != 0));
    return give_ids(ids, count, made);
  });
}

loom_status loom_model_detokenize(const loom_model* model, const int32_t* ids, int64_t count,
                                  int32_t skip_special, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Model* object, object_of(model));
    LOOM_ASSIGN(const auto from, list_of(ids, count, "ids"));
    LOOM_ASSIGN(const std::string text, object->detokenize(from, skip_special != 0));
    return give_text(out, text);
  });
}

loom_status loom_model_render_chat(const loom_model* model, const loom_chat_turn* turns,
                                   int64_t count, const loom_chat_options* options, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Model* object, object_of(model));
    LOOM_ASSIGN(const Conversation talk, conversation_of(turns, count, options));
    LOOM_ASSIGN(const std::string text, object->render_chat(talk.turns, talk.options));
    return give_text(out, text);
  });
}

loom_status loom_model_tokenize_chat(const loom_model* model, const loom_chat_turn* turns,
                                     int64_t count, const loom_chat_options* options, int32_t** ids,
                                     int64_t* id_count) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(ids, "ids"));
    LOOM_TRY(clear(id_count, "id_count"));
    LOOM_ASSIGN(const Model* object, object_of(model));
    LOOM_ASSIGN(const Conversation talk, conversation_of(turns, count, options));
    LOOM_ASSIGN(const std::vector<TokenId> made, object->tokenize_chat(talk.turns, talk.options));
    return give_ids(ids, id_count, made);
  });
}

loom_status loom_model_render_messages(const loom_model* model, const char* messages,
                                       const loom_chat_options* options, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Model* object, object_of(model));
    LOOM_ASSIGN(const std::string talk, text_of(messages, "messages"));
    LOOM_ASSIGN(const ChatOptions how, chat_options(options));
    LOOM_ASSIGN(const std::string text, object->render_chat(talk, how));
    return give_text(out, text);
  });
}

loom_status loom_model_chat_template(const loom_model* model, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Model* object, object_of(model));
    return give_text(out, object->chat_template());
  });
}

loom_status loom_model_tokenizer(const loom_model* model, loom_tokenizer** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Model* object, object_of(model));
    LOOM_ASSIGN(Tokenizer tokenizer, object->tokenizer());
    return give(out, std::move(tokenizer));
  });
}

loom_status loom_model_fingerprint(const loom_model* model, loom_dtype cache_type, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Model* object, object_of(model));
    LOOM_ASSIGN(const DType type, dtype_of(cache_type));
    return give_text(out, object->fingerprint(type));
  });
}

loom_status loom_model_start(const loom_model* model, const loom_model_session_options* options,
                             loom_model_session** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Model* object, object_of(model));
    LOOM_ASSIGN(const loom_model_session_options from,
                options_of(options, "loom_model_session_options"));
    ModelSessionOptions how;
    how.context = from.context;
    how.chunk = non_zero(from.chunk, how.chunk);
    LOOM_ASSIGN(how.activations, enum_of<Activations>(from.activations, "activations"));
    if (from.has_cache_type != 0) {
      LOOM_ASSIGN(how.cache_type, dtype_of(from.cache_type));
    }
    LOOM_ASSIGN(ModelSession session, object->session(how));
    return give(out, std::move(session));
  });
}

}  // extern "C"
