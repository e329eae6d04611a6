/* How texts are drawn and told apart: samplers, grammars, batches, states, replies, vectors. */
#include <stdlib.h>

#include "check.h"

static loom_model* stories(void) {
  loom_model* model = NULL;
  const char* path = getenv("LOOM_TEST_MODEL");
  CHECK_OK(loom_model_load(NULL, path != NULL ? path : "models/stories.entity", NULL, &model));
  return model;
}

/* What a session of its own writes; the caller frees it. */
static loom_generation* written(const loom_model* model, const char* prompt,
                                const loom_generate_options* options) {
  loom_model_session* session = NULL;
  loom_generation* made = NULL;
  CHECK_OK(loom_model_start(model, NULL, &session));
  CHECK_OK(loom_model_session_generate(session, prompt, options, &made));
  loom_model_session_free(session);
  return made;
}

static const char* text_of(const loom_generation* made) {
  const char* text = "";
  CHECK_OK(loom_generation_text(made, &text, NULL));
  return text;
}

/* Each option of the sampler gives another text than none of them does. */
static void test_samplers(const loom_model* model) {
  static const int32_t kBanned[] = {14};
  static const char* const kStrings[] = {"the"};
  static const loom_token_bias kBias[] = {{14, -100.0F}};
  loom_generate_options plain = LOOM_GENERATE_OPTIONS_INIT;
  plain.max_tokens = 60;
  plain.temperature = 1.2F;
  plain.seed = 5;
  loom_generation* first = written(model, "One day", &plain);
  loom_generate_options cases[10];
  const size_t count = sizeof(cases) / sizeof(cases[0]);
  for (size_t i = 0; i < count; ++i) cases[i] = plain;
  cases[0].frequency_penalty = 1.5F;
  cases[1].presence_penalty = 1.5F;
  cases[2].no_repeat_ngram = 2;
  cases[3].typical_p = 0.3F;
  cases[4].top_n_sigma = 0.5F;
  cases[5].mirostat = 2;
  cases[6].dynamic_range = 1.0F;
  cases[7].banned_strings = kStrings;
  cases[7].banned_string_count = 1;
  cases[8].xtc_probability = 1.0F;
  cases[9].dry_multiplier = 5.0F;
  cases[9].dry_allowed_length = 1;
  for (size_t i = 0; i < count; ++i) {
    loom_generation* other = written(model, "One day", &cases[i]);
    if (strcmp(text_of(first), text_of(other)) == 0) printf("case %d changes nothing\n", (int)i);
    CHECK(strcmp(text_of(first), text_of(other)) != 0);
    CHECK(i != 7 || strstr(text_of(other), "the") == NULL);
    loom_generation_free(other);
  }
  plain.banned_tokens = kBanned;
  plain.banned_token_count = 1;
  loom_generation* banned = written(model, "One day", &plain);
  plain.banned_token_count = 0;
  plain.logit_bias = kBias;
  plain.logit_bias_count = 1;
  loom_generation* biased = written(model, "One day", &plain);
  CHECK(strcmp(text_of(banned), text_of(biased)) == 0);
  loom_generation_free(banned);
  loom_generation_free(biased);
  loom_generation_free(first);
}

static void test_grammars(const loom_model* model) {
  loom_generate_options how = LOOM_GENERATE_OPTIONS_INIT;
  how.max_tokens = 30;
  how.grammar = "root ::= \" yes\" | \" no\"";
  loom_generation* made = written(model, "Is it?", &how);
  CHECK(strcmp(text_of(made), " yes") == 0 || strcmp(text_of(made), " no") == 0);
  loom_generation_free(made);
  how.grammar = NULL;
  how.json_schema = "{\"enum\": [\"red\", \"blue\"]}";
  made = written(model, "A colour: ", &how);
  CHECK(strcmp(text_of(made), "\"red\"") == 0 || strcmp(text_of(made), "\"blue\"") == 0);
  loom_generation_free(made);
  loom_model_session* session = NULL;
  CHECK_OK(loom_model_start(model, NULL, &session));
  how.grammar = "root ::= missing";
  CHECK_FAILS(loom_model_session_generate(session, "a", &how, NULL), LOOM_INVALID_ARGUMENT, "");
  how.json_schema = NULL;
  CHECK_FAILS(loom_model_session_generate(session, "a", &how, NULL), LOOM_INVALID_ARGUMENT,
              "missing");
  loom_model_session_free(session);
}

