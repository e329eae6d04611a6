/* Calls of a model next to generation: constraints, draft texts, beams, perplexity, vectors, batches. */
#include <math.h>
#include <stdlib.h>

#include "check.h"

static const char kPrompt[] = "Once upon a time";

/* The ids of a text; the caller frees them. */
static int32_t* ids_of(const loom_model* model, const char* text, int64_t* count) {
  int32_t* ids = NULL;
  CHECK_OK(loom_model_tokenize(model, text, 1, &ids, count));
  return ids;
}

static void test_parts(const loom_model* model) {
  char *text = NULL, *print = NULL, *narrow = NULL;
  CHECK_OK(loom_model_chat_template(model, &text));
  loom_model_info info = LOOM_MODEL_INFO_INIT;
  CHECK_OK(loom_model_get_info(model, &info));
  CHECK(text != NULL && (text[0] != 0) == (info.has_chat_template != 0));
  loom_free(text);
  CHECK_OK(loom_model_fingerprint(model, LOOM_FLOAT32, &print));
  CHECK_OK(loom_model_fingerprint(model, LOOM_FLOAT16, &narrow));
  CHECK(print != NULL && narrow != NULL && strlen(print) == 16 && strcmp(print, narrow) != 0);
  loom_free(print);
  loom_free(narrow);
  CHECK_OK(loom_model_suggested_sampling(model, &text));
  CHECK(text != NULL && (strcmp(text, "null") == 0 || text[0] == '{'));
  loom_free(text);
  loom_model_session* session = NULL;
  CHECK_OK(loom_model_start(model, NULL, &session));
  loom_model_session_info memory = LOOM_MODEL_SESSION_INFO_INIT;
  CHECK_OK(loom_model_session_get_info(session, &memory));
  CHECK(memory.position == 0 && memory.context > 0 && memory.cache_bytes > 0);
  CHECK(memory.bytes == memory.activation_bytes + memory.cache_bytes);
  loom_model_session_free(session);
}

static void test_tokenizer_of(const loom_model* model) {
  loom_tokenizer* tokenizer = NULL;
  CHECK_OK(loom_model_tokenizer(model, &tokenizer));
  int64_t count = 0, same = 0, size = 0;
  int32_t* ids = ids_of(model, kPrompt, &count);
  int32_t* others = NULL;
  CHECK_OK(loom_tokenizer_encode(tokenizer, kPrompt, 1, &others, &same));
  CHECK(count == same && memcmp(ids, others, (size_t)count * sizeof *ids) == 0);
  char* bytes = NULL;
  CHECK_OK(loom_tokenizer_token_bytes(tokenizer, ids[count - 1], &bytes, &size));
  CHECK(bytes != NULL && size == (int64_t)strlen(bytes) && strstr(" time", bytes) != NULL);
  loom_free(bytes);
  CHECK_FAILS(loom_tokenizer_token_bytes(tokenizer, -1, &bytes, &size), LOOM_OUT_OF_RANGE, "-1");
  CHECK(bytes == NULL);
  loom_free(ids);
  loom_free(others);
  loom_tokenizer_free(tokenizer);
}

static char* written(const loom_model* model, const loom_generate_options* options) {
  loom_model_session* session = NULL;
  CHECK_OK(loom_model_start(model, NULL, &session));
  loom_generation* made = NULL;
  CHECK_OK(loom_model_session_generate(session, kPrompt, options, &made));
  const char* text = "";
  if (made != NULL) CHECK_OK(loom_generation_text(made, &text, NULL));
  char* copy = malloc(strlen(text) + 1);
  strcpy(copy, text);
  loom_generation_free(made);
  loom_model_session_free(session);
  return copy;
}

