// The shared part of loss kernels and of products that include a loss.
#pragma once

#include <string_view>

namespace loom::core::webgpu {

// loss_value(kind, delta, pred, target) of losses that are means over values, and loss_slope(), its
// derivative with respect to pred.
extern const std::string_view kLossTerms;

}  // namespace loom::core::webgpu
