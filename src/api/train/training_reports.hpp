// Converts results of training and evaluation to public types. Private to the room.
#pragma once

#include <string>
#include <vector>

#include "learn/metrics/output_scores.hpp"
#include "learn/trainer.hpp"
#include "loom/trainer.hpp"

namespace loom::core {

// Adds scores of single outputs to `out`; names: of the classes, if there are any.
void report(const OutputScores& scores, const std::vector<std::string>& names,
            loom::Evaluation& out);
std::vector<Metric> metrics_of(const std::vector<MetricValue>& values);
// seconds: duration of the epoch; samples: number of training samples.
loom::Epoch epoch_of(const EpochReport& r, double seconds, int64_t samples);
// How a network was trained, as a JSON object: epochs, batch, and the options that say it.
std::string recipe_json(const loom::TrainerOptions& options, int64_t epochs, int64_t batch);
// Nanoseconds since 1970, monotonic.
int64_t steady_ns();

}  // namespace loom::core
