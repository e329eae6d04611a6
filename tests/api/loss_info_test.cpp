// Facts of losses, by which programs read labels.
#include <gtest/gtest.h>

#include <string>

#include "loom/trainer.hpp"

namespace loom {
namespace {

struct Facts {
  const char* loss;
  const char* facts;
};
constexpr Facts kFacts[] = {
    {"automatic", "labels classes"},  {"mse", ""},
    {"softmax_ce", "labels classes"}, {"bce", ""},
    {"ctc", "labels sequences"},      {"triplet", "labels embeddings"},
    {"infonce", "labels embeddings"},
};

TEST(LossInfo, SaysHowTargetsAreRead) {
  for (const Facts& row : kFacts) {
    const LossInfo info = loss_info(parse_loss(row.loss).or_exit());
    std::string facts;
    const auto add = [&](bool is, const char* fact) {
      if (is) facts += (facts.empty() ? "" : " ") + std::string(fact);
    };
    add(info.labels, "labels");
    add(info.classes, "classes");
    add(info.sequences, "sequences");
    add(info.embeddings, "embeddings");
    EXPECT_EQ(facts, row.facts) << row.loss;
  }
}

}  // namespace
}  // namespace loom
