/* Groups of points, votes, searches, a mesh that trains, what is seen of training, and conversion. */
#include <stdlib.h>

#include "check.h"

enum { kPoints = 20 };

/* Two groups of points, apart by 10. */
static void make_groups(double* points) {
  for (int i = 0; i < kPoints; ++i) {
    points[2 * i] = (i % 2) * 10 + (double)i / 100;
    points[2 * i + 1] = (double)((i * 7) % 5) / 10;
  }
}

static void test_groups(void) {
  double values[2 * kPoints], quality = 0;
  make_groups(values);
  const int64_t shape[] = {kPoints, 2};
  const loom_tensor points = LOOM_TENSOR(LOOM_FLOAT64, values, 2, shape);
  loom_options* two = NULL;
  CHECK_OK(loom_options_new("kmeans", &two));
  CHECK_OK(loom_options_set(two, "clusters", "2"));
  loom_kmeans_options how = LOOM_KMEANS_OPTIONS_INIT;
  how.options = two;
  loom_kmeans_report report = LOOM_KMEANS_REPORT_INIT;
  loom_array *labels = NULL, *centers = NULL, *merges = NULL, *cut = NULL;
  CHECK_OK(loom_kmeans(NULL, &points, &how, &labels, &centers, &report));
  CHECK(report.converged == 1 && report.rounds >= 1 && report.inertia > 0);
  loom_tensor seen;
  CHECK_OK(loom_array_view(labels, &seen));
  const int64_t* group = seen.data;
  CHECK(seen.dtype == LOOM_INT64 && seen.shape[0] == kPoints && group[0] != group[1]);
  for (int i = 0; i < kPoints; ++i) CHECK(group[i] == group[i % 2]);
  CHECK_OK(loom_silhouette(NULL, &points, group, kPoints, LOOM_DISTANCE_EUCLIDEAN, &quality));
  CHECK(quality > 0.9);
  CHECK_FAILS(loom_silhouette(NULL, &points, group, 3, LOOM_DISTANCE_EUCLIDEAN, &quality),
              LOOM_INVALID_ARGUMENT, "3");
  CHECK_FAILS(loom_silhouette(NULL, &points, group, kPoints, 9, &quality), LOOM_INVALID_ARGUMENT,
              "'distance' is 9");
  CHECK_OK(loom_linkage(NULL, &points, NULL, &merges));
  CHECK_OK(loom_array_view(merges, &seen));
  CHECK(seen.shape[0] == kPoints - 1 && seen.shape[1] == 4);
  CHECK_OK(loom_linkage_cut(&seen, 0, 2, &cut));
  CHECK_OK(loom_array_view(cut, &seen));
  for (int i = 0; i < kPoints; ++i) CHECK(((const int64_t*)seen.data)[i] == i % 2);
  CHECK_FAILS(loom_linkage(NULL, &points, two, &merges), LOOM_INVALID_ARGUMENT,
              "options of 'kmeans'; give those of 'linkage'");
  CHECK(merges == NULL);
  loom_options_free(two);
  CHECK_FAILS(loom_options_new("means", &two), LOOM_NOT_FOUND, "kmeans, linkage");
  loom_array_free(labels);
  loom_array_free(centers);
  loom_array_free(cut);
}

