/* Files in memory, memory that is held, the log, and losses of the caller's own, from C. */
#include <stdlib.h>

#include "check.h"

static int32_t count_lines(void* user, loom_log_level level, const char* line) {
  int* lines = user;
  CHECK(level >= LOOM_LOG_DEBUG && level <= LOOM_LOG_WARNING && strchr(line, '\n') == NULL);
  ++*lines;
  return 0;
}

static void* file_bytes(const char* path, int64_t* size) {
  FILE* file = fopen(path, "rb");
  CHECK(file != NULL);
  if (file == NULL) return NULL;
  fseek(file, 0, SEEK_END);
  *size = ftell(file);
  rewind(file);
  void* bytes = NULL;
  /* Whole lines of 64 bytes, as aligned_alloc wants it. */
  bytes = aligned_alloc(64, (size_t)(*size + 63) / 64 * 64);
  CHECK(bytes != NULL && fread(bytes, 1, (size_t)*size, file) == (size_t)*size);
  fclose(file);
  return bytes;
}

static void test_network(loom_engine* engine) {
  loom_network *net = NULL, *back = NULL;
  CHECK_OK(loom_network_from_json(engine, kNetworkJson, NULL, &net));
  for (loom_network_format format = LOOM_FORMAT_ENTITY; format <= LOOM_FORMAT_SAFETENSORS;
       ++format) {
    const char* name = format == LOOM_FORMAT_ONNX ? "net.onnx" : NULL;
    void* bytes = NULL;
    int64_t size = 0;
    CHECK_OK(loom_network_save_memory(net, format, NULL, &bytes, &size));
    CHECK(size > 0);
    CHECK_OK(loom_network_load_memory(engine, bytes, size, name, NULL, &back));
    memset(bytes, 0, (size_t)size); /* it was copied */
    float x[kSamples * kInputs];
    int32_t labels[kSamples];
    make_points(x, labels);
    const int64_t shape[] = {kSamples, kInputs};
    const loom_tensor xt = LOOM_TENSOR(LOOM_FLOAT32, x, 2, shape);
    loom_array *a = NULL, *b = NULL;
    loom_tensor va, vb;
    CHECK_OK(loom_network_predict(net, &xt, &a));
    CHECK_OK(loom_network_predict(back, &xt, &b));
    CHECK_OK(loom_array_view(a, &va));
    CHECK_OK(loom_array_view(b, &vb));
    CHECK(memcmp(va.data, vb.data, sizeof(float) * kSamples * 3) == 0);
    loom_array_free(a);
    loom_array_free(b);
    loom_network_free(back);
    CHECK_FAILS(loom_network_load_memory(engine, bytes, size, "cut", NULL, &back), LOOM_BAD_FILE,
                "cut");
    loom_free(bytes);
  }
  void* none = NULL;
  int64_t size = 7;
  CHECK_FAILS(loom_network_save_memory(net, 9, NULL, &none, &size), LOOM_INVALID_ARGUMENT,
              "'format' is 9");
  CHECK(none == NULL && size == 0);
  CHECK_FAILS(loom_network_load_memory(engine, NULL, 3, NULL, NULL, &back), LOOM_INVALID_ARGUMENT,
              "'bytes'");
  loom_network_free(net);
}

static void test_model(loom_engine* engine) {
  const char* path = getenv("LOOM_TEST_MODEL");
  int64_t size = 0, taken = 0;
  char* bytes = file_bytes(path != NULL ? path : "models/stories.entity", &size);
  loom_model_options options = LOOM_MODEL_OPTIONS_INIT;
  options.borrow = 1;
  loom_model* model = NULL;
  CHECK_FAILS(loom_model_load_memory(engine, bytes + 1, size - 1, NULL, &options, &model),
              LOOM_INVALID_ARGUMENT, "multiple of 64");
  CHECK_OK(loom_model_load_memory(engine, bytes, size, NULL, &options, &model));
  loom_memory memory = LOOM_MEMORY_INIT;
  CHECK_OK(loom_engine_get_memory(engine, &memory));
  loom_model_info info = LOOM_MODEL_INFO_INIT;
  CHECK_OK(loom_model_get_info(model, &info));
  CHECK(memory.mapped == info.bytes && memory.sessions == 0);
  loom_model_session* session = NULL;
  CHECK_OK(loom_model_start(model, NULL, &session));
  loom_generation* generation = NULL;
  loom_generate_options how = LOOM_GENERATE_OPTIONS_INIT;
  how.max_tokens = 5;
  CHECK_OK(loom_model_session_generate(session, "Once upon a time", &how, &generation));
  CHECK_OK(loom_model_session_bytes(session, &taken));
  CHECK_OK(loom_engine_get_memory(engine, &memory));
  CHECK(taken > 0 && memory.sessions == taken && memory.peak >= memory.total);
  loom_generation_free(generation);
  loom_model_session_free(session);
  loom_model_free(model);
  CHECK_OK(loom_engine_get_memory(engine, &memory));
  CHECK(memory.mapped == 0 && memory.total == 0 && memory.peak >= taken);
  free(bytes);
}

