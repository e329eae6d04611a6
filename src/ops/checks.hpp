// Shape and dtype rules of every op, checked once when a command is recorded. An Error names the op
// and both shapes. Activations may be f32 or f64, with one type per op. The recorder checks that it
// is the compute type of the backend.
#pragma once

#include "ops/args.hpp"

namespace loom::core {

#define LOOM_OP(name, Args) Status check(const Args& args);
#include "ops/ops.def"
#undef LOOM_OP

}  // namespace loom::core
