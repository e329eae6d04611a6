// squared_distance: rows of x against the rows of a packed matrix of centres. Each output is one
// sum of squares under rule 2 of docs/numerics.md; lanes share the centres.
#include "backend/reference/sums.hpp"

namespace loom::core::reference {

template <class T>
void squared_distance(const SquaredDistanceArgs& args, const Lane& lane) {
  const Packed centres(args.c);
  const LaneRange outputs = lane.range(centres.geometry.rows);
  for (int64_t k = outputs.begin; k < outputs.end; ++k) {
    for (int64_t r = 0; r < args.x.rows(); ++r) {
      const T* x = args.x.row<T>(r);
      args.y.row<T>(r)[k] = sum_over_row<T>(centres, k, [&](int64_t n, auto centre) {
        const decltype(centre) d = x[n] - centre;
        return Factors<decltype(centre)>{d, d};
      });
    }
  }
}

LOOM_REFERENCE_BODY(squared_distance, SquaredDistanceArgs);

}  // namespace loom::core::reference
