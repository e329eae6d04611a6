/* Networks made of JSON, asked, saved and loaded: the same bits each way. */
#include <math.h>
#include <stdlib.h>

#include "check.h"

static void test_versions(void) {
  CHECK(loom_abi_version() == LOOM_ABI_VERSION);
  CHECK(strcmp(loom_version(), LOOM_VERSION_STRING) == 0);
  CHECK(LOOM_VERSION == LOOM_VERSION_MAJOR * 10000 + LOOM_VERSION_MINOR * 100 + LOOM_VERSION_PATCH);
  CHECK(strcmp(loom_status_name(LOOM_BAD_FILE), "bad file") == 0);
  CHECK(strcmp(loom_status_name(99), "unknown") == 0);
  CHECK(strcmp(loom_dtype_name(LOOM_FLOAT32), "float32") == 0);
  CHECK(loom_dtype_name(200) == NULL);
  CHECK(loom_dtype_bits(LOOM_INT4) == 4);
  loom_dtype dtype = -1;
  CHECK_OK(loom_dtype_parse("bf16", &dtype));
  CHECK(dtype == LOOM_BFLOAT16);
  CHECK_FAILS(loom_dtype_parse("float33", &dtype), LOOM_INVALID_ARGUMENT, "float33");
  char* layers = NULL;
  CHECK_OK(loom_layer_types(&layers));
  CHECK(layers != NULL && strstr(layers, "Dense\n") != NULL);
  loom_free(layers);
}

static void test_engines(void) {
  loom_engine_options options = LOOM_ENGINE_OPTIONS_INIT;
  options.threads = 1;
  options.isa = "scalar";
  loom_engine* engine = NULL;
  CHECK_OK(loom_engine_create(&options, &engine));
  loom_engine_info info = LOOM_ENGINE_INFO_INIT;
  CHECK_OK(loom_engine_get_info(engine, &info));
  CHECK(info.threads == 1);
  CHECK(strcmp(info.isa, "scalar") == 0);
  CHECK(strstr(info.isas, "scalar") == info.isas);
  CHECK(strcmp(info.device, "cpu") == 0);
  CHECK(info.activations == LOOM_ACTIVATIONS_Q8);
  loom_engine_free(engine);
  options.isa = "z80";
  CHECK_FAILS(loom_engine_create(&options, &engine), LOOM_UNSUPPORTED, "z80");
  CHECK(engine == NULL);
}

/* y = 2 a - 3 b + 0.5, by hand. */
static void test_formula(void) {
  const char* json =
      "{\"loom\":1,\"grid\":[1,1,1,1],\"input\":[2],\"cells\":"
      "[{\"at\":[0,0,0,0],\"type\":\"Dense\",\"in\":2,\"out\":1}]}";
  loom_network* net = NULL;
  CHECK_OK(loom_network_from_json(NULL, json, NULL, &net));
  const float w[] = {2, -3}, b[] = {0.5f}, x[] = {1, 1, 4, 2};
  const int64_t w_shape[] = {1, 2}, b_shape[] = {1}, x_shape[] = {2, 2};
  const loom_tensor wt = LOOM_TENSOR(LOOM_FLOAT32, w, 2, w_shape);
  const loom_tensor bt = LOOM_TENSOR(LOOM_FLOAT32, b, 1, b_shape);
  const loom_tensor xt = LOOM_TENSOR(LOOM_FLOAT32, x, 2, x_shape);
  CHECK_OK(loom_network_set_parameter(net, "(0, 0, 0, 0)/weight", &wt));
  CHECK_OK(loom_network_set_parameter(net, "(0, 0, 0, 0)/bias", &bt));
  CHECK_FAILS(loom_network_set_parameter(net, "(0, 0, 0, 0)/bias", &wt), LOOM_INVALID_ARGUMENT,
              "[1, 2]");
  loom_array* y = NULL;
  CHECK_OK(loom_network_predict(net, &xt, &y));
  loom_tensor view;
  CHECK_OK(loom_array_view(y, &view));
  CHECK(view.dtype == LOOM_FLOAT32 && view.rank == 2 && view.shape[0] == 2 && view.shape[1] == 1);
  CHECK(((const float*)view.data)[0] == -0.5f && ((const float*)view.data)[1] == 2.5f);
  loom_array_free(y);

  int64_t count = 0;
  CHECK_OK(loom_network_parameter_count(net, &count));
  CHECK(count == 2);
  loom_parameter_info info = LOOM_PARAMETER_INFO_INIT;
  CHECK_OK(loom_network_parameter_info(net, 0, &info));
  CHECK(strcmp(info.name, "(0, 0, 0, 0)/weight") == 0 && info.rank == 2 && info.shape[1] == 2);
  CHECK_FAILS(loom_network_parameter_info(net, 2, &info), LOOM_OUT_OF_RANGE, "2 of 2");
  CHECK_OK(loom_network_parameter(net, "(0, 0, 0, 0)/weight", &y));
  CHECK_OK(loom_array_view(y, &view));
  CHECK(((const float*)view.data)[1] == -3.0f);
  loom_array_free(y);
  loom_network_free(net);
}

