// Runs one layer in a 1x1x1x1 grid with pseudo-random weights, and gives tests the same weights as
// doubles.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "backend/cpu/cpu.hpp"
#include "backend/reference/reference.hpp"
#include "base/numbers/rng.hpp"
#include "base/threads/thread_pool.hpp"
#include "grid/grid_testing.hpp"
#include "grid/session.hpp"

namespace loom::core::test {

using Values = std::vector<double>;

inline std::vector<float> random_values(int64_t n, uint64_t stream, float scale = 1.0f) {
  const Rng rng(7, stream);
  std::vector<float> out(static_cast<size_t>(n));
  for (size_t i = 0; i < out.size(); ++i) out[i] = scale * (2 * rng.uniform(i) - 1);
  return out;
}

class LayerRig {
 public:
  LayerRig(LayerConfig layer, const Shape& input, int64_t sequences = 1, int64_t positions = 0,
           int lanes = 2)
      : pool_(lanes, true) {
    GridSpec grid(1, 1, 1, 1);
    EXPECT_TRUE(grid.put({0, 0, 0, 0}, {std::move(layer), {}}).ok());
    Result<Network> network = Network::finalize(grid, input);
    EXPECT_TRUE(network.ok()) << network.error().str();
    network_ = std::make_unique<Network>(std::move(*network));
    for (size_t i = 0; i < network_->params().size(); ++i) {
      const Shape& shape = network_->params()[i].spec.shape;
      weights_.push_back(random_values(shape.count(), 100 + i, 0.5f));
      if (!network_->params()[i].spec.trained) {
        for (float& v : weights_.back()) v = std::fabs(v) + 0.1f;  // a variance, maybe
      }
      const int64_t cols = shape.rank() == 2 ? shape[1] : 1;
      const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
        std::copy_n(weights_.back().begin() + first * cols, count * cols, out);
        return {};
      };
      EXPECT_TRUE(network_->load_param(static_cast<int>(i), DType::f32, rows, pool_).ok());
    }
    SessionOptions options;
    options.sequences = sequences;
    options.max_positions = positions;
    Result<Session> session =
        Session::create(*network_, cpu_ops(best_isa()), pool_, input, options);
    EXPECT_TRUE(session.ok()) << session.error().str();
    session_ = std::make_unique<Session>(std::move(*session));
  }

  // The parameter called `name` as doubles.
  Values weight(const std::string& name) const {
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (network_->params()[i].spec.name == name)
        return Values(weights_[i].begin(), weights_[i].end());
    }
    ADD_FAILURE() << "no parameter " << name;
    return {};
  }

  std::vector<float> run(std::vector<float> x, const Shape& shape) {
    Tensor t;
    t.shape = shape;
    t.row_stride = shape.last();
    t.data = reinterpret_cast<std::byte*>(x.data());
    return read(session_->forward(t, 0, 1));
  }
  std::vector<float> run_ids(std::vector<int32_t> ids, const Shape& shape) {
    Tensor t;
    t.dtype = DType::i32;
    t.shape = shape;
    t.row_stride = shape.last();
    t.data = reinterpret_cast<std::byte*>(ids.data());
    return read(session_->forward(t, 0, 1));
  }
  Session& session() { return *session_; }

 private:
  static std::vector<float> read(const Result<Tensor>& y) {
    EXPECT_TRUE(y.ok()) << y.error().str();
    return {y->f32(), y->f32() + y->shape.count()};
  }
  ThreadPool pool_;
  std::unique_ptr<Network> network_;
  std::vector<std::vector<float>> weights_;
  std::unique_ptr<Session> session_;
};

// y[r, n] = sum_k x[r, k] w[n, k] (+ bias[n])
inline Values linear(const Values& x, const Values& w, const Values& bias, size_t k) {
  const size_t rows = x.size() / k, n = w.size() / k;
  Values y(rows * n);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t o = 0; o < n; ++o) {
      double sum = bias.empty() ? 0 : bias[o];
      for (size_t i = 0; i < k; ++i) sum += x[r * k + i] * w[o * k + i];
      y[r * n + o] = sum;
    }
  }
  return y;
}

inline Values doubles(const std::vector<float>& v) {
  return Values(v.begin(), v.end());
}

inline void expect_near(const std::vector<float>& got, const Values& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], tolerance * (1 + std::fabs(want[i]))) << "at " << i;
  }
}

}  // namespace loom::core::test
