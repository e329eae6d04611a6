// Mesh and MeshTrainer as a program that embeds them meets them.
#include "loom/mesh.hpp"

#include <gtest/gtest.h>

#include "loom/graph.hpp"
#include "loom/session.hpp"

namespace loom {
namespace {

Network chain_of_two(int64_t seed = 3) {
  const NetworkOptions options{.input = {3}, .seed = static_cast<uint64_t>(seed)};
  return Network::sequential(
             {Dense{.in = 3, .out = 4, .activation = Activation::tanh}, Dense{.in = 4, .out = 2}},
             options)
      .or_exit();
}

TEST(PublicMesh, GivesWhatThePassGivesAsManyTicksLaterAsThereAreLayers) {
  const Network net = chain_of_two();
  std::vector<float> x(20 * 3);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 11) / 5 - 1;
  const Tensor samples = Tensor::copy<float>(x, {20, 3}).or_exit();
  const Tensor want = net.predict(samples).or_exit();
  Mesh mesh = Mesh::create(net).or_exit();
  EXPECT_EQ(mesh.latency(), 2);
  const Tensor got = mesh.run(samples).or_exit();
  ASSERT_EQ(got.shape(), (Shape{20, 2}));
  const auto y = got.values<float>().or_exit(), pass = want.values<float>().or_exit();
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(y[i], 0.0f);
  for (size_t i = 2; i < y.size(); ++i) EXPECT_EQ(y[i], pass[i - 2]) << i;
  // The same, a sample at a time.
  ASSERT_TRUE(mesh.reset().ok());
  for (int64_t t = 0; t < 20; ++t) {
    const Tensor one = mesh.push(samples.slice(t, 1).or_exit()).or_exit();
    const auto now = one.values<float>().or_exit();
    EXPECT_EQ(now[0], y[static_cast<size_t>(2 * t)]);
    EXPECT_EQ(mesh.stale(), t == 0 ? 1 : 0);
  }
  EXPECT_EQ(mesh.ticks(), 20);
  ASSERT_EQ(mesh.cells().size(), 2u);
  EXPECT_EQ(mesh.cells()[1].layer, "Dense");
  EXPECT_EQ(mesh.cells()[1].output, (Shape{2}));
  EXPECT_EQ(mesh.cells()[1].first_tick, 2);
}

TEST(PublicMesh, ReadsPortsByNameAndServesSeveralStreams) {
  const Network net = chain_of_two();
  MeshOptions options;
  options.ports = {{"eye", {4}}};
  options.links = {{.to = {0, 0, 1, 0}, .port = "eye"}};
  options.batch = 2;
  Mesh mesh = Mesh::create(net, options).or_exit();
  EXPECT_EQ(mesh.latency(), 1);
  const std::vector<float> values(8, 0.5f);
  ASSERT_TRUE(mesh.set_input(Tensor::copy<float>(values, {2, 4}).or_exit(), "eye").ok());
  ASSERT_TRUE(mesh.tick(3).ok());
  EXPECT_EQ(mesh.stale(), 1);  // "input" is not set
  EXPECT_FALSE(mesh.holds({0, 0, 0, 0}));
  EXPECT_TRUE(mesh.holds({0, 0, 1, 0}));
  const Tensor y = mesh.output().or_exit();
  ASSERT_EQ(y.shape(), (Shape{2, 2}));
  const auto v = y.values<float>().or_exit();
  EXPECT_EQ(v[0], v[2]);
  EXPECT_NE(v[0], 0.0f);
}

// y = tanh(x) + W eye: `eye` is an Input layer with a width that no cell has.
Network of_two_inputs() {
  Grid grid({1, 1, 4, 1});
  grid.put({0, 0, 0, 0}, Dense{.in = 3, .out = 2, .activation = Activation::tanh})
      .put({0, 0, 1, 0}, Input{.input = "eye", .shape = {5}})
      .put({0, 0, 2, 0}, Dense{.in = 5, .out = 2})
      .put({0, 0, 3, 0}, Residual{})
      .link({0, 0, 3, 0}, {0, 0, 0, 0});
  return Network::create(grid, {.input = {3}, .seed = 4}).or_exit();
}

Tensor wave(const Shape& shape, int64_t period) {
  Tensor t = Tensor::zeros(shape).or_exit();
  int64_t i = 0;
  for (float& v : t.mutable_values<float>().or_exit())
    v = static_cast<float>((i++ * 7) % period) / static_cast<float>(period) - 0.5f;
  return t;
}

TEST(PublicMesh, HasAPortForEveryInputLayer) {
  const Network net = of_two_inputs();
  const Tensor x = wave({12, 3}, 11), eye = wave({12, 5}, 17);
  Session session = net.session({.max_batch = 12}).or_exit();
  const Tensor pass = session.run(std::vector<Tensor>{x, eye}).or_exit()[0];
  // The link to the first cell is one tick; the second has the delay of `eye`.
  MeshOptions options;
  options.links = {{.to = {0, 0, 0, 0}, .delay = 2}};
  Mesh mesh = Mesh::create(net, options).or_exit();
  EXPECT_EQ(mesh.latency(), 3);
  const Tensor got = mesh.run(x, {{"eye", eye}}).or_exit();
  const auto y = got.values<float>().or_exit(), want = pass.values<float>().or_exit();
  for (size_t i = 4; i < y.size(); ++i) EXPECT_EQ(y[i], want[i - 4]) << i;
  // Port by port, tick by tick.
  ASSERT_TRUE(mesh.reset().ok());
  for (int64_t t = 0; t < 12; ++t) {
    ASSERT_TRUE(mesh.set_input(eye.slice(t, 1).or_exit(), "eye").ok());
    const Tensor one = mesh.push(x.slice(t, 1).or_exit()).or_exit();
    EXPECT_EQ(one.values<float>().or_exit()[0], y[static_cast<size_t>(2 * t)]);
  }
  const auto none = mesh.run(x, {{"ear", eye}});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "the mesh has no port 'ear'; it has input, eye");
  EXPECT_FALSE(mesh.run(x, {{"eye", wave({3, 5}, 7)}}).ok());
}

