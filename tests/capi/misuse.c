/* Wrong use is an error code: null, freed, of another kind, no handle at all; and struct sizes. */
#include <stdlib.h>

#include "check.h"

static void test_nulls(void) {
  loom_network* net = NULL;
  loom_array* y = NULL;
  loom_tensor t;
  CHECK_FAILS(loom_network_predict(NULL, NULL, &y), LOOM_INVALID_ARGUMENT, "loom_network is null");
  CHECK_FAILS(loom_network_load(NULL, NULL, NULL, &net), LOOM_INVALID_ARGUMENT, "'path' is null");
  CHECK_FAILS(loom_network_load(NULL, "x", NULL, NULL), LOOM_INVALID_ARGUMENT, "'out' is null");
  CHECK_FAILS(loom_network_from_json(NULL, NULL, NULL, &net), LOOM_INVALID_ARGUMENT, "'json'");
  CHECK_FAILS(loom_array_view(NULL, &t), LOOM_INVALID_ARGUMENT, "loom_array is null");
  CHECK_FAILS(loom_trainer_fit(NULL, NULL, NULL, NULL, NULL), LOOM_INVALID_ARGUMENT, "null");
  CHECK_FAILS(loom_model_session_feed(NULL, NULL, 0), LOOM_INVALID_ARGUMENT, "null");
  CHECK_FAILS(loom_array_from_dlpack(NULL, &y), LOOM_INVALID_ARGUMENT, "'managed' is null");
  loom_engine_free(NULL);
  loom_array_free(NULL);
  loom_network_free(NULL);
  loom_session_free(NULL);
  loom_dataset_free(NULL);
  loom_trainer_free(NULL);
  loom_history_free(NULL);
  loom_model_free(NULL);
  loom_model_session_free(NULL);
  loom_generation_free(NULL);
  loom_free(NULL);
}

static void test_handles(void) {
  loom_network *net = NULL, *other = NULL;
  CHECK_OK(loom_network_from_json(NULL, kNetworkJson, NULL, &net));
  char* text = NULL;
  /* Of another kind. */
  int64_t position = 0;
  CHECK_FAILS(loom_session_position((const loom_session*)net, &position), LOOM_INVALID_ARGUMENT,
              "a loom_network was given for a loom_session");
  loom_engine_free((loom_engine*)net);
  CHECK(strstr(loom_last_error(), "a loom_network was given for a loom_engine") != NULL);
  CHECK_OK(loom_network_summary(net, &text));
  loom_free(text);
  /* Freed, then freed again, then used though a new one may stand in its place. */
  loom_network_free(net);
  CHECK_FAILS(loom_network_summary(net, &text), LOOM_INVALID_ARGUMENT, "was freed");
  loom_network_free(net);
  CHECK(strstr(loom_last_error(), "was freed") != NULL);
  CHECK_OK(loom_network_from_json(NULL, kNetworkJson, NULL, &other));
  CHECK(other != net);
  CHECK_FAILS(loom_network_summary(net, &text), LOOM_INVALID_ARGUMENT, "was freed");
  CHECK_OK(loom_network_summary(other, &text));
  loom_free(text);
  loom_network_free(other);
  /* No handle at all. */
  int local = 0;
  CHECK_FAILS(loom_network_summary((const loom_network*)(void*)&local, &text),
              LOOM_INVALID_ARGUMENT, "not a handle");
  uintptr_t state = 12345;
  for (int i = 0; i < 100000; ++i) {
    state = state * (uintptr_t)6364136223846793005u + (uintptr_t)1442695040888963407u;
    const uintptr_t value = i % 2 == 0 ? state : state % 1000000;
    if (loom_network_summary((const loom_network*)value, &text) == LOOM_OK) ++failures;
  }
}

