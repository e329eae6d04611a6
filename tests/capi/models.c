/* The story model of the tree from C: tokens, text as it appears, stopping, going back. */
#include <stdlib.h>

#include "check.h"

struct stream {
  char text[4096];
  int tokens, stop_after;
  double logprobs;
};

static int32_t on_token(void* user, const loom_token* token) {
  struct stream* s = user;
  CHECK(token->struct_size == sizeof(loom_token));
  CHECK((int64_t)strlen(token->text) == token->text_size);
  strncat(s->text, token->text, sizeof(s->text) - strlen(s->text) - 1);
  s->logprobs += token->logprob;
  if (token->top_count > 0) CHECK(token->top[0].logprob >= token->logprob - 1e-6f);
  return ++s->tokens == s->stop_after;
}

static int32_t count_tensors(void* user, int64_t done, int64_t total) {
  CHECK(done <= total);
  ++*(int*)user;
  return 0;
}
static int32_t stop_loading(void* user, int64_t done, int64_t total) {
  (void)user, (void)done, (void)total;
  return 1;
}

static void test_tokens(const loom_model* model) {
  int32_t* ids = NULL;
  int64_t count = 0;
  char* text = NULL;
  CHECK_OK(loom_model_tokenize(model, "Once upon a time", 0, &ids, &count));
  CHECK(count > 0);
  CHECK_OK(loom_model_detokenize(model, ids, count, 1, &text));
  CHECK(text != NULL && strcmp(text, "Once upon a time") == 0);
  loom_free(text);
  loom_free(ids);
  const int32_t wrong[] = {1 << 30};
  CHECK_FAILS(loom_model_detokenize(model, wrong, 1, 1, &text), LOOM_OUT_OF_RANGE, "");
  CHECK(text == NULL);
}

static void test_streaming(const loom_model* model) {
  loom_model_session* session = NULL;
  CHECK_OK(loom_model_start(model, NULL, &session));
  static struct stream s = {"", 0, -1, 0};
  loom_generate_options options = LOOM_GENERATE_OPTIONS_INIT;
  options.max_tokens = 40;
  options.logprobs = 1;
  options.top_logprobs = 2;
  options.on_token = on_token;
  options.user = &s;
  loom_generation* made = NULL;
  CHECK_OK(loom_model_session_generate(session, "Once upon a time", &options, &made));
  const char* text = NULL;
  const int32_t* ids = NULL;
  const float* logprobs = NULL;
  int64_t size = 0, count = 0, scored = 0;
  CHECK_OK(loom_generation_text(made, &text, &size));
  CHECK(strcmp(text, s.text) == 0 && (int64_t)strlen(text) == size);
  CHECK(strstr(text, ", there was a brave boy named Jacob.") == text);
  CHECK_OK(loom_generation_ids(made, &ids, &count));
  CHECK_OK(loom_generation_logprobs(made, &logprobs, &scored));
  CHECK(count == 40 && scored == 40 && s.tokens == 40);
  double sum = 0;
  for (int64_t i = 0; i < scored; ++i) sum += logprobs[i];
  CHECK(sum == s.logprobs && sum < 0);
  loom_generation_info info = LOOM_GENERATION_INFO_INIT;
  CHECK_OK(loom_generation_get_info(made, &info));
  CHECK(info.stop == LOOM_STOP_LENGTH && info.tokens == 40 && info.prompt_tokens > 0);
  int64_t position = 0, context = 0;
  CHECK_OK(loom_model_session_position(session, &position, &context));
  CHECK(position == info.prompt_tokens + 39 && context >= position);
  CHECK_FAILS(loom_model_session_rewind(session, position + 1), LOOM_OUT_OF_RANGE, "");
  CHECK_OK(loom_model_session_rewind(session, 0));

  static struct stream part = {"", 0, 5, 0};
  options.user = &part;
  loom_generation* stopped = NULL;
  CHECK_OK(loom_model_session_generate(session, "Once upon a time", &options, &stopped));
  CHECK_OK(loom_generation_get_info(stopped, &info));
  CHECK(info.stop == LOOM_STOP_CANCELLED && part.tokens == 5);
  CHECK(strncmp(part.text, s.text, strlen(part.text)) == 0);
  loom_generation_free(stopped);
  loom_generation_free(made);
  loom_model_session_free(session);
}

static int32_t on_logits(void* user, int64_t position, const float* logits, int64_t count) {
  memcpy(user, logits, (size_t)count * sizeof(float));
  return position > 2;
}

