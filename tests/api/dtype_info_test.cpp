// The number type of a network is that of its packed matrices, whatever its source.
#include <gtest/gtest.h>

#include <filesystem>

#include "e2e/temp_folder.hpp"
#include "loom/loom.hpp"

namespace {

using namespace loom;

std::string dtype_scratch(const std::string& name) {
  static const core::test::TempFolder folder;
  return folder.path() + "/" + name;
}

Network dense_pair(DType dtype = DType::float32) {
  return Network::sequential({Dense{.in = 64, .out = 32}, Dense{.in = 32, .out = 2}},
                             {.input = {64}, .dtype = dtype})
      .or_exit();
}

void train_once(Network& net) {
  const std::vector<float> x(8 * 64, 0.25f);
  const std::vector<int32_t> y = {0, 1, 0, 1, 0, 1, 0, 1};
  Trainer trainer = Trainer::create(net).or_exit();
  (void)trainer.train_step(Tensor::view(x.data(), {8, 64}), Tensor::view(y.data(), {8})).or_exit();
}

std::vector<DType> matrices_of(const Network& net) {
  std::vector<DType> out;
  for (const ParameterInfo& p : net.parameters()) {
    if (p.shape.size() == 2) out.push_back(p.dtype);
  }
  return out;
}

TEST(NetworkDType, OfALoadedFileIsWhatItsMatricesArePackedIn) {
  const std::vector<DType> packed = {DType::int8, DType::q4_0, DType::bfloat16, DType::float32};
  for (const bool trained : {false, true}) {
    for (const DType dtype : packed) {
      for (const std::string format : {".entity", ".json", ".safetensors"}) {
        Network net = dense_pair();
        if (trained) train_once(net);
        const std::string path = dtype_scratch("packed" + format);
        ASSERT_TRUE(net.save(path, {.dtype = dtype}).ok());
        const Network loaded = Network::load(path).or_exit();
        const std::string what =
            format + " of " + std::string(dtype_name(dtype)) + (trained ? ", trained" : "");
        EXPECT_EQ(matrices_of(loaded), std::vector<DType>(2, dtype)) << what;
        EXPECT_EQ(loaded.info().dtype, dtype) << what;
        EXPECT_NE(loaded.summary().find(dtype_name(dtype)), std::string::npos) << what;
      }
    }
  }
}

TEST(NetworkDType, OfAConvertedFileIsTheOneItWasConvertedTo) {
  Network net = dense_pair();
  train_once(net);
  const std::string from = dtype_scratch("whole.entity"), to = dtype_scratch("converted.entity");
  ASSERT_TRUE(net.save(from).ok());
  (void)convert(from, to, {.dtype = DType::int8}).or_exit();
  EXPECT_EQ(Network::load(to).or_exit().info().dtype, DType::int8);
  // One small matrix of another type does not name the whole.
  (void)convert(from, to, {.dtype = DType::int8, .rules = {{"*1, 0)/weight", DType::float16}}})
      .or_exit();
  const Network mixed = Network::load(to).or_exit();
  EXPECT_EQ(matrices_of(mixed), (std::vector<DType>{DType::int8, DType::float16}));
  EXPECT_EQ(mixed.info().dtype, DType::int8);
}

TEST(NetworkDType, OfCellsWithATypeOfTheirOwnLeavesThatOfTheOthers) {
  Grid grid({1, 1, 2, 1});
  grid.put({0, 0, 0, 0}, Dense{.in = 64, .out = 64}).put({0, 0, 1, 0}, Dense{.in = 64, .out = 2});
  grid.set_dtype({0, 0, 0, 0}, DType::int4);
  const Network net = Network::create(grid, {.input = {64}, .dtype = DType::float16}).or_exit();
  EXPECT_EQ(net.info().dtype, DType::float16);
  const std::string path = dtype_scratch("cells.entity");
  ASSERT_TRUE(net.save(path).ok());
  const Network loaded = Network::load(path).or_exit();
  EXPECT_EQ(matrices_of(loaded), (std::vector<DType>{DType::int4, DType::float16}));
  EXPECT_EQ(loaded.info().dtype, DType::float16);
}

TEST(NetworkDType, OfAFileThatIsReadInAnotherTypeIsThatType) {
  const std::string path = dtype_scratch("again.entity");
  ASSERT_TRUE(dense_pair(DType::int8).save(path).ok());
  const Network loaded = Network::load(path, {.dtype = DType::q4_0}).or_exit();
  EXPECT_EQ(loaded.info().dtype, DType::q4_0);
  ASSERT_TRUE(loaded.save(path).ok());
  EXPECT_EQ(Network::load(path).or_exit().info().dtype, DType::q4_0);
}

TEST(NetworkDType, OfAnOnnxFileIsFloat32WhateverItWasPackedInBefore) {
  const std::string path = dtype_scratch("net.onnx");
  ASSERT_TRUE(dense_pair(DType::int8).save(path).ok());
  EXPECT_EQ(Network::load(path).or_exit().info().dtype, DType::float32);
}

TEST(NetworkDType, GoesOnTrainingInTheTypeThatItWasSavedIn) {
  Network net = dense_pair();
  train_once(net);
  const std::string path = dtype_scratch("goes_on.entity");
  ASSERT_TRUE(net.save(path, {.dtype = DType::int8}).ok());
  Network loaded = Network::load(path).or_exit();
  train_once(loaded);
  EXPECT_EQ(matrices_of(loaded), std::vector<DType>(2, DType::int8));
  EXPECT_EQ(loaded.info().dtype, DType::int8);
}

}  // namespace
