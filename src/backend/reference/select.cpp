// argmax and topk: the largest values of each row. One order for both: larger first, NaN after
// every number, ties by ascending index (+0 and -0 tie). Lanes share the rows.
#include "backend/reference/kernels.hpp"

namespace loom::core::reference {
namespace {

// Whether b, which comes later in the row, beats a.
template <class T>
bool beats(T b, T a) {
  return b > a || (a != a && b == b);
}

// The next entry of the descending order after entry `last` (or the first, when last is -1).
template <class T>
int64_t next_best(const T* x, int64_t n, int64_t last) {
  int64_t best = -1;
  for (int64_t i = 0; i < n; ++i) {
    if (last >= 0) {
      const bool before_last = beats(x[i], x[last]) || (!beats(x[last], x[i]) && i <= last);
      if (before_last) continue;
    }
    if (best < 0 || beats(x[i], x[best])) best = i;
  }
  return best;
}

}  // namespace

template <class T>
void argmax(const ArgmaxArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    args.ids.i32()[r] = static_cast<int32_t>(next_best(args.x.row<T>(r), args.x.cols(), -1));
  }
}
LOOM_REFERENCE_BODY(argmax, ArgmaxArgs);

template <class T>
void topk(const TopkArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const T* x = args.x.row<T>(r);
    int64_t last = -1;
    for (int64_t j = 0; j < args.values.cols(); ++j) {
      last = next_best(x, args.x.cols(), last);
      args.values.row<T>(r)[j] = x[last];
      args.ids.i32()[r * args.ids.row_stride + j] = static_cast<int32_t>(last);
    }
  }
}
LOOM_REFERENCE_BODY(topk, TopkArgs);

}  // namespace loom::core::reference