/* A number outside of its range is refused by the name that the option has in C++. */
static void test_ranges(const loom_model* model) {
  loom_model_session* session = NULL;
  CHECK_OK(loom_model_start(model, NULL, &session));
  const loom_generate_options plain = LOOM_GENERATE_OPTIONS_INIT;
  loom_generate_options cases[5];
  const char* const words[] = {
      "top_p is 2, must be above 0, up to 1", "dry.base is 0.5, must be 1 to",
      "keep_tokens is -1, must be 0 or more", "shift_tokens is -1, must be 0 or more",
      "guess_chance is 2, must be 0 to 1"};
  const size_t count = sizeof(cases) / sizeof(cases[0]);
  for (size_t i = 0; i < count; ++i) cases[i] = plain;
  cases[0].top_p = 2.0F;
  cases[1].dry_base = 0.5F;
  cases[2].keep_tokens = -1;
  cases[3].shift_tokens = -1;
  cases[4].guess_chance = 2.0F;
  cases[4].has_guess_chance = 1;
  for (size_t i = 0; i < count; ++i) {
    CHECK_FAILS(loom_model_session_generate(session, "a", &cases[i], NULL), LOOM_INVALID_ARGUMENT,
                words[i]);
  }
  cases[4].has_guess_chance = 0;
  cases[4].max_tokens = 1;
  CHECK_OK(loom_model_session_generate(session, "a", &cases[4], NULL));
  loom_model_session_free(session);
}

static void test_states(const loom_model* model) {
  loom_generate_options how = LOOM_GENERATE_OPTIONS_INIT;
  how.max_tokens = 20;
  loom_model_session *first = NULL, *second = NULL;
  loom_generation *one = NULL, *two = NULL;
  int32_t* ids = NULL;
  int64_t count = 0;
  CHECK_OK(loom_model_tokenize(model, "Once upon a time", 1, &ids, &count));
  CHECK_OK(loom_model_start(model, NULL, &first));
  CHECK_OK(loom_model_start(model, NULL, &second));
  CHECK_OK(loom_model_session_feed(first, ids, count));
  CHECK_OK(loom_model_session_save_state(first, scratch_path("texts.state")));
  CHECK_OK(loom_model_session_load_state(second, scratch_path("texts.state")));
  CHECK_OK(loom_model_session_generate(first, "", &how, &one));
  CHECK_OK(loom_model_session_generate(second, "", &how, &two));
  CHECK(strcmp(text_of(one), text_of(two)) == 0 && text_of(one)[0] != '\0');
  CHECK_FAILS(loom_model_session_load_state(first, "/nowhere/x"), LOOM_NOT_FOUND, "/nowhere");
  CHECK_FAILS(loom_model_session_save_state(NULL, "x"), LOOM_INVALID_ARGUMENT, "null");
  CHECK_FAILS(loom_model_session_load_state(first, NULL), LOOM_INVALID_ARGUMENT, "'path'");
  loom_generation_free(one);
  loom_generation_free(two);
  loom_model_session_free(first);
  loom_model_session_free(second);
  loom_free(ids);
}

static void test_batches(const loom_model* model) {
  static const char* const kPrompts[] = {"Once upon a time", "The little fox", "One day"};
  loom_generate_options how = LOOM_GENERATE_OPTIONS_INIT;
  how.max_tokens = 25;
  loom_batch_options options = LOOM_BATCH_OPTIONS_INIT;
  options.sequences = 3;
  loom_batch* batch = NULL;
  loom_generation* made = NULL;
  int64_t running = 0;
  CHECK_OK(loom_model_batch(model, &options, &batch));
  for (int i = 0; i < 3; ++i) {
    int32_t* ids = NULL;
    int64_t count = 0;
    CHECK_OK(loom_model_tokenize(model, kPrompts[i], 1, &ids, &count));
    CHECK_OK(loom_batch_start(batch, i, ids, count, &how));
    loom_free(ids);
  }
  CHECK_FAILS(loom_batch_take(batch, 0, &made), LOOM_INVALID_ARGUMENT, "");
  for (int steps = 0; steps < 200; ++steps) {
    CHECK_OK(loom_batch_running(batch, &running));
    if (running == 0) break;
    CHECK_OK(loom_batch_step(batch));
  }
  for (int i = 0; i < 3; ++i) {
    loom_generation* alone = written(model, kPrompts[i], &how);
    CHECK_OK(loom_batch_take(batch, i, &made));
    CHECK(strcmp(text_of(alone), text_of(made)) == 0);
    loom_generation_free(made);
    loom_generation_free(alone);
  }
  int32_t runs = 1;
  CHECK_OK(loom_batch_is_running(batch, 2, &runs));
  CHECK(runs == 0);
  CHECK_FAILS(loom_batch_cancel(batch, 3), LOOM_OUT_OF_RANGE, "sequence 3 of 3");
  CHECK_FAILS(loom_batch_rewind(batch, 0, 1 << 20), LOOM_OUT_OF_RANGE, "position");
  CHECK_FAILS(loom_batch_step(NULL), LOOM_INVALID_ARGUMENT, "loom_batch is null");
  loom_batch_free(batch);
  CHECK_FAILS(loom_batch_step(batch), LOOM_INVALID_ARGUMENT, "was freed");
}