static void test_votes(void) {
  const int64_t said[] = {0, 1, 1, 0, 1, 2, 2, 1, 2}, shape[] = {3, 3};
  const uint8_t right[] = {1, 1, 0, 0, 0, 0, 0, 0, 1};
  const double weights[] = {5, 1, 1};
  const loom_tensor classes = LOOM_TENSOR(LOOM_INT64, said, 2, shape);
  const loom_tensor masks = LOOM_TENSOR(LOOM_UINT8, right, 2, shape);
  loom_array* out = NULL;
  loom_tensor seen;
  CHECK_OK(loom_majority_vote(&classes, NULL, &out));
  CHECK_OK(loom_array_view(out, &seen));
  const int64_t* voted = seen.data;
  CHECK(voted[0] == 0 && voted[1] == 1 && voted[2] == 2);
  loom_array_free(out);
  CHECK_OK(loom_majority_vote(&classes, weights, &out));
  CHECK_OK(loom_array_view(out, &seen));
  CHECK(((const int64_t*)seen.data)[2] == 1);
  loom_array_free(out);
  CHECK_OK(loom_greedy_cover(&masks, 0, &out));
  CHECK_OK(loom_array_view(out, &seen));
  const double* taken = seen.data;
  CHECK(seen.shape[0] == 2 && taken[0] == 0 && taken[2] == 2 && taken[3] == 1);
  loom_array_free(out);
  CHECK_OK(loom_complementary_pairs(&masks, 0.9, &out));
  CHECK_OK(loom_array_view(out, &seen));
  CHECK(seen.shape[0] == 1 && ((const double*)seen.data)[1] == 2);
  loom_array_free(out);
  CHECK_FAILS(loom_majority_vote(&masks, NULL, &out), LOOM_INVALID_ARGUMENT, "int64");
}

static loom_dataset* samples(void) {
  static float x[kSamples * kInputs];
  static int32_t y[kSamples];
  make_points(x, y);
  const int64_t of_x[] = {kSamples, kInputs}, of_y[] = {kSamples};
  const loom_tensor inputs = LOOM_TENSOR(LOOM_FLOAT32, x, 2, of_x);
  const loom_tensor labels = LOOM_TENSOR(LOOM_INT32, y, 1, of_y);
  loom_dataset* data = NULL;
  CHECK_OK(loom_dataset_from_arrays(&inputs, &labels, &data));
  return data;
}

static int32_t count_epochs(void* user, const loom_mesh_epoch* epoch) {
  CHECK(epoch->number == ++*(int64_t*)user && epoch->loss > 0 && epoch->has_accuracy == 1);
  return epoch->number == 2; /* ends the call */
}

static void test_mesh_training(void) {
  loom_network* net = NULL;
  CHECK_OK(loom_network_from_json(NULL, kNetworkJson, NULL, &net));
  loom_dataset* data = samples();
  loom_options* options = NULL;
  CHECK_OK(loom_options_new("mesh_trainer", &options));
  CHECK_OK(loom_options_set(options, "window", "16"));
  CHECK_FAILS(loom_options_set(options, "window", "0"), LOOM_INVALID_ARGUMENT, "window is 0");
  loom_mesh_trainer* trainer = NULL;
  CHECK_OK(loom_mesh_trainer_create(net, NULL, options, &trainer));
  int64_t seen = 0;
  loom_mesh_fit_options fit = LOOM_MESH_FIT_OPTIONS_INIT;
  fit.epochs = 5;
  fit.on_epoch = count_epochs;
  fit.user = &seen;
  CHECK_FAILS(loom_mesh_trainer_fit(trainer, data, &fit), LOOM_CANCELLED, "");
  CHECK(seen == 2);
  loom_mesh_trainer_free(trainer);

  loom_mesh_options how = LOOM_MESH_OPTIONS_INIT;
  how.activity = 1;
  loom_mesh* mesh = NULL;
  loom_array *x = NULL, *y = NULL, *active = NULL;
  char* cells = NULL;
  loom_tensor view;
  const char* ports[] = {"input"};
  CHECK_OK(loom_mesh_create(net, &how, &mesh));
  CHECK_OK(loom_dataset_x(data, &x));
  CHECK_OK(loom_array_view(x, &view));
  CHECK_FAILS(loom_mesh_activity(mesh, &active), LOOM_INVALID_ARGUMENT, "activity");
  CHECK_OK(loom_mesh_run(mesh, ports, &view, 1, &y));
  CHECK_OK(loom_array_view(y, &view));
  CHECK(view.shape[0] == kSamples && view.shape[1] == 3);
  CHECK_OK(loom_mesh_activity(mesh, &active));
  CHECK_OK(loom_mesh_cells(mesh, &cells));
  CHECK(strstr(cells, "\"layer\":\"Dense\"") != NULL && strstr(cells, "\"holds\":1") != NULL);
  loom_free(cells);
  loom_array_free(x);
  loom_array_free(y);
  loom_array_free(active);
  loom_mesh_free(mesh);
  loom_options_free(options);
  loom_dataset_free(data);
  loom_network_free(net);
}

