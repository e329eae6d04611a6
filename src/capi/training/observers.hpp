// Observers of training for callers in C, besides batches and epochs.
#pragma once

#include "capi/support.hpp"
#include "loom/trainer.hpp"

namespace loom::capi {

// Adds the observer and the telemetry of `from`. A trainer keeps functions of FitOptions for the
// steps after fit(). The observer of C is not called once the result is freed. Errors:
// invalid_argument (an invalid event).
Result<std::shared_ptr<void>> observe(const loom_fit_options& from, FitOptions& to);

}  // namespace loom::capi
