// What kernels of losses share with products that are made with one.
#pragma once

#include <string_view>

namespace loom::core::webgpu {

// loss_value(kind, delta, pred, target) of losses that are means over values, and loss_slope(), its
// derivative by pred.
extern const std::string_view kLossTerms;

}  // namespace loom::core::webgpu
