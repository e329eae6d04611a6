#include "verb_list.hpp"

#include "lab/lab.hpp"

namespace loom::cli {

std::vector<Verb> add_verbs(const Command& app) {
  return {
      add_run(app),
      add_pull(app),
      add_list(app),
      add_show(app),
      add_rm(app),
      add_new(app),
      add_train(app),
      add_search(app),
      add_eval(app),
      add_predict(app),
      add_onnx(app),
      add_perplexity(app),
      add_info(app),
      add_tokenize(app),
      add_embed(app),
      add_rerank(app),
      core::cli::add_bench(app),
      core::cli::add_bench_layers(app),
      core::cli::add_bench_open(app),
      core::cli::add_bench_neat(app),
      core::cli::add_bench_adapt(app),
      core::cli::add_bench_arc(app),
      core::cli::add_bench_gpu(app),
      core::cli::add_bench_load(app),
      core::cli::add_bench_machine(app),
      core::cli::add_verify(app),
      core::cli::add_verify_training(app),
      core::cli::add_verify_files(app),
      add_verify_proof(app),
      core::cli::add_doctor(app),
      add_absorb(app),
      add_convert(app),
      add_diff(app),
      add_quantize(app),
      add_dna(app),
      add_merge(app),
      add_cluster(app),
      add_ensemble(app),
      add_mesh(app),
      add_evolve(app),
      add_darts(app),
      add_compare(app),
#ifdef LOOM_SERVE
      add_serve(app),
#endif
#ifdef LOOM_DONATE
      add_donate(app),
#endif
  };
}

std::string_view absent_verbs() {
  return {};
}

}  // namespace loom::cli
