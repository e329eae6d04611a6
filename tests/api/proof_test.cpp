// Proofs in files with valid hashes and invalid contents: each part of a proof is forged, and the
// message names it.
#include "loom/proof.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include "bridge/entity_network.hpp"
#include "bridge/proof.hpp"
#include "e2e/temp_folder.hpp"
#include "io/bytes/sha256.hpp"
#include "ops/args.hpp"

namespace loom {
namespace {

Network small_network(uint64_t seed) {
  return Network::sequential(
             {Dense{.in = 3, .out = 4, .activation = Activation::tanh}, Dense{.in = 4, .out = 2}},
             {.input = {3}, .seed = seed})
      .or_exit();
}

Proof proof_of(const Network& network, float off = 0) {
  Tensor x = Tensor::copy(std::vector<float>{1, -2, 0.5F, 0.25F, 3, -1}, {2, 3}).or_exit();
  Tensor y = network.predict(x).or_exit().copied().or_exit();
  y.mutable_values<float>().or_exit()[3] += off;
  return {.source = "a test", .inputs = {x}, .expected = {y}};
}

class ProofTest : public ::testing::Test {
 protected:
  ProofTest() {
    EXPECT_TRUE(prove(net_, proof_of(net_)).or_exit().holds);
    EXPECT_TRUE(net_.save(path_.string()).ok());
  }

  using Change = std::function<void(core::JsonValue&, std::vector<core::EntityOutput>&)>;
  // The file with other contents, and hashes of blobs and header that fit them.
  void forge(const Change& change) {
    const auto file = core::open_entity(path_.string()).value();
    const auto source = core::open_network_entity(file).value();
    core::JsonValue header = core::JsonValue::object();
    header.add("network", *file->header().find("network"));
    for (const auto& [name, section] : source->sections.members()) header.add(name, section);
    std::vector<core::EntityOutput> blobs = source->blobs;
    for (size_t i = 0; i < file->blobs().size(); ++i) {
      if (file->blobs()[i].path.front() == '(')
        blobs.push_back(core::tensor_output(file->blobs()[i].path, file->tensor(i)));
    }
    change(header, blobs);
    ASSERT_TRUE(core::write_entity(path_.string() + "2", header, blobs).ok());
    std::filesystem::rename(path_.string() + "2", path_);
  }
  // The reason for the refusal; empty if the proof holds.
  std::string refused() const {
    const Result<Network> network = Network::load(path_.string());
    if (!network.ok()) return network.error().str();
    const Result<ProofReport> report = verify_proof(*network);
    return report.ok() ? report->problem : report.error().str();
  }

