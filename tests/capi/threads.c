/* Handles made, used and freed by several threads at once; and each thread has its own last error. */
#include <pthread.h>
#include <stdlib.h>

#include "check.h"

enum { kThreads = 4, kRounds = 3000, kHeld = 16 };

struct worker {
  pthread_t thread;
  int number, wrong;
};

static int round_of(struct worker* w, loom_array** held, int round) {
  const int64_t shape[] = {1, w->number + 1};
  loom_array** slot = &held[round % kHeld];
  loom_array* old = *slot;
  loom_tensor view;
  char text[64];
  loom_array_free(old);
  /* What was freed here stays freed, whatever other threads make in the meantime. */
  if (old != NULL && loom_array_view(old, &view) != LOOM_INVALID_ARGUMENT) return 1;
  if (loom_array_zeros(LOOM_INT32, 2, shape, slot) != LOOM_OK) return 1;
  if (loom_array_view(*slot, &view) != LOOM_OK || view.shape[1] != w->number + 1) return 1;
  snprintf(text, sizeof(text), "/nowhere/%d.entity", w->number);
  loom_network* none = NULL;
  if (round % 100 == 0 && loom_network_load(NULL, text, NULL, &none) != LOOM_NOT_FOUND) return 1;
  if (round % 100 == 0 && strstr(loom_last_error(), text) == NULL) return 1;
  return 0;
}

static void* work(void* user) {
  struct worker* w = user;
  loom_array* held[kHeld] = {NULL};
  for (int i = 0; i < kRounds; ++i) w->wrong += round_of(w, held, i);
  for (int i = 0; i < kHeld; ++i) loom_array_free(held[i]);
  return NULL;
}

void test_threads(void) {
  struct worker workers[kThreads];
  loom_engine* engine = NULL;
  CHECK_OK(loom_engine_shared(&engine)); /* made once, before they all ask for it */
  for (int i = 0; i < kThreads; ++i) {
    workers[i] = (struct worker){.number = i};
    CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(workers[i].thread, NULL);
    CHECK(workers[i].wrong == 0);
  }
  loom_engine_free(engine);
}
