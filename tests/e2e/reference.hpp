// The results of `transformers` for a checkpoint: reference.json (prompts, ids, greedy
// continuations) and reference.safetensors (logits of every position), next to the model. If
// reference_f32 exists as well, it is the right one. The other was computed after the whole model,
// with rotary frequencies, had been rounded to bfloat16.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/engine/impl.hpp"
#include "io/json/json.hpp"

namespace loom::core::test {

struct ReferencePrompt {
  std::string text;
  std::vector<TokenId> ids, greedy_ids;
  std::string greedy_text;
  std::vector<float> logits;  // [ids, vocab]
};

struct Reference {
  std::vector<ReferencePrompt> prompts;
  JsonValue json;  // the whole of reference.json
};

// Fails the test and returns nothing when a file cannot be read.
Reference read_reference(const std::string& folder);

Engine make_engine(int threads = 2);
Model load(const std::string& folder, const ModelOptions& options);

// The checks that both models share; they fail the test, naming the prompt.
void expect_same_ids(const Model& model, const Reference& reference);
void expect_close_logits(const Model& model, const Reference& reference, float bound);
void expect_same_greedy(const Model& model, const Reference& reference);

}  // namespace loom::core::test