  const core::test::TempFolder folder_;
  Network net_ = small_network(1);
  const std::filesystem::path path_ = std::filesystem::path(folder_.path()) / "proof.entity";
};

// The section "proof" with one member replaced; null: taken away.
core::JsonValue with_member(const core::JsonValue& header, std::string_view key,
                            const core::JsonValue* value) {
  core::JsonValue out = core::JsonValue::object();
  for (const auto& [name, section] : header.members()) {
    if (name != "proof") {
      out.add(name, section);
      continue;
    }
    core::JsonValue proof = core::JsonValue::object();
    for (const auto& [member, old] : section.members()) {
      if (member != key) proof.add(member, old);
      if (member == key && value != nullptr) proof.add(member, *value);
    }
    out.add(name, std::move(proof));
  }
  return out;
}

void replace_bytes(std::vector<core::EntityOutput>& blobs, std::string_view path, float value) {
  for (core::EntityOutput& blob : blobs) {
    if (blob.path != path) continue;
    const std::span<const std::byte> old = blob.data().value();
    auto bytes = std::make_shared<std::vector<std::byte>>(old.begin(), old.end());
    std::memcpy(bytes->data(), &value, sizeof value);
    blob.data = [bytes]() -> Result<std::span<const std::byte>> {
      return std::span<const std::byte>(*bytes);
    };
  }
}

TEST_F(ProofTest, WhatWasSavedHolds) {
  EXPECT_EQ(refused(), "");
  forge([](auto&, auto&) {});
  EXPECT_EQ(refused(), "");
}

TEST_F(ProofTest, AChangedMemberOfTheSectionIsNamed) {
  const core::JsonValue hash = core::JsonValue::string(std::string(64, '0'));
  const core::JsonValue three = core::JsonValue::integer(3);
  const core::JsonValue schema = core::JsonValue::string("loom.proof/9");
  const struct {
    const char* member;
    const core::JsonValue* value;
    const char* words;
  } cases[] = {
      {"outputs_sha256", &hash, "the outputs that the engine computes have SHA-256"},
      {"inputs_sha256", &hash, "the inputs in the file have SHA-256"},
      {"expected_sha256", &hash, "the expected outputs in the file have SHA-256"},
      {"outputs_sha256", nullptr, "proof has no 'outputs_sha256'"},
      {"abs_tol", &hash, "abs_tol"},
      {"inputs", &three, "names 3 inputs"},
      {"schema", &schema, "loom.proof/9"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.member);
    ASSERT_TRUE(net_.save(path_.string()).ok());
    forge([&](core::JsonValue& header, auto&) { header = with_member(header, c.member, c.value); });
    EXPECT_NE(refused().find(c.words), std::string::npos) << refused();
  }
}

TEST_F(ProofTest, ChangedNumbersAreNamed) {
  const struct {
    const char* blob;
    const char* words;
  } cases[] = {{"(0, 0, 0, 0)/weight", "the outputs that the engine computes have SHA-256"},
               {"(0, 0, 1, 0)/bias", "the outputs that the engine computes have SHA-256"},
               {"proof/input0", "the inputs in the file have SHA-256"},
               {"proof/expected0", "the expected outputs in the file have SHA-256"}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.blob);
    ASSERT_TRUE(net_.save(path_.string()).ok());
    forge([&](auto&, auto& blobs) { replace_bytes(blobs, c.blob, 0.125F); });
    EXPECT_NE(refused().find(c.words), std::string::npos) << refused();
  }
}

TEST_F(ProofTest, AnAbsentBlobOrProofIsSaid) {
  forge([](auto&, std::vector<core::EntityOutput>& blobs) {
    std::erase_if(blobs, [](const auto& blob) { return blob.path == "proof/expected0"; });
  });
  EXPECT_NE(refused().find("the file holds 1 and 0"), std::string::npos) << refused();
  ASSERT_TRUE(small_network(1).save(path_.string()).ok());
  EXPECT_NE(refused().find("carries no proof"), std::string::npos) << refused();
}

TEST_F(ProofTest, WhatIsBeyondTheToleranceIsNotCarried) {
  Network other = small_network(2);
  EXPECT_FALSE(prove(other, proof_of(other, 0.5F)).or_exit().holds);
  EXPECT_EQ(proof_json(other), "");
  EXPECT_TRUE(prove(other, proof_of(other, 1e-6F)).or_exit().holds);
  EXPECT_NE(proof_json(other), "");
}

}  // namespace

namespace core {
namespace {

std::string sha256_of(const std::string& text, size_t piece) {
  Sha256 hash;
  for (size_t i = 0; i < text.size(); i += piece)
    hash.add(std::as_bytes(std::span(text)).subspan(i, std::min(piece, text.size() - i)));
  return hash.finish();
}

// The examples of NIST for FIPS 180-4, and one million letters.
TEST(Sha256, IsThatOfTheStandardInPiecesOfAnySize) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1'000'000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
  for (const auto& [text, hex] : cases) {
    for (const size_t piece : {1, 55, 63, 64, 65, 4096}) EXPECT_EQ(sha256_of(text, piece), hex);
  }
}

}  // namespace
}  // namespace core
}  // namespace loom
