/* Graphs of files, run unchanged; fitness on samples; the likeness of two signatures. */
#include <math.h>
#include <stdlib.h>

#include "check.h"

struct seen {
  int outputs;
  float first[3];
};

static int32_t take(void* user, const loom_port* port) {
  struct seen* seen = user;
  CHECK(port->output == 1 && port->values != NULL && port->values->dtype == LOOM_FLOAT32);
  memcpy(seen->first, port->values->data, sizeof seen->first);
  ++seen->outputs;
  return 0;
}

/* A network as ONNX gives the numbers of the network. */
static void test_evaluator(void) {
  loom_network* network = NULL;
  CHECK_OK(loom_network_from_json(NULL, kNetworkJson, NULL, &network));
  void* bytes = NULL;
  int64_t size = 0;
  CHECK_OK(loom_network_save_memory(network, LOOM_FORMAT_ONNX, NULL, &bytes, &size));
  const char* path = scratch_path("graph.onnx");
  CHECK_OK(loom_network_save(network, path, NULL));

  float values[kInputs] = {0.5f, -1, 2, 0.25f};
  int64_t shape[] = {1, kInputs};
  loom_tensor x = {LOOM_FLOAT32, 2, shape, NULL, values};
  loom_array* y = NULL;
  loom_tensor view;
  CHECK_OK(loom_network_predict(network, &x, &y));
  CHECK_OK(loom_array_view(y, &view));

  for (int from_memory = 0; from_memory < 2; ++from_memory) {
    loom_evaluator* graph = NULL;
    if (from_memory) {
      CHECK_OK(loom_evaluator_load_memory(NULL, bytes, size, "net.onnx", &graph));
    } else {
      CHECK_OK(loom_evaluator_load(NULL, path, &graph));
    }
    char* json = NULL;
    CHECK_OK(loom_evaluator_json(graph, &json));
    CHECK(json != NULL && strstr(json, "\"inputs\":[{\"name\":") != NULL);
    CHECK(json != NULL && strstr(json, "\"type\":\"float\"") != NULL);
    loom_free(json);
    struct seen seen = {0, {0}};
    CHECK_OK(loom_evaluator_run(graph, &x, 1, take, &seen));
    CHECK(seen.outputs == 1);
    for (int i = 0; i < 3; ++i) CHECK(fabsf(seen.first[i] - ((float*)view.data)[i]) < 1e-5f);
    CHECK_FAILS(loom_evaluator_run(graph, NULL, 0, take, &seen), LOOM_INVALID_ARGUMENT, "");
    CHECK_FAILS(loom_evaluator_run(graph, &x, 1, NULL, NULL), LOOM_INVALID_ARGUMENT, "sink");
    loom_evaluator_free(graph);
  }
  loom_evaluator* none = NULL;
  CHECK_FAILS(loom_evaluator_load(NULL, "no.onnx", &none), LOOM_NOT_FOUND, "no.onnx");
  CHECK(none == NULL);
  loom_array_free(y);
  loom_free(bytes);
  loom_network_free(network);
}

static void test_similarity(void) {
  float a[] = {1, 0}, b[] = {1, 1}, zero[] = {0, 0};
  int64_t shape[] = {2}, longer[] = {1};
  const loom_tensor one = {LOOM_FLOAT32, 1, shape, NULL, a};
  const loom_tensor other = {LOOM_FLOAT32, 1, shape, NULL, b};
  const loom_tensor none = {LOOM_FLOAT32, 1, shape, NULL, zero};
  const loom_tensor part = {LOOM_FLOAT32, 1, longer, NULL, a};
  double alike = 0;
  CHECK_OK(loom_dna_similarity(&one, &other, &alike));
  CHECK(fabs(alike - sqrt(0.5)) < 1e-12);
  CHECK_OK(loom_dna_similarity(&none, &none, &alike));
  CHECK(alike == 1);
  CHECK_OK(loom_dna_similarity(&none, &one, &alike));
  CHECK(alike == 0);
  CHECK_FAILS(loom_dna_similarity(&one, &part, &alike), LOOM_INVALID_ARGUMENT, "");
}

static void test_sample_fitness(void) {
  static float x[kSamples * kInputs];
  static int32_t labels[kSamples];
  make_points(x, labels);
  int64_t shape[] = {kSamples, kInputs}, rows[] = {kSamples};
  const loom_tensor inputs = {LOOM_FLOAT32, 2, shape, NULL, x};
  const loom_tensor targets = {LOOM_INT32, 1, rows, NULL, labels};
  loom_dataset* data = NULL;
  CHECK_OK(loom_dataset_from_arrays(&inputs, &targets, &data));
  loom_neat_options how = LOOM_NEAT_OPTIONS_INIT;
  how.inputs = kInputs;
  how.outputs = 3;
  how.population = 10;
  loom_population* population = NULL;
  loom_genome* genome = NULL;
  CHECK_OK(loom_population_create(&how, &population));
  CHECK_OK(loom_population_genome(population, 0, &genome));

  loom_sample_fitness* fitness = NULL;
  CHECK_OK(loom_sample_fitness_create(data, kInputs, 3, LOOM_NORMALIZE_STANDARD, &fitness));
  double score = 0, again = 0;
  CHECK_OK(loom_sample_fitness_score(fitness, genome, &score));
  CHECK_OK(loom_sample_fitness_score(fitness, genome, &again));
  CHECK(score > 0 && score < 1 && score == again);
  char* json = NULL;
  CHECK_OK(loom_sample_fitness_json(fitness, genome, &json));
  CHECK(json != NULL && strstr(json, "input_shift") != NULL);
  loom_free(json);
  loom_network* network = NULL;
  CHECK_OK(loom_sample_fitness_network(fitness, genome, NULL, &network));
  loom_network_info info = LOOM_NETWORK_INFO_INIT;
  CHECK_OK(loom_network_get_info(network, &info));
  CHECK(info.normalizes == 1);
  loom_sample_fitness* wrong = NULL;
  CHECK_FAILS(loom_sample_fitness_create(data, 2, 3, LOOM_NORMALIZE_NONE, &wrong),
              LOOM_INVALID_ARGUMENT, "");
  CHECK(wrong == NULL);
  loom_network_free(network);
  loom_sample_fitness_free(fitness);
  loom_genome_free(genome);
  loom_population_free(population);
  loom_dataset_free(data);
}

void test_graphs(void) {
  test_evaluator();
  test_similarity();
  test_sample_fitness();
}
