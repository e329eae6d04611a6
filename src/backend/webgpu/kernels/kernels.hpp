// One function per op with a kernel; it describes the dispatches that compute the op.
// Code::unsupported means that there is no kernel for these arguments. The backend then runs the
// command on the CPU and counts it, as it does for ops that are not in the list.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu::kernels {

// A placeholder type for an op without a kernel.
struct None {};
#define LOOM_OP(name, RowArgs)     \
  template <class Args>            \
  None name(Frame&, const Args&) { \
    return {};                     \
  }
#include "ops/ops.def"
#undef LOOM_OP

Status matmul(Frame& frame, const MatmulArgs& args);
Status quantize_rows(Frame& frame, const QuantizeRowsArgs& args);
Status pack(Frame& frame, const PackArgs& args);
Status gather_rows(Frame& frame, const GatherRowsArgs& args);
Status distinct_rows(Frame& frame, const DistinctRowsArgs& args);
Status norm(Frame& frame, const NormArgs& args);
Status rope(Frame& frame, const RopeArgs& args);
Status kv_write(Frame& frame, const KvWriteArgs& args);
Status attention(Frame& frame, const AttentionArgs& args);
Status unary(Frame& frame, const UnaryArgs& args);
Status binary(Frame& frame, const BinaryArgs& args);
Status gated(Frame& frame, const GatedArgs& args);
Status softmax(Frame& frame, const SoftmaxArgs& args);
Status reduce(Frame& frame, const ReduceArgs& args);
Status argmax(Frame& frame, const ArgmaxArgs& args);
Status topk(Frame& frame, const TopkArgs& args);
Status sample(Frame& frame, const SampleArgs& args);
Status convert(Frame& frame, const ConvertArgs& args);
Status fill(Frame& frame, const FillArgs& args);
Status gemm(Frame& frame, const GemmArgs& args);
Status matmul_dx(Frame& frame, const MatmulDxArgs& args);
Status reduce_cols(Frame& frame, const ReduceColsArgs& args);
Status scatter_add_rows(Frame& frame, const ScatterAddRowsArgs& args);
Status unary_dx(Frame& frame, const UnaryDxArgs& args);
Status gated_dx(Frame& frame, const GatedDxArgs& args);
Status norm_dx(Frame& frame, const NormDxArgs& args);
Status softmax_dx(Frame& frame, const SoftmaxDxArgs& args);
Status entmax(Frame& frame, const EntmaxArgs& args);
Status entmax_dx(Frame& frame, const EntmaxDxArgs& args);
Status conv(Frame& frame, const ConvArgs& args);
Status conv_dx(Frame& frame, const ConvDxArgs& args);
Status conv_dw(Frame& frame, const ConvDwArgs& args);
Status attend(Frame& frame, const AttendArgs& args);
Status attend_dx(Frame& frame, const AttendDxArgs& args);
Status lstm_cell(Frame& frame, const LstmCellArgs& args);
Status lstm_cell_dx(Frame& frame, const LstmCellDxArgs& args);
Status gru_cell(Frame& frame, const GruCellArgs& args);
Status gru_cell_dx(Frame& frame, const GruCellDxArgs& args);
Status squared_distance(Frame& frame, const SquaredDistanceArgs& args);
Status random(Frame& frame, const RandomArgs& args);
Status loss(Frame& frame, const LossArgs& args);
Status optimize(Frame& frame, const OptimizeArgs& args);
Status copy(Frame& frame, const CopyArgs& args);
Status pool(Frame& frame, const PoolArgs& args);
Status pool_dx(Frame& frame, const PoolDxArgs& args);

// For Call::value(), which takes 32-bit numbers.
inline int64_t low_word(uint64_t v) {
  return static_cast<int64_t>(v & 0xffffffffU);
}
inline int64_t high_word(uint64_t v) {
  return static_cast<int64_t>(v >> 32);
}

}  // namespace loom::core::webgpu::kernels
