// The model of models/stories, loaded once per test program.
#pragma once

#include <gtest/gtest.h>

#include "backend/cpu/cpu.hpp"
#include "base/threads/thread_pool.hpp"
#include "convert/language_model.hpp"
#include "llm/sessions/generate.hpp"
#include "llm/sessions/llm_session.hpp"
#include "support/paths.hpp"

namespace loom::core::test {

inline const std::string kStories = loom_test::source_path("tests/data/stories");

inline ThreadPool& pool() {
  static ThreadPool threads(2);
  return threads;
}

inline const LanguageModel& stories(DType dtype = DType::q8_0) {
  static const Result<LanguageModel> model = load_language_model(kStories, {dtype, {}}, pool());
  EXPECT_TRUE(model.ok()) << model.error().str();
  return *model;
}

inline LlmSession session(const LanguageModel& model, LlmSessionOptions options = {}) {
  Result<LlmSession> made = LlmSession::create(model, cpu_ops(best_isa()), pool(), options);
  EXPECT_TRUE(made.ok()) << made.error().str();
  return std::move(*made);
}

inline std::vector<TokenId> encode(const LanguageModel& model, std::string_view text) {
  Result<std::vector<TokenId>> ids = model.tokenizer()->encode(text);
  EXPECT_TRUE(ids.ok());
  return std::move(*ids);
}

}  // namespace loom::core::test