static void test_logits(const loom_model* model) {
  int32_t* ids = NULL;
  int64_t count = 0, vocab = 0;
  CHECK_OK(loom_model_tokenize(model, "Once upon a time", 1, &ids, &count));
  loom_model_session* session = NULL;
  CHECK_OK(loom_model_start(model, NULL, &session));
  const float* logits = NULL;
  CHECK_OK(loom_model_session_logits(session, &logits, &vocab));
  CHECK(vocab == 0);
  CHECK_OK(loom_model_session_feed(session, ids, count));
  CHECK_OK(loom_model_session_logits(session, &logits, &vocab));
  loom_model_info info = LOOM_MODEL_INFO_INIT;
  CHECK_OK(loom_model_get_info(model, &info));
  CHECK(vocab == info.vocab && info.has_tokenizer == 1 && info.layers > 0);
  float* before = malloc((size_t)vocab * sizeof(float));
  float* other = malloc((size_t)vocab * sizeof(float));
  memcpy(before, logits, (size_t)vocab * sizeof(float));
  CHECK_OK(loom_model_session_rewind(session, 0));
  CHECK_OK(loom_model_session_feed_all(session, ids, count < 3 ? count : 3, on_logits, other));
  CHECK_OK(loom_model_session_rewind(session, 0));
  CHECK_OK(loom_model_session_feed(session, ids, count));
  CHECK_OK(loom_model_session_logits(session, &logits, &vocab));
  CHECK(memcmp(before, logits, (size_t)vocab * sizeof(float)) == 0);
  CHECK(memcmp(before, other, (size_t)vocab * sizeof(float)) != 0);
  free(before);
  free(other);
  loom_free(ids);
  loom_model_session_free(session);
}

struct watched {
  int calls, stop_after;
  int64_t done, total;
};

static int32_t watch(void* user, int64_t done, int64_t total) {
  struct watched* w = user;
  CHECK(done > w->done && done <= total);
  w->done = done;
  w->total = total;
  return ++w->calls == w->stop_after;
}

/* Feeding in pieces gives the same logits, and stops where the callback says so. */
static void test_watched_feeding(const loom_model* model) {
  enum { kCount = 300 };
  int32_t ids[kCount];
  for (int i = 0; i < kCount; ++i) ids[i] = 5 + i % 50;
  loom_model_session_options options = LOOM_MODEL_SESSION_OPTIONS_INIT;
  options.context = 512;
  loom_model_session* session = NULL;
  CHECK_OK(loom_model_start(model, &options, &session));
  CHECK_OK(loom_model_session_feed(session, ids, kCount));
  const float* logits = NULL;
  int64_t vocab = 0, position = 0, context = 0;
  CHECK_OK(loom_model_session_logits(session, &logits, &vocab));
  float* before = malloc((size_t)vocab * sizeof(float));
  memcpy(before, logits, (size_t)vocab * sizeof(float));
  CHECK_OK(loom_model_session_rewind(session, 0));
  struct watched all = {0, -1, 0, 0};
  CHECK_OK(loom_model_session_feed_watched(session, ids, kCount, watch, &all));
  CHECK(all.calls == 2 && all.done == kCount && all.total == kCount);
  CHECK_OK(loom_model_session_logits(session, &logits, &vocab));
  CHECK(memcmp(before, logits, (size_t)vocab * sizeof(float)) == 0);
  CHECK_OK(loom_model_session_rewind(session, 0));
  struct watched some = {0, 1, 0, 0};
  CHECK_FAILS(loom_model_session_feed_watched(session, ids, kCount, watch, &some), LOOM_CANCELLED,
              "");
  CHECK_OK(loom_model_session_position(session, &position, &context));
  CHECK(some.calls == 1 && position == some.done && position < kCount);
  CHECK_OK(loom_model_session_rewind(session, 0));
  CHECK_OK(loom_model_session_feed_watched(session, ids, kCount, NULL, NULL));
  free(before);
  loom_model_session_free(session);
}

