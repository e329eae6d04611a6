// Folders of pictures as data sets, over examples/data/shapes.
#include "train_io/media_files.hpp"

#include <gmock/gmock.h>

#include <filesystem>

#include "io/file.hpp"
#include "io/io_testing.hpp"

namespace loom::core {
namespace {

using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

const std::string kShapes = LOOM_SOURCE_DIR "/examples/data/shapes";

NetworkSpec taking(const Shape& input, int64_t out) {
  NetworkSpec spec = *build_mlp({input.count(), out, {4}, "tanh"});
  spec.input = input;
  return spec;
}

std::string refused(const std::string& path, const NetworkSpec& network,
                    const DatasetOptions& options = {}) {
  const Result<LoadedDataset> set = load_dataset(path, network, options);
  return set.ok() ? "" : set.error().str();
}

TEST(MediaFiles, AreSamplesWhoseFoldersAreTheirClasses) {
  const Result<LoadedDataset> set = load_dataset(kShapes, taking({3, 8, 8}, 3), {});
  ASSERT_TRUE(set.ok()) << set.error().str();
  EXPECT_THAT(set->names, ElementsAre("disc", "square", "triangle"));
  EXPECT_EQ(set->data.samples, 72);
  EXPECT_EQ(set->data.labels[0], 0);
  EXPECT_EQ(set->data.labels[24], 1);
  EXPECT_EQ(set->data.labels[71], 2);
  EXPECT_EQ(set->files[24], kShapes + "/square/00.png");
  EXPECT_TRUE(set->data.check().ok());
  // The same values whatever the number of lanes.
  ThreadPool pool(3, true);
  DatasetOptions several;
  several.pool = &pool;
  EXPECT_EQ(load_dataset(kShapes, taking({3, 8, 8}, 3), several)->data.inputs, set->data.inputs);
  // Grey pictures are three equal channels.
  EXPECT_EQ(set->data.inputs[0], set->data.inputs[64]);
}

TEST(MediaFiles, KeepTheClassesOfTrainingAndLeaveOthersOut) {
  const TemporaryFolder folder;
  for (const char* name : {"square", "disc"}) {
    fs::create_directories(folder.path(name) + "/deeper");
    fs::copy(kShapes + "/" + name + "/00.png", folder.path(name) + "/deeper");
    fs::copy(kShapes + "/" + name + "/01.jpg", folder.path(name));
  }
  fs::create_directories(folder.path("empty"));
  folder.write("square/notes.txt", "about squares");
  DatasetOptions options;
  options.names = {"disc", "square", "triangle"};
  const Result<LoadedDataset> set = load_dataset(folder.path(), taking({1, 8, 8}, 3), options);
  ASSERT_TRUE(set.ok()) << set.error().str();
  EXPECT_THAT(set->data.labels, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(set->notes, ElementsAre(HasSubstr(": 1 file is no .png")));
  options.names = {"disc"};
  EXPECT_THAT(refused(folder.path(), taking({1, 8, 8}, 3), options),
              HasSubstr("square: class 'square' was not in training"));
  // One output takes two classes as the targets 0 and 1.
  const Result<LoadedDataset> two = load_dataset(folder.path(), taking({8, 8}, 1), {});
  ASSERT_TRUE(two.ok()) << two.error().str();
  EXPECT_THAT(two->data.targets, ElementsAre(0, 0, 1, 1));
}

TEST(MediaFiles, OfOneFolderOrOnePictureAreForPredictions) {
  DatasetOptions options;
  EXPECT_THAT(refused(kShapes + "/disc", taking({8, 8}, 3), options),
              HasSubstr("give a folder with a folder for each class"));
  options.inputs_only = true;
  const Result<LoadedDataset> flat = load_dataset(kShapes + "/disc", taking({8, 8}, 3), options);
  ASSERT_TRUE(flat.ok()) << flat.error().str();
  EXPECT_EQ(flat->data.samples, 24);
  const std::string path = kShapes + "/disc/01.jpg";
  const Result<LoadedDataset> one = load_dataset(path, taking({8, 8}, 3), options);
  ASSERT_TRUE(one.ok()) << one.error().str();
  EXPECT_THAT(one->files, ElementsAre(path));
  EXPECT_TRUE(
      std::equal(one->data.inputs.begin(), one->data.inputs.end(), flat->data.inputs.begin() + 64));
  const std::string bytes = *read_file(path);
  const FileRef memory = FileRef::of_bytes("photo", std::as_bytes(std::span(bytes)));
  EXPECT_EQ(load_dataset(memory, taking({8, 8}, 3), options)->data.inputs, one->data.inputs);
}

TEST(MediaFiles, ThatDoNotFitAreRefusedByName) {
  const TemporaryFolder folder;
  EXPECT_THAT(refused(folder.path(), taking({8, 8}, 3)), HasSubstr("no picture"));
  EXPECT_THAT(refused(kShapes, taking({64}, 3)), HasSubstr("the network takes [64]"));
  EXPECT_THAT(refused(kShapes, taking({8, 8}, 2)), HasSubstr("3 classes (one per folder)"));
  fs::create_directories(folder.path("a"));
  const std::string whole = *read_file(kShapes + "/disc/01.jpg");
  folder.write("a/cut.jpg", whole.substr(0, whole.size() / 2));
  EXPECT_THAT(refused(folder.path(), taking({8, 8}, 3)), HasSubstr("a/cut.jpg: damaged JPEG"));
  folder.write("a/cut.jpg", "no picture at all");
  EXPECT_THAT(refused(folder.path(), taking({8, 8}, 3)), HasSubstr("neither a PNG nor a JPEG"));
  DatasetOptions options;
  options.memory = MemoryBudget(72 * 64 * 4 - 1);
  EXPECT_THAT(refused(kShapes, taking({8, 8}, 3), options), HasSubstr("--memory SIZE"));
  options = {};
  options.progress = [](int64_t, int64_t) { return false; };
  EXPECT_THAT(refused(kShapes, taking({8, 8}, 3), options), HasSubstr("stopped"));
}

}  // namespace
}  // namespace loom::core
