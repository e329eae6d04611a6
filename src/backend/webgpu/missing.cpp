// Ops without kernels: the CPU runs them.
#include "backend/webgpu/kernels.hpp"

namespace loom::webgpu::kernels {

#define LOOM_NO_KERNEL(name, Args)                          \
  Status name(Frame&, const Args&) {                        \
    return unsupported("the GPU has no kernel for " #name); \
  }
LOOM_NO_KERNEL(matmul, MatmulArgs)
LOOM_NO_KERNEL(gemm, GemmArgs)
LOOM_NO_KERNEL(matmul_dx, MatmulDxArgs)
LOOM_NO_KERNEL(squared_distance, SquaredDistanceArgs)
#undef LOOM_NO_KERNEL

}  // namespace loom::webgpu::kernels
