// Training on a folder: with the values in memory, and with files that are read for each batch.
#include <gtest/gtest.h>

#include "io/io_testing.hpp"
#include "loom/loom.hpp"
#include "support/paths.hpp"

namespace loom {
namespace {

const std::string kPictures = loom_test::source_path("examples/data/shapes");

struct MediaRun {
  bool in_memory = false;
  std::string weights, split;
  double loss = 0;
};

// Two epochs with everything that looks at samples: a split, normalization, augmentation, mixing.
MediaRun trained_with(uint64_t memory, const std::string& file) {
  const Engine engine = Engine::create({.threads = 2, .memory_limit = memory}).or_exit();
  LoadOptions load;
  load.engine = engine;
  const Network net = Network::from_json(R"({"loom": 1, "input": [3, 64, 64], "layers": [
      {"type": "Flatten"}, {"type": "Dense", "in": 12288, "out": 3}]})",
                                         load)
                          .or_exit();
  DatasetOptions how;
  how.fit = PictureFit::pad;
  const Dataset data = Dataset::from_file(kPictures, net, how).or_exit();
  const Dataset::Parts parts = data.split(0.75).or_exit();
  TrainerOptions options;
  options.batch = 8;
  options.normalize = Normalize::standard;
  options.augment.flip = 0.5;
  options.augment.rotate = 20;
  options.augment.mixup = 0.3;
  Trainer trainer = Trainer::create(net, options).or_exit();
  const History history = trainer.fit(parts.first, parts.second, {.epochs = 2}).or_exit();
  EXPECT_TRUE(trainer.save_weights(file).ok());
  return {data.in_memory(), trainer.weights_hash().or_exit(), data.hash(),
          *history.epochs.back().validation_loss};
}

class MediaTraining : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef LOOM_WITHOUT_PICTURES
    GTEST_SKIP() << "this build has no libpng and libjpeg";
#endif
  }
};

TEST_F(MediaTraining, HasTheSameBitsWhetherSamplesAreInMemoryOrReadForEachBatch) {
  const core::test::TemporaryFolder folder;
  const MediaRun whole = trained_with(uint64_t{1} << 30, folder.path("a.entity"));
  const MediaRun read = trained_with(uint64_t{6} << 20, folder.path("b.safetensors"));
  EXPECT_TRUE(whole.in_memory);
  EXPECT_FALSE(read.in_memory);
  EXPECT_EQ(whole.weights, read.weights);
  EXPECT_EQ(whole.split, read.split);
  EXPECT_EQ(whole.loss, read.loss);
  // A network trained with bars reads images with bars from then on, and knows its classes.
  for (const char* name : {"a.entity", "b.safetensors"}) {
    const Network net = Network::load(folder.path(name)).or_exit();
    EXPECT_EQ(net.info().classes, (std::vector<std::string>{"disc", "square", "triangle"}));
    DatasetOptions pad;
    pad.fit = PictureFit::pad;
    const Dataset own = Dataset::from_file(kPictures, net).or_exit();
    EXPECT_EQ(own.hash(), Dataset::from_file(kPictures, net, pad).or_exit().hash()) << name;
    pad.fit = PictureFit::crop;
    EXPECT_NE(own.hash(), Dataset::from_file(kPictures, net, pad).or_exit().hash()) << name;
    EXPECT_EQ(own.files().size(), 72u);
    const Tensor some = own.inputs(5, 2).or_exit();
    EXPECT_EQ(some.shape(), (Shape{2, 3, 64, 64}));
  }
}

TEST_F(MediaTraining, NetworksOfPicturesRefuseSounds) {
  const Network net = Network::from_json(R"({"loom": 1, "input": [8, 8], "layers": [
      {"type": "Flatten"}, {"type": "Dense", "in": 64, "out": 3}]})")
                          .or_exit();
  const std::string sound = loom_test::source_path("examples/data/tones/rising/00.wav");
  DatasetOptions how;
  how.inputs_only = true;
  EXPECT_TRUE(Dataset::from_file(sound, net, how).ok());
  Trainer trainer = Trainer::create(net).or_exit();
  ASSERT_TRUE(trainer.fit(Dataset::from_file(kPictures, net).or_exit(), {.epochs = 1}).ok());
  const Result<Dataset> read = Dataset::from_file(sound, net, how);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message, "the network was trained on images, these are sounds");
}

}  // namespace
}  // namespace loom
