// Damage to .entity files: a network and a tiny language model, cut at every byte, every single bit
// flipped. Every flip is found: in the fixed part and the header when the file is opened, in a blob
// by verify(). Nothing crashes, nothing reads outside.
#include <gmock/gmock.h>

#include "anomaly/damage.hpp"
#include "base/threads/thread_pool.hpp"
#include "bridge/entity_network.hpp"
#include "bridge/network_json.hpp"
#include "formats/entity/model.hpp"
#include "grid/init.hpp"
#include "io/entity_testing.hpp"
#include "llm/decoder.hpp"
#include "llm/model.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

using test::expect_error_inside;

using test::AlignedBytes;

ThreadPool& pool() {
  static ThreadPool threads(1);
  return threads;
}

constexpr const char* kNetwork = R"({"loom":1,"grid":[1,1,3,1],"input":[3],"cells":[
  {"at":[0,0,0,0],"type":"Dense","in":3,"out":3,"activation":"tanh"},
  {"at":[0,0,1,0],"type":"RMSNorm","width":3},
  {"at":[0,0,2,0],"type":"Dense","in":3,"out":2,"link":{"from":[0,0,0,0]}}]})";

// The files are committed; these make them again.
Status write_network_file(const std::string& path) {
  LOOM_ASSIGN(NetworkSpec spec, parse_network(kNetwork, "net"));
  LOOM_ASSIGN(Network network, Network::finalize(spec.grid, spec.input.after(1)));
  LOOM_TRY(init_params(network, DType::u4, 1, pool()));
  return save_network(path, spec, network);
}

Status write_language_model(const std::string& path) {
  DecoderConfig c = *shape_config("tiny");
  c.hidden_size = 16;
  c.intermediate_size = 12;
  c.num_layers = 1;
  c.num_heads = 2;
  c.num_kv_heads = 1;
  c.head_dim = 8;
  c.vocab_size = 20;
  c.max_positions = 16;
  LOOM_ASSIGN(const std::unique_ptr<ModelSource> source, random_source(c, 1, pool()));
  source->chat_template = "{{ bos_token }}";
  SaveModelOptions options;
  options.dtype = DType::i4;
  options.policy.dtype = [&](const Param& p, DType) { return decoder_dtype(p, c, DType::i4); };
  return save_model(path, *source, options, pool());
}

std::string golden(const std::string& name) {
  return loom_test::source_path("tests/anomaly/golden/") + name + ".entity";
}

// Later releases read what a release writes. Descriptions of layers and models may gain fields;
// changed weights are a new format.
TEST(GoldenEntities, HoldTheWeightsThatAreWrittenToday) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(write_network_file(folder.path("network")).ok());
  ASSERT_TRUE(write_language_model(folder.path("language_model")).ok());
  for (const char* name : {"network", "language_model"}) {
    const auto now = Entity::open(folder.path(name)), then = Entity::open(golden(name));
    ASSERT_TRUE(now.ok() && then.ok());
    const auto weights = [](const Entity& file) {
      std::string all;
      for (const EntityBlob& b : file.blobs()) {
        if (b.layout == BlobLayout::text) continue;
        all += cat(b.path, " ", dtype_name(b.dtype), b.shape.str(), " ", b.hash, "\n");
      }
      return all;
    };
    EXPECT_EQ(weights(**now), weights(**then));
  }
}

// Run by hand (--gtest_also_run_disabled_tests) when the form changes.
TEST(GoldenEntities, DISABLED_AreWrittenAnew) {
  ASSERT_TRUE(write_network_file(golden("network")).ok());
  ASSERT_TRUE(write_language_model(golden("language_model")).ok());
}

class GoldenEntity : public ::testing::TestWithParam<const char*> {
 protected:
  std::string file_bytes() const {
    Result<std::string> bytes = read_file(golden(GetParam()));
    EXPECT_TRUE(bytes.ok()) << bytes.error().str();
    return bytes.ok() ? *bytes : std::string();
  }
};
INSTANTIATE_TEST_SUITE_P(Of, GoldenEntity, ::testing::Values("network", "language_model"),
                         [](const auto& row) { return std::string(row.param); });

