// Crossing two models layer by layer: loom/merge.hpp.
#pragma once

#include "evolve/merging/made_weights.hpp"
#include "evolve/merging/merge.hpp"
#include "loom/merge.hpp"

namespace loom::core {

// The share of b in a blended layer of similarity s. Errors: invalid_argument (only one fitness,
// numbers that are not finite, alpha not in 0 to 1).
struct BlendRule {
  SpliceOptions options;
  double fitness_share = 0.5;  // w of BlendLaw::fitter
  double share(double similarity) const;
};
Result<BlendRule> blend_rule(const SpliceOptions& options);

// The child, with a's description, and the crossed layers. Values are computed when the child is
// read.
struct Spliced {
  OpenedModel child;
  SpliceReport report;
};
// progress: of the weights that are read for the report, the first of two readings.
Result<Spliced> spliced_model(const NamedModel& a, const NamedModel& b,
                              const SpliceOptions& options);

}  // namespace loom::core
