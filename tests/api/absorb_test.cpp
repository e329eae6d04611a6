// Handmade streams of absorbed models: valid ones are read, all others are refused.
#include "loom/absorb.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <random>

#include "base/text.hpp"
#include "io/bytes/sha256.hpp"
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
  // The manifest's description of an added piece.
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

// A Dense of 2 x 3, with `off` added to its expected output. more: keys of the manifest.
std::string example(float off = 0, const std::string& more = "") {
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
      cat("{\"schema\": \"bridge.stream/2\", \"name\": \"m\", \"source\": \"by hand 1: m\", ", more,
          "\"graph\": {\"format\": \"onnx\", ", graph,
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

TEST(AbsorbStream, TrainsAsManyNumbersAsItsSourceOrIsRefused) {
  EXPECT_TRUE(absorbed(example(0, R"("trainable": 9, )")).or_exit().proof.holds);
  const Result<Absorbed> fewer = absorbed(example(0, R"("trainable": 6, )"));
  ASSERT_FALSE(fewer.ok());
  EXPECT_EQ(fewer.error().code, Code::unsupported);
  EXPECT_NE(fewer.error().message.find("change 9 numbers, in the source 6"), std::string::npos);
  EXPECT_EQ(absorbed(example(0, R"("trainable": "9", )")).error().code, Code::bad_file);
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

// ---- random streams
// ------------------------------------------------------------------------------

// LOOM_ABSORB_CASES=20000 runs more of them.
int random_cases() {
  const char* given = std::getenv("LOOM_ABSORB_CASES");
  return given != nullptr ? std::atoi(given) : 300;
}

// A random chain of Dense, its output for a random batch, and the parts of its stream.
struct RandomStream {
  explicit RandomStream(uint32_t seed) : random(seed) {
    const int64_t width = pick(1, 6);
    std::vector<Layer> layers;
    int64_t last = width;
    for (int64_t i = pick(1, 3); i > 0; --i) {
      const int64_t next = pick(1, 6);
      layers.emplace_back(Dense{.in = last, .out = next, .bias = pick(0, 1) == 1});
      last = next;
    }
    net = Network::sequential(std::move(layers), {.input = {width}, .seed = seed}).or_exit();
    rows = pick(1, 5);
    x = Tensor::zeros({rows, width}).or_exit();
    for (float& v : x.mutable_values<float>().or_exit())
      v = std::uniform_real_distribution<float>(-2, 2)(random);
    y = net->predict(x).or_exit();
    // The pieces in any order, with unused ones between them.
    std::vector<std::pair<std::string*, std::string>> pieces = {
        {&graph, net->save_bytes(NetworkFormat::onnx).or_exit()},
        {&in, std::string(text_of(x))},
        {&out, std::string(text_of(y))},
        {&unused, std::string(static_cast<size_t>(pick(0, 200)), 'u')}};
    std::shuffle(pieces.begin(), pieces.end(), random);
    for (auto& [where, piece] : pieces) *where = stream.add(piece);
  }
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  std::string manifest() const {
    return cat("{\"name\": \"r\", \"fixture\": {\"expected\": [{", out,
               ", \"shape\": ", shape_text(y.shape()), ", \"dtype\": \"float32\"}], \"inputs\": [{",
               in, ", \"shape\": ", shape_text(x.shape()),
               ", \"dtype\": \"float32\"}], \"tolerance\": {\"rel\": 0.0, \"abs\": 0.0}}, ",
               "\"source\": \"random 1: r\", \"graph\": {", graph,
               ", \"format\": \"onnx\"}, \"schema\": \"bridge.stream/2\"}");
  }

  std::mt19937 random;
  std::optional<Network> net;
  int64_t rows = 0;
  Tensor x, y;
  Stream stream;
  std::string graph, in, out, unused;
};

TEST(AbsorbStream, RandomStreamsComputeTheBitsOfTheirNetworks) {
  for (int seed = 0; seed < random_cases(); ++seed) {
    RandomStream one(static_cast<uint32_t>(seed));
    const Result<Absorbed> got = absorbed(one.stream.sealed(one.manifest()));
    ASSERT_TRUE(got.ok()) << seed << ": " << got.error().str();
    EXPECT_TRUE(got->proof.holds) << seed << ": " << got->proof.text();
    EXPECT_EQ(text_of(got->network.predict(one.x).or_exit()), text_of(one.y)) << seed;
  }
}

// Sealed again, so that what reads the manifest is reached.
TEST(AbsorbStream, RandomlyChangedManifestsAreReadOrRefusedInALine) {
  constexpr std::string_view kPieces[] = {"0",      "-1",      "9223372036854775807",
                                          "1e400",  "null",    "[]",
                                          "{}",     "\"",      ",",
                                          "}",      "float64", "int4",
                                          "\\u0000"};
  int refused = 0;
  for (int seed = 0; seed < random_cases(); ++seed) {
    RandomStream one(static_cast<uint32_t>(seed));
    std::string manifest = one.manifest();
    for (int64_t changes = one.pick(1, 3); changes > 0; --changes) {
      const auto at = static_cast<size_t>(one.pick(0, std::ssize(manifest) - 1));
      const auto count = static_cast<size_t>(one.pick(0, 12));
      manifest.replace(at, count,
                       kPieces[static_cast<size_t>(one.pick(0, std::ssize(kPieces) - 1))]);
    }
    const Result<Absorbed> got = absorbed(one.stream.sealed(manifest));
    if (got.ok()) continue;
    ++refused;
    EXPECT_EQ(got.error().str().find('\n'), std::string::npos) << seed;
    EXPECT_NE(got.error().code, Code::internal) << seed << ": " << got.error().str();
  }
  EXPECT_GT(refused, random_cases() / 2);
}

}  // namespace
}  // namespace loom
