// Options by name: every option is set, read back and refused as its description says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "base/text.hpp"
#include "loom/training_options.hpp"
#include "options/list_text.hpp"
#include "rows.hpp"

namespace loom {
namespace {

using core::cat;
using namespace options_test;
using testing::HasSubstr;

TEST(TrainingOptions, WhatAProgramSetsIsCheckedAsTexts) {
  const std::vector<std::pair<std::string, std::function<void(TrainerOptions&)>>> cases = {
      {"label_smoothing is 2, must be 0 to 1", [](auto& o) { o.label_smoothing = 2; }},
      {"quantile is 1, must be between 0 and 1", [](auto& o) { o.quantile = 1; }},
      {"margin is nan, must be above 0", [](auto& o) { o.margin = std::nanf(""); }},
      {"rate is inf, must be 0 or more", [](auto& o) { o.rate = INFINITY; }},
      {"batch is 0, must be 1 or more", [](auto& o) { o.batch = 0; }},
      {"ema is 1, must be from 0, below 1", [](auto& o) { o.ema = 1; }},
      {"rule_beta is 0, must be above 0, up to 1", [](auto& o) { o.rule_beta = 0; }},
      {"class_weights is -1, must be 0 or more",
       [](auto& o) {
         o.class_weights = {1, -1};
       }},
      {"rate_for of * is 0, must be above 0",
       [](auto& o) {
         o.rate_for = {{"*", 0}};
       }},
      {"schedule.gamma is 1.5, must be 0 to 1", [](auto& o) { o.schedule.gamma = 1.5; }},
      {"augment.rotate is 200, must be 0 to 180", [](auto& o) { o.augment.rotate = 200; }},
      {"rule is 77, must be one of 9 values", [](auto& o) { o.rule = static_cast<Rule>(77); }},
  };
  for (const auto& [message, change] : cases) {
    TrainerOptions options;
    EXPECT_TRUE(check_options(options).ok());
    change(options);
    const Status refused = check_options(options);
    ASSERT_FALSE(refused.ok()) << message;
    EXPECT_EQ(refused.error().message, message);
  }
}

TEST(TrainingOptions, AnOptionThatMayBeUnsetIsUnsetByAnEmptyText) {
  TrainerOptions options;
  ASSERT_TRUE(set_option(options, "batch", "7").ok());
  ASSERT_TRUE(set_option(options, "optimizer.beta1", "0.5").ok());
  ASSERT_TRUE(set_option(options, "freeze", "(0, 0, 0, 0)/weight").ok());
  EXPECT_EQ(options.batch, 7);
  EXPECT_EQ(options.optimizer.beta1, 0.5f);
  EXPECT_EQ(options.freeze, std::vector<std::string>{"(0, 0, 0, 0)/weight"});
  for (const char* name : {"batch", "optimizer.beta1", "freeze"})
    ASSERT_TRUE(set_option(options, name, "").ok());
  EXPECT_FALSE(options.batch || options.optimizer.beta1);
  EXPECT_TRUE(options.freeze.empty());
}

TEST(TrainingOptions, AnUnknownNameOrWordIsRefusedWithTheClosest) {
  TrainerOptions options;
  const Status name = set_option(options, "label_smothing", "0.1");
  EXPECT_EQ(name.error().code, Code::not_found);
  EXPECT_THAT(name.error().message, HasSubstr("did you mean 'label_smoothing'?"));
  EXPECT_THAT(set_option(options, "loss", "hubert").error().message,
              HasSubstr("did you mean 'huber'?"));
  EXPECT_THAT(set_option(options, "shuffle", "yes").error().message,
              HasSubstr("must be true or false"));
  EXPECT_THAT(set_option(options, "freeze", "[\"a\", b]").error().message, HasSubstr("not a list"));
  EXPECT_THAT(set_option(options, "rate_for", "=1").error().message, HasSubstr("PATTERN=FACTOR"));
}

TEST(TrainingOptions, BothNamesOfAWordAreRead) {
  TrainerOptions options;
  for (const char* word : {"softmax_ce", "cross_entropy", "Cross_Entropy"}) {
    ASSERT_TRUE(set_option(options, "loss", word).ok()) << word;
    EXPECT_EQ(options.loss, Loss::cross_entropy);
  }
  for (const char* word : {"diff-project", "diff_project"}) {
    ASSERT_TRUE(set_option(options, "rule", word).ok()) << word;
    EXPECT_EQ(options.rule, Rule::diff_project);
  }
}

// "flip,crop:2" sets a struct of numbers at once; names alone have the usual value.
TEST(TrainingOptions, AStructOfNumbersHasATextOfItsOwn) {
  TrainerOptions options;
  ASSERT_TRUE(set_option(options, "augment", "flip,crop:3,rotate:12.5").ok());
  EXPECT_EQ(options.augment.flip, 0.5);
  EXPECT_EQ(options.augment.crop, 3);
  EXPECT_EQ(option_text(options, "augment").or_exit(), "flip:0.5,rotate:12.5,crop:3");
  EXPECT_THAT(set_option(options, "augment", "flop").error().message,
              HasSubstr("did you mean 'augment.flip'?"));
  EXPECT_THAT(set_option(options, "augment", "rotate:181").error().message,
              HasSubstr("augment.rotate is 181, must be 0 to 180"));
  EXPECT_EQ(option_text(TrainerOptions{}, "augment").or_exit(), "");
  // The kind stands for the structs that have one.
  ASSERT_TRUE(set_option(options, "schedule", "linear").ok());
  EXPECT_EQ(option_text(options, "schedule").or_exit(), "linear");
}

TEST(TrainingOptions, AnOptionWithoutAnEffectIsTold) {
  using testing::ElementsAre;
  using testing::IsEmpty;
  TrainerOptions options;
  EXPECT_THAT(idle_options(options), IsEmpty());
  options.quantile = 0.9f;
  EXPECT_THAT(idle_options(options), IsEmpty());  // the loss is chosen later
  options.loss = Loss::mse;
  EXPECT_THAT(idle_options(options),
              ElementsAre("quantile has no effect with loss mse; it is for quantile"));
  options.loss = Loss::quantile;
  options.optimizer.damping = 0.5f;
  options.schedule.every = 3;
  options.label_smoothing = 0.1f;
  options.rule = Rule::diff_project;
  options.rule_beta = 0.5;
  EXPECT_THAT(
      idle_options(options),
      ElementsAre("label_smoothing has no effect with loss quantile; it is for softmax_ce",
                  "optimizer.damping has no effect with optimizer.kind adam; it is for kfac",
                  "schedule.every has no effect with schedule.kind constant; it is for "
                  "step,cosine_restarts"));
}

// By the description: each option that is for some kinds is idle with all others, and only there.
TEST(TrainingOptions, EachKindIsTheOneThatTheDescriptionNames) {
  Draw draw(3);
  int seen = 0;
  for (const Row& row : rows<TrainerOptions>()) {
    TrainerOptions options;
    ASSERT_TRUE(set_option(options, row.name, draw_text(row, draw)).ok()) << row.name;
    const std::vector<std::string> idle = idle_options(options);
    if (idle.empty()) continue;
    ++seen;
    ASSERT_EQ(idle.size(), 1u) << row.name;
    EXPECT_TRUE(idle[0].starts_with(cat(row.name, " has no effect with "))) << idle[0];
    const std::string fitting = idle[0].substr(idle[0].rfind(" for ") + 5);
    const std::string key = row.name.starts_with("rule") ? "rule"
                            : row.name.starts_with("clip")
                                ? "clip"
                                : row.name.substr(0, row.name.find('.')) + ".kind";
    for (const std::string& kind : core::split_list(fitting, true).or_exit()) {
      ASSERT_TRUE(set_option(options, key, kind).ok()) << row.name << " " << kind;
      EXPECT_TRUE(idle_options(options).empty()) << row.name << " " << kind;
    }
  }
  EXPECT_GT(seen, 10);
}

}  // namespace
}  // namespace loom