TEST(PublicMesh, TrainsOnAllPorts) {
  const Network net = of_two_inputs();
  const Tensor x = wave({60, 3}, 11), eye = wave({60, 5}, 17);
  Tensor y = Tensor::zeros({60, 2}).or_exit();
  {
    const auto from = eye.values<float>().or_exit();
    const auto to = y.mutable_values<float>().or_exit();
    for (size_t i = 0; i < to.size(); ++i) to[i] = from[i / 2 * 5 + i % 2];
  }
  const Dataset one = Dataset::from_arrays(x, y).or_exit();
  MeshOptions options;
  options.links = {{.to = {0, 0, 0, 0}, .delay = 2}};
  MeshTrainerOptions how;
  how.rate = 0.05;
  MeshTrainer trainer = MeshTrainer::create(net, options, how).or_exit();
  const auto missing = trainer.fit(one);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message,
            "the samples have no input for the port 'eye'; add one with its name");
  const Dataset both = one.with_input("eye", eye).or_exit();
  const auto extra = trainer.fit(both.with_input("ear", eye).or_exit());
  ASSERT_FALSE(extra.ok());
  EXPECT_EQ(extra.error().message,
            "the samples have an input 'ear', which the mesh has no port for");
  const auto epochs = trainer.fit(both, {.epochs = 60}).or_exit();
  EXPECT_LT(epochs.back().loss, 0.05 * epochs.front().loss);
}

TEST(PublicMesh, RefusesIdsThatNoTableHas) {
  const Network net =
      Network::sequential({Embedding{.vocab = 4, .width = 2}, Dense{.in = 2, .out = 2}},
                          {.input = {1}})
          .or_exit();
  MeshOptions options;
  options.ports = {{"word", {1}}};
  options.links = {{.to = {0, 0, 0, 0}, .port = "word"}};
  Mesh mesh = Mesh::create(net, options).or_exit();
  const auto set = [&](int64_t id) {
    return mesh.set_input(Tensor::copy<int64_t>(std::vector<int64_t>{id}, {1, 1}).or_exit(),
                          "word");
  };
  EXPECT_TRUE(set(3).ok());
  EXPECT_EQ(set(4).error().code, Code::out_of_range);
  EXPECT_FALSE(mesh.set_input(Tensor::zeros({1, 1}).or_exit(), "word").ok());
}

