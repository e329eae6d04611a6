// Ops without kernels: the CPU runs them.
#include "backend/webgpu/kernels.hpp"

namespace loom::webgpu::kernels {

#define LOOM_NO_KERNEL(name, Args)                          \
  Status name(Frame&, const Args&) {                        \
    return unsupported("the GPU has no kernel for " #name); \
  }
LOOM_NO_KERNEL(quantise_rows, QuantiseRowsArgs)
LOOM_NO_KERNEL(pack, PackArgs)
LOOM_NO_KERNEL(distinct_rows, DistinctRowsArgs)
LOOM_NO_KERNEL(norm, NormArgs)
LOOM_NO_KERNEL(rope, RopeArgs)
LOOM_NO_KERNEL(kv_write, KvWriteArgs)
LOOM_NO_KERNEL(attention, AttentionArgs)
LOOM_NO_KERNEL(softmax, SoftmaxArgs)
LOOM_NO_KERNEL(reduce, ReduceArgs)
LOOM_NO_KERNEL(argmax, ArgmaxArgs)
LOOM_NO_KERNEL(topk, TopkArgs)
LOOM_NO_KERNEL(reduce_cols, ReduceColsArgs)
LOOM_NO_KERNEL(scatter_add_rows, ScatterAddRowsArgs)
LOOM_NO_KERNEL(unary_dx, UnaryDxArgs)
LOOM_NO_KERNEL(gated_dx, GatedDxArgs)
LOOM_NO_KERNEL(norm_dx, NormDxArgs)
LOOM_NO_KERNEL(softmax_dx, SoftmaxDxArgs)
LOOM_NO_KERNEL(entmax, EntmaxArgs)
LOOM_NO_KERNEL(entmax_dx, EntmaxDxArgs)
LOOM_NO_KERNEL(conv, ConvArgs)
LOOM_NO_KERNEL(conv_dx, ConvDxArgs)
LOOM_NO_KERNEL(conv_dw, ConvDwArgs)
LOOM_NO_KERNEL(attend, AttendArgs)
LOOM_NO_KERNEL(attend_dx, AttendDxArgs)
LOOM_NO_KERNEL(lstm_cell, LstmCellArgs)
LOOM_NO_KERNEL(lstm_cell_dx, LstmCellDxArgs)
LOOM_NO_KERNEL(gru_cell, GruCellArgs)
LOOM_NO_KERNEL(gru_cell_dx, GruCellDxArgs)
LOOM_NO_KERNEL(random, RandomArgs)
LOOM_NO_KERNEL(loss, LossArgs)
LOOM_NO_KERNEL(optimise, OptimiseArgs)
#undef LOOM_NO_KERNEL

}  // namespace loom::webgpu::kernels
