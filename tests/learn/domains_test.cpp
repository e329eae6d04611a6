// Targets that a loss is not defined for are refused before the first step.
#include <gmock/gmock.h>

#include <cmath>

#include "learn/loss/checks.hpp"
#include "learn/train_rig.hpp"
#include "learn/trainer.hpp"

namespace loom::core {
namespace {

using test::layer;
using test::row_of;

using testing::HasSubstr;

// The last sample of `n` has the target `last`, the others [1, 0].
Dataset samples_with_target(const std::vector<float>& last, int64_t n = 5) {
  Dataset d;
  d.samples = n;
  d.sample = Shape{3};
  d.outputs = std::ssize(last);
  for (int64_t i = 0; i < 3 * n; ++i) d.inputs.push_back(0.1f * static_cast<float>(i % 7));
  for (int64_t i = 0; i + 1 < n; ++i) {
    for (int64_t j = 0; j < d.outputs; ++j) d.targets.push_back(j == 0 ? 1.0f : 0.0f);
  }
  d.targets.insert(d.targets.end(), last.begin(), last.end());
  return d;
}

Result<Trainer> trainer_with_loss(const Dataset& data, Loss kind) {
  static ThreadPool pool(1, true);
  TrainerSpec o;
  o.step.loss.kind = kind;
  o.batch = 2;
  return Trainer::create(
      row_of({layer(LayerKind::dense, {{"in", 3}, {"out", static_cast<double>(data.outputs)}})}),
      data, o, reference_ops(), pool);
}

struct TargetCase {
  const char* loss;
  std::vector<float> target;
  const char* error;  // null: it trains
};

const std::vector<TargetCase>& domains() {
  static const std::vector<TargetCase> all = {
      {"bce", {0, 1}, nullptr},
      {"bce", {0.25f, 0.75f}, nullptr},
      {"bce", {0, 1.5f}, "sample 4: target 1.5 must be from 0 to 1 for bce"},
      {"bce", {-1, 1}, "target -1 must be from 0 to 1"},
      {"bce", {0, 1.0001f}, "must be from 0 to 1"},
      {"focal", {0, 2}, "target 2 must be from 0 to 1 for focal"},
      {"focal", {0.5f, 1}, nullptr},
      {"poisson", {0, 7.5f}, nullptr},
      {"poisson", {3, -0.5f}, "target -0.5 must be 0 or more for poisson"},
      {"hinge", {-1, 1}, nullptr},
      {"hinge", {0, 1}, nullptr},
      {"hinge", {0.5f, 1}, "target 0.5 must be -1, 0 or 1 for hinge"},
      {"kl", {0.5f, 0.5f}, nullptr},
      {"kl", {-0.5f, 1.5f}, "target -0.5 must be from 0 to 1 for kl"},
      {"kl", {0.5f, 0.9f}, "of its targets must be 1 for kl"},
      {"kl", {0, 0}, "the sum 0 of its targets must be 1"},
      {"cross_entropy", {0.25f, 0.75f}, nullptr},
      {"cross_entropy", {3, 4}, "target 3 must be from 0 to 1 for softmax_ce"},
      {"cross_entropy", {1, 1}, nullptr},  // several classes at once
      {"cross_entropy", {-0.5f, 1}, "target -0.5 must be from 0 to 1 for softmax_ce"},
      {"mse", {-9, 1e6f}, nullptr},
      {"mae", {-9, 1e6f}, nullptr},
      {"huber", {-9, 1e6f}, nullptr},
      {"quantile", {-9, 1e6f}, nullptr},
      {"log_cosh", {-9, 1e3f}, nullptr},
      {"cosine", {-9, 2}, nullptr},
      {"mse", {0, INFINITY}, "finite"},
      {"mse", {NAN, 0}, "finite"},
  };
  return all;
}

TEST(Domains, EveryLossRefusesTargetsThatItIsNotDefinedFor) {
  for (const TargetCase& c : domains()) {
    SCOPED_TRACE(std::string(c.loss) + " " + std::to_string(c.target[0]) + " " +
                 std::to_string(c.target[1]));
    const Dataset data = samples_with_target(c.target);
    const Result<Trainer> trainer = trainer_with_loss(data, parse_loss(c.loss).value());
    EXPECT_EQ(trainer.ok(), c.error == nullptr);
    if (trainer.ok() || c.error == nullptr) continue;
    EXPECT_THAT(trainer.error().message, HasSubstr(c.error));
    EXPECT_EQ(trainer.error().message.find('\n'), std::string::npos);
  }
}

TEST(Domains, ValidationIsCheckedBeforeTheFirstStep) {
  const Dataset good = samples_with_target({0, 1}), bad = samples_with_target({0, 3});
  Trainer trainer = trainer_with_loss(good, Loss::bce).value();
  const Result<EpochReport> report = trainer.epoch(good, bad);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().message, HasSubstr("target 3 must be from 0 to 1"));
  EXPECT_EQ(trainer.step().updates(), 0);
  EXPECT_FALSE(trainer.evaluate(bad).ok());
  EXPECT_FALSE(trainer.train_batch(bad.select(std::vector<int64_t>{4}), 0.1).ok());
}

TEST(Domains, PaddingMayHoldAnything) {
  Dataset data;
  data.samples = 2;
  data.sample = Shape{3, 2};  // three positions of two values
  data.outputs = 3;
  data.inputs.assign(12, 0.5f);
  data.targets = {1, 0, 99, 0.5f, 99, 99};
  data.lengths = {2, 1};
  const GridSpec grid = row_of({layer(LayerKind::dense, {{"in", 2}, {"out", 1}})});
  TrainerSpec o;
  o.step.loss.kind = Loss::bce;
  static ThreadPool pool(1, true);
  const Result<Trainer> fine = Trainer::create(grid, data, o, reference_ops(), pool);
  EXPECT_TRUE(fine.ok()) << fine.error().str();
  data.lengths = {3, 1};
  const Result<Trainer> refused = Trainer::create(grid, data, o, reference_ops(), pool);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("sample 0: target 99"));
}

}  // namespace
}  // namespace loom::core
