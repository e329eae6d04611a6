// Shared parts of the tests of random networks: parameters and inputs for a network and for the
// evaluator, and the number of networks per test.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <span>

#include "backend/cpu/cpu.hpp"
#include "backend/reference/reference.hpp"
#include "base/text.hpp"
#include "grid/network.hpp"
#include "outside/evaluator.hpp"
#include "outside/random_grid.hpp"

namespace loom::core::outside {

// LOOM_RANDOM_GRIDS=5000 test_outside: sets the number of each test instead of `usual`.
inline uint64_t grid_count(uint64_t usual) {
  const char* asked = std::getenv("LOOM_RANDOM_GRIDS");
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : usual;
}

// Numbers from -1 to 1 that f32 can hold.
inline std::vector<double> numbers(int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> all;
  for (int64_t i = 0; i < n; ++i) {
    const double unit = static_cast<double>(random() >> 40) * 0x1p-24;
    all.push_back(static_cast<double>(static_cast<float>(2 * unit - 1)));
  }
  return all;
}

// Inputs of pass `pass`; ids if there is a vocabulary.
inline std::vector<double> inputs(const RandomGrid& grid, int64_t n, uint64_t pass) {
  std::vector<double> all = numbers(n, 1000 + pass);
  for (double& v : all) {
    if (grid.vocab > 0) v = std::floor((v + 1) / 2 * static_cast<double>(grid.vocab));
    if (grid.vocab > 0) v = std::min(v, static_cast<double>(grid.vocab - 1));
  }
  return all;
}

inline std::vector<double> param_values(const Network& network, size_t i) {
  const ParamSpec& spec = network.params()[i].spec;
  std::vector<double> values = numbers(spec.shape.count(), 77 + i);
  for (double& v : values) {
    v = static_cast<double>(static_cast<float>(0.6 * v + (spec.init == Init::ones ? 1 : 0)));
  }
  return values;
}

inline std::vector<int64_t> extents(const Shape& shape) {
  std::vector<int64_t> all;
  for (int i = 0; i < shape.rank(); ++i) all.push_back(shape[i]);
  return all;
}

inline Array array_from(const Shape& shape, const std::vector<double>& values) {
  Array a = array_of(extents(shape));
  for (size_t i = 0; i < values.size(); ++i) a.v[i] = Var(values[i]);
  return a;
}

// The evaluator's parameters; on `tape` if it is not null.
inline void fill_params(Evaluator& evaluator, const Network& network, Tape* tape) {
  for (size_t i = 0; i < network.params().size(); ++i) {
    std::vector<Var>& vars = evaluator.params[network.params()[i].path];
    vars.clear();
    for (const double v : param_values(network, i)) {
      vars.push_back(tape != nullptr ? Var(v, *tape) : Var(v));
    }
  }
}

// Settings of the evaluator for a grid besides its description.
inline Evaluator evaluator_of(const RandomGrid& grid, int64_t sequences) {
  Evaluator evaluator(grid.spec.grid, sequences);
  for (const auto& [cell, shape] : grid.fed_back) evaluator.fed_back[cell] = extents(shape);
  return evaluator;
}

// f32 weights of a network that a session or a training step takes.
inline Status load_params(Network& network, ThreadPool& pool) {
  for (size_t i = 0; i < network.params().size(); ++i) {
    const std::vector<double> values = param_values(network, i);
    const Param& p = network.params()[i];
    const int64_t cols = p.spec.matrix() ? p.spec.shape[1] : 1;
    const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
      for (int64_t k = 0; k < count * cols; ++k)
        out[k] = static_cast<float>(values[static_cast<size_t>(first * cols + k)]);
      return {};
    };
    LOOM_TRY(network.load_param(static_cast<int>(i), DType::f32, rows, pool));
  }
  return {};
}

template <class T>
void put(const Tensor& t, const std::vector<double>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (t.dtype == DType::i32)
      t.i32()[i] = static_cast<int32_t>(values[i]);
    else
      t.values<T>()[i] = static_cast<T>(values[i]);
  }
}

// The largest difference over the largest expected value, or over `least`.
template <class T>
double distance(std::span<const T> got, const std::vector<double>& want, double least) {
  if (got.size() != want.size()) return INFINITY;
  double scale = least, worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    scale = std::max(scale, std::fabs(want[i]));
    const double error = std::fabs(static_cast<double>(got[i]) - want[i]);
    if (!(error <= worst)) worst = error;  // NaN counts
  }
  return worst / scale;
}

inline std::vector<double> values_of(const Array& a) {
  std::vector<double> all;
  for (const Var& v : a.v) all.push_back(v.value);
  return all;
}

}  // namespace loom::core::outside
