// One function per instruction set: overwrites the rows of an Ops table that the set has kernels
// for.
#pragma once

#include "ops/ops.hpp"

namespace loom {

namespace isa_scalar {
void fill_ops(Ops& ops);
}
namespace isa_avx2 {
void fill_ops(Ops& ops);
}
namespace isa_avx512 {
void fill_ops(Ops& ops);
}
namespace isa_simd128 {  // NEON and WASM: 128-bit vectors of the compiler, no intrinsics
void fill_ops(Ops& ops);
}

}  // namespace loom
