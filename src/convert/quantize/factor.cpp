// H = R R^T with R upper triangular, from the last column to the first. Then inverse(H) =
// inverse(R)^T inverse(R), so U = inverse(R). Sums are in f64, in eight fixed chains.
#include "convert/quantize/factor.hpp"

#include <cmath>

namespace loom::core {
namespace {

double dot(const float* a, const float* b, int64_t n) {
  double sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int64_t l = 0; l < 8; ++l)
      sums[l] += static_cast<double>(a[i + l]) * static_cast<double>(b[i + l]);
  }
  for (; i < n; ++i) sums[i % 8] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  double sum = 0;
  for (const double s : sums) sum += s;
  return sum;
}

// Runs body(i) for i in [0, count).
template <class F>
void each(ThreadPool& pool, int64_t count, F&& body) {
  constexpr int64_t kSerial = 64;  // less work than starting the threads
  if (count <= kSerial) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  pool.run([&](int lane, int lanes) {
    for (int64_t i = lane; i < count; i += lanes) body(i);
  });
}

}  // namespace

std::vector<float> inverse_factor(const std::vector<float>& h, int64_t n, double damping,
                                  ThreadPool& pool) {
  const auto at = [n](int64_t i, int64_t j) { return static_cast<size_t>(i * n + j); };
  double mean = 0;
  for (int64_t i = 0; i < n; ++i) mean += static_cast<double>(h[at(i, i)]);
  mean = n > 0 ? mean / static_cast<double>(n) : 0;
  const double added = mean > 0 ? damping * mean : 1.0;
  std::vector<float> r(h.size());
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i; j < n; ++j) r[at(i, j)] = h[at(i, j)];
    r[at(i, i)] = static_cast<float>(static_cast<double>(r[at(i, i)]) + added);
  }
  // Column j of R needs the columns after it.
  for (int64_t j = n - 1; j >= 0; --j) {
    const float* row = r.data() + at(j, j + 1);
    const double pivot = static_cast<double>(r[at(j, j)]) - dot(row, row, n - 1 - j);
    // Rounding can leave a pivot that is not positive.
    const double root = std::sqrt(pivot > added * 1e-3 ? pivot : added * 1e-3);
    r[at(j, j)] = static_cast<float>(root);
    each(pool, j, [&](int64_t i) {
      const double rest = static_cast<double>(r[at(i, j)]) -
                          dot(r.data() + at(i, j + 1), r.data() + at(j, j + 1), n - 1 - j);
      r[at(i, j)] = static_cast<float>(rest / root);
    });
  }
  // Row i of the inverse needs the rows after it. A thread computes a run of its columns.
  std::vector<float> own(static_cast<size_t>(n));
  std::vector<double> sums(static_cast<size_t>(n));
  constexpr int64_t kRun = 256;
  for (int64_t i = n - 1; i >= 0; --i) {
    const double pivot = static_cast<double>(r[at(i, i)]);
    for (int64_t k = i + 1; k < n; ++k) own[static_cast<size_t>(k)] = r[at(i, k)];
    const auto columns = [&](int64_t run) {
      const int64_t begin = i + 1 + run * kRun, end = begin + kRun < n ? begin + kRun : n;
      for (int64_t c = begin; c < end; ++c) sums[static_cast<size_t>(c)] = 0;
      for (int64_t k = i + 1; k < end; ++k) {
        const double factor = static_cast<double>(own[static_cast<size_t>(k)]);
        for (int64_t c = k > begin ? k : begin; c < end; ++c)
          sums[static_cast<size_t>(c)] += factor * static_cast<double>(r[at(k, c)]);
      }
      for (int64_t c = begin; c < end; ++c)
        r[at(i, c)] = static_cast<float>(-sums[static_cast<size_t>(c)] / pivot);
    };
    const int64_t runs = (n - 1 - i + kRun - 1) / kRun;
    if (runs < 2) {
      for (int64_t run = 0; run < runs; ++run) columns(run);
    } else {
      pool.run([&](int lane, int lanes) {
        for (int64_t run = lane; run < runs; run += lanes) columns(run);
      });
    }
    r[at(i, i)] = static_cast<float>(1.0 / pivot);
  }
  return r;
}

}  // namespace loom::core
