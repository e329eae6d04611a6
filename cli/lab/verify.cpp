// loom verify hash: prints the hash of the logits of every position of a prompt. Equal hashes mean
// equal bits, for any threads, instruction set and chunk size.
#include <memory>

#include "../shared/progress.hpp"
#include "api/engine/impl.hpp"
#include "lab.hpp"
#include "lab/logits_hash.hpp"

namespace loom::core::cli {
namespace {

struct HashFlags {
  EngineFlags engine;
  ModelFlags model;
  std::string shape;
  int64_t prompt_tokens = 113, chunk = 256;
  uint64_t seed = 1;
};

Result<std::string> hash(const HashFlags& f) {
  LOOM_ASSIGN(const Engine engine, f.engine.create());
  LOOM_ASSIGN(const std::optional<loom::DType> dtype, f.model.number_type());
  const loom::DType drawn = dtype.value_or(loom::DType::float32);
  Result<Model> model =
      f.shape.empty() ? f.model.load(engine, false) : Model::random(engine, f.shape, drawn, f.seed);
  if (!model.ok()) return model.error();
  LlmSessionOptions options;
  options.context = f.prompt_tokens;
  options.chunk = f.chunk;
  options.head_rows = 16;
  options.activations = engine.impl().activations;
  LOOM_ASSIGN(LlmSession session, make_session(*model, options));
  std::vector<TokenId> ids;
  for (int64_t i = 0; i < f.prompt_tokens; ++i) ids.push_back(prompt_token(i, model->info().vocab));
  return hash_logits(session, ids);
}

int run(const HashFlags& f) {
  if (f.model.folder.empty() == f.shape.empty())
    return fail(kUsage, "give either MODEL or --shape; see loom verify hash --help");
  const Result<std::string> hex = hash(f);
  if (!hex.ok()) return fail(hex.error());
  write_out(*hex + "\n");
  return kDone;
}

}  // namespace

Verb add_verify(Command app) {
  const Command verify = app.command("verify", "Check that results have the same bits.");
  verify.examples(
      "  loom verify hash models/stories.entity --threads 3 --isa scalar\n"
      "  loom verify hash --shape tiny --dtype ternary --chunk 7");
  verify.require_command();
  auto f = std::make_shared<HashFlags>();
  f->engine.exact_threads = true;  // 7 threads on 2 cores must give the bits of 1
  const Command verb = verify.command("hash", "The hash of the logits of a fixed prompt.");
  verb.examples(
      "  loom verify hash models/stories.entity --prompt-tokens 113 --chunk 7 --isa scalar\n"
      "  loom verify hash --shape tiny --dtype q4_0 --threads 7");
  f->model.add(verb, false);
  verb.option("--shape", f->shape, "Random weights of a named shape instead of a model");
  verb.option("--prompt-tokens", f->prompt_tokens, "Length of the prompt")
      .range(1, 1 << 24)
      .show_default();
  verb.option("--chunk", f->chunk, "Prompt tokens per pass").range(1, 1 << 20).show_default();
  verb.option("--seed", f->seed, "Seed of the random weights of --shape").show_default();
  f->engine.add(verb);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::core::cli
