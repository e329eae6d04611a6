// What a caller in C sees of training besides batches and epochs.
#pragma once

#include "capi/support.hpp"
#include "loom/trainer.hpp"

namespace loom::capi {

// Adds the observer and the telemetry of `from`. A trainer keeps functions of FitOptions for the
// steps after fit(); the observer of C is called no more once the result is gone. Errors:
// invalid_argument (an event that is none).
Result<std::shared_ptr<void>> observe(const loom_fit_options& from, FitOptions& to);

}  // namespace loom::capi
