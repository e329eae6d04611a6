// The proof of a network that was absorbed from another framework: inputs, the framework's outputs
// for them, and hashes of all. .entity files keep it.
//
//   Network net = Network::load("model.onnx").or_exit();
//   prove(net, {.source = "PyTorch 2.5.1: Sequential", .inputs = {x}, .expected = {y}}).or_exit();
//   net.save("model.entity").or_exit();
//   ProofReport said = verify_proof(Network::load("model.entity").or_exit()).or_exit();
//   print(said.text());
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "loom/export.hpp"
#include "loom/network.hpp"
#include "loom/result.hpp"
#include "loom/tensor.hpp"

namespace loom {

struct Proof {
  std::string source;  // the framework, its version and the model: "PyTorch 2.5.1: Sequential"
  // The comparisons made so far, for readers. prove() itself makes the two of the default.
  std::string rungs = "native, engine";
  double abs_tol = 1e-5, rel_tol = 1e-4;  // |a - b| <= abs_tol + rel_tol |b|, b of the source
  std::vector<Tensor> inputs = {};        // [n, ...], in the order of NetworkInfo::inputs
  std::vector<Tensor> expected = {};      // outputs of the source, in the order of NetworkInfo
};

// The difference of an output of the network from that of the source.
struct ProofOutput {
  double max_abs = 0;
  double max_rel = 0;         // where the source value exceeds 1e-6
  int64_t max_ulp = 0;        // in float32 steps
  double cosine = 1;          // of the angle between the outputs
  int64_t first_beyond = -1;  // index of the first value beyond the tolerance; -1 means none
};

struct ProofReport {
  bool holds = false;
  std::string problem;  // why it does not hold; else empty
  std::string source, rungs;
  std::vector<ProofOutput> outputs;
  // SHA-256 over, for each array, a line "float32 2x3" and its little-endian bytes.
  std::string inputs_sha256, expected_sha256, outputs_sha256;
  // One line: "the proof holds: PyTorch 2.5.1: Sequential; rungs native, ...; max abs 1.2e-07".
  LOOM_API std::string text() const;
  LOOM_API std::string json() const;  // all of it, one object
};

// Runs the network on proof.inputs and compares. If the proof holds, the network carries it until
// its weights change; .entity files keep it. Outputs of another number or shape than the network's
// are reported in `problem`. Errors: invalid_argument (inputs that do not fit the network).
LOOM_API Result<ProofReport> prove(Network& network, const Proof& proof);
// Checks that the network computes the same bits as when it was absorbed, and that inputs, outputs
// and bits match the hashes. Errors: not_found (it has no proof).
LOOM_API Result<ProofReport> verify_proof(const Network& network);
// The network's proof as section "proof" of its file (docs/absorb.md); empty if there is none.
LOOM_API std::string proof_json(const Network& network);

}  // namespace loom
