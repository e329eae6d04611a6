// Networks for tables: statistics of the rows that train, standardized targets, files that keep the
// plan, columns in any order.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "loom/loom.hpp"

namespace loom {
namespace {

std::string temporary(const std::string& name) {
  return testing::TempDir() + "/table_dataset_" + name;
}

std::string written(const std::string& name, const std::string& text) {
  const std::string path = temporary(name);
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

// price = 1000 area, twice as much in Bonn.
std::string houses(int64_t rows) {
  std::string text = "price,town,area\n";
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t area = 40 + (i * 37) % 100;
    const bool bonn = i % 3 == 0;
    text += std::to_string(area * (bonn ? 2000 : 1000)) + (bonn ? ",Bonn," : ",Ulm,") +
            std::to_string(area) + "\n";
  }
  return text;
}

DatasetOptions reading(TableOptions table) {
  DatasetOptions out;
  out.table = std::move(table);
  return out;
}

FitOptions epochs(int64_t count) {
  FitOptions out;
  out.epochs = count;
  return out;
}

TEST(TableDatasets, ANetworkForATableLearnsItsTargetInItsOwnUnit) {
  const std::string path = written("houses.csv", houses(200));
  const TableNetwork made = network_for_table(path, reading({.target = {"price"}})).or_exit();
  EXPECT_EQ(made.description, "2 columns: 1 number, 1 category (2 levels); target price, a number");
  EXPECT_EQ(made.samples, 200);
  ASSERT_EQ(made.network.info().target_scale.size(), 1u);
  const Dataset data = Dataset::from_file(path, made.network).or_exit();
  TrainerOptions options;
  options.rate = 0.01;
  Trainer trainer = Trainer::create(made.network, options).or_exit();
  const History history = trainer.fit(data, epochs(40)).or_exit();
  EXPECT_LT(history.epochs.back().train_loss, 0.02);  // of standardized targets
  const Evaluation e = trainer.evaluate(data).or_exit();
  EXPECT_GT(e.r2.value_or(0), 0.97);
  EXPECT_LT(e.mean_absolute_error.value_or(0), 10000);
  EXPECT_GT(e.mean_absolute_error.value_or(0), 1);  // in the unit of the price
  const Tensor y = made.network.predict(data.x()).or_exit();
  EXPECT_NEAR(y.values<float>().or_exit()[0], 80000, 15000);
}

TEST(TableDatasets, FilesKeepThePlanAndTheScale) {
  const std::string path = written("houses.csv", houses(100));
  const TableNetwork made = network_for_table(path, reading({.target = {"price"}})).or_exit();
  const Dataset data = Dataset::from_file(path, made.network).or_exit();
  Trainer trainer = Trainer::create(made.network, {}).or_exit();
  (void)trainer.fit(data, epochs(2)).or_exit();
  const Tensor expected = made.network.predict(data.x()).or_exit();
  const auto want = expected.values<float>().or_exit();
  // The columns in another order, with one more.
  std::string other = "area,note,town\n";
  for (int64_t i = 0; i < 100; ++i)
    other += std::to_string(40 + (i * 37) % 100) + ",x," + (i % 3 == 0 ? "Bonn" : "Ulm") + "\n";
  const std::string moved = written("moved.csv", other);
  for (const char* name : {"net.entity", "net.safetensors", "net.json", "net.onnx"}) {
    const std::string file = temporary(name);
    if (std::string(name) == "net.safetensors") {
      ASSERT_TRUE(trainer.save_weights(file).ok());
    } else {
      ASSERT_TRUE(made.network.save(file).ok()) << name;
    }
    const Network back = Network::load(file).or_exit();
    EXPECT_EQ(back.info().plan, made.network.info().plan) << name;
    DatasetOptions inputs;
    inputs.inputs_only = true;
    const Dataset again = Dataset::from_file(moved, back, inputs).or_exit();
    const Tensor y = back.predict(again.x()).or_exit();
    const auto got = y.values<float>().or_exit();
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 0.05f) << name << i;
  }
}

TEST(TableDatasets, StatisticsAreThoseOfTheRowsThatTrain) {
  std::string text = "x,y\n";
  for (int i = 0; i < 10; ++i) text += std::to_string(i < 8 ? i % 2 : 1000) + ",0.5\n";
  text += "1000,2\n";
  const std::string path = written("split.csv", text);
  TableOptions table{.target = {"y"}, .share = 8.0 / 11, .shuffle = false};
  const TableNetwork made = network_for_table(path, reading(table)).or_exit();
  const Dataset data = Dataset::from_file(path, made.network).or_exit();
  const Tensor x = data.x();
  const auto values = x.values<float>().or_exit();
  EXPECT_EQ(values[0], -1);  // mean and deviation 0.5 of the first eight rows
  EXPECT_EQ(values[1], 1);
}

TEST(TableDatasets, ANetworkOfOnesOwnGetsThePlanOfItsFirstTable) {
  const std::string path = written("houses.csv", houses(50));
  const Network net = Network::sequential({Dense{.in = 3, .out = 1}}, {.input = {3}}).or_exit();
  const DatasetOptions how = reading({.target = {"price"}});
  const Dataset data = Dataset::from_file(path, net, how).or_exit();
  EXPECT_EQ(data.sample(), Shape({3}));
  EXPECT_FALSE(net.info().plan.empty());
  EXPECT_TRUE(net.info().target_scale.empty());
  EXPECT_EQ(Dataset::from_file(path, net)->hash(), data.hash());
  const Network narrow = Network::sequential({Dense{.in = 2, .out = 1}}, {.input = {2}}).or_exit();
  const Result<Dataset> wrong = Dataset::from_file(path, narrow, how);
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("gives 3 values"), std::string::npos);
}

TEST(TableDatasets, DescriptionsCarryThePlan) {
  const std::string path = written("houses.csv", houses(50));
  const TableNetwork made = network_for_table(path, reading({.target = {"town"}})).or_exit();
  const Network net = Network::from_json(made.json).or_exit();
  const Dataset data = Dataset::from_file(path, net).or_exit();
  EXPECT_TRUE(data.has_labels());
  EXPECT_EQ(data.classes(), (std::vector<std::string>{"Bonn", "Ulm"}));
  const std::string file = written("net2.json", made.json);
  EXPECT_EQ(Dataset::from_file(path, Network::load(file).or_exit())->hash(), data.hash());
}

TEST(TableDatasets, NumericTablesWithoutAPlanAreReadAsBefore) {
  const std::string path = written("plain.csv", "1,2,0.5\n3,4,1.5\n");
  const Network net = Network::sequential({Dense{.in = 2, .out = 1}}, {.input = {2}}).or_exit();
  const Dataset data = Dataset::from_file(path, net).or_exit();
  EXPECT_TRUE(net.info().plan.empty());
  const Tensor x = data.x();
  EXPECT_EQ(x.values<float>().or_exit()[3], 4);
}

}  // namespace
}  // namespace loom
