// Rows of losses: facts as files and programs of every release rely on, and steps with each.
#include <gtest/gtest.h>

#include "learn/loss/checks.hpp"
#include "learn/loss/loss.hpp"
#include "learn/train_rig.hpp"

namespace loom::core::test {
namespace {

std::vector<Loss> all_losses() {
  std::vector<Loss> kinds;
  for (uint8_t i = 1; loss_name(static_cast<Loss>(i)) != "unknown"; ++i)
    kinds.push_back(static_cast<Loss>(i));
  return kinds;
}

struct Facts {
  const char* name;
  const char* options;  // keys of files
  bool labels = false, classes = false, binary = false, sequence = false, pairs = false;
};
// By hand, from before there were rows.
constexpr Facts kFacts[] = {
    {.name = "mse", .options = ""},
    {.name = "mae", .options = ""},
    {.name = "huber", .options = ""},
    {.name = "softmax_ce", .options = "", .labels = true, .classes = true},
    {.name = "bce", .options = "", .binary = true},
    {.name = "kl", .options = ""},
    {.name = "cosine", .options = ""},
    {.name = "focal", .options = "gamma alpha", .binary = true},
    {.name = "quantile", .options = "quantile"},
    {.name = "poisson", .options = ""},
    {.name = "log_cosh", .options = ""},
    {.name = "hinge", .options = "", .binary = true},
    {.name = "ctc", .options = "blank", .labels = true, .sequence = true},
    {.name = "triplet", .options = "margin all across", .labels = true, .pairs = true},
    {.name = "contrastive", .options = "margin across", .labels = true, .pairs = true},
    {.name = "infonce", .options = "temperature across", .labels = true, .pairs = true},
};

TEST(LossRows, HaveTheFactsOfEveryRelease) {
  for (const Facts& facts : kFacts) {
    SCOPED_TRACE(facts.name);
    const LossSpec loss{.kind = *parse_loss(facts.name)};
    const LossDef& def = loss_def(loss.kind);
    std::string options;
    for (const LossOption& option : def.options)
      options += (options.empty() ? "" : " ") + std::string(option.key);
    EXPECT_EQ(options, facts.options);
    EXPECT_EQ(def.takes_labels(), facts.labels);
    EXPECT_EQ(loss.has_classes(), facts.classes);
    EXPECT_EQ(loss.has_binary_targets(), facts.binary);
    EXPECT_EQ(loss.sequence(), facts.sequence);
    EXPECT_EQ(loss.pairs(), facts.pairs);
  }
}

TEST(LossRows, HaveOneFieldPerOption) {
  for (const Loss kind : all_losses()) {
    for (const LossOption& option : loss_def(kind).options) {
      const int fields = (option.real != nullptr ? 1 : 0) + (option.integer != nullptr ? 1 : 0) +
                         (option.flag != nullptr ? 1 : 0);
      EXPECT_EQ(fields, 1) << loss_name(kind) << " " << option.key;
    }
  }
}

TEST(LossRows, CopyTheOptionsOfTheirLossAlone) {
  LossSpec from;
  from.gamma = 3;
  from.alpha = 0.25f;
  from.margin = 2;
  from.blank = 4;
  from.all_triplets = true;
  LossSpec focal{.kind = Loss::focal}, triplet{.kind = Loss::triplet}, ctc{.kind = Loss::ctc};
  copy_options(from, focal);
  copy_options(from, triplet);
  copy_options(from, ctc);
  EXPECT_EQ(focal.gamma, 3);
  EXPECT_EQ(focal.alpha, 0.25f);
  EXPECT_EQ(focal.margin, 1);
  EXPECT_EQ(triplet.margin, 2);
  EXPECT_TRUE(triplet.all_triplets);
  EXPECT_EQ(triplet.gamma, 2);
  EXPECT_EQ(ctc.blank, 4);
}

// A loss that is recorded from ops starts its gradient at itself, so other rules have no signal.
TEST(LossRows, RefuseWhatARecordedLossLacks) {
  for (const Loss kind : all_losses()) {
    SCOPED_TRACE(loss_name(kind));
    const bool from_ops = loss_def(kind).record != nullptr;
    EXPECT_TRUE(check_loss({.kind = kind}, {}).ok());
    EXPECT_EQ(check_loss({.kind = kind}, {.kind = Rule::dfa}).ok(), !from_ops);
    EXPECT_EQ(check_loss({.kind = kind, .heads = {2, 2}}, {}).ok(), !from_ops);
  }
}

// Every row whose targets belong to rows of the prediction, those of a toy too: the loss falls,
// with the same bits on any number of threads.
TEST(LossRows, LowerTheLoss) {
  const GridSpec grid =
      row_of({layer(LayerKind::dense, {{"in", 6}, {"out", 10}, {"activation", "tanh"}}),
              layer(LayerKind::dense, {{"in", 10}, {"out", 4}})});
  for (const Loss kind : all_losses()) {
    if (loss_def(kind).form != LossForm::rows) continue;
    SCOPED_TRACE(loss_name(kind));
    TrainStepOptions o;
    o.loss.kind = kind;
    TrainRig one(grid, Shape{8, 6}, DType::f32, o, reference_ops());
    TrainRig more(grid, Shape{8, 6}, DType::f32, o, cpu_ops(best_isa()), 3);
    for (TrainRig* rig : {&one, &more}) {  // in the domain of every loss
      const Tensor& target = rig->step().target();
      for (int64_t i = 0; i < target.shape.count(); ++i)
        target.f32()[i] = i % 4 == (i / 4) % 4 ? 1.0f : 0.0f;
    }
    const std::vector<double> losses = one.run(12, 0.02);
    EXPECT_LT(losses.back(), losses.front());
    more.run(12, 0.02);
    EXPECT_EQ(one.hash(), more.hash());
  }
}

}  // namespace
}  // namespace loom::core::test
