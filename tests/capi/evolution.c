/* Populations, how alike networks are, children of two, and networks that tick. */
#include <math.h>
#include <stdlib.h>

#include "check.h"

enum { kGenomes = 100, kGenerations = 100 };

/* Of XOR: 1 / (1 + mean squared error), for each genome. */
static void tell_xor(loom_population* population, double* best) {
  static const float kX[] = {0, 0, 0, 1, 1, 0, 1, 1}, kY[] = {0, 1, 1, 0};
  const int64_t shape[] = {4, 2};
  const loom_tensor x = LOOM_TENSOR(LOOM_FLOAT32, kX, 2, shape);
  loom_array* y = NULL;
  CHECK_OK(loom_population_run(population, &x, &y));
  loom_tensor view;
  CHECK_OK(loom_array_view(y, &view));
  CHECK(view.rank == 3 && view.shape[0] == kGenomes && view.shape[1] == 4 && view.shape[2] == 1);
  double fitness[kGenomes];
  *best = 0;
  for (int g = 0; g < kGenomes; ++g) {
    double sum = 0;
    for (int i = 0; i < 4; ++i) {
      const double off = (double)((const float*)view.data)[g * 4 + i] - (double)kY[i];
      sum += off * off / 4;
    }
    fitness[g] = 1 / (1 + sum);
    if (fitness[g] > *best) *best = fitness[g];
  }
  loom_array_free(y);
  CHECK_FAILS(loom_population_tell(population, fitness, 3), LOOM_INVALID_ARGUMENT, "3");
  CHECK_OK(loom_population_tell(population, fitness, kGenomes));
}

static loom_population* evolved(int generations) {
  loom_neat_options options = LOOM_NEAT_OPTIONS_INIT;
  options.inputs = 2;
  options.population = kGenomes;
  options.has_seed = 1;
  options.seed = 7;
  loom_population* population = NULL;
  CHECK_OK(loom_population_create(&options, &population));
  loom_genome* none = NULL;
  CHECK_FAILS(loom_population_best(population, &none), LOOM_INVALID_ARGUMENT, "");
  double most = 0;
  for (int g = 0; g < generations; ++g) {
    double best = 0;
    tell_xor(population, &best);
    if (best > most) most = best;
    loom_population_report report = LOOM_POPULATION_REPORT_INIT;
    CHECK_OK(loom_population_report_of(population, g, &report));
    CHECK(report.best == best && report.evaluations == (g + 1) * kGenomes && report.species >= 1);
  }
  loom_population_info info = LOOM_POPULATION_INFO_INIT;
  CHECK_OK(loom_population_get_info(population, &info));
  CHECK(info.size == kGenomes && info.inputs == 2 && info.outputs == 1 && info.seed == 7);
  CHECK(info.generation == generations && info.best_fitness == most);
  loom_population_report report = LOOM_POPULATION_REPORT_INIT;
  CHECK_FAILS(loom_population_report_of(population, generations, &report), LOOM_OUT_OF_RANGE, "");
  return population;
}

/* XOR is learned; the network of the best gives the bits of the genome; equal seeds, equal genes.
 */
