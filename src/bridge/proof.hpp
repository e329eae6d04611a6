// The proof of an absorbed network: the outputs of its source for some inputs, and hashes of
// everything. It is the section "proof" and the blobs proof/inputN and proof/expectedN of .entity
// files (docs/absorb.md). Plain data; api/engine/proof.cpp runs it.
//
// Invariant: the section names as many inputs and outputs as there are blobs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bridge/network_source.hpp"

namespace loom::core {

// The difference between an output of the engine and that of the source.
struct ProofFigures {
  double max_abs = 0;
  double max_rel = 0;  // for values of the source above 1e-6
  int64_t max_ulp = 0;
  double cosine = 1;
};

// Numbers in the form that a session uses: float32, or int32 for ids.
struct ProofArray {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<std::byte> bytes;
};

struct ProofRecord {
  std::string source;  // "PyTorch 2.5.1: Sequential"
  std::string rungs;   // the completed steps, "native, engine, file, wheel"
  double abs_tol = 0, rel_tol = 0;
  std::vector<ProofArray> inputs, expected;  // in the order of the network
  std::vector<ProofFigures> figures;         // one for each output
  std::string inputs_sha256, expected_sha256;
  std::string outputs_sha256;  // hash of the engine's outputs
};

// SHA-256 over, for each array, a line "float32 2x3" and its little-endian bytes.
std::string proof_digest(const std::vector<ProofArray>& arrays);

// The section, in the form that files and callers get.
JsonValue proof_section(const ProofRecord& record);
// Adds the section and the blobs to the saved file. The blobs keep `record` alive.
void add_proof(std::shared_ptr<const ProofRecord> record, NetworkSource& source);
// May be null: the file has no proof. Errors: bad_file, naming the absent or inconsistent part.
Result<std::shared_ptr<const ProofRecord>> read_proof(const NetworkSource& source);

constexpr std::string_view kProofSection = "proof", kProofFolder = "proof/";

}  // namespace loom::core
