// Folders of images as data sets, over examples/data/shapes.
#include "train_io/media_files.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <numeric>

#include "io/files/file.hpp"
#include "io/io_testing.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

const std::string kShapes = loom_test::source_path("examples/data/shapes");

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

// A WAV file of 16 bits and one channel: a tone.
std::string wave_of(uint32_t rate, uint32_t samples, double hz) {
  std::string out = "RIFF....WAVEfmt ";
  const auto number = [&](uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  };
  number(16, 4);
  for (const uint32_t field : {1U, 1U}) number(field, 2);
  number(rate, 4);
  number(2 * rate, 4);
  for (const uint32_t field : {2U, 16U}) number(field, 2);
  out += "data";
  number(2 * samples, 4);
  for (uint32_t i = 0; i < samples; ++i)
    number(static_cast<uint32_t>(20000 * std::sin(6.2831853 * hz * i / rate)), 2);
  return out;
}

class MediaFiles : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef LOOM_WITHOUT_PICTURES
    GTEST_SKIP() << "this build has no libpng and libjpeg";
#endif
  }
};

TEST_F(MediaFiles, AreSamplesWhoseFoldersAreTheirClasses) {
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
  // Grey images become three equal channels.
  EXPECT_EQ(set->data.inputs[0], set->data.inputs[64]);
}

TEST_F(MediaFiles, KeepTheClassesOfTrainingAndLeaveOthersOut) {
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
  EXPECT_THAT(set->notes, ElementsAre(HasSubstr(": 1 file is neither an image")));
  options.names = {"disc"};
  EXPECT_THAT(refused(folder.path(), taking({1, 8, 8}, 3), options),
              HasSubstr("square: class 'square' was not in training"));
  // One output takes two classes as the targets 0 and 1.
  const Result<LoadedDataset> two = load_dataset(folder.path(), taking({8, 8}, 1), {});
  ASSERT_TRUE(two.ok()) << two.error().str();
  EXPECT_THAT(two->data.targets, ElementsAre(0, 0, 1, 1));
}

TEST_F(MediaFiles, OfOneFolderOrOnePictureAreForPredictions) {
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

TEST_F(MediaFiles, ThatDoNotFitAreRefusedByName) {
  const TemporaryFolder folder;
  EXPECT_THAT(refused(folder.path(), taking({8, 8}, 3)), HasSubstr("no image"));
  EXPECT_THAT(refused(kShapes, taking({64}, 3)), HasSubstr("the network takes [64]"));
  EXPECT_THAT(refused(kShapes, taking({8, 8}, 2)), HasSubstr("3 classes (one per folder)"));
  fs::create_directories(folder.path("a"));
  const std::string whole = *read_file(kShapes + "/disc/01.jpg");
  folder.write("a/cut.jpg", whole.substr(0, whole.size() / 2));
  EXPECT_THAT(refused(folder.path(), taking({8, 8}, 3)), HasSubstr("a/cut.jpg: damaged JPEG"));
  folder.write("a/cut.jpg", "not an image at all");
  EXPECT_THAT(refused(folder.path(), taking({8, 8}, 3)), HasSubstr("neither a PNG nor a JPEG"));
  DatasetOptions options;
  options.memory = MemoryBudget(64 * 4 - 1);
  EXPECT_THAT(refused(kShapes, taking({8, 8}, 3), options), HasSubstr("--memory SIZE"));
  options = {};
  options.progress = [](int64_t, int64_t) { return false; };
  EXPECT_THAT(refused(kShapes, taking({8, 8}, 3), options), HasSubstr("stopped"));
}

// Values that do not fit are read when they are asked for, and are the same; normalized, too.
TEST_F(MediaFiles, ThatTakeTooMuchAreReadWhenTheyAreAskedFor) {
  const NetworkSpec network = taking({8, 8}, 3);
  const LoadedDataset whole = load_dataset(kShapes, network, {}).or_exit();
  DatasetOptions options;
  options.memory = MemoryBudget(2 * 72 * 64 * 4 - 1);
  LoadedDataset some = load_dataset(kShapes, network, options).or_exit();
  ASSERT_NE(some.data.source, nullptr);
  EXPECT_THAT(some.notes, ElementsAre(HasSubstr("files are read anew in every epoch")));
  EXPECT_TRUE(some.data.check().ok());
  EXPECT_EQ(hash_dataset(some.data), hash_dataset(whole.data));
  const std::vector<int64_t> rows = {70, 3, 3, 41};
  const auto values = [](const Dataset& data) {
    std::vector<float> all(static_cast<size_t>(data.samples) * 64);
    ThreadPool pool(2);
    std::vector<int64_t> order(static_cast<size_t>(data.samples));
    std::iota(order.begin(), order.end(), 0);
    EXPECT_TRUE(data.read_inputs(order, 0, data.samples, all.data(), &pool).ok());
    return all;
  };
  EXPECT_EQ(values(some.data.select(rows)), values(whole.data.select(rows)));
  const Normalization standard = find_normalization(whole.data, Normalize::standard).or_exit();
  EXPECT_EQ(find_normalization(some.data, Normalize::standard).or_exit(), standard);
  Dataset plain = whole.data;
  ASSERT_TRUE(normalize(plain, standard).ok() && normalize(some.data, standard).ok());
  EXPECT_EQ(values(some.data), plain.inputs);
}

TEST_F(MediaFiles, OfSoundAreSpectrogramsOrTheSoundItself) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path("low"));
  const std::string tone = wave_of(8000, 1600, 440);
  folder.write("low/a.wav", tone);
  DatasetOptions options;
  options.reading.mel = {MelRecipe::torchaudio, 8000, 128, 64, 1};
  const LoadedDataset mel = load_dataset(folder.path(), taking({1, 6, 26}, 2), options).or_exit();
  EXPECT_EQ(mel.media->mel.bands, 6);
  std::vector<float> want(6 * 26);
  MelSpec spec = options.reading.mel;
  spec.bands = 6;
  const Wave wave = decode_wave(std::as_bytes(std::span(tone)), "a", {}).or_exit();
  MelReader(spec).read(wave.samples, 26, want);
  EXPECT_EQ(mel.data.inputs, want);
  options.reading.time_first = true;
  const LoadedDataset rotated = load_dataset(folder.path(), taking({26, 6}, 2), options).or_exit();
  EXPECT_EQ(rotated.data.inputs[6 * 5 + 2], want[2 * 26 + 5]);
  const LoadedDataset plain = load_dataset(folder.path(), taking({2000}, 2), options).or_exit();
  EXPECT_EQ(plain.data.inputs[7], wave.samples[7]);
  EXPECT_EQ(plain.data.inputs[1999], 0.0f);
  // The training settings that a file stores.
  const MediaReading again = read_media(media_json(*mel.media), "a").or_exit();
  EXPECT_EQ(again.mel.recipe, MelRecipe::torchaudio);
  EXPECT_EQ(again.mel.window, 128);
  EXPECT_EQ(again.mel.bands, 6);
  folder.write("low/b.png", "");
  EXPECT_THAT(refused(folder.path(), taking({26, 6}, 2)), HasSubstr("1 images and 1 sounds"));
  options.inputs_only = true;
  EXPECT_THAT(refused(folder.path("low/a.wav"), taking({3, 6, 6}, 2), options),
              HasSubstr("sound needs"));
}

}  // namespace
}  // namespace loom::core
