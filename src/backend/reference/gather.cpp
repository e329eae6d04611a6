// gather_rows: y[i,:] = table[ids[i],:], decoded if the table is packed. Lanes share the rows of y.
// The recorder of the op has checked the ids. distinct_rows: which rows ids name. One pass from the
// last id to the first leaves the first index of each, so nothing need be cleared.
#include "backend/reference/kernels.hpp"

namespace loom::core::reference {

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

template <class T>
void distinct_rows(const DistinctRowsArgs& args, const Lane& lane) {
  if (lane.index != 0) return;
  const int32_t* ids = args.ids.i32();
  const int64_t count = args.ids.shape.count();
  for (int64_t r = count - 1; r >= 0; --r) args.seen.i32()[ids[r]] = static_cast<int32_t>(r);
  for (int64_t r = 0; r < count; ++r) {
    const int32_t first = ids[r] == args.skip ? -1 : args.seen.i32()[ids[r]];
    args.first.i32()[r] = first;
    args.rows.i32()[r] = first == r ? ids[r] : -1;
  }
}

LOOM_REFERENCE_BODY(gather_rows, GatherRowsArgs);
LOOM_REFERENCE_BODY(distinct_rows, DistinctRowsArgs);

}  // namespace loom::core::reference
