#include "grid/init.hpp"

#include "base/dmath.hpp"
#include "base/rng.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kStream = uint64_t{1} << 32;  // parameters' streams, apart from layers' noise

// Standard normal by Box and Muller (1958), in double, rounded once.
double normal(const Rng& rng, int64_t i) {
  constexpr double kTwoPi = 6.28318530717958647692;
  const double u = (static_cast<double>(rng.bits(static_cast<uint64_t>(2 * i))) + 0.5) * 0x1p-32;
  const double v = static_cast<double>(rng.bits(static_cast<uint64_t>(2 * i + 1))) * 0x1p-32;
  return __builtin_sqrt(-2.0 * dmath::log(u)) * dmath::cos(kTwoPi * v);
}

double value(Init init, const Rng& rng, int64_t i, double rows, double cols) {
  const auto uniform = [&](double bound) {
    return bound * (2.0 * static_cast<double>(rng.uniform(static_cast<uint64_t>(i))) - 1.0);
  };
  switch (init) {
    case Init::zeros: return 0.0;
    case Init::ones: return 1.0;
    case Init::glorot: return uniform(__builtin_sqrt(6.0 / (rows + cols)));
    case Init::he: return normal(rng, i) * __builtin_sqrt(2.0 / cols);
    case Init::fan_in: return uniform(1.0 / __builtin_sqrt(cols));
    case Init::fan_out: return uniform(1.0 / __builtin_sqrt(rows));
    case Init::normal002: return 0.02 * normal(rng, i);
    case Init::normal1: return normal(rng, i);
  }
  return 0.0;
}

}  // namespace

void init_values(const Network& network, int index, uint64_t seed, int64_t first, int64_t count,
                 float* out) {
  const ParamSpec& spec = network.params()[static_cast<size_t>(index)].spec;
  const Rng rng(seed, kStream + static_cast<uint64_t>(index));
  const auto rows = static_cast<double>(spec.shape.rows());
  const auto cols = static_cast<double>(spec.shape.last());
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(value(spec.init, rng, first + i, rows, cols));
  }
}

Status init_params(Network& network, DType dtype, uint64_t seed, ThreadPool& pool) {
  for (int i = 0; i < static_cast<int>(network.params().size()); ++i) {
    const Param& p = network.params()[static_cast<size_t>(i)];
    if (!p.tensor.empty()) continue;
    const int64_t cols = p.spec.matrix() ? p.spec.shape[1] : 1;
    const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
      init_values(network, i, seed, first * cols, count * cols, out);
      return {};
    };
    LOOM_TRY(network.load_param(i, dtype, rows, pool));
  }
  return {};
}

}  // namespace loom::core
