// Language models for scripts that compare Loom with other programs: folder_check.py,
// families_check.py, positions_check.py and tokens_check.py.
//   model_runner logits MODEL ID...   logits of every position, one per line; notes on stderr.
//   model_runner decode MODEL N ID... the same, then the same token by token, then N greedy ids.
//   model_runner greedy MODEL CONTEXT N ID...   logits of every position in a session of CONTEXT
//     positions, then N greedy ids on one line.
//     With LOOM_LORA=PATH,PATH=WEIGHT the model has these adapters.
//   model_runner config MODEL         config.json as it is written from what was read.
//   model_runner export MODEL OUT     writes the model as .gguf, .entity or a folder.
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
#include "formats/config/config.hpp"
#include "formats/config/text_config.hpp"
#include "io/files/file.hpp"
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

void print_row(std::span<const float> row) {
  for (const float value : row) std::printf("%.9g ", static_cast<double>(value));
  std::printf("\n");
}

// `count` tokens of the largest logit, on one line.
loom::Status print_greedy(LlmSession& session, int count) {
  for (int i = 0; i < count; ++i) {
    const std::span<const float> logits = session.logits();
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    std::printf("%td ", best);
    const auto id = static_cast<loom::TokenId>(best);
    LOOM_TRY(session.feed({&id, 1}));
  }
  std::printf("\n");
  return {};
}

struct Steps {
  int64_t context = 0;    // of the session; 0 means that of the model
  bool by_token = false;  // the prompt once more, token by token, in a new session
  int count = 0;          // of greedy tokens after it
};

// The adapters that LOOM_LORA names.
LoadModelOptions load_options() {
  LoadModelOptions options;
  options.dtype = DType::f32;
  std::string names = std::getenv("LOOM_LORA") == nullptr ? "" : std::getenv("LOOM_LORA");
  for (size_t end = 0; !names.empty() && end != std::string::npos; names.erase(0, end + 1)) {
    end = names.find(',');
    options.lora.push_back(names.substr(0, end));
    if (end == std::string::npos) break;
  }
  return options;
}

loom::Status print_logits(const std::string& path, const std::vector<loom::TokenId>& ids,
                          const Steps& steps) {
  ThreadPool pool(1);
  LOOM_ASSIGN(const LanguageModel model, load_language_model(path, load_options(), pool));
  print_notes(model.notes());
  LlmSessionOptions options;
  options.context = steps.context;
  options.activations = ActivationMode::f32;
  LOOM_ASSIGN(LlmSession session, LlmSession::create(model, cpu_ops(best_isa()), pool, options));
  LOOM_TRY(session.feed_all(ids, [](int64_t, std::span<const float> row) -> loom::Status {
    print_row(row);
    return {};
  }));
  if (!steps.by_token) return steps.count > 0 ? print_greedy(session, steps.count) : loom::Status();
  LOOM_ASSIGN(LlmSession again, LlmSession::create(model, cpu_ops(best_isa()), pool, options));
  for (const loom::TokenId id : ids) {
    LOOM_TRY(again.feed({&id, 1}));
    print_row(again.logits());
  }
  return print_greedy(again, steps.count);
}

int print_config(const std::string& path) {
  const auto config = read_file(path + "/config.json");
  if (!config.ok()) return fail(config.error());
  const auto read = parse_hf_config(text_config_json(*config), "", path);
  if (!read.ok()) return fail(read.error());
  std::printf("%s", hf_config_json(*read).c_str());
  return 0;
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
  const std::string_view verb = argc > 2 ? argv[1] : "";
  if (verb == "config") return print_config(argv[2]);
  Steps steps;
  int first = verb == "logits" ? 3 : 0;
  if (verb == "decode" && argc > 3) steps = {0, true, std::atoi(argv[3])}, first = 4;
  if (verb == "greedy" && argc > 4)
    steps = {std::atoi(argv[3]), false, std::atoi(argv[4])}, first = 5;
  if (first > 0) {
    std::vector<loom::TokenId> ids;
    for (int i = first; i < argc; ++i) ids.push_back(std::atoi(argv[i]));
    const loom::Status status = print_logits(argv[2], ids, steps);
    return status.ok() ? 0 : fail(status.error());
  }
  if (verb == "export" && argc > 3) {
    const loom::Status status = export_model(argv[2], argv[3]);
    return status.ok() ? 0 : fail(status.error());
  }
  if (verb == "ids" && argc > 3) return print_ids(argv[2], argv[3]);
  std::fprintf(stderr, "usage: see the head of model_runner.cpp\n");
  return 2;
}
