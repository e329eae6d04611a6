// The proof of `loom verify files`: a network that is saved, opened by another process and saved
// again gives the same bytes and computes the same bits. Cold: a new network; hot: after some
// training steps.
#pragma once

#include <string>

#include "lab/training_hash.hpp"

namespace loom::core {

struct FileProof {
  std::string file;    // hash of the file's bytes
  std::string output;  // hash of the network's output for a sine
  int64_t bytes = 0;   // of the file
  bool alive = false;  // some output is not zero, and all are finite
  bool operator==(const FileProof&) const = default;
};

struct FileProofOptions {
  DType dtype = DType::f32;
  int64_t batch = 8;
  int hot_steps = 0;  // of training before saving; 0 means cold
  uint64_t seed = 7;
};

// Creates the network, saves it at `path`, and returns its hashes.
Result<FileProof> prove_saving(const NetworkSpec& spec, const FileProofOptions& options,
                               const std::string& path, const Ops& ops, ThreadPool& pool);
// Opens the file `path`, saves it again as `copy`, and returns its hashes.
Result<FileProof> prove_opening(const std::string& path, const std::string& copy, int64_t batch,
                                const Ops& ops, ThreadPool& pool);

}  // namespace loom::core
