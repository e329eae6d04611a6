// A network of one block with random weights, and sums in doubles to compare it with.
#pragma once

#include "base/text.hpp"
#include "base/threads/thread_pool.hpp"
#include "grid/builders.hpp"
#include "grid/init.hpp"
#include "layers/blocks/blocks.hpp"
#include "layers/core/graph_maker.hpp"
#include "layers/layer_fixture.hpp"

namespace loom::core::test::block_formulas {

using Make = Result<LayerConfig>;

inline Make block(std::string_view name, const std::vector<Field>& fields) {
  const LayerDef* def = find_layer(name);
  if (def == nullptr) return invalid("no such block");
  return make_layer(*def, fields);
}

// A network of one layer with random weights; tables that are not trained are as they begin.
class Rig {
 public:
  Rig(Make layer, const Shape& input) : input_(input) {
    EXPECT_TRUE(layer.ok()) << layer.error().str();
    GridSpec grid(1, 1, 1, 1);
    EXPECT_TRUE(grid.put({0, 0, 0, 0}, {std::move(*layer), {}}).ok());
    Result<Network> network = Network::finalize(grid, input);
    EXPECT_TRUE(network.ok()) << network.error().str();
    network_ = std::make_unique<Network>(std::move(*network));
    for (size_t i = 0; i < network_->params().size(); ++i) fill(static_cast<int>(i));
    SessionOptions options;
    options.sequences = input[0];
    Result<Session> session =
        Session::create(*network_, cpu_ops(best_isa()), pool_, network_->input(), options);
    EXPECT_TRUE(session.ok()) << session.error().str();
    session_ = std::make_unique<Session>(std::move(*session));
  }

  Values weight(size_t i) const { return weights_.at(i); }
  size_t count() const { return weights_.size(); }

  Values run(const std::vector<float>& values) {
    std::vector<float> x = values;
    Tensor t;
    t.shape = input_;
    t.row_stride = input_.last();
    t.data = reinterpret_cast<std::byte*>(x.data());
    const Result<Tensor> y = session_->forward(t, 0, 1);
    EXPECT_TRUE(y.ok()) << y.error().str();
    return {y->f32(), y->f32() + y->shape.count()};
  }
  Values run_ids(std::vector<int32_t> ids) {
    Tensor t;
    t.dtype = DType::i32;
    t.shape = input_;
    t.row_stride = input_.last();
    t.data = reinterpret_cast<std::byte*>(ids.data());
    const Result<Tensor> y = session_->forward(t, 0, 1);
    EXPECT_TRUE(y.ok()) << y.error().str();
    return {y->f32(), y->f32() + y->shape.count()};
  }

 private:
  void fill(int i) {
    const ParamSpec& spec = network_->params()[static_cast<size_t>(i)].spec;
    std::vector<float> values =
        random_values(spec.shape.count(), 100 + static_cast<uint64_t>(i), 0.5f);
    if (!spec.trained) init_values(*network_, i, 1, 0, spec.shape.count(), values.data());
    const int64_t cols = spec.matrix() ? spec.shape[1] : 1;
    const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
      std::copy_n(values.begin() + first * cols, count * cols, out);
      return {};
    };
    EXPECT_TRUE(network_->load_param(i, DType::f32, rows, pool_).ok());
    weights_.emplace_back(values.begin(), values.end());
  }

  ThreadPool pool_{2, true};
  Shape input_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<Session> session_;
  std::vector<Values> weights_;
};

inline void expect_near(const Values& got, const Values& want) {
  ASSERT_EQ(got.size(), want.size());
  double largest = 1e-3;
  for (const double v : want) largest = std::max(largest, std::fabs(v));
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-5 * largest) << i;
}

inline Values doubles(const std::vector<float>& x) {
  return {x.begin(), x.end()};
}

inline double sigmoid(double v) {
  return 1 / (1 + std::exp(-v));
}

// y[r, o] = sum_i x[r, i] w[o, i] + b[o]
inline Values dense(const Values& x, const Values& w, const Values& b, int64_t in, int64_t out) {
  const auto rows = static_cast<int64_t>(x.size()) / in;
  Values y;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < out; ++o) {
      double sum = b.empty() ? 0 : b[static_cast<size_t>(o)];
      for (int64_t i = 0; i < in; ++i)
        sum += x[static_cast<size_t>(r * in + i)] * w[static_cast<size_t>(o * in + i)];
      y.push_back(sum);
    }
  }
  return y;
}

// Small numbers that a seed chooses.
class Choice {
 public:
  explicit Choice(uint64_t seed) : rng_(seed, 9) {}
  int64_t from(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(rng_.bits(at_++) % static_cast<uint64_t>(most - least + 1));
  }
  bool yes() { return from(0, 1) == 1; }

 private:
  Rng rng_;
  uint64_t at_ = 0;
};

}  // namespace loom::core::test::block_formulas
