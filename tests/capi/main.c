/* The C interface from C11: one argument names the test to run. */
#include <stdlib.h>

#include "check.h"

int failures = 0;
extern int loom_layout_holds;

const char* const kNetworkJson =
    "{\"loom\": 1, \"grid\": [1,1,2,1], \"input\": [4], \"cells\": ["
    "{\"at\":[0,0,0,0],\"type\":\"Dense\",\"in\":4,\"out\":16,\"activation\":\"tanh\"},"
    "{\"at\":[0,0,1,0],\"type\":\"Dense\",\"in\":16,\"out\":3}]}";

void make_points(float* x, int32_t* y) {
  uint64_t state = 88172645463325252u;
  for (int i = 0; i < kSamples; ++i) {
    float* row = x + i * kInputs;
    for (int k = 0; k < kInputs; ++k) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      row[k] = (float)(state >> 40) / (float)(1 << 23) - 1.0f;
    }
    y[i] = row[0] + row[1] > 0.3f ? 0 : row[2] - row[3] > 0.0f ? 1 : 2;
  }
}

const char* scratch_path(const char* name) {
  static char path[1024];
  const char* folder = getenv("LOOM_TEST_FOLDER");
  snprintf(path, sizeof(path), "%s/%s", folder != NULL ? folder : ".", name);
  return path;
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } kTests[] = {
      {"networks", test_networks},   {"training", test_training}, {"models", test_models},
      {"misuse", test_misuse},       {"cycles", test_cycles},     {"threads", test_threads},
      {"memory", test_memory},       {"writing", test_writing},   {"bits", test_bits},
      {"evolution", test_evolution}, {"proof", test_proof},
      {"grouping", test_grouping},   {"language", test_language},       {"graphs", test_graphs}};
  int found = 0;
  CHECK(loom_layout_holds == 1);
  for (size_t i = 0; i < sizeof(kTests) / sizeof(kTests[0]); ++i) {
    if (argc != 2 || strcmp(argv[1], kTests[i].name) != 0) continue;
    found = 1;
    kTests[i].run();
  }
  if (!found) {
    printf(
        "usage: %s networks|training|models|misuse|cycles|threads|memory|writing|bits|evolution\n",
        argv[0]);
    return 2;
  }
  printf("%s: %d failed\n", argv[1], failures);
  return failures == 0 ? 0 : 1;
}
