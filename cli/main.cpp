// loom: the program. Declares the verbs, parses the command line, runs one verb.
// The library throws no exceptions; those of the standard library end here.
#include <exception>
#include <new>
#include <optional>

#include "lab/lab.hpp"
#include "verbs.hpp"

namespace loom::cli {
namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 done, 1 failed, 2 wrong command line, 3 bad input file, 4 not supported here,\n"
    "5 a verification did not match, 130 interrupted (129, 143: ended by SIGHUP, SIGTERM).\n"
    "Data goes to stdout, notes and errors to stderr. `loom help COMMAND` lists its options.";

int run(int argc, char** argv) {
  CommandLine line(
      "loom", kVersion,
      "Loom trains networks and runs language models: the same bits on every processor.",
      kExitCodes);
  const Command app = line.root();
  app.require_command();
  const Verb verbs[] = {
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
  if (argc == 1) {
    write_out(line.help());
    return kUsage;
  }
  if (const std::optional<int> code = line.parse(argc, argv)) return *code;
  catch_signals();
  for (const Verb& verb : verbs) {
    if (verb.command.called()) return verb.run();
  }
  return kUsage;
}

}  // namespace
}  // namespace loom::cli

int main(int argc, char** argv) {
  using namespace loom::cli;
  int code = kFailed;
  try {
    code = run(argc, argv);
    if (!flush_out() && code == kDone) code = fail(kFailed, "stdout could not be written");
  } catch (const std::bad_alloc&) {
    code = fail(kFailed, "out of memory");
  } catch (const std::exception& error) {
    code = fail(kFailed, error.what());
  }
  return code;
}
