// Statistics of links over an epoch, from learning rules: means of TrainStep::link_stats().
#pragma once

#include <vector>

#include "learn/step/train_step.hpp"

namespace loom::core {

struct LinkReport {
  size_t cell = 0;  // into Network::cells()
  double budget = 0, gap = 0, closed = 0, cosine = 0, size = 0;
};

// Adds those of the last step, which has run: steps with them do not overlap.
void add_links(const TrainStep& step, std::vector<LinkReport>& links);
// Makes means of the sums over so many steps.
void share_links(std::vector<LinkReport>& links, int64_t steps);

}  // namespace loom::core