static int32_t count_pieces(void* user, loom_reply_kind kind, const char* text, int32_t call) {
  (void)call;
  if (kind == LOOM_REPLY_TEXT) *(size_t*)user += strlen(text);
  return 0;
}
static int32_t stop_at_once(void* user, loom_reply_kind kind, const char* text, int32_t call) {
  (void)user, (void)kind, (void)text, (void)call;
  return 1;
}

static void test_replies(const loom_model* model) {
  loom_reply_parser* parser = NULL;
  size_t seen = 0;
  char* text = NULL;
  CHECK_OK(loom_model_reply_parser(model, "Hello", NULL, &parser));
  CHECK_OK(loom_reply_parser_feed(parser, "Good ", count_pieces, &seen));
  CHECK_OK(loom_reply_parser_feed(parser, "day.", count_pieces, &seen));
  CHECK_OK(loom_reply_parser_finish(parser, count_pieces, &seen));
  CHECK(seen == strlen("Good day."));
  CHECK_FAILS(loom_reply_parser_problem(parser, 0, &text), LOOM_OUT_OF_RANGE, "call 0 of 0");
  CHECK_FAILS(loom_reply_parser_feed(parser, "x", NULL, NULL), LOOM_INVALID_ARGUMENT, "'sink'");
  loom_reply_parser_free(parser);
  CHECK_OK(loom_model_reply_parser(model, "Hello", NULL, &parser));
  CHECK_FAILS(loom_reply_parser_feed(parser, "Good day. ", stop_at_once, NULL), LOOM_CANCELLED, "");
  loom_reply_parser_free(parser);
  CHECK_FAILS(loom_model_reply_parser(model, "Hello", "{", &parser), LOOM_BAD_FILE, "tools");
  CHECK_OK(loom_model_tool_format(model, &text));
  loom_free(text);
}

static void test_vectors(const loom_model* model) {
  static const char* const kTexts[] = {"a cat", "a cat", "the sun is up"};
  loom_embed_options how = LOOM_EMBED_OPTIONS_INIT;
  loom_array* out = NULL;
  loom_tensor view;
  how.pooling = LOOM_POOLING_MEAN;
  CHECK_OK(loom_model_embed(model, kTexts, 3, &how, &out));
  CHECK_OK(loom_array_view(out, &view));
  const float* values = view.data;
  const int64_t width = view.shape[1];
  CHECK(view.shape[0] == 3 && width > 1);
  CHECK(memcmp(values, values + width, (size_t)width * sizeof(float)) == 0);
  CHECK(memcmp(values, values + 2 * width, (size_t)width * sizeof(float)) != 0);
  loom_array_free(out);
  how.pooling = 99;
  CHECK_FAILS(loom_model_embed(model, kTexts, 3, &how, &out), LOOM_INVALID_ARGUMENT, "pooling");
  CHECK_FAILS(loom_model_embed(model, kTexts, 0, NULL, &out), LOOM_INVALID_ARGUMENT, "texts");
  CHECK_FAILS(loom_model_embed(model, NULL, 1, NULL, &out), LOOM_INVALID_ARGUMENT, "texts");
  loom_ranked ranked[3];
  CHECK_FAILS(loom_model_rerank(model, "cat", kTexts, 3, NULL, ranked), LOOM_UNSUPPORTED, "");
  CHECK_FAILS(loom_model_rerank(model, "cat", kTexts, 3, NULL, NULL), LOOM_INVALID_ARGUMENT, "out");
}

void test_writing(void) {
  loom_model* model = stories();
  test_samplers(model);
  test_grammars(model);
  test_ranges(model);
  test_states(model);
  test_batches(model);
  test_replies(model);
  test_vectors(model);
  loom_model_free(model);
}
