// The products of one row, in one dispatch: the commands that make the row, up to three matrices
// over it, then a gated unit or an addition. Several rows run concurrently, each as it would alone;
// joined rows do not.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// An attention that left its splits in `part` (attend_one.hpp). Its readers join the row.
struct JoinedRow {
  Tensor y;  // the tensor that would hold it
  BufferSlice part;
  int64_t splits = 1, heads = 1, width = 1;
};
// Sums that every workgroup that reads the row joins. More splits are joined once, before it.
constexpr int64_t kMaxJoined = 16;
constexpr int64_t kJoinedSums = 512;  // splits of all heads

struct RowProducts {
  static constexpr int64_t kMax = 3;
  const NormArgs* norm = nullptr;
  const JoinedRow* joined = nullptr;
  const QuantizeRowsArgs* quantize = nullptr;
  const MatmulArgs* matrix[kMax] = {};
  int64_t count = 0;
  int64_t rows = 0;
  const GatedArgs* gated = nullptr;
  const BinaryArgs* addition = nullptr;
  Tensor other;  // the addend
  int64_t commands = 0;

  const Tensor& x() const {
    if (norm != nullptr) return norm->x;
    return quantize != nullptr ? quantize->x : matrix[0]->x;
  }
  int64_t depth() const { return matrix[0]->w.shape[1]; }
};

// The values to write.
struct RowOutputs {
  Tensor kept;  // of the norm
  Tensor y[RowProducts::kMax];
  Tensor out;  // of the command after the matrices
};

// Whether the kernel can hold such a row in a workgroup's memory.
bool row_fits(const RowProducts& p);
// Errors: the same as those of Call.
Status run_row_products(Frame& frame, const RowProducts& p, const RowOutputs& out);

}  // namespace loom::core::webgpu
