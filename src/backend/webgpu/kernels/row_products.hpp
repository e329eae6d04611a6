// The products of one row, in one dispatch: what makes the row, up to three matrices over it, then
// a gated unit or an addition. Several rows are made side by side, each as it would be alone (but
// no joined ones).
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// An attention that left its splits in `part` (attend_one.hpp): its row is joined where it is read.
struct JoinedRow {
  Tensor y;  // what would hold it
  BufferSlice part;
  int64_t splits = 1, heads = 1, width = 1;
};
// Sums that are joined by every workgroup that reads the row: more splits are joined first, once.
constexpr int64_t kMostJoined = 16;
constexpr int64_t kJoinedSums = 512;  // splits of all heads

struct RowProducts {
  static constexpr int64_t kMost = 3;
  const NormArgs* norm = nullptr;
  const JoinedRow* joined = nullptr;
  const QuantizeRowsArgs* quantize = nullptr;
  const MatmulArgs* matrix[kMost] = {};
  int64_t count = 0;
  int64_t rows = 0;
  const GatedArgs* gated = nullptr;
  const BinaryArgs* addition = nullptr;
  Tensor other;  // what is added
  int64_t commands = 0;

  const Tensor& x() const {
    if (norm != nullptr) return norm->x;
    return quantize != nullptr ? quantize->x : matrix[0]->x;
  }
  int64_t depth() const { return matrix[0]->w.shape[1]; }
};

// The values that are written.
struct RowOutputs {
  Tensor kept;  // of the norm
  Tensor y[RowProducts::kMost];
  Tensor out;  // of what follows the matrices
};

// Whether the kernel holds such a row in a workgroup's memory.
bool row_fits(const RowProducts& p);
// Errors: those of Call.
Status run_row_products(Frame& frame, const RowProducts& p, const RowOutputs& out);

}  // namespace loom::core::webgpu
