// Data sets from files, as a network wants them; and files of weights.
#include "train_io/dataset_files.hpp"

#include <gmock/gmock.h>

#include "backend/cpu/cpu.hpp"
#include "io/io_testing.hpp"
#include "io/weights/safetensors_write.hpp"
#include "train_io/training_files.hpp"
#include "train_io/weights/weights_source.hpp"

namespace loom::core {
namespace {

using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

NetworkSpec mlp(int64_t in, int64_t out) {
  return *build_mlp({in, out, {4}, "tanh"});
}

SafeOutput output(const std::string& name, SafeDType dtype, std::vector<int64_t> shape,
                  const auto& values) {
  return {name, dtype, std::move(shape), std::as_bytes(std::span(values))};
}

TEST(DatasetFiles, ReadsArraysByNameAndTakesTheShapeOfTheNetwork) {
  const TemporaryFolder folder;
  const std::string path = folder.path("d.safetensors");
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<int64_t> y = {1, 0};
  ASSERT_TRUE(write_safetensors(
                  path,
                  {output("in", SafeDType::f32, {2, 2, 2}, x), output("y", SafeDType::i64, {2}, y)},
                  {})
                  .ok());
  DatasetOptions options;
  options.x = "in";
  const Result<LoadedDataset> set = load_dataset(path, mlp(4, 3), options);
  ASSERT_TRUE(set.ok()) << set.error().str();
  EXPECT_EQ(set->data.sample.str(), "[4]");
  EXPECT_THAT(set->data.labels, ElementsAre(1, 0));
  EXPECT_EQ(set->data.classes, 3);
  const auto refused = [&](const NetworkSpec& network) {
    const Result<LoadedDataset> bad = load_dataset(path, network, options);
    return bad.ok() ? "" : bad.error().str().substr(path.size());
  };
  EXPECT_EQ(refused(mlp(5, 3)), ": in: a sample is [2, 2], the network takes [5]");
  options.classes = false;
  EXPECT_EQ(refused(mlp(4, 3)), ": y: a target has 1 values, the network gives 3");
  options.x = "x";
  EXPECT_EQ(refused(mlp(4, 3)), ": no array called 'x'; there is in, y");
}

TEST(DatasetFiles, KeepsTheClassesOfTraining) {
  const TemporaryFolder folder;
  folder.write("a.csv", "1,2,b\n3,4,a\n");
  folder.write("b.csv", "1,2,a\n3,4,c\n");
  DatasetOptions options;
  const Result<LoadedDataset> a = load_dataset(folder.path("a.csv"), mlp(2, 2), options);
  ASSERT_TRUE(a.ok()) << a.error().str();
  EXPECT_THAT(a->names, ElementsAre("b", "a"));
  EXPECT_THAT(a->data.labels, ElementsAre(0, 1));
  options.names = a->names;
  const Result<LoadedDataset> b = load_dataset(folder.path("b.csv"), mlp(2, 2), options);
  ASSERT_FALSE(b.ok());
  EXPECT_THAT(b.error().str(), HasSubstr("row 2, column 3: class 'c' was not in training"));
}

TEST(DatasetFiles, SayWhatWasTakenAsTheHeader) {
  const TemporaryFolder folder;
  const std::string path = folder.path("a.csv");
  folder.write("a.csv", "a,b,kind\n1,2,x\n3,4,y\n");
  DatasetOptions options;
  const Result<LoadedDataset> set = load_dataset(path, mlp(2, 2), options);
  ASSERT_TRUE(set.ok()) << set.error().str();
  EXPECT_EQ(set->data.samples, 2);
  EXPECT_THAT(set->notes, ElementsAre(path + ": the first row is taken as the header: a, b, kind"));
  options.header = CsvHeader::no;
  EXPECT_THAT(load_dataset(path, mlp(2, 2), options).error().str(),
              HasSubstr("row 1, column 1: 'a' is not a number"));
  options.header = CsvHeader::automatic;
  folder.write("a.csv", "1,,x\n3,4,y\n");
  EXPECT_THAT(load_dataset(path, mlp(2, 2), options).error().str(),
              HasSubstr("row 1, column 2: an empty field among numbers"));
}

// The need is known before the values are read, so the Error says all of it.
TEST(DatasetFiles, NeedNoMoreThanTheBudget) {
  const TemporaryFolder folder;
  const std::string csv = folder.path("a.csv"), arrays = folder.path("a.safetensors");
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "1,2,0\n";
  folder.write("a.csv", text);
  const std::vector<uint8_t> x(2000, 1), y(1000, 0);
  ASSERT_TRUE(write_safetensors(
                  arrays,
                  {output("x", SafeDType::u8, {1000, 2}, x), output("y", SafeDType::u8, {1000}, y)},
                  {})
                  .ok());
  for (const std::string& path : {csv, arrays}) {
    DatasetOptions options;
    options.memory = MemoryBudget(12000);
    {
      const Result<LoadedDataset> fits = load_dataset(path, mlp(2, 2), options);
      ASSERT_TRUE(fits.ok()) << fits.error().str();
      EXPECT_EQ(options.memory.left(), 0u);
    }
    EXPECT_EQ(options.memory.left(), 12000u);
    options.memory = MemoryBudget(11999);
    const Result<LoadedDataset> refused = load_dataset(path, mlp(2, 2), options);
    ASSERT_FALSE(refused.ok()) << path;
    EXPECT_EQ(refused.error().code, Code::out_of_memory);
    EXPECT_THAT(refused.error().str(), HasSubstr("needs"));
    EXPECT_THAT(refused.error().str(), HasSubstr("--memory SIZE"));
    EXPECT_EQ(options.memory.left(), 11999u);
  }
}

TEST(DatasetFiles, RefuseCountsWhoseProductOverflows) {
  const TemporaryFolder folder;
  const std::string path = folder.path("x.npy");
  const std::string header =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693952, 0)}";
  folder.write("x.npy", std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) +
                            '\0' + header);
  DatasetOptions options;
  options.labels = path;
  EXPECT_EQ(load_dataset(path, mlp(8, 2), options).error().str(),
            path + ": a sample is [0], the network takes [8]");
}