static int32_t count_events(void* user, const char* event, const char* json) {
  int* counts = user;
  CHECK(json[0] == '{');
  counts[strcmp(event, "layer") == 0 ? 0 : strcmp(event, "pass") == 0 ? 1 : 2]++;
  return 0;
}

static void test_seen(void) {
  loom_network* net = NULL;
  loom_trainer* trainer = NULL;
  CHECK_OK(loom_network_from_json(NULL, kNetworkJson, NULL, &net));
  loom_dataset* data = samples();
  CHECK_OK(loom_trainer_create_with(net, NULL, NULL, &trainer));
  int counts[3] = {0, 0, 0};
  loom_telemetry_options places = LOOM_TELEMETRY_OPTIONS_INIT;
  loom_telemetry* told = NULL;
  CHECK_FAILS(loom_telemetry_open(&places, &told), LOOM_INVALID_ARGUMENT, "");
  const char* path = scratch_path("told.jsonl");
  remove(path);
  places.json_lines = path;
  CHECK_OK(loom_telemetry_open(&places, &told));
  loom_fit_options fit = LOOM_FIT_OPTIONS_INIT;
  fit.epochs = 2;
  fit.observer = count_events;
  fit.user = counts;
  fit.telemetry = told;
  fit.observe = "layer,layers";
  CHECK_FAILS(loom_trainer_fit(trainer, data, NULL, &fit, NULL), LOOM_INVALID_ARGUMENT, "'layers'");
  fit.observe = "layer,pass";
  CHECK_OK(loom_trainer_fit(trainer, data, NULL, &fit, NULL));
  CHECK(counts[0] > 0 && counts[1] > counts[0] && counts[2] == 0);
  CHECK_OK(loom_telemetry_scalar(told, "reward", 1, 0.5));
  CHECK_OK(loom_telemetry_close(told, 0));
  FILE* file = fopen(path, "r");
  char line[4096];
  int lines = 0;
  while (file != NULL && fgets(line, sizeof line, file) != NULL) ++lines;
  CHECK(file != NULL && lines >= 3);
  if (file != NULL) fclose(file);
  loom_telemetry_free(told);
  loom_trainer_free(trainer);
  loom_dataset_free(data);
  loom_network_free(net);
}

static void test_conversion(void) {
  loom_network* net = NULL;
  CHECK_OK(loom_network_from_json(NULL, kNetworkJson, NULL, &net));
  char from[512], to[512];
  snprintf(from, sizeof from, "%s", scratch_path("from.entity"));
  snprintf(to, sizeof to, "%s", scratch_path("to.entity"));
  CHECK_OK(loom_network_save(net, from, NULL));
  loom_convert_options how = LOOM_CONVERT_OPTIONS_INIT;
  how.has_dtype = how.measure = 1;
  how.dtype = LOOM_INT8;
  char* text = NULL;
  CHECK_OK(loom_convert(NULL, from, to, &how, &text));
  CHECK(text != NULL && strstr(text, "\"to\":\"int8\"") != NULL);
  loom_free(text);
  CHECK_OK(loom_diff(NULL, from, to, 0, &text));
  CHECK(text != NULL && strstr(text, "\"equal\":0") != NULL);
  loom_free(text);
  const char* models[] = {from, from};
  CHECK_OK(loom_merge(NULL, models, 2, to, NULL, &text));
  CHECK(text != NULL && strstr(text, "\"method\":\"linear\"") != NULL);
  loom_free(text);
  int64_t blobs = 0;
  CHECK_OK(loom_verify_hashes(NULL, to, &blobs));
  CHECK(blobs > 0);
  const char* rules[] = {"no rule"};
  how.rules = rules;
  how.rules_count = 1;
  CHECK_FAILS(loom_convert(NULL, from, to, &how, &text), LOOM_INVALID_ARGUMENT, "PATTERN=DTYPE");
  loom_network_free(net);
}

