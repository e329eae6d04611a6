// Packs rows so that a weighted squared error is small, and not each difference alone.
//
// Scales come from a search over candidates, by sum_k importance[k] (x[k] - value[k])^2. With
// `factor`, codes follow GPTQ (Frantar et al., 2023): a column takes its nearest value, and the
// columns that come later are changed by what its error costs them. Rows do not depend on each
// other, so any division of the rows gives the same bytes.
#pragma once

#include "dtype/r16/r16.hpp"

namespace loom::core {

struct ErrorWeights {
  const float* importance = nullptr;  // [cols], at least 0; may be null
  // U of inverse(H) = U^T U, upper triangular [cols][cols]; H is the second moment of the inputs.
  // May be null: then every column takes its nearest value. Scales are chosen when their block is
  // reached.
  const float* factor = nullptr;
};

// Types of fewer than 16 bits.
bool r16_can_quantize(DType dtype);

// As r16_pack(), `count` rows from `first` on. `range` is read only for nvfp4.
void r16_quantize(const R16& g, const float* src, int64_t first, int64_t count,
                  const TensorRange& range, const ErrorWeights& weights, std::byte* dst);

}  // namespace loom::core