static void test_populations(void) {
  loom_population *first = evolved(kGenerations), *second = evolved(kGenerations);
  loom_genome *best = NULL, *same = NULL;
  CHECK_OK(loom_population_best(first, &best));
  CHECK_OK(loom_population_best(second, &same));
  char *json = NULL, *again = NULL;
  CHECK_OK(loom_genome_json(best, &json));
  CHECK_OK(loom_genome_json(same, &again));
  CHECK(strcmp(json, again) == 0);
  loom_free(json);
  loom_free(again);
  loom_genome_free(same);
  loom_population_free(second);
  loom_population_free(first);

  loom_genome_info info = LOOM_GENOME_INFO_INIT;
  CHECK_OK(loom_genome_get_info(best, &info));
  CHECK(info.inputs == 2 && info.outputs == 1 && info.hidden >= 1 && info.recurrent == 0);
  const float values[] = {0, 0, 0, 1, 1, 0, 1, 1};
  const int64_t shape[] = {4, 2}, wide[] = {2, 4};
  const loom_tensor x = LOOM_TENSOR(LOOM_FLOAT32, values, 2, shape);
  const loom_tensor wrong = LOOM_TENSOR(LOOM_FLOAT32, values, 2, wide);
  loom_array *y = NULL, *z = NULL;
  CHECK_OK(loom_genome_run(best, &x, &y));
  CHECK_OK(loom_genome_reset(best));
  loom_network* net = NULL;
  CHECK_OK(loom_genome_network(best, NULL, &net));
  CHECK_OK(loom_network_predict(net, &x, &z));
  loom_tensor from_genome, from_network;
  CHECK_OK(loom_array_view(y, &from_genome));
  CHECK_OK(loom_array_view(z, &from_network));
  CHECK(memcmp(from_genome.data, from_network.data, 4 * sizeof(float)) == 0);
  const float* out = from_genome.data;
  CHECK(out[0] < 0.5f && out[1] > 0.5f && out[2] > 0.5f && out[3] < 0.5f);
  loom_array_free(y);
  loom_array_free(z);
  CHECK_FAILS(loom_genome_run(best, &wrong, &y), LOOM_INVALID_ARGUMENT, "[rows, 2]");
  loom_network_free(net);
  loom_genome_free(best);
}

static void test_wrong_populations(void) {
  loom_neat_options options = LOOM_NEAT_OPTIONS_INIT;
  loom_population* population = NULL;
  options.inputs = -1;
  CHECK_FAILS(loom_population_create(&options, &population), LOOM_INVALID_ARGUMENT, "inputs");
  options.inputs = 1;
  options.output = "sigmoidal";
  CHECK_FAILS(loom_population_create(&options, &population), LOOM_INVALID_ARGUMENT, "sigmoidal");
  options.output = "tanh";
  options.recurrent = 1;
  options.population = 4;
  CHECK_OK(loom_population_create(&options, &population));
  loom_genome* genome = NULL;
  CHECK_FAILS(loom_population_genome(population, 4, &genome), LOOM_INVALID_ARGUMENT, "4");
  CHECK_OK(loom_population_genome(population, 3, &genome));
  loom_network* net = NULL;
  CHECK_FAILS(loom_genome_network(genome, NULL, &net), LOOM_UNSUPPORTED, "recurrent");
  loom_genome_free(genome);
  loom_population_free(population);
  loom_population_free(NULL);
  loom_genome_free(NULL);
}

static loom_network* seeded(uint64_t seed) {
  loom_load_options options = LOOM_LOAD_OPTIONS_INIT;
  options.has_seed = 1;
  options.seed = seed;
  loom_network* net = NULL;
  CHECK_OK(loom_network_from_json(NULL, kNetworkJson, &options, &net));
  return net;
}

static float first_weight(const loom_network* net) {
  loom_array* values = NULL;
  loom_tensor view;
  CHECK_OK(loom_network_parameter(net, "(0, 0, 0, 0)/weight", &values));
  CHECK_OK(loom_array_view(values, &view));
  const float first = *(const float*)view.data;
  loom_array_free(values);
  return first;
}

/* A network is its own twin; a blend of two has the mean of their weights; signatures have
 * length 1. */
