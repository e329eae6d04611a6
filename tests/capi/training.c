/* Training from C: callbacks, cancelling, single steps, evaluation, equal bits. */
#include <stdlib.h>

#include "check.h"

struct seen {
  int batches, epochs, stop_after;
  double last_loss;
};

static int32_t on_batch(void* user, int64_t done, int64_t steps, double loss) {
  struct seen* seen = user;
  CHECK(done >= 1 && done <= steps && loss == loss);
  ++seen->batches;
  return 0;
}
static int32_t on_epoch(void* user, const loom_epoch* epoch) {
  struct seen* seen = user;
  ++seen->epochs;
  CHECK(epoch->number == seen->epochs);
  seen->last_loss = epoch->train_loss;
  return seen->epochs == seen->stop_after;
}

static loom_network* new_network(void) {
  loom_network* net = NULL;
  CHECK_OK(loom_network_from_json(NULL, kNetworkJson, NULL, &net));
  return net;
}

/* Calls, and samples done. */
static int32_t watch_samples(void* user, int64_t done, int64_t total) {
  int64_t* watched = user;
  CHECK(done > watched[1] && done <= total);
  ++watched[0];
  watched[1] = done;
  return 0;
}
static int32_t stop_at_once(void* user, int64_t done, int64_t total) {
  (void)user, (void)done, (void)total;
  return 1;
}

static void new_dataset(loom_dataset** out) {
  static float x[kSamples * kInputs];
  static int32_t y[kSamples];
  make_points(x, y);
  const int64_t shape[] = {kSamples, kInputs};
  const loom_tensor xt = LOOM_TENSOR(LOOM_FLOAT32, x, 2, shape);
  const loom_tensor yt = LOOM_TENSOR(LOOM_INT32, y, 1, shape);
  CHECK_OK(loom_dataset_from_arrays(&xt, &yt, out));
}

static void test_dataset(const loom_dataset* data) {
  loom_dataset_info info = LOOM_DATASET_INFO_INIT;
  CHECK_OK(loom_dataset_get_info(data, &info));
  CHECK(info.samples == kSamples && info.sample_rank == 1 && info.sample[0] == kInputs);
  CHECK(info.has_labels == 1 && info.has_targets == 0 && info.classes == 0);
  loom_array* y = NULL;
  loom_tensor view;
  CHECK_OK(loom_dataset_y(data, &y));
  CHECK_OK(loom_array_view(y, &view));
  CHECK(view.dtype == LOOM_INT32 && view.shape[0] == kSamples);
  loom_array_free(y);
  loom_dataset *first = NULL, *second = NULL;
  CHECK_OK(loom_dataset_split(data, 0.75, NULL, &first, &second));
  CHECK_OK(loom_dataset_get_info(second, &info));
  CHECK(info.samples == 60);
  loom_dataset_free(first);
  loom_dataset_free(second);
  CHECK_FAILS(loom_dataset_split(data, 1.0, NULL, &first, &second), LOOM_INVALID_ARGUMENT, "");
  char* text = NULL;
  CHECK_OK(loom_dataset_notes(data, &text));
  CHECK(text != NULL && text[0] == '\0');
  loom_free(text);
}

