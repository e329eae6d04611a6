// The proof that a network carries which was absorbed from another framework: inputs, what the
// framework computed for them, and hashes of all of it, which go along in .entity files.
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
  // What was compared so far, for readers. prove() itself climbs the two that stand here.
  std::string rungs = "native, engine";
  double abs_tol = 1e-5, rel_tol = 1e-4;  // |a - b| <= abs_tol + rel_tol |b|, b of the source
  std::vector<Tensor> inputs = {};        // [n, ...], in the order of NetworkInfo::inputs
  std::vector<Tensor> expected = {};      // what the source computed, in that of its outputs
};

// How far an output of the network is from what the source computed.
struct ProofOutput {
  double max_abs = 0;
  double max_rel = 0;         // where the source has more than 1e-6
  int64_t max_ulp = 0;        // float32 numbers between the two
  double cosine = 1;          // of the angle between the outputs
  int64_t first_beyond = -1;  // the first value beyond the tolerance; -1: none
};

struct ProofReport {
  bool holds = false;
  std::string problem;  // why it does not; "" where it holds
  std::string source, rungs;
  std::vector<ProofOutput> outputs;
  // SHA-256 over, for each array, a line "float32 2x3" and its little-endian bytes.
  std::string inputs_sha256, expected_sha256, outputs_sha256;
  // One line: "the proof holds: PyTorch 2.5.1: Sequential; rungs native, ...; max abs 1.2e-07".
  LOOM_API std::string text() const;
  LOOM_API std::string json() const;  // all of it, one object
};

// Runs the network on proof.inputs and compares. Where that holds, the network carries the proof
// from now on, until its weights change; .entity files keep it. Outputs of another number or shape
// than those of the network are a problem of the report. Errors: invalid_argument (inputs that are
// not those of the network).
LOOM_API Result<ProofReport> prove(Network& network, const Proof& proof);
// Does the network compute the very bits that it did where it was absorbed, and are inputs, outputs
// and bits those of the hashes? Errors: not_found (it carries no proof).
LOOM_API Result<ProofReport> verify_proof(const Network& network);
// What it carries, as the section "proof" of its file (docs/absorb.md); "": nothing.
LOOM_API std::string proof_json(const Network& network);

}  // namespace loom