static void test_dna(void) {
  loom_network *a = seeded(1), *b = seeded(2), *child = NULL;
  char* json = NULL;
  CHECK_OK(loom_network_compare_dna(a, a, LOOM_DNA_STRICT, &json));
  const char* overlap = strstr(json, "\"overall_overlap\":");
  CHECK(overlap != NULL && strtod(overlap + strlen("\"overall_overlap\":"), NULL) == 1.0);
  loom_free(json);
  CHECK_FAILS(loom_network_compare_dna(a, b, 9, &json), LOOM_INVALID_ARGUMENT, "'mode' is 9");
  CHECK_FAILS(loom_network_compare_dna(a, NULL, 0, &json), LOOM_INVALID_ARGUMENT, "null");
  loom_array* signature = NULL;
  loom_tensor view;
  CHECK_OK(loom_network_dna(a, "0,0,1,0", &signature));
  CHECK_OK(loom_array_view(signature, &view));
  double square = 0;
  for (int64_t i = 0; i < view.shape[0]; ++i) {
    const double value = ((const double*)view.data)[i];
    square += value * value;
  }
  CHECK(view.dtype == LOOM_FLOAT64 && view.rank == 1 && fabs(square - 1) < 1e-12);
  loom_array_free(signature);
  CHECK_FAILS(loom_network_dna(a, "9,9,9,9", &signature), LOOM_NOT_FOUND, "9,9,9,9");

  CHECK_OK(loom_network_splice(a, b, NULL, &child));
  CHECK(first_weight(child) == 0.5f * first_weight(a) + 0.5f * first_weight(b));
  loom_network_free(child);
  loom_splice_options options = LOOM_SPLICE_OPTIONS_INIT;
  options.mode = LOOM_SPLICE_POINT;
  options.has_split = 1;
  options.split = 0;
  CHECK_OK(loom_network_splice(a, b, &options, &child));
  CHECK(first_weight(child) == first_weight(b));
  loom_network_free(child);
  options.has_fitness_a = 1;
  CHECK_FAILS(loom_network_splice(a, b, &options, &child), LOOM_INVALID_ARGUMENT, "fitness");
  loom_network_free(a);
  loom_network_free(b);
}

/* A row of two layers shows a sample after two ticks, with the bits of the network. */
static void test_meshes(void) {
  loom_network* net = seeded(1);
  const float values[] = {0.5f, -1, 0.25f, 2};
  const int64_t shape[] = {1, 4};
  const loom_tensor x = LOOM_TENSOR(LOOM_FLOAT32, values, 2, shape);
  loom_mesh* mesh = NULL;
  CHECK_OK(loom_mesh_create(net, NULL, &mesh));
  CHECK_OK(loom_mesh_set_input(mesh, &x));
  loom_array *wanted = NULL, *got = NULL;
  CHECK_OK(loom_network_predict(net, &x, &wanted));
  loom_tensor expected, shown;
  CHECK_OK(loom_array_view(wanted, &expected));
  CHECK_OK(loom_mesh_tick(mesh, 1));
  CHECK_OK(loom_mesh_output(mesh, &got));
  CHECK_OK(loom_array_view(got, &shown));
  CHECK(((const float*)shown.data)[0] == 0 && ((const float*)shown.data)[2] == 0);
  loom_array_free(got);
  CHECK_OK(loom_mesh_tick(mesh, 1));
  CHECK_OK(loom_mesh_output(mesh, &got));
  CHECK_OK(loom_array_view(got, &shown));
  CHECK(memcmp(shown.data, expected.data, 3 * sizeof(float)) == 0);
  loom_array_free(got);
  loom_mesh_info info = LOOM_MESH_INFO_INIT;
  CHECK_OK(loom_mesh_get_info(mesh, &info));
  CHECK(info.cells == 2 && info.ticks == 2 && info.latency == 2 && info.bytes > 0);
  CHECK_OK(loom_mesh_reset(mesh));
  CHECK_OK(loom_mesh_get_info(mesh, &info));
  CHECK(info.ticks == 0);
  CHECK_FAILS(loom_mesh_tick(mesh, -1), LOOM_INVALID_ARGUMENT, "-1 ticks");
  CHECK_FAILS(loom_mesh_set_input(mesh, NULL), LOOM_INVALID_ARGUMENT, "null");
  loom_array_free(wanted);
  loom_mesh_free(mesh);
  loom_mesh_free(NULL);
  loom_network_free(net);
}