/* A tokenizer alone gives the ids that its model gives. */
static void test_tokenizer(const loom_model* model, const char* path) {
  const char* text = "Once upon a time";
  loom_tokenizer* tokenizer = NULL;
  CHECK_OK(loom_tokenizer_load(NULL, path, &tokenizer));
  loom_model_info info = LOOM_MODEL_INFO_INIT;
  CHECK_OK(loom_model_get_info(model, &info));
  for (int special = 0; special < 2; ++special) {
    int32_t *ids = NULL, *same = NULL;
    int64_t count = 0, expected = 0;
    char* back = NULL;
    CHECK_OK(loom_tokenizer_encode(tokenizer, text, special, &ids, &count));
    CHECK_OK(loom_model_tokenize(model, text, special, &same, &expected));
    CHECK(count == expected && memcmp(ids, same, (size_t)count * sizeof(*ids)) == 0);
    CHECK_OK(loom_tokenizer_decode(tokenizer, ids, count, 1, &back));
    CHECK(strcmp(back, text) == 0);
    loom_free(back);
    loom_free(ids);
    loom_free(same);
  }
  loom_encode_options plain = LOOM_ENCODE_OPTIONS_INIT;
  for (int as_text = 0; as_text < 2; ++as_text) {
    int32_t* ids = NULL;
    int64_t many = 0;
    plain.plain = as_text;
    CHECK_OK(loom_tokenizer_encode_with(tokenizer, "<|im_end|>", &plain, &ids, &many));
    CHECK(as_text ? many > 1 : many == 1);
    loom_free(ids);
  }
  int64_t size = 0, count = 0;
  CHECK_OK(loom_tokenizer_vocab_size(tokenizer, &size));
  CHECK(size > 0 && size <= info.vocab);
  int32_t *specials = NULL, id = -1;
  CHECK_OK(loom_tokenizer_special_tokens(tokenizer, &specials, &count));
  CHECK(count > 0);
  for (int64_t i = 0; i < count; ++i) {
    char *name = NULL, *nothing = NULL;
    CHECK(i == 0 || specials[i] > specials[i - 1]);
    CHECK_OK(loom_tokenizer_decode(tokenizer, specials + i, 1, 0, &name));
    CHECK_OK(loom_tokenizer_token_id(tokenizer, name, &id));
    CHECK(id == specials[i]);
    CHECK_OK(loom_tokenizer_decode(tokenizer, specials + i, 1, 1, &nothing));
    CHECK(nothing[0] == 0);
    loom_free(name);
    loom_free(nothing);
  }
  loom_free(specials);
  const int32_t wrong = 1 << 30;
  char* none = NULL;
  CHECK_FAILS(loom_tokenizer_decode(tokenizer, &wrong, 1, 1, &none), LOOM_OUT_OF_RANGE, "");
  CHECK_FAILS(loom_tokenizer_token_id(tokenizer, "no such token", &id), LOOM_NOT_FOUND,
              "no such token");
  CHECK_FAILS(loom_tokenizer_encode((loom_tokenizer*)model, text, 0, &specials, &count),
              LOOM_INVALID_ARGUMENT, "a loom_model was given for a loom_tokenizer");
  loom_tokenizer* other = NULL;
  CHECK_FAILS(loom_tokenizer_load(NULL, "no/such/file", &other), LOOM_NOT_FOUND, "no/such/file");
  CHECK_FAILS(loom_tokenizer_load_memory(NULL, "{}", 2, "t.json", &other), LOOM_BAD_FILE, "t.json");
  loom_tokenizer_free(tokenizer);
  loom_tokenizer_free(NULL);
}

static void test_chat(const loom_model* model) {
  const loom_chat_turn turns[] = {{"user", "Hello"}};
  char* text = NULL;
  loom_model_info info = LOOM_MODEL_INFO_INIT;
  CHECK_OK(loom_model_get_info(model, &info));
  if (info.has_chat_template) {
    int32_t* ids = NULL;
    int64_t count = 0;
    CHECK_OK(loom_model_render_chat(model, turns, 1, NULL, &text));
    CHECK(text != NULL && strstr(text, "Hello") != NULL);
    loom_free(text);
    CHECK_OK(loom_model_tokenize_chat(model, turns, 1, NULL, &ids, &count));
    CHECK(count > 1);
    loom_free(ids);
    loom_chat_options how = LOOM_CHAT_OPTIONS_INIT;
    how.continue_final_message = 1;
    const char* parts =
        "[{\"role\":\"user\",\"content\":\"Hello\"},{\"role\":\"assistant\",\"content\":\"Hi\"}]";
    CHECK_OK(loom_model_render_messages(model, parts, &how, &text));
    CHECK(strstr(text, "Hello") != NULL && strcmp(text + strlen(text) - 2, "Hi") == 0);
    loom_free(text);
    CHECK_FAILS(loom_model_render_messages(model, "[{\"role\":\"user\",\"content\":5}]", NULL, &text),
                LOOM_INVALID_ARGUMENT, "messages[0].content");
    CHECK_OK(loom_model_read_reply(model, "Hi", "", NULL, &text));
    CHECK(strcmp(text, "{\"role\":\"assistant\",\"content\":\"Hi\"}") == 0);
    loom_free(text);
  } else {
    CHECK_FAILS(loom_model_render_chat(model, turns, 1, NULL, &text), LOOM_UNSUPPORTED, "");
  }
}

