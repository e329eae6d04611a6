// The table of the reference backend: one body per row of ops.def.
#include "backend/reference/reference.hpp"

#include "backend/reference/kernels.hpp"

namespace loom {

const Ops& reference_ops() {
  static const Ops table = [] {
    Ops ops;
    ops.name = "reference";
#define LOOM_OP(name, Args) ops.name = reference::name;
#include "ops/ops.def"
#undef LOOM_OP
    return ops;
  }();
  return table;
}

}  // namespace loom
