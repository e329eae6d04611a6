// Streams of absorbed models (bridge_stream.hpp has the container): a graph, an example, and the
// framework's output for it. The network is created and must reproduce the output.
#include "loom/absorb.hpp"

#include <cmath>

#include "api/network/bridge_stream.hpp"
#include "base/text.hpp"

namespace loom {
namespace {

using core::cat;
using core::JsonValue;

constexpr std::string_view kStreamSchema = "bridge.stream/2";

Result<double> tolerance(const BridgeReader& stream, const JsonValue& of, std::string_view key) {
  LOOM_ASSIGN(const JsonValue* found, stream.member(of, key));
  LOOM_ASSIGN(const double value, found->as_double(cat("the tolerance '", key, "'")));
  if (value >= 0 && std::isfinite(value)) return value;
  return stream.bad(cat("the tolerance '", key, "' is ", value, ", must be 0 or more"));
}

Result<Proof> proof_of(const BridgeReader& stream) {
  LOOM_ASSIGN(const JsonValue* fixture, stream.member(stream.manifest(), "fixture"));
  LOOM_ASSIGN(const JsonValue* allowed, stream.member(*fixture, "tolerance"));
  Proof out;
  LOOM_ASSIGN(out.source, stream.text(stream.manifest(), "source"));
  LOOM_ASSIGN(out.abs_tol, tolerance(stream, *allowed, "abs"));
  LOOM_ASSIGN(out.rel_tol, tolerance(stream, *allowed, "rel"));
  LOOM_ASSIGN(out.inputs, stream.tensors(*fixture, "inputs"));
  LOOM_ASSIGN(out.expected, stream.tensors(*fixture, "expected"));
  return out;
}

}  // namespace

Result<Absorbed> absorb_stream(std::span<const std::byte> stream, const LoadOptions& options,
                               const std::string& where) {
  LOOM_ASSIGN(const BridgeReader reader, BridgeReader::open(stream, kStreamSchema, where));
  LOOM_ASSIGN(std::string name, reader.text(reader.manifest(), "name"));
  LOOM_ASSIGN(const JsonValue* graph, reader.member(reader.manifest(), "graph"));
  LOOM_ASSIGN(const std::string format, reader.text(*graph, "format"));
  if (format != "onnx") {
    return Error{Code::unsupported, cat("a graph as '", format, "'; this program reads onnx"),
                 where, -1};
  }
  LOOM_ASSIGN(const auto bytes, reader.stored(*graph, "the graph"));
  LOOM_ASSIGN(const Proof proven, proof_of(reader));
  LOOM_ASSIGN(Network network,
              Network::load({.bytes = bytes, .name = cat(where, ": graph.onnx")}, options));
  if (const JsonValue* trainable = reader.manifest().find("trainable")) {
    LOOM_ASSIGN(const int64_t desired, trainable->as_int(cat(where, ": trainable")));
    if (network.info().trainable != desired)
      return core::unsupported(
          cat("training would change ", network.info().trainable, " numbers, in the source ",
              desired, "; it computes with its parameters in a way that no layer has"),
          where);
  }
  LOOM_ASSIGN(ProofReport report, prove(network, proven));
  return Absorbed{std::move(name), std::move(network), std::move(report)};
}

}  // namespace loom