/* A file tells what is in it, without being run: the same from its bytes. */
static void test_files(void) {
  loom_model_file *file = NULL, *again = NULL;
  CHECK_OK(loom_model_file_open(NULL, getenv("LOOM_TEST_MODEL"), &file));
  char *json = NULL, *hash = NULL;
  CHECK_OK(loom_model_file_json(file, &json));
  CHECK(strstr(json, "\"format\":\"entity\"") != NULL);
  CHECK(strstr(json, "\"architecture\":\"LlamaForCausalLM\",\"layers\":4,\"width\":192") != NULL);
  CHECK(strstr(json, "\"type\":\"MultiHeadAttention\"") != NULL);
  loom_array* values = NULL;
  CHECK(loom_model_file_values(file, 0, &values) != LOOM_OK);
  CHECK(strstr(loom_last_error(), "is a text") != NULL);
  int64_t tensor = 1;
  while (tensor < 100 && loom_model_file_values(file, tensor, &values) != LOOM_OK) ++tensor;
  loom_tensor view;
  CHECK_OK(loom_array_view(values, &view));
  CHECK(view.dtype == LOOM_FLOAT32 && view.rank >= 1 && view.shape[0] > 1);
  loom_array_free(values);
  CHECK_OK(loom_model_file_hash(file, 0, &hash));
  CHECK(strlen(hash) == 32);
  loom_free(hash);
  CHECK_FAILS(loom_model_file_values(file, -1, &values), LOOM_OUT_OF_RANGE, "no tensor");
  CHECK_FAILS(loom_model_file_hash(file, 1 << 20, &hash), LOOM_OUT_OF_RANGE, "no tensor");
  CHECK_FAILS(loom_model_file_open(NULL, "nothing.entity", &again), LOOM_NOT_FOUND, "nothing");
  CHECK_FAILS(loom_model_file_open_memory(NULL, "no model", 8, "text", 0, &again), LOOM_BAD_FILE,
              "text");
  loom_free(json);
  loom_model_file_free(file);
  loom_model_file_free(NULL);

  /* Of a network: its weights, in the order of the file. */
  loom_network* net = NULL;
  void* bytes = NULL;
  int64_t size = 0;
  CHECK_OK(loom_network_from_json(NULL, kNetworkJson, NULL, &net));
  CHECK_OK(loom_network_save_memory(net, LOOM_FORMAT_ENTITY, NULL, &bytes, &size));
  CHECK_OK(loom_model_file_open_memory(NULL, bytes, size, "net.entity", 0, &again));
  loom_free(bytes);
  loom_array* wanted = NULL;
  loom_tensor first;
  CHECK_OK(loom_network_parameter(net, "(0, 0, 0, 0)/weight", &wanted));
  CHECK_OK(loom_array_view(wanted, &first));
  CHECK_OK(loom_model_file_json(again, &json));
  CHECK(strstr(json, "\"decoder\":null") != NULL && strstr(json, "weight") != NULL);
  loom_free(json);
  int found = 0;
  for (int64_t i = 0; i < 4 && loom_model_file_values(again, i, &values) == LOOM_OK; ++i) {
    CHECK_OK(loom_array_view(values, &view));
    if (view.rank == 2 && view.shape[0] == 16)
      found += memcmp(view.data, first.data, 16 * 4 * sizeof(float)) == 0;
    loom_array_free(values);
  }
  CHECK(found == 1);
  loom_array_free(wanted);
  loom_model_file_free(again);
  loom_network_free(net);
}

void test_models(void) {
  test_files();
  const char* path = getenv("LOOM_TEST_MODEL");
  if (path == NULL) path = "models/stories.entity";
  loom_model* model = NULL;
  int tensors = 0;
  loom_model_options options = LOOM_MODEL_OPTIONS_INIT;
  /* In the file's own type it would be mapped, and there would be nothing to wait for. */
  options.has_dtype = 1;
  options.dtype = LOOM_Q4_0;
  options.progress = stop_loading;
  CHECK_FAILS(loom_model_load(NULL, path, &options, &model), LOOM_CANCELLED, "");
  options.progress = count_tensors;
  options.user = &tensors;
  CHECK_OK(loom_model_load(NULL, path, &options, &model));
  CHECK(tensors > 0);
  loom_model_free(model);
  options.rope_scaling = "twice";
  CHECK_FAILS(loom_model_load(NULL, path, &options, &model), LOOM_INVALID_ARGUMENT, "linear:F");
  options.rope_scaling = "linear:4";
  options.chat_template = "{% if %}";
  CHECK_FAILS(loom_model_load(NULL, path, &options, &model), LOOM_BAD_FILE, "template");
  options.chat_template = "{{ messages[0].content }}";
  CHECK_OK(loom_model_load(NULL, path, &options, &model));
  loom_model_free(model);
  CHECK_OK(loom_model_load(NULL, path, NULL, &model));
  test_tokens(model);
  test_streaming(model);
  test_logits(model);
  test_watched_feeding(model);
  test_tokenizer(model, path);
  test_chat(model);
  loom_model_free(model);
  loom_model* random = NULL;
  CHECK_OK(loom_model_random(NULL, "tiny", LOOM_FLOAT32, 1, &random));
  loom_model_free(random);
}
