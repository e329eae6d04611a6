// copy: every element by its own coordinates, the last axis fastest. Lanes share the elements.
#include "backend/reference/kernels.hpp"

namespace loom::core::reference {

namespace {

template <class T>
void copy_elements(const CopyArgs& args, const Lane& lane) {
  const LaneRange elements = lane.range(args.count());
  for (int64_t i = elements.begin; i < elements.end; ++i) {
    int64_t from = args.x_first, to = args.y_first, rest = i;
    for (int k = args.rank - 1; k >= 0; --k) {
      const int64_t at = rest % args.extent[k];
      rest /= args.extent[k];
      from += at * args.x_step[k];
      to += at * args.y_step[k];
    }
    args.y.values<T>()[to] = args.x.values<T>()[from];
  }
}

}  // namespace

template <class T>
void copy(const CopyArgs& args, const Lane& lane) {
  if (args.x.dtype == DType::i32) return copy_elements<int32_t>(args, lane);
  copy_elements<T>(args, lane);
}

LOOM_REFERENCE_BODY(copy, CopyArgs);

}  // namespace loom::core::reference