static void test_search(void) {
  loom_network* net = NULL;
  CHECK_OK(loom_network_from_json(NULL, kNetworkJson, NULL, &net));
  loom_dataset* data = samples();
  loom_options* options = NULL;
  CHECK_OK(loom_options_new("architectures", &options));
  CHECK_OK(loom_options_set(options, "population", "2"));
  CHECK_OK(loom_options_set(options, "epochs", "1"));
  loom_architecture_search* search = NULL;
  CHECK_OK(loom_architecture_search_create(net, data, options, &search));
  CHECK_OK(loom_architecture_search_step(search, 1, NULL, NULL));
  char* text = NULL;
  CHECK_OK(loom_architecture_search_json(search, &text));
  CHECK(text != NULL && strstr(text, "\"objectives\":[\"accuracy\",\"parameters\"]") != NULL);
  loom_free(text);
  loom_network* found = NULL;
  CHECK_FAILS(loom_architecture_search_network(search, 999999, NULL, &found), LOOM_NOT_FOUND,
              "999999");
  loom_architecture_search_free(search);
  loom_darts_search* darts = NULL;
  CHECK_FAILS(loom_darts_search_create(net, data, options, &darts), LOOM_INVALID_ARGUMENT,
              "options of 'architectures'");
  loom_options_free(options);
  loom_dataset_free(data);
  loom_network_free(net);
}

static void test_measures(void) {
  const double answers[] = {1, 2, 5}, truths[] = {1, 4, 1};
  loom_deviation *off = NULL, *again = NULL;
  loom_array* places = NULL;
  loom_tensor seen;
  char* text = NULL;
  CHECK_OK(loom_deviation_create(&off));
  CHECK_OK(loom_deviation_add(off, answers, truths, 3));
  CHECK_FAILS(loom_deviation_add(off, NULL, truths, 3), LOOM_INVALID_ARGUMENT, "'answers'");
  CHECK_OK(loom_deviation_worst(off, 2, &places));
  CHECK_OK(loom_array_view(places, &seen));
  CHECK(seen.shape[0] == 2 && ((const int64_t*)seen.data)[0] == 2);
  loom_array_free(places);
  CHECK_FAILS(loom_deviation_bucket(off, "all", &places), LOOM_NOT_FOUND, "0-10%");
  CHECK_OK(loom_deviation_json(off, &text));
  CHECK_OK(loom_deviation_from_json(text, &again));
  loom_free(text);
  loom_deviation_free(off);
  loom_deviation_free(again);

  loom_adaptation* tracker = NULL;
  int64_t task = 0;
  int32_t over = 1;
  CHECK_OK(loom_adaptation_create(NULL, &tracker));
  CHECK_OK(loom_adaptation_schedule(tracker, 5, 2));
  CHECK_OK(loom_adaptation_start(tracker, 1));
  CHECK_OK(loom_adaptation_record(tracker, 1, &task, &over));
  CHECK(task == 1 && over == 0);
  CHECK_FAILS(loom_adaptation_record(tracker, 2, NULL, NULL), LOOM_INVALID_ARGUMENT, "'right'");
  CHECK_OK(loom_adaptation_json(tracker, &text));
  CHECK(strstr(text, "\"outputs\":1,") != NULL);
  loom_free(text);
  loom_adaptation_free(tracker);

  loom_dataset *data = samples(), *rest = NULL, *held = NULL;
  loom_dataset_info info = LOOM_DATASET_INFO_INIT;
  CHECK_OK(loom_dataset_fold(data, 1, 4, NULL, &rest, &held));
  CHECK_OK(loom_dataset_get_info(held, &info));
  CHECK(info.samples >= kSamples / 4 - 3 && info.samples <= kSamples / 4 + 3);
  loom_dataset_free(rest);
  loom_dataset_free(held);
  CHECK_FAILS(loom_dataset_fold(data, 4, 4, NULL, &rest, &held), LOOM_INVALID_ARGUMENT, "");
  CHECK_OK(loom_dataset_json(data, &text));
  CHECK(strstr(text, "\"hash\":\"") != NULL);
  loom_free(text);
  loom_dataset_free(data);
}

void test_grouping(void) {
  test_measures();
  test_groups();
  test_votes();
  test_mesh_training();
  test_seen();
  test_conversion();
  test_search();
}
