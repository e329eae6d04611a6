// Networks for tables, and the output stage of numeric targets.
#include "loom/table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "loom/loom.hpp"

namespace loom {
namespace {

using testing::HasSubstr;

FileBytes file_of(const std::string& text) {
  return {std::as_bytes(std::span(text)), "houses.csv"};
}

// Prices of houses: texts, a date, gaps.
std::string houses() {
  std::string text = "area,town,built,price\n";
  for (int i = 0; i < 200; ++i) {
    const int area = 40 + i * 37 % 160, town = i * 7 % 3, year = 1990 + i * 11 % 30;
    text += (i % 20 == 3 ? std::string() : std::to_string(area)) + "," +
            std::string(town == 0   ? "Ulm"
                        : town == 1 ? "Bonn"
                                    : "Kiel") +
            "," + std::to_string(year) + "-05-01," +
            std::to_string(area * 2000 + town * 50000 + (year - 1990) * 1000) + "\n";
  }
  return text;
}

Evaluation trained(Network& net, const Dataset& data) {
  Trainer trainer = Trainer::create(net, {.rate = 1e-2}).or_exit();
  EXPECT_TRUE(trainer.fit(data, {.epochs = 60}).ok());
  return trainer.evaluate(data).or_exit();
}

TEST(NetworksForTables, LearnWhatTheirPlanReads) {
  const std::string text = houses();
  TableNetwork made = network_for_table(file_of(text), {.table = TableOptions{}}).or_exit();
  EXPECT_EQ(made.description,
            "3 columns: 1 number, 1 category (3 levels), 1 date; target price, a number");
  EXPECT_EQ(made.samples, 200);
  const Dataset data = Dataset::from_file(file_of(text), made.network).or_exit();
  EXPECT_GT(*trained(made.network, data).r2, 0.95);
  // The network has the plan: later tables need no options.
  const std::string later = "built,price,town,area\n2000-05-01,1,Ulm,100\n";
  const Dataset one = Dataset::from_file(file_of(later), made.network).or_exit();
  EXPECT_EQ(one.samples(), 1);
  DatasetOptions again;
  again.table = TableOptions{.target = {"area"}};
  EXPECT_THAT(Dataset::from_file(file_of(text), made.network, again).error().str(),
              HasSubstr("has a plan of its table"));
}

TEST(NetworksForTables, RefuseOptionsWithoutAnEffect) {
  const std::string text = houses();
  struct Case {
    DatasetOptions options;
    const char* message;
  };
  DatasetOptions horizon, stride, range, lengths, labels, weights;
  horizon.table = TableOptions{.horizon = 3};
  stride.table = TableOptions{.stride = 2};
  range.table = TableOptions{.one_hot_limit = 0};
  lengths.lengths = "area";
  labels.labels = "other.csv";
  weights.weights = "area";
  TableNetwork made = network_for_table(file_of(text)).or_exit();
  for (const auto& [options, message] :
       {Case{horizon, "without a window"}, Case{stride, "without a window"},
        Case{range, "one_hot_limit"}}) {
    EXPECT_THAT(network_for_table(file_of(text), options).error().str(), HasSubstr(message));
  }
  for (const auto& [options, message] :
       {Case{lengths, "lengths has no effect"}, Case{labels, "labels has no effect"},
        Case{weights, "has the column of weights already"}}) {
    EXPECT_THAT(Dataset::from_file(file_of(text), made.network, options).error().str(),
                HasSubstr(message));
  }
}

TEST(NetworksForTables, ASplitOfOtherRowsThanThePlanHasANote) {
  const std::string text = houses();
  DatasetOptions reading;
  reading.table = TableOptions{.share = 0.8, .seed = 5};
  TableNetwork made = network_for_table(file_of(text), reading).or_exit();
  const Dataset data = Dataset::from_file(file_of(text), made.network).or_exit();
  EXPECT_TRUE(data.split(0.8, {.seed = 5})->first.notes().empty());
  for (const auto& [share, seed] : {std::pair{0.8, 6}, std::pair{0.7, 5}}) {
    const auto parts = data.split(share, {.seed = static_cast<uint64_t>(seed)}).or_exit();
    ASSERT_EQ(parts.first.notes().size(), 1u);
    EXPECT_THAT(parts.first.notes()[0], HasSubstr("other rows than those that train"));
  }
}

// Targets of 1e5 with noise: without the stage a default rate cannot reach them.
TEST(OutputStages, StandardizeTargetsAndKeepTheirUnit) {
  std::vector<float> x, y;
  for (int i = 0; i < 300; ++i) {
    x.push_back(static_cast<float>(i * 37 % 101) / 50 - 1);
    x.push_back(static_cast<float>(i * 53 % 97) / 48 - 1);
    y.push_back(100000 + 20000 * x[x.size() - 2] - 5000 * x.back());
  }
  const Dataset data =
      Dataset::from_arrays(Tensor::view(x.data(), {300, 2}), Tensor::view(y.data(), {300, 1}))
          .or_exit();
  const LoadOptions load{.seed = 4};
  const Mlp mlp{.in = 2, .out = 1, .hidden = {16}};
  const Network plain = Network::from_json(describe(mlp).or_exit(), load).or_exit();
  Network scaled = with_target_scale(plain, data, Loss::automatic, load).or_exit();
  ASSERT_EQ(scaled.info().target_scale.size(), 1u);
  const Tensor now = scaled.parameter("(0, 0, 0, 0)/weight").or_exit();
  const Tensor same = plain.parameter("(0, 0, 0, 0)/weight").or_exit();
  EXPECT_TRUE(std::ranges::equal(*now.values<float>(), *same.values<float>()));
  Network before = plain;
  EXPECT_LT(*trained(before, data).r2, 0);
  const Evaluation after = trained(scaled, data);
  EXPECT_GT(*after.r2, 0.99);
  // The loss is that of standardized targets; the error is in their unit.
  EXPECT_NEAR(after.loss, 1 - *after.r2, 1e-3);
  EXPECT_LT(*after.mean_absolute_error, 3000);
  EXPECT_GT(*after.mean_absolute_error, 1);
  // A second stage, a trained network and losses of counts are left alone.
  EXPECT_EQ(with_target_scale(scaled, data)->info().layers, scaled.info().layers);
  EXPECT_TRUE(with_target_scale(plain, data, Loss::poisson)->info().target_scale.empty());
}

}  // namespace
}  // namespace loom
