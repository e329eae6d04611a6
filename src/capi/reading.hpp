// Options of reading networks and data, from their C structs.
#pragma once

#include "loom.h"
#include "loom/loom.hpp"

namespace loom::capi {

Result<LoadOptions> load_options(const loom_engine* engine, const loom_load_options* given);
#ifndef LOOM_MINIMAL
Result<DatasetOptions> dataset_options(const loom_dataset_options* given);
#endif

}  // namespace loom::capi