static void test_rules(const loom_model* model) {
  loom_generate_options options = LOOM_GENERATE_OPTIONS_INIT;
  options.max_tokens = 8;
  options.grammar = "root ::= \" yes\" | \" no\"";
  CHECK_OK(loom_check_rules(&options));
  char* plain = written(model, &options);
  loom_rules* rules = NULL;
  CHECK_OK(loom_model_compile_rules(model, &options, &rules));
  options.rules = rules;
  char* compiled = written(model, &options);
  CHECK(strcmp(plain, compiled) == 0);
  CHECK(strcmp(plain, " yes") == 0 || strcmp(plain, " no") == 0);
  free(plain);
  free(compiled);
  loom_rules_free(rules);
  options.rules = NULL;
  options.grammar = "root ::= (";
  CHECK_FAILS(loom_check_rules(&options), LOOM_INVALID_ARGUMENT, "");
  CHECK_FAILS(loom_model_compile_rules(model, &options, &rules), LOOM_INVALID_ARGUMENT, "");
  options.grammar = NULL;
  CHECK_OK(loom_model_compile_rules(model, &options, &rules));
  CHECK(rules == NULL);
  char* grammar = NULL;
  CHECK_FAILS(loom_model_call_grammar(model, kPrompt, "{}", NULL, &grammar), LOOM_INVALID_ARGUMENT,
              "");
}

static void test_lookup(const loom_model* model) {
  const int32_t story[] = {5, 6, 7, 5, 6, 8, 5, 6, 7};
  loom_lookup_text* text = NULL;
  CHECK_OK(loom_lookup_text_create(story, 9, &text));
  int32_t next = 0;
  CHECK_OK(loom_lookup_text_next(text, story, 2, 0.5, &next));
  CHECK(next == 7);
  CHECK_OK(loom_lookup_text_next(text, story, 2, 0.9, &next));
  CHECK(next == -1);
  loom_generate_options options = LOOM_GENERATE_OPTIONS_INIT;
  options.max_tokens = 20;
  char* plain = written(model, &options);
  options.lookup = 1;
  options.lookup_text = text;
  char* guessed = written(model, &options);
  CHECK(strcmp(plain, guessed) == 0);
  free(plain);
  free(guessed);
  loom_lookup_text_free(text);
}

static int32_t stop(void* user, int64_t done, int64_t total) {
  (void)user;
  CHECK(done <= total);
  return 1;
}

static void test_whole_texts(const loom_model* model) {
  int64_t count = 0;
  int32_t* ids = ids_of(model, "Once upon a time there was a little girl who had a red ball.", &count);
  loom_perplexity found = LOOM_PERPLEXITY_INIT;
  loom_perplexity_options how = LOOM_PERPLEXITY_OPTIONS_INIT;
  how.window = 4;
  CHECK_OK(loom_model_perplexity(model, ids, count, &how, &found));
  CHECK(found.predictions == (count - 1) / 4 * 4);
  CHECK(fabs(found.perplexity - exp(found.nats_per_token)) < 1e-9 * found.perplexity);
  how.progress = stop;
  CHECK_FAILS(loom_model_perplexity(model, ids, count, &how, &found), LOOM_CANCELLED, "");
  CHECK_FAILS(loom_model_perplexity(model, ids, 1, NULL, &found), LOOM_INVALID_ARGUMENT, "");

  char* texts = NULL;
  loom_beam_options beams = LOOM_BEAM_OPTIONS_INIT;
  beams.num_beams = 1;
  beams.max_tokens = 6;
  beams.ignore_eos = 1;
  CHECK_OK(loom_beam_search(model, ids, count, &beams, &texts));
  CHECK(texts != NULL && strstr(texts, "\"token_ids\":[") != NULL && strstr(texts, "\"stop\":2"));
  loom_free(texts);
  beams.num_beams = 65;
  CHECK_FAILS(loom_beam_search(model, ids, count, &beams, &texts), LOOM_INVALID_ARGUMENT, "65");
  loom_free(ids);
}

