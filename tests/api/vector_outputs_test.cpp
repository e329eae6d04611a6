// Networks whose output has no axis but the samples': [n] instead of [n, 1], as a Squeeze or a
// reduction in front of a loss leaves it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "loom/loom.hpp"

namespace vector_outputs {

using namespace loom;

// A random network, its end [n] or [n, 1], and how it is trained.
struct Case {
  explicit Case(uint64_t seed) : draw(seed) {
    static const std::vector<std::string> functions = {"tanh", "silu", "sigmoid"};
    const int64_t deep = among(0, 2);
    int64_t width = in = among(1, 6);
    for (int64_t i = 0; i < deep; ++i) {
      const int64_t next = among(1, 9);
      body += R"({"type": "Dense", "in": )" + std::to_string(width) + R"(, "out": )" +
              std::to_string(next) + R"(, "activation": ")" +
              functions[static_cast<size_t>(among(0, 2))] + "\"}, ";
      width = next;
    }
    const bool reduced = among(0, 2) == 0;
    body += R"({"type": "Dense", "in": )" + std::to_string(width) + R"(, "out": )" +
            std::to_string(reduced ? 5 : 1) + "}, ";
    if (reduced) body += R"({"type": "Reduce", "function": "mean", "axes": [1]}, )";
    const std::vector<Loss> losses = {Loss::mse, Loss::mae, Loss::huber, Loss::bce, Loss::quantile};
    options.loss = losses[static_cast<size_t>(among(0, 4))];
    const std::vector<OptimizerKind> kinds = {OptimizerKind::sgd, OptimizerKind::adam,
                                              OptimizerKind::sophia, OptimizerKind::lbfgs};
    options.optimizer.kind = kinds[static_cast<size_t>(among(0, 3))];
    options.rate = 0.02;
    options.batch = among(1, 5);
    if (options.optimizer.kind == OptimizerKind::lbfgs) options.batch.reset();
    // Sophia draws what it takes for targets, which only some losses say how to.
    if (options.optimizer.kind == OptimizerKind::sophia) options.loss = Loss::mse;
    const bool first_order = options.optimizer.kind == OptimizerKind::sgd ||
                             options.optimizer.kind == OptimizerKind::adam;
    if (first_order && !reduced && among(0, 3) == 0) options.rule = Rule::dfa;
    samples = among(2, 12);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < samples * in; ++i) x.push_back(normal(draw));
    for (int64_t i = 0; i < samples; ++i)
      y.push_back(options.loss == Loss::bce ? static_cast<float>(among(0, 1)) : normal(draw));
  }
  int64_t among(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(draw);
  }
  Network network(bool vector) const {
    return Network::from_json(R"({"loom": 1, "input": [)" + std::to_string(in) +
                              R"(], "layers": [{"type": "Graph", "nodes": [)" + body +
                              R"({"type": "View", "shape": )" + (vector ? "[-1]" : "[-1, 1]") +
                              "}]}]}")
        .or_exit();
  }
  Dataset data() const {
    return Dataset::from_arrays(Tensor::view(x.data(), {samples, in}),
                                Tensor::view(y.data(), {samples, 1}))
        .or_exit();
  }

  std::mt19937_64 draw;
  std::string body;
  int64_t in = 1, samples = 1;
  TrainerOptions options;
  std::vector<float> x, y;
};

TEST(VectorOutputs, AreTrainedToTheBitsOfColumns) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Case c(seed);
    std::string hashes[2];
    double losses[2], measured[2];
    for (const bool vector : {false, true}) {
      Network net = c.network(vector);
      Trainer trainer = Trainer::create(net, c.options).or_exit();
      const History history = trainer.fit(c.data(), {.epochs = 3}).or_exit();
      losses[vector] = history.epochs.back().train_loss;
      measured[vector] = trainer.evaluate(c.data()).or_exit().loss;
      hashes[vector] = trainer.weights_hash().or_exit();
    }
    EXPECT_EQ(hashes[0], hashes[1]);
    EXPECT_EQ(losses[0], losses[1]);
    EXPECT_EQ(measured[0], measured[1]);
  }
}

TEST(VectorOutputs, GoToALossOfOnesOwnAsTheNetworkGivesThem) {
  Case c(3);
  c.options = {.optimizer = {OptimizerKind::sgd}, .rate = 0.1, .batch = 16};
  Network net = c.network(true), column = c.network(false);
  const Tensor inputs = Tensor::view(c.x.data(), {c.samples, c.in});
  const auto squares = [&](const Shape& shape) {
    return [&c, shape](const Tensor& outputs, Tensor& gradients) -> Result<double> {
      EXPECT_EQ(outputs.shape(), shape);
      LOOM_ASSIGN(const std::span<const float> y, outputs.values<float>());
      LOOM_ASSIGN(const std::span<float> g, gradients.mutable_values<float>());
      for (size_t i = 0; i < y.size(); ++i) g[i] = y[i] - c.y[i];
      return 1.0;
    };
  };
  Trainer one = Trainer::create(net, c.options).or_exit();
  Trainer other = Trainer::create(column, c.options).or_exit();
  for (int step = 0; step < 3; ++step) {
    (void)one.train_step(inputs, squares({c.samples})).or_exit();
    (void)other.train_step(inputs, squares({c.samples, 1})).or_exit();
  }
  EXPECT_EQ(one.weights_hash().or_exit(), other.weights_hash().or_exit());
}

}  // namespace vector_outputs
