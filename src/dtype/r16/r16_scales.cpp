#include "dtype/r16/r16_scales.hpp"

#include <algorithm>

namespace loom::core {

int64_t r16_scale_step(const R16& g) {
  const DTypeInfo& info = dtype_info(g.dtype);
  if (info.kind == NumberKind::ieee) return 1;
  if (info.kind == NumberKind::fp && info.bits == 8) return 1;
  return info.block > 0 ? info.block : std::max<int64_t>(g.cols, 1);
}

}  // namespace loom::core