static int32_t count_cells(void* user, const loom_cell* cell) {
  CHECK(cell->struct_size == sizeof(loom_cell));
  CHECK(strcmp(cell->layer, "Dense") == 0 && cell->values->rank == 2);
  CHECK(cell->at[2] == *(int*)user);
  ++*(int*)user;
  return 0;
}
static int32_t stop_at_once(void* user, const loom_cell* cell) {
  (void)user, (void)cell;
  return 1;
}

static void test_sessions(const loom_network* net, const loom_tensor* x, const float* expected) {
  loom_session_options options = LOOM_SESSION_OPTIONS_INIT;
  options.max_batch = 7;
  loom_session* session = NULL;
  CHECK_OK(loom_network_session(net, &options, &session));
  float y[kSamples * 3];
  const int64_t y_shape[] = {kSamples, 3}, wrong_shape[] = {kSamples, 4};
  loom_tensor out = LOOM_TENSOR(LOOM_FLOAT32, y, 2, y_shape);
  CHECK_OK(loom_session_run_into(session, x, &out));
  CHECK(memcmp(y, expected, sizeof(y)) == 0);
  out.shape = wrong_shape;
  CHECK_FAILS(loom_session_run_into(session, x, &out), LOOM_INVALID_ARGUMENT, "[240, 4]");
  int64_t bytes = 0, position = -1;
  CHECK_OK(loom_session_bytes(session, &bytes));
  CHECK(bytes > 0);
  CHECK_OK(loom_session_reset(session));
  CHECK_OK(loom_session_position(session, &position));
  CHECK(position == 0);
  int cells = 0;
  CHECK_OK(loom_session_run_cells(session, x, count_cells, &cells));
  CHECK(cells == 2);
  CHECK_FAILS(loom_session_run_cells(session, x, stop_at_once, NULL), LOOM_CANCELLED, "callback");
  loom_session_free(session);
}

// y = x + more, and more itself.
static int32_t see_port(void* user, const loom_port* port) {
  int* seen = user;
  CHECK(port->struct_size == sizeof(loom_port));
  CHECK(port->rank == 1 && port->shape[0] == 2 && port->batched == 1);
  if (port->output == 0) CHECK(strcmp(port->name, *seen == 0 ? "input" : "more") == 0);
  if (port->values != NULL) {
    const float* y = port->values->data;
    CHECK(port->values->rank == 2 && port->values->shape[0] == 1);
    CHECK(y[0] == (*seen == 0 ? 11.0f : 10.0f) && y[1] == (*seen == 0 ? 22.0f : 20.0f));
  }
  ++*seen;
  return 0;
}
static int32_t stop_port(void* user, const loom_port* port) {
  (void)user, (void)port;
  return 1;
}

