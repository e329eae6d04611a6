#include "verb_list.hpp"

#include "lab/lab.hpp"

namespace loom::cli {

std::vector<Verb> add_verbs(const Command& app) {
  const Command language = app.group("Language models");
  const Command networks = app.group("Networks");
  const Command models = app.group("Model files");
  const Command together = app.group("Several models");
  const Command remote = app.group("Servers");
  const Command checks = app.group("Measurements and checks");
  return {
      add_run(language),
      add_pull(language),
      add_list(language),
      add_show(language),
      add_rm(language),
      add_embed(language),
      add_rerank(language),
      add_perplexity(language),
      add_tokenize(language),
      add_new(networks),
      add_train(networks),
      add_eval(networks),
      add_predict(networks),
      add_compare(networks),
      add_search(networks),
      add_darts(networks),
      add_evolve(networks),
      add_mesh(networks),
      add_info(models),
      add_convert(models),
      add_quantize(models),
      add_diff(models),
      add_onnx(models),
      add_absorb(models),
      add_merge(together),
      add_ensemble(together),
      add_dna(together),
      add_cluster(together),
#ifdef LOOM_SERVE
      add_serve(remote),
      add_ps(remote),
      add_stop(remote),
#endif
#ifdef LOOM_DONATE
      add_donate(remote),
#endif
      core::cli::add_bench(checks),
      core::cli::add_bench_layers(checks),
      core::cli::add_bench_open(checks),
      core::cli::add_bench_neat(checks),
      core::cli::add_bench_adapt(checks),
      core::cli::add_bench_arc(checks),
      core::cli::add_bench_gpu(checks),
      core::cli::add_bench_load(checks),
      core::cli::add_bench_machine(checks),
      core::cli::add_verify(checks),
      core::cli::add_verify_training(checks),
      core::cli::add_verify_files(checks),
      add_verify_proof(checks),
      core::cli::add_doctor(checks),
      add_completion(app.group("This program")),
  };
}

std::string_view absent_verbs() {
  return {};
}

}  // namespace loom::cli