/* Fits a new network; the caller frees the hash. */
static char* fitted_hash(const loom_dataset* data, loom_trainer_options options,
                         struct seen* seen) {
  loom_network* net = new_network();
  loom_trainer* trainer = NULL;
  options.rate = 1e-2;
  CHECK_OK(loom_trainer_create(net, &options, &trainer));
  loom_fit_options fit = LOOM_FIT_OPTIONS_INIT;
  fit.epochs = 30;
  fit.on_batch = on_batch;
  fit.on_epoch = on_epoch;
  fit.user = seen;
  loom_history* history = NULL;
  CHECK_OK(loom_trainer_fit(trainer, data, data, &fit, &history));
  int64_t count = 0;
  CHECK_OK(loom_history_count(history, &count));
  CHECK(count == 30 && seen->epochs == 30 && seen->batches == 30 * 8);
  loom_epoch first = LOOM_EPOCH_INIT, last = LOOM_EPOCH_INIT;
  CHECK_OK(loom_history_epoch(history, 0, &first));
  CHECK_OK(loom_history_epoch(history, 29, &last));
  CHECK(last.train_loss < first.train_loss / 2 && last.train_loss == seen->last_loss);
  CHECK(last.has_validation == 1 && last.validation_accuracy > 0.9);
  CHECK_FAILS(loom_history_epoch(history, 30, &last), LOOM_OUT_OF_RANGE, "30 of 30");
  int32_t early = 1;
  CHECK_OK(loom_history_stopped_early(history, &early));
  CHECK(early == 0);
  loom_history_free(history);

  loom_evaluation evaluation = LOOM_EVALUATION_INIT;
  loom_array* confusion = NULL;
  loom_tensor view;
  CHECK_OK(loom_trainer_evaluate(trainer, data, &evaluation, &confusion));
  loom_evaluation again = LOOM_EVALUATION_INIT;
  int64_t watched[2] = {0, 0};
  CHECK_OK(loom_trainer_evaluate_watched(trainer, data, watch_samples, watched, &again, NULL));
  CHECK(again.loss == evaluation.loss && again.samples == evaluation.samples);
  CHECK(watched[0] > 0 && watched[1] == evaluation.samples);
  CHECK_FAILS(loom_trainer_evaluate_watched(trainer, data, stop_at_once, NULL, &again, NULL),
              LOOM_CANCELLED, "");
  CHECK(evaluation.has_accuracy == 1 && evaluation.accuracy > 0.9 && evaluation.has_r2 == 0);
  CHECK_OK(loom_array_view(confusion, &view));
  int64_t right = 0;
  for (int i = 0; i < 3; ++i) right += ((const int64_t*)view.data)[i * 4];
  CHECK(view.rank == 2 && (double)right == evaluation.accuracy * kSamples);
  loom_array_free(confusion);
  char* hash = NULL;
  CHECK_OK(loom_trainer_weights_hash(trainer, &hash));
  loom_trainer_free(trainer);
  loom_network_info info = LOOM_NETWORK_INFO_INIT;
  CHECK_OK(loom_network_get_info(net, &info));
  CHECK(info.fresh == 0 && strcmp(info.loss, "") != 0);
  loom_network_free(net);
  return hash;
}

static loom_options* options_by_name(void) {
  loom_options* options = NULL;
  CHECK_OK(loom_options_new("trainer", &options));
  CHECK_OK(loom_options_set(options, "rate", "0.01"));
  CHECK_OK(loom_options_set(options, "schedule", "linear"));
  CHECK_OK(loom_options_set(options, "schedule.floor", "0.001"));
  CHECK_OK(loom_options_set(options, "heads", ""));
  return options;
}

/* Options by name give the bits of those of the struct, and reach what that has no field for. */
static void test_options(const loom_dataset* data) {
  loom_options* options = options_by_name();
  char* text = NULL;
  CHECK_OK(loom_options_get(options, "schedule_floor", &text));
  CHECK(strcmp(text, "0.001") == 0);
  loom_free(text);
  CHECK_OK(loom_options_describe(options, &text));
  CHECK(strstr(text, "\"name\": \"freeze\"") != NULL);
  loom_free(text);
  CHECK_FAILS(loom_options_set(options, "rat", "1"), LOOM_NOT_FOUND, "did you mean 'rate'?");
  CHECK_FAILS(loom_options_set(options, "quantile", "1"), LOOM_INVALID_ARGUMENT,
              "quantile is 1, must be between 0 and 1");
  loom_options* none = NULL;
  CHECK_FAILS(loom_options_new("traner", &none), LOOM_NOT_FOUND, "trainer");

  loom_trainer_options same = LOOM_TRAINER_OPTIONS_INIT;
  same.rate = 0.01;
  same.schedule = LOOM_SCHEDULE_LINEAR;
  same.schedule_floor = 0.001;
  char* hashes[3];
  for (int i = 0; i < 3; ++i) {
    loom_network* net = new_network();
    loom_trainer* trainer = NULL;
    if (i == 2) CHECK_OK(loom_options_set(options, "freeze", "(0, 0, 0, 0)/*"));
    if (i == 2) CHECK_OK(loom_options_set(options, "metrics", "macro_f1,top2"));
    if (i == 0) CHECK_OK(loom_trainer_create(net, &same, &trainer));
    if (i > 0) CHECK_OK(loom_trainer_create_with(net, options, NULL, &trainer));
    loom_fit_options fit = LOOM_FIT_OPTIONS_INIT;
    fit.epochs = 2;
    loom_history* history = NULL;
    CHECK_OK(loom_trainer_fit(trainer, data, data, &fit, &history));
    CHECK_OK(loom_trainer_weights_hash(trainer, &hashes[i]));
    loom_epoch epoch = LOOM_EPOCH_INIT;
    CHECK_OK(loom_history_epoch(history, 1, &epoch));
    CHECK(i == 2 ? strstr(epoch.validation_metrics, "\"macro_f1\":0.") != NULL
                 : strcmp(epoch.validation_metrics, "{}") == 0);
    CHECK_OK(loom_trainer_evaluate_json(trainer, data, NULL, NULL, &text));
    CHECK(strstr(text, "\"precision\":") != NULL);
    CHECK((strstr(text, "\"top2\":") != NULL) == (i == 2));
    loom_free(text);
    loom_history_free(history);
    loom_trainer_free(trainer);
    loom_network_free(net);
  }
  CHECK(strcmp(hashes[0], hashes[1]) == 0 && strcmp(hashes[0], hashes[2]) != 0);
  for (int i = 0; i < 3; ++i) loom_free(hashes[i]);
  loom_options_free(options);
  CHECK_FAILS(loom_options_set(options, "rate", "1"), LOOM_INVALID_ARGUMENT, "loom_options");
}