static void test_sizes(void) {
  loom_load_options load = LOOM_LOAD_OPTIONS_INIT;
  loom_network* net = NULL;
  load.struct_size = 0;
  CHECK_FAILS(loom_network_from_json(NULL, kNetworkJson, &load, &net), LOOM_INVALID_ARGUMENT,
              "struct_size of loom_load_options is 0");
  /* An older caller: what it does not have is zero, whatever lies behind it. */
  load.struct_size = 4;
  load.has_dtype = 1;
  load.dtype = 999;
  CHECK_OK(loom_network_from_json(NULL, kNetworkJson, &load, &net));
  loom_network_free(net);
  load.struct_size = sizeof(load);
  CHECK_FAILS(loom_network_from_json(NULL, kNetworkJson, &load, &net), LOOM_INVALID_ARGUMENT,
              "'dtype' is 999");
  /* A newer caller: fine as long as it asks for nothing that is not known here. */
  struct {
    loom_load_options known;
    int64_t unknown;
  } newer = {LOOM_LOAD_OPTIONS_INIT, 0};
  newer.known.struct_size = sizeof(newer);
  CHECK_OK(loom_network_from_json(NULL, kNetworkJson, &newer.known, &net));
  newer.unknown = 1;
  loom_network* none = NULL;
  CHECK_FAILS(loom_network_from_json(NULL, kNetworkJson, &newer.known, &none), LOOM_UNSUPPORTED,
              "does not know");
  /* Reports: only what the caller has room for is written. */
  loom_network_info info;
  memset(&info, 0x55, sizeof(info));
  info.struct_size = 8;
  CHECK_OK(loom_network_get_info(net, &info));
  CHECK(info.struct_size == 8 && info.input_rank == 1 && info.layers == 0x5555555555555555);
  info.struct_size = 3;
  CHECK_FAILS(loom_network_get_info(net, &info), LOOM_INVALID_ARGUMENT, "struct_size");
  CHECK_FAILS(loom_network_get_info(net, NULL), LOOM_INVALID_ARGUMENT, "null");
  loom_network_free(net);
}

static void test_tensors(void) {
  loom_network* net = NULL;
  CHECK_OK(loom_network_from_json(NULL, kNetworkJson, NULL, &net));
  static const struct {
    loom_dtype dtype;
    int32_t rank;
    int64_t shape[2];
    int has_data;
    const char* words;
  } kWrong[] = {
      {LOOM_FLOAT32, 2, {1, 5}, 1, "[1, 5]"},
      {LOOM_FLOAT32, 2, {-1, 4}, 1, "[-1, 4]"},
      {LOOM_FLOAT32, 2, {INT64_MAX, 4}, 1, "nothing can have"},
      {LOOM_FLOAT32, 17, {1, 4}, 1, "16 extents"},
      {LOOM_FLOAT32, -1, {1, 4}, 1, "16 extents"},
      {LOOM_FLOAT32, 2, {1, 4}, 0, "no data"},
      {LOOM_Q4_0, 2, {1, 4}, 1, "q4_0"},
      {1234, 2, {1, 4}, 1, "1234"},
  };
  static const float kData[64] = {0};
  for (size_t i = 0; i < sizeof(kWrong) / sizeof(kWrong[0]); ++i) {
    loom_tensor t = LOOM_TENSOR(kWrong[i].dtype, kData, kWrong[i].rank, kWrong[i].shape);
    if (!kWrong[i].has_data) t.data = NULL;
    loom_array* y = NULL;
    CHECK_FAILS(loom_network_predict(net, &t, &y), LOOM_INVALID_ARGUMENT, kWrong[i].words);
    CHECK(y == NULL);
  }
  loom_network_free(net);
}

static void test_files(void) {
  loom_network* net = NULL;
  loom_model* model = NULL;
  CHECK_FAILS(loom_network_load(NULL, "/nowhere/net.entity", NULL, &net), LOOM_NOT_FOUND,
              "/nowhere/net.entity");
  CHECK_FAILS(loom_network_from_json(NULL, "{\"loom\": 1", NULL, &net), LOOM_BAD_FILE, "");
  CHECK_FAILS(loom_network_from_json(NULL, "", NULL, &net), LOOM_BAD_FILE, "");
  CHECK_FAILS(loom_model_load(NULL, "/nowhere", NULL, &model), LOOM_NOT_FOUND, "/nowhere");
}

static void test_table(void) {
  const loom_api* api = loom_get_api(LOOM_ABI_VERSION);
  CHECK(loom_get_api(LOOM_ABI_VERSION + 1) == NULL);
  CHECK(api != NULL && api->abi == LOOM_ABI_VERSION);
  CHECK(api->count == (sizeof(*api) - 2 * sizeof(uint32_t)) / sizeof(void (*)(void)));
  CHECK(api->abi_version == loom_abi_version && api->network_predict == loom_network_predict);
  CHECK(strcmp(api->version(), loom_version()) == 0);
}

void test_misuse(void) {
  test_table();
  test_nulls();
  test_handles();
  test_sizes();
  test_tensors();
  test_files();
}
