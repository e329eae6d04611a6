// Helpers of the f64 reference tests: matrices of doubles, a runner of its ops, and the comparison
// of a gradient with central differences of a forward pass.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "backend/reference/reference.hpp"
#include "base/numbers/rng.hpp"
#include "base/text.hpp"
#include "ops/ops.hpp"

namespace loom::core::test {

// A plain f64 matrix with `gap` values between rows; zeros, or uniform in [-1, 1).
class F64 {
 public:
  F64(int64_t rows, int64_t cols, int64_t gap = 0)
      : memory_(static_cast<size_t>(rows * (cols + gap))),
        tensor_{DType::f64, Layout::plain, Shape{rows, cols}, cols + gap,
                reinterpret_cast<std::byte*>(memory_.data())} {}
  static F64 random(int64_t rows, int64_t cols, uint64_t seed, int64_t gap = 0) {
    F64 x(rows, cols, gap);
    const Rng rng(seed, 21);
    for (int64_t i = 0; i < rows * cols; ++i) {
      x[i] = 2.0 * static_cast<double>(rng.uniform(static_cast<uint64_t>(i))) - 1.0;
    }
    return x;
  }
  F64(F64&&) = default;
  F64(const F64&) = delete;

  int64_t rows() const { return tensor_.rows(); }
  int64_t cols() const { return tensor_.cols(); }
  int64_t size() const { return rows() * cols(); }
  const Tensor& tensor() const { return tensor_; }
  double& at(int64_t r, int64_t c) const { return tensor_.row<double>(r)[c]; }
  double& operator[](int64_t i) const { return at(i / cols(), i % cols()); }
  // The same values as one vector; only without gaps.
  Tensor vector() const {
    return Tensor{DType::f64, Layout::plain, Shape{size()}, size(), tensor_.data};
  }

 private:
  std::vector<double> memory_;
  Tensor tensor_;
};

// A packed matrix of random weights, and its values as doubles.
class Weights64 {
 public:
  Weights64(DType dtype, int64_t rows, int64_t cols, uint64_t seed)
      : values_(rows, cols), geometry_(r16_geometry(dtype, rows, cols)) {
    memory_ = std::move(Buffer::allocate(geometry_.bytes()).value());
    const F64 random = F64::random(rows, cols, seed);
    std::vector<float> source;
    for (int64_t i = 0; i < random.size(); ++i) source.push_back(static_cast<float>(random[i]));
    pack(source);
  }
  void pack(const std::vector<float>& source) {
    const auto [rows, cols] = std::pair{geometry_.rows, geometry_.cols};
    r16_pack(geometry_, source.data(), 0, rows, ScaleScope::per_row,
             tensor_range(source.data(), rows * cols), memory_.data());
    for (int64_t r = 0; r < rows; ++r) {
      r16_decode_f64(geometry_, memory_.data(), r, 0, cols, &values_.at(r, 0));
    }
  }
  // Sets one weight; exact for f32 and f64.
  void set(int64_t i, float value) {
    std::vector<float> source;
    for (int64_t j = 0; j < values_.size(); ++j) source.push_back(static_cast<float>(values_[j]));
    source[static_cast<size_t>(i)] = value;
    pack(source);
  }
  const F64& values() const { return values_; }
  Tensor tensor() const { return r16_tensor(geometry_, memory_.data()); }

 private:
  F64 values_;
  R16 geometry_;
  Buffer memory_;
};

// Runs an op of the f64 reference on three lanes.
template <class Args>
void run64(void (*Ops::*op)(const Args&, const Lane&), const Args& args) {
  std::vector<std::byte> scratch(1 << 18);
  for (int lane = 2; lane >= 0; --lane) {
    (reference_ops_f64().*op)(args, Lane{lane, 3, scratch.data(), 1 << 18});
  }
}

inline double dot(const F64& a, const F64& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

inline void expect_close(const std::string& what, double got, double expected,
                         double tolerance = 1e-12) {
  EXPECT_NEAR(got, expected, tolerance * std::max(1.0, std::abs(expected))) << what;
}

// dx is the gradient of objective() with respect to the values of x.
inline void expect_gradient(const std::string& what, const F64& x, const F64& dx,
                            const std::function<double()>& objective) {
  constexpr double kStep = 1e-5;
  for (int64_t i = 0; i < x.size(); ++i) {
    const double value = x[i];
    x[i] = value + kStep;
    const double above = objective();
    x[i] = value - kStep;
    const double below = objective();
    x[i] = value;
    expect_close(cat(what, ", value ", i), dx[i], (above - below) / (2 * kStep), 1e-7);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace loom::core::test