static void test_ports(void) {
  const char* json =
      "{\"loom\": 1, \"input\": [2], \"layers\": [{\"type\": \"Graph\", \"nodes\": ["
      "{\"name\": \"more\", \"from\": \"input\", \"type\": \"Input\", \"shape\": [2]},"
      "{\"name\": \"y\", \"from\": [\"input\", \"more\"], \"type\": \"Binary\"}],"
      "\"outputs\": [\"y\", \"more\"]}]}";
  loom_network* net = NULL;
  loom_session* session = NULL;
  CHECK_OK(loom_network_from_json(NULL, json, NULL, &net));
  int seen = 0;
  CHECK_OK(loom_network_ports(net, see_port, &seen));
  CHECK(seen == 4);
  CHECK_OK(loom_network_session(net, NULL, &session));
  const float x[] = {1, 2}, more[] = {10, 20};
  const int64_t shape[] = {1, 2};
  const loom_tensor given[] = {{LOOM_FLOAT32, 2, shape, NULL, (void*)x},
                               {LOOM_FLOAT32, 2, shape, NULL, (void*)more}};
  seen = 0;
  CHECK_OK(loom_session_run_ports(session, given, 2, see_port, &seen));
  CHECK(seen == 2);
  CHECK_FAILS(loom_session_run_ports(session, given, 1, see_port, &seen), LOOM_INVALID_ARGUMENT,
              "2 inputs");
  CHECK_FAILS(loom_session_run_ports(session, given, 2, stop_port, NULL), LOOM_CANCELLED,
              "callback");
  CHECK_FAILS(loom_session_run_ports(session, given, 2, NULL, NULL), LOOM_INVALID_ARGUMENT, "sink");
  loom_session_free(session);
  loom_network_free(net);
}

static int32_t stop_saving(void* user, int64_t done, int64_t total) {
  (void)user, (void)done, (void)total;
  return 1;
}

static void test_files(const loom_network* net, const loom_tensor* x, const float* expected) {
  const char* const names[] = {"c_net.entity", "c_net.json", "c_net.npz", "c_net.safetensors",
                               "c_net.onnx"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    const char* path = scratch_path(names[i]);
    CHECK_OK(loom_network_save(net, path, NULL));
    loom_network* back = NULL;
    CHECK_OK(loom_network_load(NULL, path, NULL, &back));
    loom_array* y = NULL;
    loom_tensor view;
    CHECK_OK(loom_network_predict(back, x, &y));
    CHECK_OK(loom_array_view(y, &view));
    CHECK(view.data != NULL && memcmp(view.data, expected, sizeof(float) * kSamples * 3) == 0);
    loom_array_free(y);
    loom_network_free(back);
  }
  loom_save_options stopped = LOOM_SAVE_OPTIONS_INIT;
  stopped.progress = stop_saving;
  remove(scratch_path("c_stopped.entity"));
  CHECK_FAILS(loom_network_save(net, scratch_path("c_stopped.entity"), &stopped), LOOM_CANCELLED,
              "");
  loom_network* none = NULL;
  CHECK_FAILS(loom_network_load(NULL, scratch_path("c_stopped.entity"), NULL, &none),
              LOOM_NOT_FOUND, "c_stopped.entity");
}

static void test_texts(const loom_network* net) {
  char* text = NULL;
  CHECK_OK(loom_network_summary(net, &text));
  CHECK(text != NULL && strstr(text, "131 parameters") != NULL);
  loom_free(text);
  CHECK_OK(loom_network_json(net, &text));
  loom_network* again = NULL;
  CHECK_OK(loom_network_from_json(NULL, text, NULL, &again));
  loom_free(text);
  loom_network_info info = LOOM_NETWORK_INFO_INIT;
  CHECK_OK(loom_network_get_info(again, &info));
  CHECK(info.parameters == 131 && info.layers == 2 && info.fresh == 1 && info.loss[0] == '\0');
  CHECK(info.input_rank == 1 && info.input[0] == 4 && info.output_rank == 1 && info.output[0] == 3);
  CHECK_FAILS(loom_network_class(again, 0, &text), LOOM_OUT_OF_RANGE, "0 of 0");
  loom_network_free(again);
}

/* Other seeds, other weights; and another number type, other bits. */
static void test_load_options(const loom_tensor* x, const float* of_seed_7) {
  for (int i = 0; i < 3; ++i) {
    loom_load_options options = LOOM_LOAD_OPTIONS_INIT;
    options.has_seed = i != 0;
    options.seed = i == 2 ? 7 : 0;
    options.has_dtype = i == 2;
    options.dtype = LOOM_INT8;
    loom_network* net = NULL;
    loom_array* y = NULL;
    loom_tensor view;
    CHECK_OK(loom_network_from_json(NULL, kNetworkJson, &options, &net));
    CHECK_OK(loom_network_predict(net, x, &y));
    CHECK_OK(loom_array_view(y, &view));
    CHECK(memcmp(view.data, of_seed_7, sizeof(float) * kSamples * 3) != 0);
    loom_array_free(y);
    loom_network_free(net);
  }
}

