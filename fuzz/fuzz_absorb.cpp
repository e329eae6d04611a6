// Any bytes as the stream of an absorbed model. The first byte selects the form of the rest. It is
// the stream unchanged; or manifest and payload, which are sealed here, because no mutation finds
// their SHA-256; or a graph alone, in a stream with a valid manifest. The stream is refused in one
// line with a code, or becomes a network.
#include <cstring>
#include <string>

#include "check.hpp"
#include "io/bytes/sha256.hpp"
#include "loom/absorb.hpp"
#include "loom/files.hpp"

namespace {

using loom::core::sha256_of;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string sealed(const std::string& manifest, const std::string& payload) {
  std::string out(8, '\0');
  const uint64_t length = manifest.size();
  std::memcpy(out.data(), &length, 8);
  out += manifest;
  out.resize((out.size() + 63) / 64 * 64);
  out += payload;
  const std::string hash = sha256_of(bytes_of(out));
  for (size_t i = 0; i < hash.size(); i += 2)
    out += static_cast<char>(std::stoi(hash.substr(i, 2), nullptr, 16));
  return out;
}

std::string stored(const std::string& bytes, size_t offset, size_t length) {
  const std::string piece = bytes.substr(offset, length);
  return "\"store\": {\"offset\": " + std::to_string(offset) +
         ", \"length\": " + std::to_string(piece.size()) + "}, \"sha256\": \"" +
         sha256_of(bytes_of(piece)) + "\"";
}

// Replaces the hashes that a manifest names by those of its parts: "#n" becomes the hash of the
// n-th 64 bytes of the payload.
std::string with_hashes(std::string manifest, const std::string& payload) {
  for (size_t at = 0;
       (at = manifest.find('#', at)) != std::string::npos && at + 1 < manifest.size(); at += 64) {
    const auto nth = static_cast<size_t>(static_cast<unsigned char>(manifest[at + 1]) - '0');
    const size_t begin = std::min(nth * 64, payload.size());
    manifest.replace(at, 2, sha256_of(bytes_of(payload.substr(begin, 64))));
  }
  return manifest;
}

std::string around_graph(const std::string& graph) {
  std::string payload(256, '\0');  // zeros are inputs and outputs of any small shape
  payload += graph;
  const std::string array =
      "[{\"dtype\": \"float32\", \"shape\": [2, 2], " + stored(payload, 0, 16) + "}]";
  return sealed(
      "{\"schema\": \"bridge.stream/2\", \"name\": \"f\", \"source\": \"f\", \"graph\": "
      "{\"format\": \"onnx\", " +
          stored(payload, 256, graph.size()) +
          "}, \"fixture\": {\"tolerance\": {\"abs\": 1e30, \"rel\": 0}, \"inputs\": " + array +
          ", \"expected\": " + array + "}}",
      payload);
}

const loom::LoadOptions& options() {
  static const loom::LoadOptions kOptions = [] {
    loom::LoadOptions made;
    made.engine = loom::Engine::create({.threads = 1, .memory_limit = 32 << 20}).or_exit();
    return made;
  }();
  return kOptions;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data + 1), size - 1);
  std::string stream = rest;
  if (data[0] % 3 == 1) {
    const size_t cut = std::min(rest.find('\0'), rest.size());  // JSON has no zero
    const std::string payload = cut < rest.size() ? rest.substr(cut + 1) : std::string();
    stream = sealed(with_hashes(rest.substr(0, cut), payload), payload);
  }
  if (data[0] % 3 == 2) stream = around_graph(rest);
  const auto got = loom::absorb_stream(bytes_of(stream), options());
  if (!got.ok()) {
    CHECK(got.error().code != loom::Code::internal);
    CHECK(got.error().str().find('\n') == std::string::npos);
    return 0;
  }
  CHECK(got->network.save_bytes(loom::NetworkFormat::entity).ok() || !got->proof.holds);
  CHECK(got->proof.holds == !loom::proof_json(got->network).empty());
  return 0;
}
