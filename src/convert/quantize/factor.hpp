// The factor by which GPTQ moves the error of a column to later columns.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "base/threads/thread_pool.hpp"

namespace loom::core {

// H [n][n], symmetric, becomes U of inverse(H + damping * mean(diagonal) I) = U^T U, upper
// triangular; below the diagonal there are zeros. Columns that no input reached count as
// independent. The bits do not depend on the threads.
std::vector<float> inverse_factor(const std::vector<float>& h, int64_t n, double damping,
                                  ThreadPool& pool);

}  // namespace loom::core