TEST(PublicMesh, RefusesInOneLine) {
  const Network net = chain_of_two();
  const Coord first{0, 0, 0, 0}, second{0, 0, 1, 0};
  struct Case {
    MeshOptions options;
    const char* message;
  };
  const Case cases[] = {
      {{.links = {{.to = {5, 0, 0, 0}, .from = first}}}, "where the mesh has no cell"},
      {{.links = {{.to = second, .from = second}}}, "does not fit"},
      {{.links = {{.to = second, .delay = 0}}}, "has a delay of 0 ticks"},
      {{.links = {{.to = second, .from = first, .nothing = true}}}, "several sources"},
      {{.links = {{.to = second, .port = "ear"}}}, "which the mesh does not have"},
      {{.batch = 0}, "batch is 0"},
  };
  for (const Case& c : cases) {
    const Result<Mesh> no = Mesh::create(net, c.options);
    ASSERT_FALSE(no.ok()) << c.message;
    EXPECT_NE(no.error().message.find(c.message), std::string::npos) << no.error().message;
    EXPECT_EQ(no.error().message.find('\n'), std::string::npos);
  }
  Graph two;
  two.output(two.add(Dense{.in = 3, .out = 2}, {two.input()}));
  two.output(two.add(Dense{.in = 3, .out = 4}, {two.input()}));
  const Result<Mesh> split = Mesh::create(Network::sequential({two}, {.input = {3}}).or_exit());
  ASSERT_FALSE(split.ok());
  EXPECT_NE(split.error().message.find("gives 2 outputs"), std::string::npos);
  Mesh mesh = Mesh::create(net).or_exit();
  const Tensor wide = Tensor::zeros({1, 4}).or_exit();
  EXPECT_FALSE(mesh.set_input(wide).ok());
  EXPECT_FALSE(mesh.set_input(wide, "ear").ok());
  EXPECT_FALSE(mesh.run(wide).ok());
  EXPECT_FALSE(mesh.output(Coord{9, 9, 9, 9}).ok());
}

// Class 1 if the previous sample was positive: a sample alone does not determine its class.
TEST(PublicMesh, TrainsOnAStreamOfLabels) {
  constexpr int64_t kSamples = 600;
  std::vector<float> x;
  std::vector<int32_t> labels;
  uint32_t random = 1;
  for (int64_t i = 0; i < kSamples; ++i) {
    random = random * 1664525u + 1013904223u;
    labels.push_back(i > 0 && x.back() > 0 ? 1 : 0);
    x.push_back((random >> 16) % 2 == 0 ? 1.0f : -1.0f);
  }
  const Dataset data = Dataset::from_arrays(Tensor::copy<float>(x, {kSamples, 1, 1}).or_exit(),
                                            Tensor::copy<int32_t>(labels, {kSamples}).or_exit())
                           .or_exit();
  const Network net = Network::sequential({Rnn{.in = 1, .hidden = 8, .return_sequence = false},
                                           Dense{.in = 8, .out = 2}},
                                          {.input = {1, 1}, .seed = 5})
                          .or_exit();
  MeshTrainerOptions options;
  options.window = 8;
  options.rate = 0.01;
  MeshTrainer trainer = MeshTrainer::create(net, {.carry = true, .batch = 3}, options).or_exit();
  const std::vector<MeshEpoch> epochs = trainer.fit(data, {.epochs = 30}).or_exit();
  ASSERT_EQ(epochs.size(), 30u);
  ASSERT_TRUE(epochs.back().accuracy.has_value());
  EXPECT_GT(*epochs.back().accuracy, 0.99);
  EXPECT_LT(epochs.back().loss, epochs.front().loss);
  // The network has the weights: a mesh of it, one stream, answers correctly.
  Mesh mesh = Mesh::create(net, {.carry = true}).or_exit();
  const Tensor y = mesh.run(data.x()).or_exit();
  const auto v = y.values<float>().or_exit();
  int64_t right = 0;
  for (int64_t i = 1; i + 1 < kSamples; ++i) {
    const auto at = static_cast<size_t>(2 * (i + 1));  // two layers: one tick later
    right += (v[at + 1] > v[at]) == (labels[static_cast<size_t>(i)] == 1) ? 1 : 0;
  }
  EXPECT_GT(right, (kSamples - 2) * 98 / 100);

  options.memory = 1024;
  MeshTrainer small = MeshTrainer::create(net, {.carry = true}, options).or_exit();
  const auto no = small.fit(data);
  ASSERT_FALSE(no.ok());
  EXPECT_EQ(no.error().code, Code::out_of_memory);
}

}  // namespace
}  // namespace loom
