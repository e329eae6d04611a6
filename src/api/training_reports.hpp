// What training and evaluation found, in the words of the interface. Private to the room.
#pragma once

#include <string>
#include <vector>

#include "learn/metrics.hpp"
#include "learn/trainer.hpp"
#include "loom/trainer.hpp"

namespace loom::core {

// Scores of single outputs into `out`; names: of the classes, as many as there are.
void report(const OutputScores& scores, const std::vector<std::string>& names,
            loom::Evaluation& out);
std::vector<Metric> metrics_of(const std::vector<MetricValue>& values);
// seconds: what the epoch took; samples: how many it trained with.
loom::Epoch epoch_of(const EpochReport& r, double seconds, int64_t samples);

}  // namespace loom::core