// The first Error from opening the file and reading all of it.
Status examine(std::span<const std::byte> bytes) {
  LOOM_ASSIGN(std::unique_ptr<Entity> file, Entity::parse(bytes, "f"));
  const std::shared_ptr<const Entity> shared = std::move(file);
  LOOM_TRY(check_sections(*shared));
  LOOM_ASSIGN(const MappedNetwork network, map_network(shared, 1));
  if (shared->header().find("language_model") != nullptr) {
    LOOM_ASSIGN(const std::unique_ptr<ModelSource> source, open_entity_source(shared));
    LOOM_ASSIGN(const LanguageModel model, LanguageModel::load(*source, {}, pool()));
  }
  for (size_t i = 0; i < shared->blobs().size(); ++i) LOOM_TRY(shared->verify(i));
  return {};
}

TEST_P(GoldenEntity, IsWhole) {
  const AlignedBytes bytes(file_bytes());
  const Status examined = examine(bytes.bytes());
  EXPECT_TRUE(examined.ok()) << examined.error().str();
}

TEST_P(GoldenEntity, EveryTruncationIsRefusedWhenItIsOpened) {
  const std::string file = file_bytes();
  for (size_t size = 0; size < file.size(); ++size) {
    // A separate copy: a sanitizer sees a read past its end.
    const AlignedBytes cut(std::string_view(file).substr(0, size));
    const auto read = Entity::parse(cut.bytes(), "f");
    ASSERT_FALSE(read.ok()) << size;
    expect_error_inside(read.error());
  }
}

TEST_P(GoldenEntity, EveryFlippedBitIsFound) {
  const std::string file = file_bytes();
  const size_t payload = 64 + test::get<uint64_t>(file, 12);
  AlignedBytes bytes(file);
  auto* data = const_cast<std::byte*>(bytes.bytes().data());
  size_t missed = 0;
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    data[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto read = Entity::parse(bytes.bytes(), "f");
    EXPECT_EQ(read.ok(), bit / 8 >= payload) << bit;
    bool found = !read.ok();
    for (size_t i = 0; !found && i < (*read)->blobs().size(); ++i) found = !(*read)->verify(i).ok();
    missed += found ? 0 : 1;
    data[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  EXPECT_EQ(missed, 0u) << "of " << file.size() * 8;
}

// Valid hashes: a changed header with updated hashes is refused or consistent.
TEST_P(GoldenEntity, EveryByteOfTheHeaderThatChangesIsRefusedOrConsistent) {
  const std::string file = file_bytes();
  const size_t payload = 64 + test::get<uint64_t>(file, 12);
  const char others[] = {'0', '9', '"', '}', ' ', '-', '\xff', '\0'};
  for (size_t at = 64; at < payload; ++at) {
    for (const char other : others) {
      std::string changed = file;
      changed[at] = other;
      const AlignedBytes bytes(test::sealed(std::move(changed)));
      const Status examined = examine(bytes.bytes());
      if (!examined.ok()) expect_error_inside(examined.error());
    }
  }
}

TEST_P(GoldenEntity, EveryByteOfTheFixedPartThatChangesIsRefused) {
  const std::string file = file_bytes();
  for (size_t at = 0; at < 56; ++at) {
    if (at >= 32 && at < 40) continue;  // the hash of the header, made right again
    for (int other = 0; other < 256; ++other) {
      std::string changed = file;
      changed[at] = static_cast<char>(other);
      const AlignedBytes bytes(test::sealed(changed));
      EXPECT_EQ(Entity::parse(bytes.bytes(), "f").ok(), changed == file) << at << " " << other;
    }
  }
}

}  // namespace
}  // namespace loom::core
