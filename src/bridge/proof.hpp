// The proof that an absorbed network carries: what its source computed for some inputs, and hashes
// of all of it, as the section "proof" and the blobs proof/inputN and proof/expectedN of .entity
// files (docs/absorb.md). Plain data: it runs nothing; api/proof.cpp does.
//
// Invariant: the section names as many inputs and outputs as there are blobs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bridge/network_source.hpp"

namespace loom::core {

// How far an output of the engine is from what the source computed.
struct ProofFigures {
  double max_abs = 0;
  double max_rel = 0;  // where the source has more than 1e-6
  int64_t max_ulp = 0;
  double cosine = 1;
};

// Numbers as a session takes and gives them: float32, or int32 where they are ids.
struct ProofArray {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<std::byte> bytes;
};

struct ProofRecord {
  std::string source;  // "PyTorch 2.5.1: Sequential"
  std::string rungs;   // those that were climbed, "native, engine, file, wheel"
  double abs_tol = 0, rel_tol = 0;
  std::vector<ProofArray> inputs, expected;  // in the order of the network's
  std::vector<ProofFigures> figures;         // one for each output
  std::string inputs_sha256, expected_sha256;
  std::string outputs_sha256;  // of what the engine computed
};

// SHA-256 over, for each array, a line "float32 2x3" and its little-endian bytes.
std::string proof_digest(const std::vector<ProofArray>& arrays);

// The section, as it stands in files and as callers are told it.
JsonValue proof_section(const ProofRecord& record);
// Adds the section and the blobs to what is saved. The blobs hold on to `record`.
void add_proof(std::shared_ptr<const ProofRecord> record, NetworkSource& source);
// Null: the file has none. Errors: bad_file, naming what is absent or does not fit.
Result<std::shared_ptr<const ProofRecord>> read_proof(const NetworkSource& source);

constexpr std::string_view kProofSection = "proof", kProofFolder = "proof/";

}  // namespace loom::core