static void test_vectors(const loom_model* model) {
  int64_t count = 0;
  int32_t* ids = ids_of(model, kPrompt, &count);
  const char* const text = kPrompt;
  loom_array *a = NULL, *b = NULL;
  CHECK_OK(loom_model_embed(model, &text, 1, NULL, &a));
  CHECK_OK(loom_model_embed_tokens(model, ids, &count, 1, NULL, &b));
  loom_tensor x, y;
  CHECK_OK(loom_array_view(a, &x));
  CHECK_OK(loom_array_view(b, &y));
  CHECK(x.shape[1] == y.shape[1]);
  CHECK(memcmp(x.data, y.data, (size_t)x.shape[1] * sizeof(float)) == 0);
  float alike = 0;
  CHECK_OK(loom_cosine(x.data, y.data, x.shape[1], &alike));
  CHECK(fabsf(alike - 1.0f) < 1e-6f);
  const int64_t wrong = -1;
  loom_array* none = NULL;
  CHECK_FAILS(loom_model_embed_tokens(model, ids, &wrong, 1, NULL, &none), LOOM_INVALID_ARGUMENT,
              "ids");
  loom_array_free(a);
  loom_array_free(b);
  loom_free(ids);
}

static void finish(loom_batch* batch, int64_t sequence) {
  int32_t running = 1;
  while (running != 0) {
    CHECK_OK(loom_batch_step(batch));
    CHECK_OK(loom_batch_is_running(batch, sequence, &running));
  }
  loom_generation* made = NULL;
  CHECK_OK(loom_batch_take(batch, sequence, &made));
  loom_generation_free(made);
}

static void test_batch(const loom_model* model) {
  loom_batch_options how = LOOM_BATCH_OPTIONS_INIT;
  how.sequences = 2;
  how.context = 64;
  loom_batch* batch = NULL;
  CHECK_OK(loom_model_batch(model, &how, &batch));
  loom_batch_info info = LOOM_BATCH_INFO_INIT;
  CHECK_OK(loom_batch_get_info(batch, &info));
  CHECK(info.sequences == 2 && info.context == 64 && info.shares_passes == 1 && info.bytes > 0);
  int64_t count = 0, read = 0, reused = 0;
  int32_t* ids = ids_of(model, "Once upon a time there was a little girl who had a red ball.", &count);
  loom_generate_options options = LOOM_GENERATE_OPTIONS_INIT;
  options.max_tokens = 2;
  CHECK_OK(loom_batch_start(batch, 0, ids, count, &options));
  finish(batch, 0);
  CHECK_OK(loom_batch_position(batch, 0, &read));
  CHECK(read >= count);
  CHECK_OK(loom_batch_reuse(batch, 1, ids, count, &reused));
  CHECK(reused > 0 && reused < count);

  const char* path = scratch_path("batch.state");
  CHECK_OK(loom_batch_save_state(batch, 0, path));
  uint64_t salt = 0;
  CHECK_OK(loom_batch_set_salt(batch, 1, 7));
  CHECK_OK(loom_batch_salt(batch, 1, &salt));
  CHECK(salt == 7);
  CHECK_OK(loom_batch_reuse(batch, 1, ids, count, &reused));
  CHECK(reused == 0);
  CHECK_OK(loom_batch_load_state(batch, 1, path));
  CHECK_OK(loom_batch_position(batch, 1, &reused));
  CHECK(reused == read);
  CHECK_OK(loom_batch_erase(batch, 1));
  CHECK_OK(loom_batch_position(batch, 1, &reused));
  CHECK(reused == 0);
  CHECK_FAILS(loom_batch_position(batch, 2, &reused), LOOM_OUT_OF_RANGE, "2");
  CHECK_FAILS(loom_batch_load_state(batch, 0, "no such file"), LOOM_NOT_FOUND, "no such file");
  loom_free(ids);
  loom_batch_free(batch);
}

void test_language(void) {
  loom_model* model = NULL;
  CHECK_OK(loom_model_load(NULL, getenv("LOOM_TEST_MODEL"), NULL, &model));
  if (model == NULL) return;
  test_parts(model);
  test_tokenizer_of(model);
  test_rules(model);
  test_lookup(model);
  test_whole_texts(model);
  test_vectors(model);
  test_batch(model);
  loom_model_free(model);
}
