// Nodes of a Graph that share weights: Graph::again(), and "shared_with" in JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "e2e/temp_folder.hpp"
#include "loom/loom.hpp"

namespace shared_nodes {

using namespace loom;
using testing::HasSubstr;

// A tower that random halves of the input pass through, and a network over its outputs: with one
// tower that is applied again, or with a copy for each application.
struct Case {
  explicit Case(uint64_t seed) : draw(seed) {
    width = among(1, 4) * 2;
    calls = among(2, 4);
    deep = among(1, 3);
    for (int64_t i = 0; i < calls; ++i) positions.push_back(among(0, width));
    recurrent = among(0, 3) == 0;
    for (int64_t i = 0; i < deep; ++i) kinds.push_back(among(0, 2));
  }
  int64_t among(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(draw);
  }
  Layer tower_layer(int64_t i) const {
    if (recurrent && i == 0) return Lstm{.in = width, .hidden = width, .return_sequence = false};
    switch (kinds[static_cast<size_t>(i)]) {
      case 0: return LayerNorm{.width = width};
      case 1: return Dense{.in = width, .out = width, .activation = Activation::tanh};
      default: return Dense{.in = width, .out = width, .bias = false};
    }
  }
  Network network(bool shared) const {
    Graph g;
    std::vector<GraphValue> first;
    GraphValue sum;
    for (int64_t k = 0; k < calls; ++k) {
      const int64_t at = positions[static_cast<size_t>(k)];
      GraphValue v = g.add(Slice{.starts = {at}, .ends = {at + width}, .axes = {-1}}, {g.input()});
      if (recurrent) v = g.add(View{.shape = {0, 1, -1}}, {v});
      for (int64_t i = 0; i < deep; ++i) {
        v = k > 0 && shared ? g.again(first[static_cast<size_t>(i)], {v})
                            : g.add(tower_layer(i), {v});
        if (k == 0) first.push_back(v);
      }
      sum = k == 0
                ? v
                : g.add(Binary{k % 2 == 0 ? BinaryFunction::mul : BinaryFunction::add}, {sum, v});
    }
    g.output(g.add(Dense{.in = width, .out = 2}, {sum}));
    return Network::sequential({g}, {.input = {2 * width}, .seed = 5}).or_exit();
  }

