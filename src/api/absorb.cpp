// The stream of an absorbed model: u64 length of the manifest | manifest, JSON | zeros to a
// multiple of 64 | payload | SHA-256 of everything before it, 32 bytes. Offsets of the manifest
// count from the first byte of the payload. Untrusted: every place is checked against the bytes
// that are there before anything is read or made.
#include "loom/absorb.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/text.hpp"
#include "io/byte_reader.hpp"
#include "io/json.hpp"
#include "io/sha256.hpp"

namespace loom {
namespace {

using core::cat;
using core::JsonValue;

constexpr std::string_view kStreamSchema = "bridge.stream/2";
constexpr size_t kStreamAlignment = 64, kStreamTrailer = 32;
constexpr uint64_t kMostManifest = uint64_t{16} << 20;

std::string hex_of(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const std::byte b : bytes) {
    out += kDigits[std::to_integer<size_t>(b) >> 4];
    out += kDigits[std::to_integer<size_t>(b) & 15];
  }
  return out;
}

std::string sha256_of(std::span<const std::byte> bytes) {
  core::Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

class StreamReader {
 public:
  StreamReader(std::span<const std::byte> stream, std::string where)
      : stream_(stream), where_(std::move(where)) {}

  Result<Absorbed> read(const LoadOptions& options);

 private:
  Error bad(std::string message) const {
    return Error{Code::bad_file, std::move(message), where_, -1};
  }
  Status open();
  Result<const JsonValue*> member(const JsonValue& of, std::string_view key) const;
  Result<std::string> text(const JsonValue& of, std::string_view key) const;
  Result<int64_t> number(const JsonValue& of, std::string_view key) const;
  // The bytes of a graph or a tensor, after their hash was compared.
  Result<std::span<const std::byte>> stored(const JsonValue& of, std::string_view what) const;
  Result<Tensor> tensor(const JsonValue& described, std::string_view what) const;
  Result<std::vector<Tensor>> tensors(const JsonValue& fixture, std::string_view key) const;
  Result<double> tolerance(const JsonValue& of, std::string_view key) const;
  Result<Proof> proof() const;

  std::span<const std::byte> stream_, payload_;
  std::string where_;
  JsonValue manifest_;
};

// Finds manifest and payload, and checks the hash of the whole before anything of it is believed.
Status StreamReader::open() {
  core::ByteReader reader(stream_, where_);
  LOOM_ASSIGN(const uint64_t length, reader.u64("length of the manifest"));
  if (length > kMostManifest)
    return bad(cat("a manifest of ", length, " bytes; at most ", kMostManifest, " are read"));
  LOOM_ASSIGN(const auto json, reader.take(length, "the manifest"));
  const size_t begin =
      (8 + json.size() + kStreamAlignment - 1) / kStreamAlignment * kStreamAlignment;
  if (stream_.size() < kStreamTrailer || stream_.size() - kStreamTrailer < begin)
    return bad("the stream ends before its payload and its hash");
  const size_t end = stream_.size() - kStreamTrailer;
  if (sha256_of(stream_.first(end)) != hex_of(stream_.subspan(end)))
    return bad("the stream is damaged or cut short: its SHA-256 differs; send it again");
  payload_ = stream_.subspan(begin, end - begin);
  const std::string_view manifest(reinterpret_cast<const char*>(json.data()), json.size());
  LOOM_ASSIGN(manifest_, core::parse_json(manifest, cat(where_, ": manifest")));
  LOOM_ASSIGN(const std::string schema, text(manifest_, "schema"));
  if (schema == kStreamSchema) return {};
  return Error{Code::unsupported, cat("schema '", schema, "'; this program reads ", kStreamSchema),
               where_, -1};
}

Result<const JsonValue*> StreamReader::member(const JsonValue& of, std::string_view key) const {
  const JsonValue* found = of.find(key);
  if (found == nullptr) return bad(cat("the manifest has no '", key, "' where one belongs"));
  return found;
}

Result<std::string> StreamReader::text(const JsonValue& of, std::string_view key) const {
  LOOM_ASSIGN(const JsonValue* found, member(of, key));
  return found->as_string(cat(where_, ": ", key));
}

Result<int64_t> StreamReader::number(const JsonValue& of, std::string_view key) const {
  LOOM_ASSIGN(const JsonValue* found, member(of, key));
  return found->as_int(cat(where_, ": ", key));
}

Result<std::span<const std::byte>> StreamReader::stored(const JsonValue& of,
                                                        std::string_view what) const {
  LOOM_ASSIGN(const JsonValue* store, member(of, "store"));
  LOOM_ASSIGN(const int64_t offset, number(*store, "offset"));
  LOOM_ASSIGN(const int64_t length, number(*store, "length"));
  const auto size = static_cast<int64_t>(payload_.size());
  if (offset < 0 || length < 0 || offset > size || length > size - offset)
    return bad(cat(what, " is at ", offset, " with ", length, " bytes, of a payload of ", size));
  const auto bytes = payload_.subspan(static_cast<size_t>(offset), static_cast<size_t>(length));
  LOOM_ASSIGN(const std::string hash, text(of, "sha256"));
  if (sha256_of(bytes) != hash) return bad(cat(what, " is damaged: its SHA-256 differs"));
  return bytes;
}

Result<Tensor> StreamReader::tensor(const JsonValue& described, std::string_view what) const {
  LOOM_ASSIGN(const std::string name, text(described, "dtype"));
  LOOM_ASSIGN(const DType dtype, parse_dtype(name));
  LOOM_ASSIGN(const JsonValue* axes, member(described, "shape"));
  Shape shape;
  for (const JsonValue& axis : axes->elements()) {
    LOOM_ASSIGN(shape.emplace_back(), axis.as_int(cat(where_, ": shape of ", what)));
  }
  LOOM_ASSIGN(const auto bytes, stored(described, what));
  const int64_t count = element_count(shape);
  const int64_t each = dtype_bits(dtype) / 8;
  const bool fits =
      count >= 0 && each > 0 && std::ssize(bytes) % each == 0 && std::ssize(bytes) / each == count;
  if (!fits)
    return bad(cat(what, " is ", name, " ", shape_text(shape), " in ", bytes.size(), " bytes"));
  LOOM_ASSIGN(Tensor out, Tensor::zeros(shape, dtype));  // aligned, as the payload may not be
  if (count > 0) std::memcpy(const_cast<std::byte*>(out.data()), bytes.data(), bytes.size());
  return out;
}

Result<std::vector<Tensor>> StreamReader::tensors(const JsonValue& fixture,
                                                  std::string_view key) const {
  LOOM_ASSIGN(const JsonValue* listed, member(fixture, key));
  std::vector<Tensor> out;
  for (const JsonValue& each : listed->elements()) {
    LOOM_ASSIGN(out.emplace_back(), tensor(each, cat(key, " ", out.size())));
  }
  if (out.empty()) return bad(cat("the fixture has no ", key, "; a proof needs them"));
  return out;
}

Result<double> StreamReader::tolerance(const JsonValue& of, std::string_view key) const {
  LOOM_ASSIGN(const JsonValue* found, member(of, key));
  LOOM_ASSIGN(const double value, found->as_double(cat(where_, ": ", key)));
  if (value >= 0 && std::isfinite(value)) return value;
  return bad(cat("the tolerance '", key, "' is ", value, ", must be 0 or more"));
}

Result<Proof> StreamReader::proof() const {
  LOOM_ASSIGN(const JsonValue* fixture, member(manifest_, "fixture"));
  LOOM_ASSIGN(const JsonValue* allowed, member(*fixture, "tolerance"));
  Proof out;
  LOOM_ASSIGN(out.source, text(manifest_, "source"));
  LOOM_ASSIGN(out.abs_tol, tolerance(*allowed, "abs"));
  LOOM_ASSIGN(out.rel_tol, tolerance(*allowed, "rel"));
  LOOM_ASSIGN(out.inputs, tensors(*fixture, "inputs"));
  LOOM_ASSIGN(out.expected, tensors(*fixture, "expected"));
  return out;
}

Result<Absorbed> StreamReader::read(const LoadOptions& options) {
  LOOM_TRY(open());
  LOOM_ASSIGN(std::string name, text(manifest_, "name"));
  LOOM_ASSIGN(const JsonValue* graph, member(manifest_, "graph"));
  LOOM_ASSIGN(const std::string format, text(*graph, "format"));
  if (format != "onnx") {
    return Error{Code::unsupported, cat("a graph as '", format, "'; this program reads onnx"),
                 where_, -1};
  }
  LOOM_ASSIGN(const auto bytes, stored(*graph, "the graph"));
  LOOM_ASSIGN(const Proof proven, proof());
  LOOM_ASSIGN(Network network,
              Network::load({.bytes = bytes, .name = cat(where_, ": graph.onnx")}, options));
  LOOM_ASSIGN(ProofReport report, prove(network, proven));
  return Absorbed{std::move(name), std::move(network), std::move(report)};
}

}  // namespace

Result<Absorbed> absorb_stream(std::span<const std::byte> stream, const LoadOptions& options,
                               const std::string& where) {
  return StreamReader(stream, where).read(options);
}

}  // namespace loom
