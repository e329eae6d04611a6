// What two models differ in beside the values of their parameters: kinds and settings of layers,
// names of classes. For `loom diff`; two networks of equal weights may compute other things.
#pragma once

#include <vector>

#include "convert/model_report.hpp"

namespace loom::core {

// One text difference per cell or layer that differs, and one for the names of classes; empty if
// none does. Reals are compared as float32, which is what computes. Formats that do not keep a
// description (ONNX, TFLite, bare tensors) are compared only in layers that own parameters and have
// one place and kind in both. Errors: bad_file (what a file says of its training).
Result<std::vector<TensorDifference>> compare_descriptions(const OpenedModel& a,
                                                           const OpenedModel& b);

}  // namespace loom::core