TEST(DatasetFiles, Normalizes) {
  Dataset d;
  d.samples = 4;
  d.sample = Shape{2};
  d.inputs = {0, 5, 2, 5, 4, 5, 6, 5};
  d.outputs = 1;
  d.targets = {0, 0, 0, 0};
  const Normalization range = *find_normalization(d, Normalize::range);
  ASSERT_TRUE(normalize(d, range).ok());
  EXPECT_THAT(d.inputs, ElementsAre(0, 0, 2.0f * (1.0f / 6), 0, 4.0f * (1.0f / 6), 0, 1, 0));
}

TEST(TrainingFiles, WeightsSayWhatTheyAre) {
  const TemporaryFolder folder;
  const std::string path = folder.path("w.safetensors");
  ThreadPool pool(1);
  TrainedModel model{mlp(2, 2), DType::i8, {}, {"no", "yes"}, {{1, 2}, {3, 4}}};
  model.loss.kind = Loss::cross_entropy;
  Dataset d;
  d.samples = 1;
  d.sample = Shape{2};
  d.inputs = {1, 2};
  d.labels = {1};
  d.classes = 2;
  TrainerSpec options;
  options.step.loss.kind = Loss::cross_entropy;
  options.batch = 1;
  const auto make = [&](uint64_t seed) {
    options.seed = seed;
    return Trainer::create(model.network.grid, d, options, cpu_ops(best_isa()), pool);
  };
  Result<Trainer> a = make(1), b = make(2);
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_TRUE(save_weights(path, model, *a).ok());
  const Result<std::unique_ptr<NetworkSource>> file = open_trained_weights(path);
  ASSERT_TRUE(file.ok()) << file.error().str();
  const Result<TrainedModel> read = model_of(**file);
  ASSERT_TRUE(read.ok()) << read.error().str();
  EXPECT_EQ(read->dtype, DType::i8);
  EXPECT_THAT(read->names, ElementsAre("no", "yes"));
  EXPECT_THAT(read->normalization.scale, ElementsAre(3, 4));
  EXPECT_NE(hash_weights(*a).value(), hash_weights(*b).value());
  ASSERT_TRUE(load_weights(**file, *b).ok());
  EXPECT_EQ(hash_weights(*a).value(), hash_weights(*b).value());
  RecordedRun run;
  const Result<std::string> none = load_checkpoint(path, model, *a, run);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().str(), path + ": these are weights, no checkpoint");
}

// The evaluated network equals the trained one: weights in steps of the scales that were held.
TEST(TrainingFiles, WeightsKeepTheScalesTheyWereTrainedWith) {
  const TemporaryFolder folder;
  const std::string path = folder.path("w.safetensors");
  ThreadPool pool(1);
  const TrainedModel model{mlp(2, 2), DType::i4, {}, {}, {}};
  Dataset d;
  d.samples = 8;
  d.sample = Shape{2};
  d.outputs = 2;
  for (int i = 0; i < 16; ++i) {
    d.inputs.push_back(0.1f * static_cast<float>(i % 5));
    d.targets.push_back(0.1f * static_cast<float>(i % 3));
  }
  TrainerSpec options;
  options.step.optimizer.kind = loom::OptimizerKind::sgd;
  options.step.optimizer.weight_decay = 1.0f;  // rows shrink by less than an eighth
  options.rate = 1e-2;
  const auto make = [&](DType dtype) {
    options.dtype = dtype;
    Result<Trainer> made =
        Trainer::create(model.network.grid, d, options, cpu_ops(best_isa()), pool);
    EXPECT_TRUE(made.ok()) << made.error().str();
    return std::move(*made);
  };
  const auto packed = [](Trainer& t) {
    std::vector<std::byte> all;
    for (const Param& p : t.network().params())
      all.insert(all.end(), p.memory.data(), p.memory.data() + p.memory.size());
    return all;
  };
  Trainer a = make(DType::i4);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(a.epoch(d, {}).ok());
  ASSERT_TRUE(save_weights(path, model, a).ok());
  const Result<std::unique_ptr<NetworkSource>> file = open_trained_weights(path);
  ASSERT_TRUE(file.ok()) << file.error().str();
  options.seed = 2;
  Trainer b = make(DType::i4);
  ASSERT_TRUE(load_weights(**file, b).ok());
  EXPECT_EQ(packed(a), packed(b));
  EXPECT_EQ(a.evaluate(d)->loss, b.evaluate(d)->loss);
  // In another type, or without what was held, scales are those of the weights as they are now.
  Trainer c = make(DType::u4);
  ASSERT_TRUE(load_weights(**file, c).ok());
  options.step.scale_band = 0;
  Trainer none = make(DType::i4);
  ASSERT_TRUE(save_weights(path, model, none).ok());
  Trainer plain = make(DType::u4);
  ASSERT_TRUE(load_weights(**file, plain).ok());
  EXPECT_EQ(packed(c), packed(plain));
  const Result<std::unique_ptr<NetworkSource>> without = open_trained_weights(path);
  ASSERT_TRUE(without.ok()) << without.error().str();
  ASSERT_TRUE(load_weights(**without, a).ok());
  EXPECT_EQ(packed(a), packed(none));
}

}  // namespace
}  // namespace loom::core
