// The two shapes of matmul.
#pragma once

#include "backend/webgpu/frame.hpp"

namespace loom::webgpu {

// Few rows of x: bound by the memory that the weights are read from.
constexpr int64_t kFewRows = 8;
Status matmul_few(Frame& frame, const MatmulArgs& args);
// Many: bound by arithmetic.
Status matmul_many(Frame& frame, const MatmulArgs& args);

// finish(sum, n): the bias of output n added, then the activation. Needs an operand "bias" and a
// value "activation".
extern const std::string_view kFinish;

}  // namespace loom::webgpu
