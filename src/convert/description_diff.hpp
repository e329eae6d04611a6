// Differences of two models besides parameter values: kinds and settings of layers, class names.
// For `loom diff`; two networks with equal weights may compute different results.
#pragma once

#include <vector>

#include "convert/model_report.hpp"

namespace loom::core {

// One text difference per cell or layer that differs, and one for the class names; may be empty.
// Reals are compared as float32, which is used for computation. Formats without a description
// (ONNX, TFLite, bare tensors) are compared only in layers that own parameters and have one
// location and kind in both. Errors: bad_file (an invalid training record).
Result<std::vector<TensorDifference>> compare_descriptions(const OpenedModel& a,
                                                           const OpenedModel& b);

}  // namespace loom::core
