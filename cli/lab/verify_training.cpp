// loom verify training: hashes of the state after training. Equal hashes mean equal bits, for any
// threads, instruction set and compiler.
#include <memory>

#include "api/engine/impl.hpp"
#include "base/text.hpp"
#include "convert/convert.hpp"
#include "lab.hpp"
#include "lab/training_hash.hpp"
#include "train_io/file_memory.hpp"

namespace loom::core::cli {
namespace {

struct TrainingFlags {
  EngineFlags engine;
  MemoryFlags memory;
  std::string network, kind, dtype = "f32";
  int64_t batch = 8;
  int steps = 50;
  uint64_t seed = 7;
};

struct Job {
  std::string name;
  NetworkSpec network;
  int64_t batch;
};

Result<std::vector<Job>> jobs_of(const TrainingFlags& f, const MemoryBudget& memory) {
  std::vector<Job> jobs;
  if (!f.network.empty()) {
    LOOM_ASSIGN(const OpenedModel opened, open_network(f.network, {.memory = memory}));
    LOOM_TRY(check_parameters(opened.network->spec, 4, memory, f.network));
    jobs.push_back({f.network, opened.network->spec, f.batch});
    return jobs;
  }
  for (const KindNetwork& k : kind_networks()) {
    if (!f.kind.empty() && to_lower_ascii(f.kind) != to_lower_ascii(k.kind)) continue;
    jobs.push_back({std::string(k.kind), k.network, k.batch});
  }
  if (!jobs.empty()) return jobs;
  return unknown_kind(f.kind);
}

Status hash_all(const TrainingFlags& f) {
  LOOM_ASSIGN(const Engine engine, f.engine.create(f.memory));
  TrainingHashOptions options;
  options.steps = f.steps;
  options.seed = f.seed;
  LOOM_ASSIGN(options.dtype, parse_dtype(f.dtype));
  LOOM_ASSIGN(const std::vector<Job> jobs, jobs_of(f, engine.impl().budget()));
  for (const Job& job : jobs) {
    LOOM_ASSIGN(const TrainingHash hash, hash_training(job.network, job.batch, options,
                                                       *engine.impl().ops, engine.impl().pool));
    write_out(cat(job.name, " ", hash.forward, " ", hash.backward, " ", hash.trained, "\n"));
  }
  return {};
}

int run(const TrainingFlags& f) {
  if (!f.network.empty() && !f.kind.empty()) {
    return fail(kUsage, "give either NETWORK.json or --kind; see loom verify training --help");
  }
  const Status status = hash_all(f);
  return status.ok() ? kDone : fail(status.error());
}

}  // namespace

Verb add_verify_training(Command app) {
  auto f = std::make_shared<TrainingFlags>();
  f->engine.exact_threads = true;
  const Command verb = app.find("verify").command(
      "training",
      "The hashes of training: of the first prediction, of the weights and the optimizer after one "
      "step, and after the last.");
  verb.examples(
      "  loom verify training                            # a small network per layer kind\n"
      "  loom verify training --kind LSTM --threads 7 --isa scalar\n"
      "  loom verify training net.json --steps 200 --dtype int8");
  verb.option("NETWORK", f->network, "A network of loom new; the data are made up");
  verb.option("--kind", f->kind, "Only this layer kind");
  verb.option("--steps", f->steps, "Training steps").range(1, 1 << 20).show_default();
  verb.option("--dtype", f->dtype, "Number type of matrices").show_default();
  verb.option("--batch", f->batch, "Samples in a batch of NETWORK")
      .range(1, 1 << 20)
      .show_default();
  verb.option("--seed", f->seed, "Seed of the weights").show_default();
  f->engine.add_lanes(verb);
  f->memory.add(verb);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::core::cli
