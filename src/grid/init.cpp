#include "grid/init.hpp"

#include <cstdlib>

#include "base/numbers/dmath.hpp"
#include "base/numbers/rng.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kStream = uint64_t{1} << 32;  // separates parameter streams from layers' noise

// Standard normal by Box and Muller (1958), in double, rounded once.
double normal(const Rng& rng, int64_t i) {
  constexpr double kTwoPi = 6.28318530717958647692;
  const double u = (static_cast<double>(rng.bits(static_cast<uint64_t>(2 * i))) + 0.5) * 0x1p-32;
  const double v = static_cast<double>(rng.bits(static_cast<uint64_t>(2 * i + 1))) * 0x1p-32;
  return __builtin_sqrt(-2.0 * dmath::log(u)) * dmath::cos(kTwoPi * v);
}

// The location of a value in a table. `at` counts values; the last axis has `cols`, the axis before
// it `rows`, the one before that `heads`.
struct Coordinates {
  int64_t row = 0, col = 0, head = 0, cols = 1, heads = 1;
};

Coordinates place_of(const Shape& table, int64_t i) {
  const int rank = table.rank();
  Coordinates p;
  p.cols = table.last();
  const int64_t rows = rank > 1 ? table[rank - 2] : 1;
  p.heads = rank > 2 ? table[rank - 3] : 1;
  p.col = i % p.cols;
  p.row = i / p.cols % rows;
  p.head = i / p.cols / rows % p.heads;
  return p;
}

double sinusoid(const Coordinates& p) {
  const auto pair = static_cast<double>(p.col - p.col % 2);
  const double rate = dmath::exp(-dmath::log(10000.0) * pair / static_cast<double>(p.cols));
  const double angle = static_cast<double>(p.row) * rate;
  return p.col % 2 == 0 ? dmath::sin(angle) : dmath::cos(angle);
}

// If the number of heads is a power of two, slopes are 2^(-8 h / H), h from 1 on. Otherwise they
// are those of the next smaller power, followed by every second one of twice that power.
double slope(const Coordinates& p) {
  int64_t power = 1;
  while (power * 2 <= p.heads) power *= 2;
  const bool more = p.head >= power;
  const auto h = static_cast<double>(more ? 2 * (p.head - power) + 1 : p.head + 1);
  const auto of = static_cast<double>(more ? 2 * power : power);
  return dmath::exp(-8.0 * dmath::log(2.0) * h / of);
}

double value(Init init, const Rng& rng, int64_t i, double rows, double cols,
             const Coordinates& coordinates) {
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
    case Init::sinusoidal: return sinusoid(coordinates);
    case Init::alibi:
      return -slope(coordinates) * static_cast<double>(std::abs(coordinates.row - coordinates.col));
    case Init::causal: return coordinates.col <= coordinates.row ? 0.0 : -1e9;
    case Init::log_range: return dmath::log(static_cast<double>(coordinates.col + 1));
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
    const Coordinates coordinates =
        place_of(spec.table.rank() > 0 ? spec.table : spec.shape, first + i);
    out[i] =
        static_cast<float>(spec.factor * value(spec.init, rng, first + i, rows, cols, coordinates));
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
