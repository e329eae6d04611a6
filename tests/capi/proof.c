/* Proofs of networks: made, kept in the file, repeated, and refused where they do not hold. The
 * expected outputs are those of the formula by hand, exact in float32. */
#include <stdlib.h>

#include "check.h"

static loom_network* made(void) {
  const char* json =
      "{\"loom\":1,\"grid\":[1,1,1,1],\"input\":[2],\"cells\":"
      "[{\"at\":[0,0,0,0],\"type\":\"Dense\",\"in\":2,\"out\":1}]}";
  const float w[] = {2, -3}, b[] = {0.5f}; /* y = 2 a - 3 b + 0.5 */
  const int64_t w_shape[] = {1, 2}, b_shape[] = {1};
  const loom_tensor wt = LOOM_TENSOR(LOOM_FLOAT32, w, 2, w_shape);
  const loom_tensor bt = LOOM_TENSOR(LOOM_FLOAT32, b, 1, b_shape);
  loom_network* net = NULL;
  CHECK_OK(loom_network_from_json(NULL, json, NULL, &net));
  CHECK_OK(loom_network_set_parameter(net, "(0, 0, 0, 0)/weight", &wt));
  CHECK_OK(loom_network_set_parameter(net, "(0, 0, 0, 0)/bias", &bt));
  return net;
}

/* Whether a text of the library says so; the text is freed. */
static int says(char* text, const char* part) {
  const int found = text != NULL && strstr(text, part) != NULL;
  if (!found) fprintf(stderr, "'%s' is not in: %s\n", part, text == NULL ? "(null)" : text);
  loom_free(text);
  return found;
}

static const float kInputsOf[] = {1, 1, 4, 2}, kRight[] = {-0.5f, 2.5f}, kWrong[] = {-0.5f, 2.75f};
static const int64_t kInputShape[] = {2, 2}, kOutputShape[] = {2, 1}, kOtherShape[] = {1, 2};

static void test_a_proof_that_holds_goes_along(void) {
  loom_network* net = made();
  const loom_tensor x = LOOM_TENSOR(LOOM_FLOAT32, kInputsOf, 2, kInputShape);
  const loom_tensor y = LOOM_TENSOR(LOOM_FLOAT32, kRight, 2, kOutputShape);
  loom_prove_options options = LOOM_PROVE_OPTIONS_INIT;
  options.source = "by hand 1.0: y = 2 a - 3 b + 0.5";
  char* text = NULL;
  CHECK_FAILS(loom_network_proof(net, &text), LOOM_NOT_FOUND, "no proof");
  CHECK_FAILS(loom_network_verify_proof(net, &text), LOOM_NOT_FOUND, "proof");
  CHECK(text == NULL);
  CHECK_OK(loom_network_prove(net, &x, 1, &y, 1, &options, &text));
  CHECK(says(text, "\"holds\":true"));
  CHECK_OK(loom_network_proof(net, &text));
  CHECK(says(text, "by hand 1.0"));

  CHECK_OK(loom_network_save(net, scratch_path("c_proof.entity"), NULL));
  loom_network* loaded = NULL;
  CHECK_OK(loom_network_load(NULL, scratch_path("c_proof.entity"), NULL, &loaded));
  CHECK_OK(loom_network_verify_proof(loaded, &text));
  CHECK(says(text, "by hand 1.0"));
  CHECK_OK(loom_network_verify_proof(loaded, &text));
  CHECK(says(text, "\"holds\":true"));

  /* Other weights are another network: the proof is gone. */
  const float other[] = {0.25f};
  const int64_t shape[] = {1};
  const loom_tensor bias = LOOM_TENSOR(LOOM_FLOAT32, other, 1, shape);
  CHECK_OK(loom_network_set_parameter(loaded, "(0, 0, 0, 0)/bias", &bias));
  CHECK_FAILS(loom_network_proof(loaded, &text), LOOM_NOT_FOUND, "no proof");
  loom_network_free(loaded);
  loom_network_free(net);
}

static void test_a_proof_that_does_not_hold_is_not_kept(void) {
  loom_network* net = made();
  const loom_tensor x = LOOM_TENSOR(LOOM_FLOAT32, kInputsOf, 2, kInputShape);
  const loom_tensor y = LOOM_TENSOR(LOOM_FLOAT32, kWrong, 2, kOutputShape);
  char* text = NULL;
  CHECK_OK(loom_network_prove(net, &x, 1, &y, 1, NULL, &text));
  CHECK(says(text, "\"holds\":false"));
  CHECK_FAILS(loom_network_proof(net, &text), LOOM_NOT_FOUND, "no proof");
  /* A wide tolerance takes it: |2.5 - 2.75| <= 0.1 x 2.75. */
  loom_prove_options options = LOOM_PROVE_OPTIONS_INIT;
  options.rel_tol = 0.1;
  CHECK_OK(loom_network_prove(net, &x, 1, &y, 1, &options, &text));
  CHECK(says(text, "\"holds\":true"));
  loom_network_free(net);
}

static void test_wrong_use_is_an_error(void) {
  loom_network* net = made();
  const loom_tensor x = LOOM_TENSOR(LOOM_FLOAT32, kInputsOf, 2, kInputShape);
  const loom_tensor y = LOOM_TENSOR(LOOM_FLOAT32, kRight, 2, kOutputShape);
  const loom_tensor turned = LOOM_TENSOR(LOOM_FLOAT32, kRight, 2, kOtherShape);
  char* text = NULL;
  CHECK_OK(loom_network_prove(net, &x, 1, &turned, 1, NULL, &text));
  CHECK(says(text, "\"holds\":false"));
  CHECK_FAILS(loom_network_prove(net, &x, 1, NULL, 1, NULL, &text), LOOM_INVALID_ARGUMENT,
              "expected");
  CHECK_FAILS(loom_network_prove(net, &x, -1, &y, 1, NULL, &text), LOOM_INVALID_ARGUMENT, "inputs");
  CHECK_FAILS(loom_network_prove(net, &x, 1, &y, 1, NULL, NULL), LOOM_INVALID_ARGUMENT, "out");
  CHECK_FAILS(loom_network_prove(NULL, &x, 1, &y, 1, NULL, &text), LOOM_INVALID_ARGUMENT, "null");
  CHECK_FAILS(loom_network_proof(NULL, &text), LOOM_INVALID_ARGUMENT, "null");
  CHECK_FAILS(loom_network_proof(net, NULL), LOOM_INVALID_ARGUMENT, "out");
  CHECK_FAILS(loom_network_verify_proof(NULL, &text), LOOM_INVALID_ARGUMENT, "null");
  CHECK_FAILS(loom_network_verify_proof(net, NULL), LOOM_INVALID_ARGUMENT, "out");
  loom_network_free(net);
  CHECK_FAILS(loom_network_verify_proof(net, &text), LOOM_INVALID_ARGUMENT, "freed");
}

void test_proof(void) {
  test_a_proof_that_holds_goes_along();
  test_a_proof_that_does_not_hold_is_not_kept();
  test_wrong_use_is_an_error();
}
