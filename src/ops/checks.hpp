// Shape and dtype rules of every op, checked once when a command is recorded. An Error names the op
// and both shapes.
#pragma once

#include "ops/args.hpp"

namespace loom {

#define LOOM_OP(name, Args) Status check(const Args& args);
#include "ops/ops.def"
#undef LOOM_OP

}  // namespace loom
