// A model of another framework as a byte stream. `loom.bridge.stream()` of Python writes it and
// `loom absorb` reads it, on the same machine or another one. It carries the graph, example inputs,
// the outputs that the framework computed for them, and hashes of all. docs/absorb.md has the
// layout.
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
  std::string name;   // the model's name in the stream
  Network network;    // carries its proof if the proof holds
  ProofReport proof;  // the example of the stream, computed again here
};

// Reads a whole stream; the caller may free the bytes after the call. `where` names the stream in
// errors. Errors: bad_file (truncated, a wrong hash, a manifest that does not fit its bytes),
// unsupported (another schema or graph, a node without a matching layer).
LOOM_API Result<Absorbed> absorb_stream(std::span<const std::byte> stream,
                                        const LoadOptions& options = {},
                                        const std::string& where = "the stream");

}  // namespace loom
