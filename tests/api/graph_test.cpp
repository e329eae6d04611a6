// Graphs through the public API: built in code, trained, saved, read again, with the same bits.
#include "loom/graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "loom/loom.hpp"

namespace loom {
namespace {

// An image through two parallel convolutions, joined, and a skip around a third: a graph that is
// not a chain.
Graph two_branches() {
  Graph g;
  const GraphValue left =
      g.add(Conv2d{.in = 2, .out = 3, .padding = {1}, .activation = Activation::relu}, {g.input()},
            "left");
  const GraphValue right = g.add(Conv2d{.in = 2, .out = 2, .kernel = {1}}, {g.input()}, "right");
  const GraphValue both = g.add(Concat{.axis = 1}, {left, right}, "both");
  const GraphValue deeper = g.add(Conv2d{.in = 5, .out = 5, .padding = {1}}, {both});
  const GraphValue sum = g.add(Binary{}, {both, deeper}, "sum");
  g.output(g.add(Reduce{.function = Reduction::mean, .axes = {2, 3}}, {sum}));
  return g;
}

Network made() {
  return Network::sequential({two_branches(), Dense{.in = 5, .out = 2}},
                             {.input = {2, 6, 6}, .seed = 3})
      .or_exit();
}

std::vector<float> images(int64_t count) {
  std::vector<float> x(static_cast<size_t>(count * 72));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 37) % 23) / 11.0f - 1.0f;
  return x;
}

TEST(GraphApi, ShapesAndParametersAreThoseOfItsNodes) {
  const Network net = made();
  EXPECT_EQ(net.info().output, (Shape{2}));
  EXPECT_TRUE(net.parameter("(0, 0, 0, 0)/0/weight").ok());
  EXPECT_TRUE(net.parameter("(0, 0, 0, 0)/3/bias").ok());
  EXPECT_NE(net.json().find("\"name\":\"both\",\"from\":[\"left\",\"right\"]"), std::string::npos)
      << net.json();
}

TEST(GraphApi, AFileGivesTheSameBits) {
  const Network net = made();
  const std::vector<float> x = images(4);
  const Tensor in = Tensor::view(x.data(), {4, 2, 6, 6});
  const Tensor want = net.predict(in).or_exit();
  for (const NetworkFormat format : {NetworkFormat::entity, NetworkFormat::json}) {
    const std::string bytes = net.save_bytes(format).or_exit();
    const auto read = Network::load(FileBytes{std::as_bytes(std::span(bytes))});
    ASSERT_TRUE(read.ok()) << network_format_name(format) << ": " << read.error().str();
    const Tensor got = read->predict(in).or_exit();
    const auto a = got.values<float>().or_exit(), b = want.values<float>().or_exit();
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << network_format_name(format);
  }
}

TEST(GraphApi, WhatIsWrongNamesTheNode) {
  Graph g;
  g.add(Conv2d{.in = 2, .out = 3}, {g.input()}, "first");
  g.add(Binary{}, {GraphValue{0}, g.input()}, "sum");
  const auto net = Network::sequential({g}, {.input = {2, 6, 6}});
  ASSERT_FALSE(net.ok());
  EXPECT_NE(net.error().message.find("node 'sum' of Graph: Binary add: [1, 3, 4, 4] and"),
            std::string::npos)
      << net.error().str();
}

}  // namespace
}  // namespace loom
