// A model of another framework as a stream of bytes: what `loom.bridge.stream()` of Python writes
// and `loom absorb` reads, on this machine or another one. It carries the graph, example inputs and
// what the framework computed for them, with hashes of all; docs/absorb.md has the layout.
//
//   Absorbed got = absorb_stream(bytes).or_exit();
//   if (got.proof.holds) got.network.save("model.entity").or_exit();
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "loom/export.hpp"
#include "loom/network.hpp"
#include "loom/proof.hpp"
#include "loom/result.hpp"

namespace loom {

struct Absorbed {
  std::string name;   // of the model, as the stream calls it
  Network network;    // carries its proof, where that holds
  ProofReport proof;  // the example of the stream, repeated here
};

// Reads a whole stream; bytes may go after the call. where: what errors call it. Errors: bad_file
// (cut short, a hash that differs, a manifest that does not fit its bytes), unsupported (another
// schema or graph, a node that no layer is made of).
LOOM_API Result<Absorbed> absorb_stream(std::span<const std::byte> stream,
                                        const LoadOptions& options = {},
                                        const std::string& where = "the stream");

}  // namespace loom
