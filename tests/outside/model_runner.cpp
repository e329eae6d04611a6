// Language models for scripts that compare Loom with other programs: folder_check.py,
// positions_check.py and tokens_check.py.
//   model_runner logits MODEL ID...   logits of every position, one per line; notes on stderr.
//   model_runner greedy MODEL CONTEXT COUNT ID...   the same in a session of CONTEXT positions,
//   then
//     COUNT greedy tokens on one line.
//   model_runner export MODEL OUT     writes the model as .gguf or .entity.
//   model_runner ids MODEL TEXTS      token ids of texts, one line each; TEXTS has hex lines.
// Exit 1, with one line on stderr, if the model is refused.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/cpu.hpp"
#include "base/threads/thread_pool.hpp"
#include "convert/checkpoint.hpp"
#include "convert/convert.hpp"
#include "convert/language_model.hpp"
#include "llm/sessions/llm_session.hpp"

namespace {

using namespace loom::core;

int fail(const loom::Error& error) {
  std::fprintf(stderr, "%s\n", error.str().c_str());
  return 1;
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::fprintf(stderr, "%s\n", note.c_str());
}

loom::Status print_logits(const std::string& path, int64_t context, int64_t count,
                          const std::vector<loom::TokenId>& ids) {
  ThreadPool pool(1);
  LOOM_ASSIGN(const LanguageModel model, load_language_model(path, {DType::f32, {}}, pool));
  print_notes(model.notes());
  LlmSessionOptions options;
  options.context = context;
  options.activations = ActivationMode::f32;
  LOOM_ASSIGN(LlmSession session, LlmSession::create(model, cpu_ops(best_isa()), pool, options));
  LOOM_TRY(session.feed_all(ids, [](int64_t, std::span<const float> row) -> loom::Status {
    for (const float value : row) std::printf("%.9g ", static_cast<double>(value));
    std::printf("\n");
    return {};
  }));
  for (int64_t i = 0; i < count; ++i) {
    const std::span<const float> logits = session.logits();
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    const auto id = static_cast<loom::TokenId>(best);
    std::printf("%d ", id);
    LOOM_TRY(session.feed({&id, 1}));
  }
  return {};
}

loom::Status export_model(const std::string& from, const std::string& to) {
  ThreadPool pool(1);
  LOOM_ASSIGN(const OpenedModel model, open_model(from));
  print_notes(left_out(to, model, {}));
  return write_model(to, model, {}, pool);
}

std::string from_hex(const std::string& line) {
  std::string bytes;
  for (size_t i = 0; i + 1 < line.size(); i += 2)
    bytes += static_cast<char>(std::strtol(line.substr(i, 2).c_str(), nullptr, 16));
  return bytes;
}

int print_ids(const std::string& path, const std::string& texts) {
  const auto tokenizer = load_tokenizer(path);
  if (!tokenizer.ok()) return fail(tokenizer.error());
  std::ifstream file(texts);
  for (std::string line; std::getline(file, line);) {
    const auto ids = tokenizer->encode(from_hex(line));
    if (!ids.ok()) {
      std::printf("error %s\n", ids.error().str().c_str());
      continue;
    }
    for (const loom::TokenId id : *ids) std::printf("%d ", id);
    std::printf("\n");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view verb = argc > 3 ? argv[1] : "";
  const bool greedy = verb == "greedy" && argc > 5;
  if (verb == "logits" || greedy) {
    std::vector<loom::TokenId> ids;
    for (int i = greedy ? 5 : 3; i < argc; ++i) ids.push_back(std::atoi(argv[i]));
    const loom::Status status = print_logits(argv[2], greedy ? std::atoi(argv[3]) : 0,
                                             greedy ? std::atoi(argv[4]) : 0, ids);
    return status.ok() ? 0 : fail(status.error());
  }
  if (verb == "export") {
    const loom::Status status = export_model(argv[2], argv[3]);
    return status.ok() ? 0 : fail(status.error());
  }
  if (verb == "ids") return print_ids(argv[2], argv[3]);
  std::fprintf(stderr, "usage: see the head of model_runner.cpp\n");
  return 2;
}
