// Shared by the tests of dtype: reproducible samples, error measures, neighbours of a float.
// Also names for parameterised tests.
// Uses libm freely: only the library must not.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/numbers/bits.hpp"
#include "base/numbers/rng.hpp"
#include "dtype/codecs/codec.hpp"
#include "dtype/r16/r16.hpp"

namespace loom::core::test {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// N(0,1) by Box and Muller.
inline std::vector<float> normal_samples(size_t n, uint64_t seed = 1) {
  const Rng rng(seed, 0);
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) {
    const double u = 1.0 - static_cast<double>(rng.uniform(2 * i));
    const double angle = 2 * M_PI * static_cast<double>(rng.uniform(2 * i + 1));
    out[i] = static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(angle));
  }
  return out;
}

inline double snr_db(const std::vector<float>& x, const std::vector<double>& y) {
  double signal = 0, noise = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = static_cast<double>(x[i]);
    signal += v * v;
    noise += (v - y[i]) * (v - y[i]);
  }
  return 10 * std::log10(signal / noise);
}

inline double cosine(const std::vector<float>& x, const std::vector<double>& y) {
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = static_cast<double>(x[i]);
    xy += v * y[i];
    xx += v * v;
    yy += y[i] * y[i];
  }
  return xy / std::sqrt(xx * yy);
}

// The values of one tensor after a round trip through `dtype`: packed as one row and read back.
inline std::vector<double> through(DType dtype, const std::vector<float>& x) {
  const auto n = static_cast<int64_t>(x.size());
  const R16 g = r16_geometry(dtype, 1, n);
  std::vector<std::byte> data(static_cast<size_t>(g.bytes()));
  r16_pack(g, x.data(), 0, 1, ScaleScope::per_tensor, tensor_range(x.data(), n), data.data());
  std::vector<double> out(x.size());
  r16_decode_f64(g, data.data(), 0, 0, n, out.data());
  return out;
}

inline uint64_t bits_of(double x) {
  return bit_cast<uint64_t>(x);
}

// Equal bits, or both NaN.
inline bool same(double a, double b) {
  return (a != a && b != b) || bits_of(a) == bits_of(b);
}
inline bool same(float a, float b) {
  return (a != a && b != b) || f32_bits(a) == f32_bits(b);
}

inline double above(double x) {
  return std::nextafter(x, kInf);
}
inline double below(double x) {
  return std::nextafter(x, -kInf);
}
inline float above(float x) {
  return std::nextafterf(x, std::numeric_limits<float>::infinity());
}
inline float below(float x) {
  return std::nextafterf(x, -std::numeric_limits<float>::infinity());
}

// For INSTANTIATE_TEST_SUITE_P over types.
inline std::vector<DType> all_dtypes() {
  std::vector<DType> out;
  for (const DTypeInfo& info : dtype_table()) out.push_back(info.dtype);
  return out;
}
inline std::string dtype_test_name(const testing::TestParamInfo<DType>& row) {
  return std::string(dtype_name(row.param));
}

}  // namespace loom::core::test
