/* What the C tests check with: a failed check says where and what, and counts. */
#ifndef LOOM_TESTS_CAPI_CHECK_H_
#define LOOM_TESTS_CAPI_CHECK_H_

#include <stdio.h>
#include <string.h>

#include "loom.h"

extern int failures;

#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) {                                              \
      printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                    \
    }                                                                \
  } while (0)

#define CHECK_OK(call)                                                         \
  do {                                                                         \
    const loom_status check_status = (call);                                   \
    if (check_status != LOOM_OK) {                                             \
      printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, loom_last_error()); \
      ++failures;                                                              \
    }                                                                          \
  } while (0)

/* The call fails with the code, and the message has the words. */
#define CHECK_FAILS(call, code, words)                                                             \
  do {                                                                                             \
    const loom_status check_status = (call);                                                       \
    if (check_status != (code) || strstr(loom_last_error(), (words)) == NULL ||                    \
        loom_last_error_code() != (code)) {                                                        \
      printf("%s:%d: %s gave %s: %s\n", __FILE__, __LINE__, #call, loom_status_name(check_status), \
             loom_last_error());                                                                   \
      ++failures;                                                                                  \
    }                                                                                              \
  } while (0)

/* Shared by the files: a network of [4] -> [3], and points in three classes. */
enum { kSamples = 240, kInputs = 4 };
extern const char* const kNetworkJson;
void make_points(float* x, int32_t* y);
const char* scratch_path(const char* name);

void test_networks(void);
void test_training(void);
void test_models(void);
void test_misuse(void);
void test_cycles(void);
void test_threads(void);
void test_memory(void);
void test_writing(void);
void test_bits(void);
void test_evolution(void);
void test_proof(void);
void test_grouping(void);
void test_language(void);
void test_graphs(void);

#endif