/* An Input layer is a port of the mesh, of a width that no cell gives; another port and a link that
 * is delayed come with the options. */
static void test_mesh_ports(void) {
  const char* json =
      "{\"loom\":1,\"input\":[2],\"layers\":[{\"type\":\"Dense\",\"in\":2,\"out\":2},"
      "{\"type\":\"Input\",\"input\":\"eye\",\"shape\":[5]},{\"type\":\"Dense\",\"in\":5,\"out\":2}"
      "]}";
  loom_network* net = NULL;
  CHECK_OK(loom_network_from_json(NULL, json, NULL, &net));
  const int64_t ear_shape[] = {2}, last[] = {0, 0, 2, 0}, first[] = {0, 0, 0, 0},
                none[] = {9, 0, 0, 0};
  const loom_mesh_port ear = {"ear", ear_shape, 1};
  loom_mesh_link link = {.to = {0, 0, 0, 0}, .port = "ear", .delay = 2};
  loom_mesh_options options = LOOM_MESH_OPTIONS_INIT;
  options.ports = &ear;
  options.port_count = options.link_count = 1;
  options.links = &link;
  loom_mesh* mesh = NULL;
  CHECK_OK(loom_mesh_create(net, &options, &mesh));
  const float values[] = {1, -1, 2, 3, 4};
  const int64_t two[] = {1, 2}, five[] = {1, 5};
  const loom_tensor small = LOOM_TENSOR(LOOM_FLOAT32, values, 2, two);
  const loom_tensor wide = LOOM_TENSOR(LOOM_FLOAT32, values, 2, five);
  CHECK_OK(loom_mesh_set_port(mesh, "ear", &small));
  CHECK_OK(loom_mesh_set_port(mesh, "eye", &wide));
  CHECK_FAILS(loom_mesh_set_port(mesh, "nose", &small), LOOM_INVALID_ARGUMENT, "input, eye, ear");
  CHECK_FAILS(loom_mesh_set_port(mesh, NULL, &small), LOOM_INVALID_ARGUMENT, "'port' is null");
  CHECK_FAILS(loom_mesh_set_port(mesh, "eye", &small), LOOM_INVALID_ARGUMENT, "the port 'eye'");
  CHECK_OK(loom_mesh_tick(mesh, 2));
  loom_array *eye = NULL, *given = NULL, *y = NULL;
  loom_tensor shown;
  CHECK_OK(loom_mesh_cell_output(mesh, first, &given));
  CHECK_OK(loom_array_view(given, &shown));
  CHECK(((const float*)shown.data)[0] != 0);
  CHECK_OK(loom_mesh_cell_output(mesh, last, &y));
  CHECK_OK(loom_array_view(y, &shown));
  CHECK(shown.rank == 2 && shown.shape[1] == 2 && ((const float*)shown.data)[0] != 0);
  CHECK_FAILS(loom_mesh_cell_output(mesh, none, &eye), LOOM_NOT_FOUND, "no cell (9, 0, 0, 0)");
  CHECK_FAILS(loom_mesh_cell_output(mesh, NULL, &eye), LOOM_INVALID_ARGUMENT, "'at' is null");
  loom_array_free(given);
  loom_array_free(y);
  loom_mesh_free(mesh);
  link.port = "nose";
  CHECK_FAILS(loom_mesh_create(net, &options, &mesh), LOOM_INVALID_ARGUMENT, "the port 'nose'");
  options.links = NULL;
  CHECK_FAILS(loom_mesh_create(net, &options, &mesh), LOOM_INVALID_ARGUMENT, "'links' is null");
  loom_network_free(net);
}

void test_evolution(void) {
  test_populations();
  test_wrong_populations();
  test_dna();
  test_meshes();
  test_mesh_ports();
}
