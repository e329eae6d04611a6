// Sharded checkpoints: selection of folder, index and shard, and the refusals of an index.
#include "io/io_testing.hpp"
#include "io/weights/safetensors.hpp"

namespace loom::core {
namespace {

using test::expect_error;
using test::safetensors_file;
using test::TemporaryFolder;

constexpr const char* kIndex = "model.safetensors.index.json";

// A shard with one U8 tensor of one byte.
std::string shard(std::string_view tensor, std::string_view value) {
  return safetensors_file("{\"__metadata__\":{\"format\":\"pt\",\"of\":\"" + std::string(tensor) +
                              "\"},\"" + std::string(tensor) +
                              R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                          value);
}

class ShardedCheckpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("one.safetensors", shard("b", "1"));
    folder_.write("two.safetensors", shard("a", "2"));
  }
  Result<SafeTensors> open(std::string_view index) {
    folder_.write(kIndex, index);
    return SafeTensors::open(folder_.path());
  }
  void refuses(std::string_view index, std::string_view error, Code code = Code::bad_file) {
    expect_error(open(index), code, folder_.path(kIndex) + ": " + std::string(error));
  }

  TemporaryFolder folder_;
};

TEST_F(ShardedCheckpoint, OpensByFolderAndByIndex) {
  const std::string index =
      R"({"metadata":{"total_size":2},"weight_map":{"b":"one.safetensors","a":"two.safetensors"}})";
  for (const std::string& path : {folder_.path(), folder_.path() + "/", folder_.path(kIndex)}) {
    folder_.write(kIndex, index);
    const auto model = SafeTensors::open(path);
    ASSERT_TRUE(model.ok()) << model.error().str();
    ASSERT_EQ(model->tensors().size(), 2u);
    EXPECT_EQ(model->files().size(), 2u);
    EXPECT_EQ(model->tensors()[0].name, "a");
    float value = 0;
    ASSERT_TRUE(SafeTensors::to_f32(*model->find("a"), 0, 1, &value).ok());
    EXPECT_EQ(value, '2');
    ASSERT_TRUE(SafeTensors::to_f32(*model->find("b"), 0, 1, &value).ok());
    EXPECT_EQ(value, '1');
    model->release(*model->find("a"));
    // The equal pair of both shards appears once.
    EXPECT_EQ(model->metadata().size(), 3u);
  }
}

TEST_F(ShardedCheckpoint, ASingleFileGoesBeforeAnIndex) {
  folder_.write("model.safetensors", shard("single", "9"));
  const auto model = open("not even JSON");
  ASSERT_TRUE(model.ok()) << model.error().str();
  EXPECT_NE(model->find("single"), nullptr);
}

TEST_F(ShardedCheckpoint, FollowsLinksAsTheCacheHasThem) {
  std::filesystem::create_symlink(folder_.path("one.safetensors"),
                                  folder_.path("link.safetensors"));
  const auto model = open(R"({"weight_map":{"b":"link.safetensors"}})");
  EXPECT_TRUE(model.ok()) << model.error().str();
}

TEST_F(ShardedCheckpoint, RefusesABrokenIndex) {
  refuses("{", "at byte 1: expected a key or '}', found the end of the text");
  refuses("[]", "no weight_map: not the index of a sharded checkpoint");
  refuses("{}", "no weight_map: not the index of a sharded checkpoint");
  refuses(R"({"weight_map":[]})", "no weight_map: not the index of a sharded checkpoint");
  refuses(R"({"weight_map":{}})", "at byte 14: weight_map is empty");
  refuses(R"({"weight_map":{"a":1}})",
          "at byte 19: weight_map \"a\": expected a file name, found 1");
}

