// gather_rows: y[i,:] = table[ids[i],:], decoded when the table is packed. Lanes share the rows of
// y; whoever recorded the op has checked the ids.
#include "backend/reference/kernels.hpp"

namespace loom::reference {

void gather_rows(const GatherRowsArgs& args, const Lane& lane) {
  const Tensor& table = args.table;
  const int64_t cols = table.cols();
  const LaneRange rows = lane.range(args.y.rows());
  if (table.layout == Layout::r16) {
    const R16 w = r16_geometry(table.dtype, table.shape[0], table.shape[1]);
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      r16_decode(w, table.data, args.ids.i32()[r], 0, cols, args.y.f32_row(r));
    }
    return;
  }
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const float* from = table.f32_row(args.ids.i32()[r]);
    float* y = args.y.f32_row(r);
    for (int64_t i = 0; i < cols; ++i) y[i] = from[i];
  }
}

}  // namespace loom::reference
