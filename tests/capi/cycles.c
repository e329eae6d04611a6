/* A thousand times made, used and freed: the memory of the process stays as it is. */
#include <stdlib.h>

#include "check.h"

/* Kilobytes that the process holds; 0 where the system does not tell. */
static long resident(void) {
  FILE* file = fopen("/proc/self/statm", "r");
  long pages = 0, all = 0;
  if (file == NULL) return 0;
  if (fscanf(file, "%ld %ld", &all, &pages) != 2) pages = 0;
  fclose(file);
  return pages * 4;
}

/* Texts, and memory that goes out and comes back: small things, many of them. */
static void hand_around(void) {
  const int64_t shape[] = {16384};
  loom_array *array = NULL, *back = NULL;
  loom_tensor view;
  void* managed = NULL;
  for (int i = 0; i < 10; ++i) {
    char* types = NULL;
    CHECK_OK(loom_layer_types(&types));
    loom_free(types);
  }
  CHECK_OK(loom_array_zeros(LOOM_FLOAT32, 1, shape, &array));
  CHECK_OK(loom_array_view(array, &view));
  memset(view.data, 1, sizeof(float) * 16384);
  CHECK_OK(loom_array_to_dlpack(array, &managed));
  CHECK_OK(loom_array_from_dlpack(managed, &back));
  loom_array_free(array);
  loom_array_free(back);
}

static void cycle(const loom_tensor* x, const loom_tensor* y) {
  loom_network* net = NULL;
  loom_session* session = NULL;
  loom_array* out = NULL;
  loom_dataset* data = NULL;
  loom_trainer* trainer = NULL;
  loom_history* history = NULL;
  char *text = NULL, *none = NULL;
  CHECK_OK(loom_network_from_json(NULL, kNetworkJson, NULL, &net));
  hand_around();
  CHECK_OK(loom_network_session(net, NULL, &session));
  CHECK_OK(loom_session_run(session, x, &out));
  CHECK_OK(loom_network_summary(net, &text));
  CHECK_OK(loom_dataset_from_arrays(x, y, &data));
  CHECK_OK(loom_trainer_create(net, NULL, &trainer));
  loom_fit_options fit = LOOM_FIT_OPTIONS_INIT;
  fit.epochs = 1;
  CHECK_OK(loom_trainer_fit(trainer, data, NULL, &fit, &history));
  CHECK_FAILS(loom_network_class(net, 5, &none), LOOM_OUT_OF_RANGE, "5 of 0");
  loom_history_free(history);
  loom_trainer_free(trainer);
  loom_dataset_free(data);
  loom_free(text);
  loom_array_free(out);
  loom_session_free(session);
  loom_network_free(net);
}

void test_cycles(void) {
  float x[kSamples * kInputs];
  int32_t y[kSamples];
  make_points(x, y);
  const int64_t shape[] = {16, kInputs};
  const loom_tensor xt = LOOM_TENSOR(LOOM_FLOAT32, x, 2, shape);
  const loom_tensor yt = LOOM_TENSOR(LOOM_INT32, y, 1, shape);
  for (int i = 0; i < 100; ++i) cycle(&xt, &yt);
  /* A leak grows in every round. With many cores the C library makes heaps for threads in the first
     ones. */
  long grown = 1024;
  for (int round = 0; round < 4 && grown >= 1024; ++round) {
    const long before = resident();
    for (int i = 0; i < 1000; ++i) cycle(&xt, &yt);
    const long after = resident();
    printf("resident: %ld kB, after 1,000 cycles %ld kB\n", before, after);
    grown = after - before;
  }
  /* Sanitizers keep what is freed for a while. */
  if (getenv("LOOM_TEST_SANITIZED") == NULL) CHECK(grown < 1024);
}