static void test_samples(loom_engine* engine) {
  const char csv[] = "1,2,3,4,0\n4,3,2,1,2\n";
  loom_network* net = NULL;
  loom_dataset* data = NULL;
  CHECK_OK(loom_network_from_json(engine, kNetworkJson, NULL, &net));
  CHECK_OK(loom_dataset_from_memory(csv, (int64_t)strlen(csv), NULL, net, NULL, &data));
  loom_dataset_info info = LOOM_DATASET_INFO_INIT;
  CHECK_OK(loom_dataset_get_info(data, &info));
  CHECK(info.samples == 2 && info.has_labels == 1);
  loom_dataset_free(data);
  CHECK_FAILS(loom_dataset_from_memory(csv, 7, "two.csv", net, NULL, &data), LOOM_BAD_FILE,
              "two.csv");
  loom_network_free(net);
}

static int32_t mean_squares(void* user, const loom_tensor* outputs, const loom_tensor* gradients,
                            double* loss) {
  const float* targets = user;
  const float* y = outputs->data;
  float* g = gradients->data;
  const int64_t count = outputs->shape[0] * outputs->shape[1];
  const float weight = 1.0f / (float)outputs->shape[0], cols = (float)outputs->shape[1];
  *loss = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float d = y[i] - targets[i];
    g[i] = weight * ((d + d) / cols);
    *loss += (double)d * (double)d / (double)count;
  }
  return 0;
}

static int32_t refuse(void* user, const loom_tensor* outputs, const loom_tensor* gradients,
                      double* loss) {
  (void)user;
  (void)outputs;
  (void)gradients;
  (void)loss;
  return 1;
}

static void test_own_loss(loom_engine* engine) {
  float x[8] = {1, 0, 2, 0, 0, 1, 0, 3}, targets[6] = {1, 2, 3, 4, 5, 6};
  const int64_t shape[] = {2, 4}, out[] = {2, 3};
  const loom_tensor xt = LOOM_TENSOR(LOOM_FLOAT32, x, 2, shape);
  const loom_tensor yt = LOOM_TENSOR(LOOM_FLOAT32, targets, 2, out);
  loom_dataset* samples = NULL;
  CHECK_OK(loom_dataset_from_arrays(&xt, &yt, &samples));
  char* hashes[4] = {NULL, NULL, NULL, NULL};
  for (int way = 0; way < 4; ++way) {  // arrays and samples, a loss that is built in and one's own
    loom_network* net = NULL;
    loom_trainer* trainer = NULL;
    CHECK_OK(loom_network_from_json(engine, kNetworkJson, NULL, &net));
    CHECK_OK(loom_trainer_create(net, NULL, &trainer));
    loom_step_report report = LOOM_STEP_REPORT_INIT;
    for (int i = 0; i < 4; ++i) {
      if (way == 0) {
        CHECK_OK(loom_trainer_step(trainer, &xt, &yt, NULL, &report));
      } else if (way == 1) {
        CHECK_OK(loom_trainer_step_with(trainer, &xt, mean_squares, targets, NULL, &report));
      } else if (way == 2) {
        CHECK_OK(loom_trainer_step_samples(trainer, samples, NULL, &report));
      } else {
        CHECK_OK(loom_trainer_step_samples_with(trainer, samples, mean_squares, targets, NULL, &report));
      }
      CHECK(report.updated == 1 && report.loss > 0);
    }
    CHECK_OK(loom_trainer_weights_hash(trainer, &hashes[way]));
    char* after = NULL;
    CHECK_FAILS(loom_trainer_step_with(trainer, &xt, refuse, NULL, NULL, NULL), LOOM_CANCELLED,
                "the loss of the caller");
    CHECK_FAILS(loom_trainer_step_with(trainer, &xt, NULL, NULL, NULL, NULL),
                LOOM_INVALID_ARGUMENT, "'loss' is null");
    CHECK_OK(loom_trainer_weights_hash(trainer, &after));
    CHECK(strcmp(after, hashes[way]) == 0);
    loom_free(after);
    int64_t bytes = 0;
    CHECK_OK(loom_trainer_bytes(trainer, &bytes));
    CHECK(bytes > 131 * 4);
    loom_trainer_free(trainer);
    loom_network_free(net);
  }
  loom_dataset_free(samples);
  for (int way = 0; way < 4; ++way) CHECK(hashes[way] != NULL && strcmp(hashes[0], hashes[way]) == 0);
  for (int way = 0; way < 4; ++way) loom_free(hashes[way]);
}

void test_memory(void) {
  int lines = 0;
  loom_engine_options options = LOOM_ENGINE_OPTIONS_INIT;
  options.threads = 1;
  options.log = count_lines;
  options.log_user = &lines;
  loom_engine* engine = NULL;
  CHECK_OK(loom_engine_create(&options, &engine));
  CHECK(lines == 1);
  test_network(engine);
  test_model(engine);
  CHECK(lines > 5);
  test_samples(engine);
  test_own_loss(engine);
  loom_memory memory = LOOM_MEMORY_INIT;
  CHECK_OK(loom_engine_get_memory(engine, &memory));
  CHECK(memory.total == 0 && memory.mapped == 0);
  loom_engine_free(engine);
}