TEST_F(ShardedCheckpoint, RefusesNamesThatAreNotPlain) {
  for (const std::string name :
       {"", ".", "..", ".hidden", "../one.safetensors", "sub/one.safetensors", "/etc/passwd",
        "a/../one.safetensors", "one..safetensors", "C:one.safetensors", "sub\\\\one.safetensors",
        "one\\u0000.safetensors", "one\\n.safetensors"}) {
    const auto result = open("{\"weight_map\":{\"a\":\"" + name + "\"}}");
    ASSERT_FALSE(result.ok()) << name;
    EXPECT_EQ(result.error().code, Code::bad_file) << name;
    EXPECT_NE(result.error().message.find("is not a plain file name in the same folder"),
              std::string::npos)
        << name << ": " << result.error().str();
  }
  refuses(R"({"weight_map":{"a":"../x"}})",
          "at byte 19: weight_map \"a\": \"../x\" is not a plain file name in the same folder");
  EXPECT_FALSE(open("{\"weight_map\":{\"a\":\"" + std::string(256, 'x') + "\"}}").ok());
}

TEST_F(ShardedCheckpoint, NamesAMissingShard) {
  refuses(R"({"weight_map":{"b":"one.safetensors","a":"three.safetensors"}})",
          "shard \"three.safetensors\" is missing", Code::not_found);
}

TEST_F(ShardedCheckpoint, NamesABrokenShard) {
  folder_.write("two.safetensors", "short");
  expect_error(
      open(R"({"weight_map":{"b":"one.safetensors","a":"two.safetensors"}})"), Code::bad_file,
      folder_.path("two.safetensors") + ": at byte 0: the header length needs 8 bytes, 5 remain");
}

TEST_F(ShardedCheckpoint, RefusesTensorsThatAreNotWhereTheIndexSays) {
  refuses(R"({"weight_map":{"a":"one.safetensors","b":"one.safetensors"}})",
          "at byte 19: tensor \"a\" is not in \"one.safetensors\", where weight_map puts it");
  refuses(
      R"({"weight_map":{"b":"two.safetensors","a":"one.safetensors"}})",
      "at byte 41: tensor \"a\" is in \"two.safetensors\", weight_map says \"one.safetensors\"");
  refuses(R"({"weight_map":{"b":"one.safetensors","z":"one.safetensors"}})",
          "at byte 41: tensor \"z\" is not in \"one.safetensors\", where weight_map puts it");
  refuses(R"({"weight_map":{"b":"one.safetensors","a":"two.safetensors","c":"two.safetensors"}})",
          "at byte 63: tensor \"c\" is not in \"two.safetensors\", where weight_map puts it");
}

TEST_F(ShardedCheckpoint, RefusesTensorsTheIndexDoesNotList) {
  folder_.write("two.safetensors",
                safetensors_file(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                 R"("aa":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                 "xy"));
  refuses(R"({"weight_map":{"b":"one.safetensors","a":"two.safetensors"}})",
          "tensor \"aa\" of \"two.safetensors\" is not in weight_map");
  folder_.write("two.safetensors",
                safetensors_file(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                 R"("z":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                 "xy"));
  refuses(R"({"weight_map":{"b":"one.safetensors","a":"two.safetensors"}})",
          "tensor \"z\" of \"two.safetensors\" is not in weight_map");
}

TEST_F(ShardedCheckpoint, RefusesATensorInTwoShards) {
  folder_.write("two.safetensors",
                safetensors_file(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                 R"("b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                 "xy"));
  const auto result = open(R"({"weight_map":{"b":"one.safetensors","a":"two.safetensors"}})");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("tensor \"b\" is in both \""), std::string::npos);
}

TEST(SafeTensorsOpen, NamesWhatIsMissing) {
  const TemporaryFolder folder;
  expect_error(
      SafeTensors::open(folder.path()), Code::not_found,
      folder.path() +
          ": this folder has neither model.safetensors nor pytorch_model.bin, nor an index of one");
  expect_error(SafeTensors::open(folder.path("x.safetensors")), Code::not_found,
               folder.path("x.safetensors") + ": cannot open: No such file or directory");
  expect_error(SafeTensors::open(folder.path("x.json")), Code::not_found,
               folder.path("x.json") + ": cannot open: No such file or directory");
  EXPECT_FALSE(SafeTensors::open("").ok());
}

}  // namespace
}  // namespace loom::core
