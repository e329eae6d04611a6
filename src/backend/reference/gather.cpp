// gather_rows: y[i,:] = table[ids[i],:], decoded when the table is packed. Lanes share the rows of
// y; whoever recorded the op has checked the ids.
#include "backend/reference/kernels.hpp"

namespace loom::reference {

template <class T>
void gather_rows(const GatherRowsArgs& args, const Lane& lane) {
  const Tensor& table = args.table;
  const int64_t cols = table.cols();
  const LaneRange rows = lane.range(args.y.rows());
  if (table.layout == Layout::r16) {
    const R16 w = r16_geometry(table.dtype, table.shape[0], table.shape[1]);
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      decode_row<T>(w, table.data, args.ids.i32()[r], 0, cols, args.y.row<T>(r));
    }
    return;
  }
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const T* from = table.row<T>(args.ids.i32()[r]);
    T* y = args.y.row<T>(r);
    for (int64_t i = 0; i < cols; ++i) y[i] = from[i];
  }
}
LOOM_REFERENCE_BODY(gather_rows, GatherRowsArgs);

}  // namespace loom::reference
