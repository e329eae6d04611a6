// Streams of absorbed models, made by hand here: what is read, and that nothing else is.
#include "loom/absorb.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "base/text.hpp"
#include "io/sha256.hpp"
#include "loom/layers.hpp"

namespace loom {
namespace {

using core::cat;

std::string raw_sha256(std::string_view bytes) {
  core::Sha256 hash;
  hash.add(std::as_bytes(std::span(bytes)));
  const std::string digits = hash.finish();
  std::string out;
  for (size_t i = 0; i < digits.size(); i += 2)
    out += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return out;
}

std::string hex_sha256(std::string_view bytes) {
  core::Sha256 hash;
  hash.add(std::as_bytes(std::span(bytes)));
  return hash.finish();
}

class Stream {
 public:
  // What the manifest says of a piece that is added.
  std::string add(std::string_view piece) {
    payload_.resize((payload_.size() + 63) / 64 * 64);
    const std::string store =
        cat("\"store\": {\"offset\": ", payload_.size(), ", \"length\": ", piece.size(),
            "}, \"sha256\": \"", hex_sha256(piece), "\"");
    payload_ += piece;
    return store;
  }
  std::string sealed(const std::string& manifest) const {
    std::string out(8, '\0');
    const uint64_t length = manifest.size();
    std::memcpy(out.data(), &length, 8);
    out += manifest;
    out.resize((out.size() + 63) / 64 * 64);
    out += payload_;
    return out + raw_sha256(out);
  }

 private:
  std::string payload_;
};

std::string_view text_of(const Tensor& t) {
  return {reinterpret_cast<const char*>(t.data()), static_cast<size_t>(t.bytes())};
}

// A Dense of 2 x 3, with `off` added to what is expected of it.
std::string example(float off = 0) {
  const Network net =
      Network::sequential({Dense{.in = 2, .out = 3}}, {.input = {2}, .seed = 3}).or_exit();
  const std::vector<float> x = {1, 2, -1, 0.5f};
  const Tensor inputs = Tensor::view(x.data(), {2, 2});
  Tensor y = net.predict(inputs).or_exit();
  y.mutable_values<float>().or_exit()[1] += off;
  Stream stream;
  const std::string graph = stream.add(net.save_bytes(NetworkFormat::onnx).or_exit());
  const std::string in = stream.add(text_of(inputs)), out = stream.add(text_of(y));
  return stream.sealed(
      cat("{\"schema\": \"bridge.stream/2\", \"name\": \"m\", \"source\": \"by hand 1: m\", "
          "\"graph\": {\"format\": \"onnx\", ",
          graph,
          "}, \"fixture\": {\"tolerance\": {\"abs\": 1e-5, \"rel\": 1e-4}, "
          "\"inputs\": [{\"dtype\": \"float32\", \"shape\": [2, 2], ",
          in, "}], \"expected\": [{\"dtype\": \"float32\", \"shape\": [2, 3], ", out, "}]}}"));
}

Result<Absorbed> absorbed(std::string_view bytes) {
  return absorb_stream(std::as_bytes(std::span(bytes)));
}

TEST(AbsorbStream, AWholeStreamIsANetworkThatCarriesItsProof) {
  const Absorbed got = absorbed(example()).or_exit();
  EXPECT_EQ(got.name, "m");
  EXPECT_TRUE(got.proof.holds);
  EXPECT_NE(proof_json(got.network).find("by hand 1: m"), std::string::npos);
  EXPECT_TRUE(verify_proof(got.network).or_exit().holds);
}

TEST(AbsorbStream, WhatComputesSomethingElseCarriesNone) {
  const Absorbed got = absorbed(example(0.5f)).or_exit();
  EXPECT_FALSE(got.proof.holds);
  EXPECT_EQ(proof_json(got.network), "");
}

TEST(AbsorbStream, EveryCutAndEveryChangedByteIsABadFile) {
  const std::string whole = example();
  for (size_t n = 0; n < whole.size(); n += n < 96 ? 1 : 13)
    EXPECT_EQ(absorbed(whole.substr(0, n)).error().code, Code::bad_file) << n;
  for (size_t i = 0; i < whole.size(); i += i < 96 ? 1 : 13) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x41);
    EXPECT_EQ(absorbed(changed).error().code, Code::bad_file) << i;
  }
}

TEST(AbsorbStream, PlacesBeyondThePayloadAreRefusedBeforeAnythingIsMade) {
  Stream stream;
  (void)stream.add("graph");
  for (const char* store :
       {"{\"offset\": 0, \"length\": 6}", "{\"offset\": -1, \"length\": 1}",
        "{\"offset\": 6, \"length\": 0}", "{\"offset\": 1, \"length\": 9223372036854775807}"}) {
    const auto got = absorbed(stream.sealed(
        cat("{\"schema\": \"bridge.stream/2\", \"name\": \"m\", \"graph\": {\"format\": \"onnx\", "
            "\"sha256\": \"\", \"store\": ",
            store, "}}")));
    ASSERT_FALSE(got.ok()) << store;
    EXPECT_EQ(got.error().code, Code::bad_file) << store;
    EXPECT_NE(got.error().message.find("payload of 5"), std::string::npos) << got.error().message;
  }
}

}  // namespace
}  // namespace loom
