// Tokenizers without a model.
#include "loom/tokenizer.hpp"

#include "capi/options/read_options.hpp"
#include "capi/support.hpp"

using namespace loom;
using namespace loom::capi;

extern "C" {

loom_status loom_tokenizer_load(loom_engine* engine, const char* path, loom_tokenizer** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string from, text_of(path, "path"));
    LOOM_ASSIGN(const Engine on, engine_of(engine));
    LOOM_ASSIGN(Tokenizer tokenizer, Tokenizer::load(from, on));
    return give(out, std::move(tokenizer));
  });
}

loom_status loom_tokenizer_load_memory(loom_engine* engine, const void* bytes, int64_t size,
                                       const char* name, loom_tokenizer** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const FileBytes file, file_of(bytes, size, name, false));
    LOOM_ASSIGN(const Engine on, engine_of(engine));
    LOOM_ASSIGN(Tokenizer tokenizer, Tokenizer::load(file, on));
    return give(out, std::move(tokenizer));
  });
}

void loom_tokenizer_free(loom_tokenizer* tokenizer) {
  free_handle(tokenizer);
}

loom_status loom_tokenizer_encode(const loom_tokenizer* tokenizer, const char* text,
                                  int32_t special_tokens, int32_t** ids, int64_t* count) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(ids, "ids"));
    LOOM_TRY(clear(count, "count"));
    LOOM_ASSIGN(const Tokenizer* object, object_of(tokenizer));
    LOOM_ASSIGN(const std::string from, text_of(text, "text"));
    LOOM_ASSIGN(const std::vector<TokenId> made, object->encode(from, special_tokens != 0));
    return give_ids(ids, count, made);
  });
}

loom_status loom_tokenizer_encode_with(const loom_tokenizer* tokenizer, const char* text,
                                       const loom_encode_options* options, int32_t** ids,
                                       int64_t* count) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(ids, "ids"));
    LOOM_TRY(clear(count, "count"));
    LOOM_ASSIGN(const Tokenizer* object, object_of(tokenizer));
    LOOM_ASSIGN(const std::string from, text_of(text, "text"));
    LOOM_ASSIGN(const loom_encode_options given, options_of(options, "loom_encode_options"));
    LOOM_ASSIGN(const EncodeOptions how, read_options(given));
    LOOM_ASSIGN(const std::vector<TokenId> made, object->encode(from, how));
    return give_ids(ids, count, made);
  });
}

loom_status loom_tokenizer_decode(const loom_tokenizer* tokenizer, const int32_t* ids,
                                  int64_t count, int32_t skip_special, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Tokenizer* object, object_of(tokenizer));
    LOOM_ASSIGN(const auto from, list_of(ids, count, "ids"));
    LOOM_ASSIGN(const std::string text, object->decode(from, skip_special != 0));
    return give_text(out, text);
  });
}

loom_status loom_tokenizer_vocab_size(const loom_tokenizer* tokenizer, int64_t* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Tokenizer* object, object_of(tokenizer));
    *out = object->vocab_size();
    return {};
  });
}

loom_status loom_tokenizer_special_tokens(const loom_tokenizer* tokenizer, int32_t** ids,
                                          int64_t* count) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(ids, "ids"));
    LOOM_TRY(clear(count, "count"));
    LOOM_ASSIGN(const Tokenizer* object, object_of(tokenizer));
    return give_ids(ids, count, object->special_tokens());
  });
}

loom_status loom_tokenizer_token_id(const loom_tokenizer* tokenizer, const char* token,
                                    int32_t* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Tokenizer* object, object_of(tokenizer));
    LOOM_ASSIGN(const std::string name, text_of(token, "token"));
    LOOM_ASSIGN(*out, object->token_id(name));
    return {};
  });
}

loom_status loom_tokenizer_token_bytes(const loom_tokenizer* tokenizer, int32_t id, char** out,
                                       int64_t* size) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_TRY(clear(size, "size"));
    LOOM_ASSIGN(const Tokenizer* object, object_of(tokenizer));
    LOOM_ASSIGN(const std::string bytes, object->token_bytes(id));
    *size = static_cast<int64_t>(bytes.size());
    return give_text(out, bytes);
  });
}

}  // extern "C"