  std::mt19937_64 draw;
  int64_t width = 2, calls = 2, deep = 1;
  bool recurrent = false;
  std::vector<int64_t> positions, kinds;
};

std::vector<double> values(const Network& net, const std::string& name) {
  const Tensor t = net.parameter(name).or_exit();
  const std::span<const float> all = t.values<float>().or_exit();
  return {all.begin(), all.end()};
}

// For each parameter of the network with one tower, those of the copies, in the order of the nodes
// with weights.
std::vector<std::vector<std::string>> copies_of(const Case& c, const Network& one,
                                                const Network& large) {
  const std::vector<ParameterInfo> own = one.parameters(), all = large.parameters();
  const size_t head = 2, tower = own.size() - head;
  EXPECT_EQ(all.size(), tower * static_cast<size_t>(c.calls) + head);
  std::vector<std::vector<std::string>> out;
  for (size_t i = 0; i < own.size(); ++i) {
    std::vector<std::string>& names = out.emplace_back();
    const auto times = i < tower ? static_cast<size_t>(c.calls) : size_t{1};
    const size_t at = i < tower ? i : i + tower * static_cast<size_t>(c.calls - 1);
    for (size_t k = 0; k < times; ++k) names.push_back(all[at + k * tower].name);
  }
  return out;
}

TEST(SharedNodes, ComputeAsCopiesAndLearnByTheSumOfTheirGradients) {
  for (uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    Case c(seed);
    Network one = c.network(true), large = c.network(false);
    const auto copies = copies_of(c, one, large);
    const std::vector<ParameterInfo> own = one.parameters();
    for (size_t i = 0; i < own.size(); ++i) {
      for (const std::string& name : copies[i])
        ASSERT_TRUE(large.set_parameter(name, one.parameter(own[i].name).or_exit()).ok());
    }
    std::normal_distribution<float> normal;
    const int64_t samples = c.among(1, 5);
    std::vector<float> x(static_cast<size_t>(samples * 2 * c.width)),
        y(static_cast<size_t>(samples * 2));
    for (float& v : x) v = normal(c.draw);
    for (float& v : y) v = normal(c.draw);
    const Tensor inputs = Tensor::view(x.data(), {samples, 2 * c.width});
    const Tensor targets = Tensor::view(y.data(), {samples, 2});
    const auto message = [&](const Network& net) {
      Session session = net.session().or_exit();
      const Tensor out = session.run(inputs).or_exit();
      const std::span<const float> all = out.values<float>().or_exit();
      return std::vector<float>(all.begin(), all.end());
    };
    EXPECT_EQ(message(one), message(large));

    std::vector<std::vector<double>> before;
    for (const ParameterInfo& p : own) before.push_back(values(one, p.name));
    const TrainerOptions options = {
        .loss = Loss::mse, .optimizer = {OptimizerKind::sgd}, .rate = 0.25, .batch = samples};
    Trainer a = Trainer::create(one, options).or_exit();
    Trainer b = Trainer::create(large, options).or_exit();
    (void)a.train_step(inputs, targets).or_exit();
    (void)b.train_step(inputs, targets).or_exit();
    for (size_t i = 0; i < own.size(); ++i) {
      const std::vector<double> after = values(one, own[i].name);
      std::vector<double> moved(after.size(), 0.0);
      double size = 1e-3;
      for (const std::string& name : copies[i]) {
        const std::vector<double> copy = values(large, name);
        for (size_t k = 0; k < copy.size(); ++k) {
          moved[k] += copy[k] - before[i][k];
          size = std::max(size, std::abs(copy[k]) + std::abs(copy[k] - before[i][k]));
        }
      }
      for (size_t k = 0; k < after.size(); ++k)
        EXPECT_NEAR(after[k] - before[i][k], moved[k], 2e-6 * size) << own[i].name << " " << k;
    }
  }
}

TEST(SharedNodes, ComeBackFromEveryFormWithOneSetOfWeights) {
  const core::test::TempFolder folder;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    Case c(seed);
    Network net = c.network(true);
    // In ONNX the ones of an untrained norm do not show that it is shared.
    std::normal_distribution<float> normal;
    for (const ParameterInfo& p : net.parameters()) {
      std::vector<float> drawn(values(net, p.name).size());
      for (float& v : drawn) v = normal(c.draw);
      const Shape shape = net.parameter(p.name).or_exit().shape();
      ASSERT_TRUE(net.set_parameter(p.name, Tensor::view(drawn.data(), shape)).ok());
    }
    const int64_t parameters = net.info().parameters;
    EXPECT_LT(parameters, c.network(false).info().parameters);
    EXPECT_THAT(net.summary(), HasSubstr(std::to_string(parameters)));
    const Network message = Network::from_json(net.json()).or_exit();
    EXPECT_EQ(message.json(), net.json());
    EXPECT_EQ(message.info().parameters, parameters);
    const std::vector<float> x(static_cast<size_t>(6 * c.width), 0.375f);
    const Tensor inputs = Tensor::view(x.data(), {3, 2 * c.width});
    const auto run = [&](const Network& n) {
      Session session = n.session().or_exit();
      const Tensor out = session.run(inputs).or_exit();
      const std::span<const float> all = out.values<float>().or_exit();
      return std::vector<float>(all.begin(), all.end());
    };
    for (const char* name : {"net.entity", "net.onnx"}) {
      const std::string path = folder.path() + "/" + name;
      ASSERT_TRUE(net.save(path).ok()) << name;
      const Network again = Network::load(path).or_exit();
      EXPECT_EQ(again.info().parameters, parameters) << name;
      const std::vector<float> got = run(again), want = run(net);
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_NEAR(got[i], want[i], 1e-5 * (1 + std::abs(want[i]))) << name;
    }
  }
}