static void test_arrays(void) {
  const int64_t shape[] = {2, 3};
  const int64_t turned[] = {1, 2}; /* columns as rows */
  const int16_t values[] = {1, 2, 3, 4, 5, 6}, expected[] = {1, 3, 5, 2, 4, 6};
  loom_tensor t = LOOM_TENSOR(LOOM_INT16, values, 2, shape);
  t.strides = turned;
  loom_array *copy = NULL, *wide = NULL, *zeros = NULL, *shared = NULL;
  loom_tensor view;
  CHECK_OK(loom_array_copy(&t, &copy));
  CHECK_OK(loom_array_view(copy, &view));
  CHECK(view.strides == NULL && memcmp(view.data, expected, sizeof(expected)) == 0);
  CHECK_OK(loom_array_convert(copy, LOOM_FLOAT64, &wide));
  CHECK_OK(loom_array_view(wide, &view));
  CHECK(((const double*)view.data)[1] == 3.0);
  CHECK_OK(loom_array_zeros(LOOM_UINT8, 2, shape, &zeros));
  CHECK_OK(loom_array_view(zeros, &view));
  CHECK(((const uint8_t*)view.data)[5] == 0);
  ((uint8_t*)view.data)[5] = 7;
  CHECK_FAILS(loom_array_zeros(LOOM_Q4_0, 2, shape, &shared), LOOM_INVALID_ARGUMENT, "q4_0");

  void* managed = NULL;
  CHECK_OK(loom_array_to_dlpack(zeros, &managed));
  loom_array_free(zeros);
  CHECK_OK(loom_array_from_dlpack(managed, &shared));
  CHECK_OK(loom_array_view(shared, &view));
  CHECK(view.dtype == LOOM_UINT8 && ((const uint8_t*)view.data)[5] == 7);
  CHECK_OK(loom_array_to_dlpack_versioned(shared, &managed));
  loom_array_free(shared);
  ((uint32_t*)managed)[0] = 2;
  CHECK_FAILS(loom_array_from_dlpack_versioned(managed, &shared), LOOM_UNSUPPORTED, "version");
  ((uint32_t*)managed)[0] = 1;
  CHECK_OK(loom_array_from_dlpack_versioned(managed, &shared));
  CHECK_OK(loom_array_view(shared, &view));
  CHECK(view.rank == 2 && view.shape[1] == 3 && ((const uint8_t*)view.data)[5] == 7);
  loom_array_free(shared);

  const char* const names[] = {"a"};
  CHECK_OK(loom_arrays_save(scratch_path("c_arrays.npz"), names, &t, 1));
  CHECK_FAILS(loom_arrays_save(scratch_path("c_arrays.txt"), names, &t, 1), LOOM_INVALID_ARGUMENT,
              ".npz");
  loom_array_free(copy);
  loom_array_free(wide);
}

void test_networks(void) {
  test_versions();
  test_engines();
  test_formula();
  test_arrays();
  float x[kSamples * kInputs];
  int32_t labels[kSamples];
  make_points(x, labels);
  const int64_t shape[] = {kSamples, kInputs};
  const loom_tensor xt = LOOM_TENSOR(LOOM_FLOAT32, x, 2, shape);
  loom_load_options options = LOOM_LOAD_OPTIONS_INIT;
  options.has_seed = 1;
  options.seed = 7;
  loom_network* net = NULL;
  CHECK_OK(loom_network_from_json(NULL, kNetworkJson, &options, &net));
  loom_array* y = NULL;
  loom_tensor view;
  CHECK_OK(loom_network_predict(net, &xt, &y));
  CHECK_OK(loom_array_view(y, &view));
  const float* scores = view.data;
  float sum = 0;
  for (int i = 0; i < kSamples * 3; ++i) sum += fabsf(scores[i]);
  CHECK(sum > 1.0f);
  test_load_options(&xt, scores);
  test_sessions(net, &xt, scores);
  test_ports();
  test_files(net, &xt, scores);
  test_texts(net);
  loom_array_free(y);
  loom_network_free(net);
}