static void test_cancelling(const loom_dataset* data) {
  loom_network* net = new_network();
  loom_trainer* trainer = NULL;
  CHECK_OK(loom_trainer_create(net, NULL, &trainer));
  loom_network_free(net); /* the trainer keeps it */
  struct seen seen = {0, 0, 2, 0};
  loom_fit_options fit = LOOM_FIT_OPTIONS_INIT;
  fit.on_epoch = on_epoch;
  fit.user = &seen;
  CHECK_FAILS(loom_trainer_fit(trainer, data, NULL, &fit, NULL), LOOM_CANCELLED, "");
  CHECK(seen.epochs == 2);
  loom_trainer_free(trainer);
}

static void test_steps(void) {
  loom_network* net = new_network();
  loom_trainer* trainer = NULL;
  CHECK_OK(loom_trainer_create(net, NULL, &trainer));
  const float x[] = {1, 0, 0, 0, 0, 1, 0, 0};
  const int64_t y[] = {0, 2}, shape[] = {2, 4};
  const loom_tensor xt = LOOM_TENSOR(LOOM_FLOAT32, x, 2, shape);
  const loom_tensor yt = LOOM_TENSOR(LOOM_INT64, y, 1, shape);
  loom_step_report first = LOOM_STEP_REPORT_INIT, report = LOOM_STEP_REPORT_INIT;
  const double rate = 0.05;
  CHECK_OK(loom_trainer_step(trainer, &xt, &yt, &rate, &first));
  for (int i = 0; i < 20; ++i) CHECK_OK(loom_trainer_step(trainer, &xt, &yt, &rate, &report));
  CHECK(report.updated == 1 && report.loss < first.loss / 2);
  loom_trainer_free(trainer);
  loom_network_free(net);
}

void test_training(void) {
  loom_dataset* data = NULL;
  new_dataset(&data);
  test_dataset(data);
  loom_trainer_options options = LOOM_TRAINER_OPTIONS_INIT;
  struct seen seen = {0, 0, -1, 0};
  char* hash = fitted_hash(data, options, &seen);
  struct seen again = {0, 0, -1, 0};
  char* same = fitted_hash(data, options, &again);
  options.has_seed = 1;
  options.seed = 2;
  struct seen other_seen = {0, 0, -1, 0};
  char* other = fitted_hash(data, options, &other_seen);
  CHECK(hash != NULL && same != NULL && strcmp(hash, same) == 0);
  CHECK(hash != NULL && other != NULL && strcmp(hash, other) != 0);
  loom_free(hash);
  loom_free(same);
  loom_free(other);
  test_options(data);
  test_cancelling(data);
  test_steps();
  options.loss = 77;
  loom_trainer* none = NULL;
  loom_network* net = new_network();
  CHECK_FAILS(loom_trainer_create(net, &options, &none), LOOM_INVALID_ARGUMENT, "'loss' is 77");
  loom_network_free(net);
  loom_dataset_free(data);
}
