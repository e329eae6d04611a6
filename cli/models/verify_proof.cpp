// loom verify proof: repeats the proof that an absorbed network carries: one line, and the exit
// code.
#include <memory>

#include "../shared/verbs.hpp"
#include "loom/proof.hpp"

namespace loom::cli {
namespace {

struct ProofFlags {
  EngineFlags engine;
  std::string file;
  bool json = false;
};

Result<ProofReport> repeated(const ProofFlags& f) {
  LOOM_ASSIGN(const Engine engine, f.engine.create());
  LoadOptions options;
  options.engine = engine;
  LOOM_ASSIGN(const Network network, Network::load(f.file, options));
  Result<ProofReport> report = verify_proof(network);
  if (report.ok() || !report.error().where.empty()) return report;
  Error error = report.error();
  error.where = f.file;
  return error;
}

int run(const ProofFlags& f) {
  const Result<ProofReport> report = repeated(f);
  if (!report.ok()) return fail(report.error());
  write_line(f.json ? report->json() : f.file + ": " + report->text());
  return report->holds ? kDone : kMismatch;
}

}  // namespace

Verb add_verify_proof(Command app) {
  auto f = std::make_shared<ProofFlags>();
  const Command verb = app.find("verify").command(
      "proof",
      "Repeats the proof that an absorbed network carries: does it compute the bits that it did "
      "beside the framework it came from? Exit code 0: it does; 5: it does not.");
  verb.examples(
      "  python3 -c 'import loom; loom.absorb(model, x).save(\"net.entity\")'   writes one\n"
      "  loom verify proof net.entity\n"
      "  loom verify proof net.entity --threads 1 --isa scalar --json | jq .outputs");
  verb.option("FILE", f->file, "A network with a proof, .entity").names_model().required();
  verb.flag("--json", f->json, "One JSON object instead of a line");
  f->engine.add(verb);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