// A table that two nodes read, compared with one node that is read twice, including rows without an
// id.
TEST(SharedNodes, OfAnEmbeddingLearnAsOneThatIsReadTwice) {
  const std::vector<int32_t> x = {0, 3, 3, 1, 5, 0, 5, 5}, y = {0, 1, 1, 0};
  const Tensor ids = Tensor::view(x.data(), {4, 2}), labels = Tensor::view(y.data(), {4});
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::adamw}) {
    std::vector<double> ends[2];
    for (const bool shared : {false, true}) {
      Graph g;
      const GraphValue a = g.add(Embedding{.vocab = 9, .width = 3}, {g.input()});
      const GraphValue b = shared ? g.again(a, {g.input()}) : a;
      g.output(g.add(Binary{BinaryFunction::mul}, {a, b}));
      Network net = Network::sequential({g, Dense{.in = 6, .out = 2}}, {.input = {2}}).or_exit();
      Trainer trainer =
          Trainer::create(net, {.optimizer = {kind}, .rate = 0.05, .batch = 4}).or_exit();
      for (int step = 0; step < 5; ++step) (void)trainer.train_step(ids, labels).or_exit();
      for (const ParameterInfo& p : net.parameters()) {
        const std::vector<double> all = values(net, p.name);
        ends[shared].insert(ends[shared].end(), all.begin(), all.end());
      }
    }
    ASSERT_EQ(ends[0].size(), ends[1].size());
    for (size_t i = 0; i < ends[0].size(); ++i) EXPECT_NEAR(ends[0][i], ends[1][i], 1e-6) << i;
  }
}

struct Refusal {
  std::string nodes, says;
};

TEST(SharedNodes, ThatCannotShareAreRefusedInOneLine) {
  const std::string first = R"({"name": "a", "type": "Dense", "in": 3, "out": 3}, )";
  const std::vector<Refusal> cases = {
      {first + R"({"type": "Dense", "in": 3, "out": 4, "shared_with": "a"})", "the shapes differ"},
      {first + R"({"type": "LayerNorm", "width": 3, "shared_with": "a"})",
       "must be before it and have the same parameters"},
      {first + R"({"type": "Dense", "in": 3, "out": 3, "shared_with": "b"})",
       "shares weights with 'b', which no node before it is called"},
      {R"({"name": "a", "type": "Dense", "in": 3, "out": 3, "shared_with": "a"})",
       "which no node before it is called"},
      {first + R"({"type": "Dense", "in": 3, "out": 3, "shared_with": 0})",
       "expected the name of a node"},
      {R"({"name": "a", "type": "Dense", "in": 3, "out": 3, "bias": false},
          {"type": "Dense", "in": 3, "out": 3, "shared_with": "a"})",
       "has no counterpart in"},
  };
  for (const Refusal& c : cases) {
    const auto net = Network::from_json(
        R"({"loom": 1, "input": [3], "layers": [{"type": "Graph", "nodes": [)" + c.nodes + "]}]}");
    ASSERT_FALSE(net.ok()) << c.nodes;
    EXPECT_THAT(net.error().str(), HasSubstr(c.says));
    EXPECT_EQ(net.error().str().find('\n'), std::string::npos);
  }
}

TEST(SharedNodes, OfTheInputAreRefused) {
  Graph g;
  const GraphValue a = g.add(Dense{.in = 3, .out = 3}, {g.input()});
  (void)g.again(g.input(), {a});
  const auto net = Network::sequential({g}, {.input = {3}});
  ASSERT_FALSE(net.ok());
  EXPECT_THAT(net.error().str(), HasSubstr("must be before it"));
}

}  // namespace shared_nodes
