// Shape and dtype rules of every op, checked once when a command is recorded. An Error names the op
// and both shapes. Activations may be f32 or f64, all of an op alike; that they are of the compute
// type of a backend is for the recorder to see.
#pragma once

#include "ops/args.hpp"

namespace loom::core {

#define LOOM_OP(name, Args) Status check(const Args& args);
#include "ops/ops.def"
#undef LOOM_OP

}  // namespace loom::core
