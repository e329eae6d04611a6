// Mesh and MeshTrainer as a program that embeds them meets them.
#include "loom/mesh.hpp"

#include <gtest/gtest.h>

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
  EXPECT_EQ(mesh.stale(), 1);  // nobody set "input"
  EXPECT_FALSE(mesh.holds({0, 0, 0, 0}));
  EXPECT_TRUE(mesh.holds({0, 0, 1, 0}));
  const Tensor y = mesh.output().or_exit();
  ASSERT_EQ(y.shape(), (Shape{2, 2}));
  const auto v = y.values<float>().or_exit();
  EXPECT_EQ(v[0], v[2]);
  EXPECT_NE(v[0], 0.0f);
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
  Mesh mesh = Mesh::create(net).or_exit();
  const Tensor wide = Tensor::zeros({1, 4}).or_exit();
  EXPECT_FALSE(mesh.set_input(wide).ok());
  EXPECT_FALSE(mesh.set_input(wide, "ear").ok());
  EXPECT_FALSE(mesh.run(wide).ok());
  EXPECT_FALSE(mesh.output(Coord{9, 9, 9, 9}).ok());
}

// Class 1 where the sample before was positive: nothing in a sample says so.
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
  // The network has the weights: a mesh of it, one stream, answers right.
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
