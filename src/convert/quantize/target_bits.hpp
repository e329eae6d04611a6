// Types of matrices for a size: a greedy choice by loss per byte. The loss of a matrix is measured:
// the KL divergence of the predictions when it alone has three bits. Other types cost in proportion
// to their weighted squared error.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include "convert/quantize/text_moments.hpp"

namespace loom::core {

struct TargetOptions {
  double bits = 0;  // per weight of the matrices
  // The type that is written for a type, by the width of the rows.
  std::function<DType(DType dtype, int64_t cols)> written;
  std::function<bool(int64_t done, int64_t total)> progress;
};

// By path. Routers and tables of positions have no entry. Errors: invalid_argument (a size that no
// choice has).
Result<std::unordered_map<std::string, DType>> types_for_bits(const ModelSource& source,
                                                              TextMoments& text,
                                                              const TargetOptions& options);

}  // namespace loom::core
