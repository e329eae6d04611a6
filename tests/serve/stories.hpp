// The model in the repository, and a text of it when nothing else is computed.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "loom/loom.hpp"
#include "support/paths.hpp"

namespace loom::core::test {

inline Model stories(std::optional<DType> dtype = {}, int threads = 1) {
  Result<Engine> engine = Engine::create({.threads = threads});
  EXPECT_TRUE(engine.ok());
  ModelOptions options;
  if (dtype) options.dtype = *dtype;
  Result<Model> model =
      Model::load(*engine, loom_test::source_path("models/stories.entity"), options);
  EXPECT_TRUE(model.ok()) << model.error().str();
  return *model;
}

// A smaller model that guesses.
inline Model draft_of() {
  Result<Engine> engine = Engine::create({.threads = 1});
  EXPECT_TRUE(engine.ok());
  Result<Model> model = Model::load(*engine, loom_test::source_path("models/stories-draft.entity"));
  EXPECT_TRUE(model.ok()) << model.error().str();
  return *model;
}

struct Asked {
  std::vector<TokenId> prompt;
  GenerateOptions options;
};

// Prompts that share beginnings of any length, with any options.
inline std::vector<Asked> random_requests(std::mt19937& random, const Model& model, size_t count) {
  const std::string texts[] = {"Once upon a time, there was a little girl named Lily.",
                               "Once upon a time, there was a big dog", "Tom had a red ball.",
                               "Lily and her dog"};
  std::vector<Asked> out;
  for (size_t i = 0; i < count; ++i) {
    Asked one;
    one.prompt = *model.tokenize(texts[random() % 4]);
    if (i > 0 && random() % 3 == 0) {
      one.prompt = out[random() % i].prompt;
      for (size_t k = random() % 20; k > 0; --k)
        one.prompt.push_back(static_cast<TokenId>(3 + random() % 1000));
    }
    one.prompt.resize(1 + random() % one.prompt.size());
    SamplerOptions& s = one.options.sampler;
    s.temperature = random() % 2 == 0 ? 0.0f : 1.0f;
    s.seed = random();
    if (random() % 3 == 0) s.top_k = 5;
    if (random() % 3 == 0) s.repetition_penalty = 1.3f;
    if (random() % 3 == 0) one.options.stop = {"was"};
    one.options.max_tokens = static_cast<int64_t>(random() % 30);
    if (random() % 6 == 0) {  // longer than the context, whose parts are forgotten
      one.options.shift_context = one.options.ignore_eos = true;
      one.options.keep_tokens = 1 + static_cast<int64_t>(random() % one.prompt.size());
      one.options.shift_tokens = static_cast<int64_t>(random() % 50);
      one.options.max_tokens += 130;
    }
    out.push_back(std::move(one));
  }
  return out;
}

inline Generation alone(const Model& model, const Asked& asked, int64_t context = 128) {
  Result<ModelSession> session = model.session({.context = context});
  EXPECT_TRUE(session.ok());
  const Result<Generation> text = session->generate(asked.prompt, asked.options);
  EXPECT_TRUE(text.ok()) << text.error().str();
  return *text;
}

}  // namespace loom::core::test
