/* Prints what a network, its training and a story come to, as bits: other languages compare. */
#include <stdlib.h>

#include "check.h"

static void print_outputs(const loom_network* net, const loom_tensor* x) {
  loom_array* y = NULL;
  loom_tensor view;
  CHECK_OK(loom_network_predict(net, x, &y));
  CHECK_OK(loom_array_view(y, &view));
  const unsigned char* bytes = view.data;
  printf("outputs ");
  for (int64_t i = 0; i < view.shape[0] * view.shape[1] * 4; ++i) printf("%02x", bytes[i]);
  printf("\n");
  loom_array_free(y);
}

static void print_trained(loom_network* net, const loom_tensor* x, const loom_tensor* y) {
  loom_trainer_options options = LOOM_TRAINER_OPTIONS_INIT;
  options.rate = 1e-2;
  loom_fit_options fit = LOOM_FIT_OPTIONS_INIT;
  fit.epochs = 3;
  loom_trainer* trainer = NULL;
  loom_dataset* data = NULL;
  char* hash = NULL;
  CHECK_OK(loom_dataset_from_arrays(x, y, &data));
  CHECK_OK(loom_trainer_create(net, &options, &trainer));
  CHECK_OK(loom_trainer_fit(trainer, data, NULL, &fit, NULL));
  CHECK_OK(loom_trainer_weights_hash(trainer, &hash));
  printf("trained %s\n", hash);
  loom_free(hash);
  loom_trainer_free(trainer);
  loom_dataset_free(data);
}

static void print_story(const char* path) {
  loom_model* model = NULL;
  loom_model_session* session = NULL;
  loom_generation* made = NULL;
  const char* text = NULL;
  loom_generate_options options = LOOM_GENERATE_OPTIONS_INIT;
  options.max_tokens = 60;
  options.temperature = 0.8f;
  options.seed = 7;
  CHECK_OK(loom_model_load(NULL, path, NULL, &model));
  CHECK_OK(loom_model_start(model, NULL, &session));
  CHECK_OK(loom_model_session_generate(session, "Once upon a time", &options, &made));
  CHECK_OK(loom_generation_text(made, &text, NULL));
  printf("story %s\n", text);
  loom_generation_free(made);
  loom_model_session_free(session);
  loom_model_free(model);
}

void test_bits(void) {
  float x[kSamples * kInputs];
  int32_t labels[kSamples];
  make_points(x, labels);
  const int64_t shape[] = {kSamples, kInputs};
  const loom_tensor xt = LOOM_TENSOR(LOOM_FLOAT32, x, 2, shape);
  const loom_tensor yt = LOOM_TENSOR(LOOM_INT32, labels, 1, shape);
  loom_load_options options = LOOM_LOAD_OPTIONS_INIT;
  options.has_seed = 1;
  options.seed = 7;
  loom_network* net = NULL;
  CHECK_OK(loom_network_from_json(NULL, kNetworkJson, &options, &net));
  print_outputs(net, &xt);
  print_trained(net, &xt, &yt);
  print_outputs(net, &xt);
  loom_network_free(net);
  const char* path = getenv("LOOM_TEST_MODEL");
  print_story(path != NULL ? path : "models/stories.entity");
}
