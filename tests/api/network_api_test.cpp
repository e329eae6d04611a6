// Networks through the public interface: created in code, trained on arrays, saved, loaded,
// queried. Nothing here includes a header of src/ except the table of released kinds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "e2e/temp_folder.hpp"
#include "layers/blocks/blocks.hpp"
#include "loom/loom.hpp"
#include "ops/args.hpp"

namespace {

using namespace loom;
using testing::HasSubstr;

std::string scratch(const std::string& name) {
  static const core::test::TempFolder folder;
  return folder.path() + "/" + name;
}

// Numbers in [-1, 1) that are the same everywhere.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed * 2 + 1) {}
  float next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(state_ >> 40) / static_cast<float>(1 << 23) - 1.0f;
  }
  int64_t below(int64_t n) {
    return static_cast<int64_t>((next() + 1.0f) / 2.0f * static_cast<float>(n));
  }
  std::vector<float> ramp(int64_t n) {
    std::vector<float> out(static_cast<size_t>(n));
    for (float& v : out) v = next();
    return out;
  }

 private:
  uint64_t state_;
};

Network small_mlp(DType dtype = DType::float32, uint64_t seed = 7) {
  return Network::sequential(
             {Dense{.in = 4, .out = 16, .activation = Activation::tanh}, Dense{.in = 16, .out = 3}},
             {.input = {4}, .seed = seed, .dtype = dtype})
      .or_exit();
}

// Three classes by the sign of two sums: learnable by a small network.
Dataset blobs(int64_t samples, uint64_t seed) {
  Numbers numbers(seed);
  const std::vector<float> x = numbers.ramp(samples * 4);
  std::vector<int32_t> y;
  for (int64_t i = 0; i < samples; ++i) {
    const float* row = x.data() + i * 4;
    y.push_back(row[0] + row[1] > 0.3f ? 0 : row[2] - row[3] > 0.0f ? 1 : 2);
  }
  return Dataset::from_arrays(Tensor::view(x.data(), {samples, 4}),
                              Tensor::view(y.data(), {samples}))
      .or_exit();
}

std::vector<float> floats(const Tensor& t) {
  const auto values = t.values<float>().or_exit();
  return {values.begin(), values.end()};
}

TEST(NetworkApi, GivesWhatItsFormulaSays) {
  Network net = Network::sequential({Dense{.in = 2, .out = 1}}, {.input = {2}}).or_exit();
  const std::vector<float> w = {2.0f, -3.0f}, b = {0.5f}, x = {1.0f, 1.0f, 4.0f, 2.0f};
  ASSERT_TRUE(net.set_parameter("(0, 0, 0, 0)/weight", Tensor::view(w.data(), {1, 2})).ok());
  ASSERT_TRUE(net.set_parameter("(0, 0, 0, 0)/bias", Tensor::view(b.data(), {1})).ok());
  const Tensor y = net.predict(Tensor::view(x.data(), {2, 2})).or_exit();
  EXPECT_EQ(y.shape(), (Shape{2, 1}));
  EXPECT_EQ(floats(y), (std::vector<float>{-0.5f, 2.5f}));
}

TEST(NetworkApi, EveryTypedLayerHasTheDefaultsOfItsTable) {
  // A layer by name and nothing else, and the struct with the same extents, describe one network.
  struct Case {
    Layer typed, bare;
    Shape input;
  };
  const std::vector<Case> cases = {
      {Dense{}, {"Dense", {}}, {1}},
      {Conv1d{}, {"CNN1", {}}, {1, 8}},
      {Conv2d{}, {"CNN2", {}}, {1, 8, 8}},
      {Conv3d{}, {"CNN3", {}}, {1, 4, 4, 4}},
      {ConvTransposed1d{}, {"ConvTransposed1D", {}}, {1, 8}},
      {ConvTransposed2d{}, {"ConvTransposed2D", {}}, {1, 8, 8}},
      {ConvTransposed3d{}, {"ConvTransposed3D", {}}, {1, 4, 4, 4}},
      {Rnn{}, {"RNN", {}}, {5, 1}},
      {Lstm{}, {"LSTM", {}}, {5, 1}},
      {Gru{}, {"GRU", {}}, {5, 1}},
      {Embedding{}, {"Embedding", {}}, {5}},
      {MultiHeadAttention{.width = 2, .head_dim = 2},
       {"MultiHeadAttention", {{"width", int64_t{2}}, {"head_dim", int64_t{2}}}},
       {5, 2}},
      {SwiGlu{}, {"SwiGLU", {}}, {5, 1}},
      {RmsNorm{}, {"RMSNorm", {}}, {5, 1}},
      {LayerNorm{}, {"LayerNorm", {}}, {5, 1}},
      {Dropout{}, {"Dropout", {}}, {5}},
      {BatchNorm{}, {"BatchNorm", {}}, {1, 5}},
      {GroupNorm{}, {"GroupNorm", {}}, {1, 5}},
      {InstanceNorm{}, {"InstanceNorm", {}}, {1, 5}},
      {KMeans{}, {"KMeans", {}}, {5, 1}},
      {Softmax{}, {"Softmax", {}}, {5}},
      {Pool{}, {"Pool", {}}, {1, 8}},
      {Flatten{}, {"Flatten", {}}, {2, 3}},
      {Reshape{.shape = {3, -1}}, {"Reshape", {{"shape", Axes{3, -1}}}}, {2, 3}},
      {Permute{.axes = {1, 0}}, {"Permute", {{"axes", Axes{1, 0}}}}, {2, 3}},
      {Pad{}, {"Pad", {}}, {2, 3}},
      {Upsample{}, {"Upsample", {}}, {1, 4}},
      {PixelShuffle{}, {"PixelShuffle", {}}, {4, 3}},
      {Sequential{{Dense{}}}, {"Sequential", {}, {Layer{"Dense", {}}}}, {1}},
      {Residual{{Dense{}}}, {"Residual", {}, {Layer{"Dense", {}}}}, {1}},
      {Parallel{{Dense{}}}, {"Parallel", {}, {Layer{"Dense", {}}}}, {1}},
  };
  const auto kinds = core::layer_table();
  const auto released = std::count_if(kinds.begin(), kinds.end(), [](const core::LayerDef* def) {
    return core::released(def->kind);
  });
  EXPECT_EQ(static_cast<int64_t>(cases.size()), released)
      << "a layer kind has no struct, or no case here";
  EXPECT_EQ(layer_types().size(), kinds.size() + core::block_table().size());
  for (const Case& c : cases) {
    const auto typed = Network::sequential({c.typed}, {.input = c.input});
    const auto bare = Network::sequential({c.bare}, {.input = c.input});
    ASSERT_TRUE(typed.ok()) << c.bare.type << ": " << typed.error().str();
    ASSERT_TRUE(bare.ok()) << c.bare.type << ": " << bare.error().str();
    EXPECT_EQ(typed->json(), bare->json());
  }
}

TEST(NetworkApi, EveryBlockHasTheDefaultsOfItsTable) {
  const struct {
    Layer typed;
    const char* name;
    std::vector<int64_t> input;
  } cases[] = {
      {SqueezeExcite{}, "SqueezeExcite", {1, 2, 3}},
      {SeparableConv{}, "SeparableConv", {1, 4, 5}},
      {Positions{}, "Positions", {1, 1}},
      {BiasedAttention{}, "BiasedAttention", {2, 1}},
      {EmbeddingBag{}, "EmbeddingBag", {3}},
      {RecurrentStack{}, "RecurrentStack", {3, 1}},
      {WeightNormDense{}, "WeightNormDense", {1}},
      {WeightNormConv{}, "WeightNormConv", {1, 4, 5}},
      {SpectralNormDense{}, "SpectralNormDense", {1}},
      {SpectralNormConv{}, "SpectralNormConv", {1, 4, 5}},
      {Mamba{}, "Mamba", {3, 1}},
  };
  for (const auto& c : cases) {
    const auto typed = Network::sequential({c.typed}, {.input = c.input});
    const auto bare = Network::sequential({Layer{c.name, {}}}, {.input = c.input});
    ASSERT_TRUE(typed.ok()) << c.name << ": " << typed.error().str();
    ASSERT_TRUE(bare.ok()) << c.name << ": " << bare.error().str();
    EXPECT_EQ(typed->json(), bare->json());
  }
  // That of two inputs is a node.
  const auto crossed = [](Layer layer) {
    Graph g;
    g.add(std::move(layer), {g.input(), g.input()});
    return Network::sequential({g}, {.input = {3, 1}});
  };
  EXPECT_EQ(crossed(CrossAttention{}).or_exit().json(),
            crossed(Layer{"CrossAttention", {}}).or_exit().json());
  EXPECT_EQ(std::size(cases) + 1, core::block_table().size()) << "a block has no case here";
}

TEST(NetworkApi, TrainsOnArraysAndKeepsItsBitsThroughAFile) {
  Network net = small_mlp();
  const Dataset train = blobs(600, 1), test = blobs(200, 2);
  Trainer trainer = Trainer::create(net, {.rate = 1e-2}).or_exit();
  const double before = trainer.evaluate(test).or_exit().accuracy.value();
  const History history = trainer.fit(train, test, {.epochs = 15}).or_exit();
  const Evaluation after = trainer.evaluate(test).or_exit();
  EXPECT_EQ(history.epochs.size(), 15u);
  EXPECT_LT(before, 0.7);
  EXPECT_GT(after.accuracy.value(), 0.93);
  EXPECT_LT(history.epochs.back().train_loss, history.epochs.front().train_loss / 3);

  const std::string path = scratch("trained.entity");
  ASSERT_TRUE(net.save(path).ok());
  const Network loaded = Network::load(path).or_exit();
  EXPECT_EQ(loaded.info().loss, "softmax_ce");
  EXPECT_EQ(floats(net.predict(test.x()).or_exit()), floats(loaded.predict(test.x()).or_exit()));

  // The outputs agree with the evaluation.
  const std::vector<float> scores = floats(loaded.predict(test.x()).or_exit());
  const auto labels = test.y().values<int32_t>().or_exit();
  int64_t right = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto row = scores.begin() + static_cast<std::ptrdiff_t>(i * 3);
    right += std::max_element(row, row + 3) - row == labels[i] ? 1 : 0;
  }
  EXPECT_DOUBLE_EQ(static_cast<double>(right) / 200.0, after.accuracy.value());
}

TEST(NetworkApi, AnEvaluationShowsWhereClassesAreTakenForEachOther) {
  Network net = small_mlp();
  const Dataset data = blobs(300, 3);
  Trainer trainer = Trainer::create(net, {.rate = 1e-2}).or_exit();
  (void)trainer.fit(data, {.epochs = 5}).or_exit();
  const Evaluation e = trainer.evaluate(data).or_exit();
  ASSERT_EQ(e.confusion.size(), 3u);
  int64_t all = 0, right = 0;
  for (size_t c = 0; c < 3; ++c) {
    const auto& row = e.confusion[c];
    const int64_t of_class = std::accumulate(row.begin(), row.end(), int64_t{0});
    EXPECT_EQ(of_class, e.classes[c].samples);
    EXPECT_DOUBLE_EQ(e.classes[c].recall,
                     static_cast<double>(row[c]) / static_cast<double>(of_class));
    all += of_class;
    right += row[c];
  }
  EXPECT_EQ(all, 300);
  EXPECT_DOUBLE_EQ(e.accuracy.value(), static_cast<double>(right) / 300.0);
}

TEST(NetworkApi, ScoresNumbersAsScikitLearnDoes) {
  Network net = Network::sequential({Dense{.in = 1, .out = 1}}, {.input = {1}}).or_exit();
  const std::vector<float> one = {1.0f}, zero = {0.0f};
  ASSERT_TRUE(net.set_parameter("(0, 0, 0, 0)/weight", Tensor::view(one.data(), {1, 1})).ok());
  ASSERT_TRUE(net.set_parameter("(0, 0, 0, 0)/bias", Tensor::view(zero.data(), {1})).ok());
  // sklearn.metrics.r2_score([3, -0.5, 2, 7], [2.5, 0, 2, 8]) = 0.9486081370449679, of
  // mean_absolute_error 0.5: the example of its documentation.
  const std::vector<float> x = {2.5f, 0.0f, 2.0f, 8.0f}, y = {3.0f, -0.5f, 2.0f, 7.0f};
  const Dataset data =
      Dataset::from_arrays(Tensor::view(x.data(), {4, 1}), Tensor::view(y.data(), {4, 1}))
          .or_exit();
  Trainer trainer = Trainer::create(net).or_exit();
  const Evaluation e = trainer.evaluate(data).or_exit();
  EXPECT_NEAR(e.r2.value(), 0.9486081370449679, 1e-12);
  EXPECT_NEAR(e.mean_absolute_error.value(), 0.5, 1e-12);
  EXPECT_NEAR(e.loss, 0.375, 1e-7);
  EXPECT_FALSE(e.accuracy.has_value());
}

TEST(NetworkApi, NormalizesInputsByItselfEverAfter) {
  Numbers numbers(5);
  std::vector<float> x, y;
  for (int i = 0; i < 400; ++i) {
    const float a = 1000.0f + 50.0f * numbers.next(), b = 0.001f * numbers.next();
    x.insert(x.end(), {a, b});
    y.push_back((a - 1000.0f) / 50.0f - 500.0f * b);
  }
  const Dataset data =
      Dataset::from_arrays(Tensor::view(x.data(), {400, 2}), Tensor::view(y.data(), {400, 1}))
          .or_exit();
  Network net = Network::sequential({Dense{.in = 2, .out = 8, .activation = Activation::tanh},
                                     Dense{.in = 8, .out = 1}},
                                    {.input = {2}})
                    .or_exit();
  {
    Trainer trainer =
        Trainer::create(net, {.rate = 1e-2, .normalize = Normalize::standard}).or_exit();
    (void)trainer.fit(data, {.epochs = 40}).or_exit();
    EXPECT_GT(trainer.evaluate(data).or_exit().r2.value(), 0.99);
  }
  EXPECT_TRUE(net.info().normalizes);
  ASSERT_TRUE(net.save(scratch("normalized.entity")).ok());
  const Network loaded = Network::load(scratch("normalized.entity")).or_exit();
  const std::vector<float> out = floats(loaded.predict(data.x()).or_exit());
  double error = 0;
  for (size_t i = 0; i < out.size(); ++i) error += std::abs(static_cast<double>(out[i] - y[i]));
  EXPECT_LT(error / 400, 0.1);
}

TEST(NetworkApi, AResumedRunHasTheBitsOfOneThatNeverStopped) {
  const Dataset data = blobs(300, 9);
  const auto run = [&](std::vector<int64_t> stops, const std::string& name) {
    std::filesystem::remove(name);
    std::filesystem::remove(name + ".previous");
    std::string hash;
    for (const int64_t stop : stops) {
      Network net = small_mlp();
      Trainer trainer = Trainer::create(net, {.rate = 3e-3}).or_exit();
      int64_t seen = 0;
      const auto fitted = trainer.fit(
          data, {.epochs = 6, .checkpoint = name, .resume = true, .on_epoch = [&](const Epoch& e) {
                   seen = e.number;
                   return e.number < stop;
                 }});
      EXPECT_EQ(seen, stop);
      EXPECT_EQ(fitted.ok(), false);
      EXPECT_EQ(fitted.error().code, Code::cancelled);
      hash = trainer.weights_hash().or_exit();
    }
    return hash;
  };
  EXPECT_EQ(run({6}, scratch("whole.safetensors")), run({2, 3, 6}, scratch("parts.safetensors")));
}

TEST(NetworkApi, KeepsTheBestWeightsWhereThatIsAsked) {
  const Dataset train = blobs(40, 1), test = blobs(200, 2);
  Network net = small_mlp();
  Trainer trainer = Trainer::create(net, {.rate = 0.3}).or_exit();
  const History h =
      trainer.fit(train, test, {.epochs = 30, .early_stop = 4, .keep_best = true}).or_exit();
  double least = 1e9;
  for (const Epoch& e : h.epochs) least = std::min(least, e.validation_loss.value());
  EXPECT_LT(h.epochs.size(), 30u);
  EXPECT_TRUE(h.stopped_early);
  Network copy = Network::from_json(net.json()).or_exit();
  for (const ParameterInfo& p : net.parameters())
    ASSERT_TRUE(copy.set_parameter(p.name, net.parameter(p.name).or_exit()).ok());
  Trainer judge = Trainer::create(copy).or_exit();
  EXPECT_DOUBLE_EQ(judge.evaluate(test).or_exit().loss, least);
}

TEST(NetworkApi, StepsOfOnesOwnAreThoseOfFit) {
  const Dataset data = blobs(64, 4);
  Network a = small_mlp(), b = small_mlp();
  Trainer whole = Trainer::create(a, {.rate = 1e-2, .batch = 16, .shuffle = false}).or_exit();
  (void)whole.fit(data, {.epochs = 1}).or_exit();
  Trainer own = Trainer::create(b, {.rate = 1e-2, .batch = 16}).or_exit();
  for (int64_t i = 0; i < 64; i += 16) {
    const Tensor x = data.x().slice(i, 16).or_exit(), y = data.y().slice(i, 16).or_exit();
    EXPECT_TRUE(own.train_step(x, y).or_exit().updated);
  }
  EXPECT_EQ(whole.weights_hash().or_exit(), own.weights_hash().or_exit());
}

TEST(NetworkApi, SessionsGiveTheSameBitsForEveryBatch) {
  Numbers numbers(11);
  const Network net = Network::sequential({Conv2d{.in = 2,
                                                  .out = 5,
                                                  .kernel = {3, 3},
                                                  .stride = {2},
                                                  .padding = {1, 1},
                                                  .activation = Activation::relu},
                                           Dense{.in = 5 * 4 * 4, .out = 6}},
                                          {.input = {2, 8, 8}, .dtype = DType::int8})
                          .or_exit();
  const std::vector<float> x = numbers.ramp(7 * 128);
  const Tensor inputs = Tensor::view(x.data(), {7, 2, 8, 8});
  Session one = net.session().or_exit();
  const std::vector<float> expected = floats(one.run(inputs).or_exit());
  for (const int64_t batch : {2, 3, 7, 16}) {
    Session session = net.session({.max_batch = batch}).or_exit();
    EXPECT_EQ(floats(session.run(inputs).or_exit()), expected) << batch;
    EXPECT_EQ(floats(session.run(inputs).or_exit()), expected) << batch << ", again";
    std::vector<float> memory(expected.size());
    EXPECT_TRUE(session.run_into(inputs, memory).ok());
    EXPECT_EQ(memory, expected) << batch << ", into memory of the caller";
  }
}

TEST(NetworkApi, MemoryThatResultsDoNotFitIsRefusedAndStaysAsItWas) {
  const Network net =
      Network::sequential({Dense{.in = 2, .out = 3}}, {.input = {2}, .seed = 5}).or_exit();
  Session session = net.session({.max_batch = 4}).or_exit();
  const std::vector<float> x(8, 0.5f);
  const Tensor inputs = Tensor::view(x.data(), {4, 2});
  std::vector<float> memory(12, -1.0f);
  const int64_t right[] = {4, 3}, reversed[] = {3, 4};
  EXPECT_NE(session.run_into(inputs, memory, reversed).error().message.find("[3, 4]"),
            std::string::npos);
  EXPECT_NE(session.run_into(inputs, std::span(memory).first(11)).error().message.find("11"),
            std::string::npos);
  EXPECT_EQ(memory, std::vector<float>(12, -1.0f));
  EXPECT_TRUE(session.run_into(inputs, memory, right).ok());
  EXPECT_EQ(memory, floats(session.run(inputs).or_exit()));
}

TEST(NetworkApi, AStatefulSessionGoesOnWhereItStopped) {
  Numbers numbers(12);
  const Network net =
      Network::sequential({Lstm{.in = 3, .hidden = 4}, Dense{.in = 4, .out = 2}}, {.input = {8, 3}})
          .or_exit();
  const std::vector<float> x = numbers.ramp(2 * 8 * 3);
  const Tensor whole = Tensor::view(x.data(), {2, 8, 3});
  const std::vector<float> expected = floats(net.predict(whole).or_exit());
  Session stream = net.session({.max_batch = 2, .stateful = true}).or_exit();
  for (int round = 0; round < 2; ++round) {
    std::vector<float> got(expected.size());
    int64_t at = 0;
    for (const int64_t steps : {1, 4, 3}) {
      std::vector<float> piece;
      for (int64_t s = 0; s < 2; ++s)
        piece.insert(piece.end(), x.begin() + (s * 8 + at) * 3,
                     x.begin() + (s * 8 + at + steps) * 3);
      const std::vector<float> y =
          floats(stream.run(Tensor::view(piece.data(), {2, steps, 3})).or_exit());
      for (int64_t s = 0; s < 2; ++s)
        std::copy_n(y.begin() + s * steps * 2, steps * 2, got.begin() + (s * 8 + at) * 2);
      at += steps;
    }
    EXPECT_EQ(got, expected);
    EXPECT_EQ(stream.position(), 8);
    stream.reset();
  }
  EXPECT_FALSE(stream.run(whole.slice(0, 1).or_exit()).ok());
}

TEST(NetworkApi, CellsShowWhatTheyGive) {
  Numbers numbers(13);
  const Network net = small_mlp();
  const std::vector<float> x = numbers.ramp(5 * 4);
  const Tensor inputs = Tensor::view(x.data(), {5, 4});
  Session session = net.session({.max_batch = 4}).or_exit();
  const std::vector<CellOutput> cells = session.run_cells(inputs).or_exit();
  ASSERT_EQ(cells.size(), 2u);
  EXPECT_EQ(cells[0].layer, "Dense");
  EXPECT_EQ(cells[0].values.shape(), (Shape{5, 16}));
  EXPECT_EQ(floats(cells[1].values), floats(session.run(inputs).or_exit()));
}

TEST(NetworkApi, AGridHasLinksAndSharedCells) {
  Grid grid({3, 1, 1, 1});
  grid.put({0, 0, 0, 0}, Dense{.in = 4, .out = 4, .activation = Activation::tanh})
      .put({1, 0, 0, 0}, Dense{.in = 4, .out = 4, .activation = Activation::tanh})
      .put({2, 0, 0, 0}, Dense{.in = 4, .out = 2})
      .share({1, 0, 0, 0}, {0, 0, 0, 0})
      .link({2, 0, 0, 0}, {0, 0, 0, 0})
      .set_dtype({2, 0, 0, 0}, DType::float16);
  const Network net = Network::create(grid, {.input = {4}}).or_exit();
  EXPECT_EQ(net.info().parameters, 4 * 4 + 4 + 4 * 2 + 2);
  EXPECT_EQ(net.parameters().back().shape, Shape{2});
  EXPECT_THAT(net.json(), HasSubstr("\"shared_with\""));
  const Network again = Network::from_json(net.json()).or_exit();
  EXPECT_EQ(again.json(), net.json());
  EXPECT_THAT(net.summary(), HasSubstr("30 parameters"));
}

TEST(NetworkApi, EveryFormatKeepsWhatItCanHold) {
  Numbers numbers(14);
  const std::vector<float> x = numbers.ramp(6 * 4);
  const Tensor inputs = Tensor::view(x.data(), {6, 4});
  for (const DType dtype : {DType::float32, DType::int8, DType::q4_0}) {
    Network net = Network::sequential({Dense{.in = 4, .out = 32, .activation = Activation::relu},
                                       Dense{.in = 32, .out = 3}},
                                      {.input = {4}, .dtype = dtype})
                      .or_exit();
    const std::vector<float> expected = floats(net.predict(inputs).or_exit());
    for (const char* ending : {".entity", ".json"}) {
      ASSERT_TRUE(net.save(scratch(std::string("n") + ending)).ok());
      const Network back = Network::load(scratch(std::string("n") + ending)).or_exit();
      EXPECT_EQ(floats(back.predict(inputs).or_exit()), expected) << ending << dtype_name(dtype);
    }
    if (dtype != DType::float32) continue;
    for (const char* ending : {".onnx", ".npz", ".safetensors"}) {
      const std::string path = scratch(std::string("n") + ending);
      ASSERT_TRUE(net.save(path).ok()) << net.save(path).error().str();
      const auto back = Network::load(path);
      ASSERT_TRUE(back.ok()) << back.error().str();
      EXPECT_EQ(floats(back->predict(inputs).or_exit()), expected) << ending;
    }
  }
}

TEST(NetworkApi, MistakesAreNamedInOneLine) {
  const auto message = [](const auto& result) {
    return result.ok() ? std::string("it worked") : result.error().str();
  };
  EXPECT_THAT(message(Network::sequential({}, {.input = {4}})), HasSubstr("at least one layer"));
  EXPECT_THAT(message(Network::sequential({Layer{"Dance", {}}}, {.input = {4}})),
              HasSubstr("there is no layer 'Dance'"));
  EXPECT_THAT(message(Network::sequential({Dense{.in = 4, .out = 0}}, {.input = {4}})),
              HasSubstr("out is 0"));
  EXPECT_THAT(
      message(Network::sequential({Dense{.in = 4, .out = 3}, Dense{.in = 5}}, {.input = {4}})),
      HasSubstr("must end in 5"));
  EXPECT_THAT(message(Network::sequential({Dense{.in = 4}}, {.input = {0}})), HasSubstr("extents"));
  EXPECT_THAT(message(Network::load("/nowhere/net.entity")), HasSubstr("/nowhere/net.entity"));
  Network net = small_mlp();
  const std::vector<float> x(12);
  EXPECT_THAT(message(net.predict(Tensor::view(x.data(), {4, 3}))), HasSubstr("takes samples [4]"));
  EXPECT_THAT(message(net.set_parameter("(0, 0, 0, 0)/weight", Tensor::view(x.data(), {3, 4}))),
              HasSubstr("is [16, 4]"));
  EXPECT_THAT(message(net.parameter("weight")), HasSubstr("no parameter 'weight'"));
  EXPECT_THAT(message(net.session({.max_batch = 0})), HasSubstr("max_batch is 0"));
  Trainer trainer = Trainer::create(net).or_exit();
  const std::vector<int32_t> labels = {0, 1, 5};
  EXPECT_THAT(
      message(trainer.train_step(Tensor::view(x.data(), {3, 4}), Tensor::view(labels.data(), {3}))),
      HasSubstr("6 classes"));
  EXPECT_THAT(message(Trainer::create(net, {.batch = 0})), HasSubstr("batch is 0"));
}

TEST(ResultApi, ReadingAFailedResultCallsTheHookAndNeverThrows) {
  const auto misuse = [] {
    set_bad_access_hook([](const Error& error) {
      std::fprintf(stderr, "hook: %s\n", error.message.c_str());
      std::_Exit(7);
    });
    const Result<int> failed = Error{Code::not_found, "nothing here", {}, -1};
    std::printf("%d", *failed);
  };
  EXPECT_EXIT(misuse(), testing::ExitedWithCode(7), "hook: nothing here");
  const Result<int> failed = Error{Code::not_found, "nothing here", {}, -1};
  EXPECT_DEATH(std::printf("%d", failed.value()), "failed Result was read: nothing here");
  EXPECT_EQ(failed.value_or(3), 3);
  const Result<int> two = 2;
  EXPECT_EQ(two.and_then([](int v) { return Result<int>(v * 2); }).value_or(0), 4);
  EXPECT_FALSE(failed.and_then([](int v) { return Result<int>(v * 2); }).ok());
}

// Random networks: a session's outputs do not depend on the split of inputs into batches, on the
// file format, or on observation of cells.
TEST(NetworkApi, RandomNetworksAgreeWithThemselves) {
  const int64_t cases =
      std::getenv("LOOM_RANDOM_API") ? std::atoll(std::getenv("LOOM_RANDOM_API")) : 60;
  constexpr DType kTypes[] = {DType::float32, DType::float16, DType::int8, DType::q8_0,
                              DType::ternary};
  constexpr Activation kActivations[] = {Activation::linear, Activation::relu, Activation::gelu,
                                         Activation::tanh};
  for (int64_t i = 0; i < cases; ++i) {
    Numbers r(static_cast<uint64_t>(i) + 100);
    const auto pick = [&](int64_t from, int64_t to) { return from + r.below(to - from + 1); };
    std::vector<Layer> layers;
    Shape input;
    int64_t width = 0;
    if (r.below(2) == 0) {
      const int64_t channels = pick(1, 3), side = pick(5, 9), filters = pick(1, 6);
      const Axes stride = {pick(1, 2)}, padding = {pick(0, 1)};
      input = {channels, side, side};
      const int64_t out = (side + 2 * padding[0] - 3) / stride[0] + 1;
      layers.push_back(Conv2d{.in = channels,
                              .out = filters,
                              .stride = stride,
                              .padding = padding,
                              .activation = kActivations[r.below(4)]});
      width = filters * out * out;
    } else {
      const int64_t in = pick(1, 6), hidden = pick(1, 9);
      input = {pick(1, 7), in};
      layers.push_back(Gru{.in = in, .hidden = hidden, .return_sequence = false});
      width = hidden;
    }
    layers.push_back(Dense{.in = width, .out = 16, .activation = kActivations[r.below(4)]});
    if (r.below(2) == 0) layers.push_back(Residual{{Dense{.in = 16, .out = 16}}});
    layers.push_back(Dense{.in = 16, .out = pick(1, 5)});
    Network net =
        Network::sequential(
            layers, {.input = input, .seed = static_cast<uint64_t>(i), .dtype = kTypes[r.below(5)]})
            .or_exit();
    Shape shape = input;
    shape.insert(shape.begin(), pick(1, 9));
    const std::vector<float> x = r.ramp(element_count(shape));
    const Tensor inputs = Tensor::view(x.data(), shape);
    Session single = net.session({.quantize_activations = false}).or_exit();
    const std::vector<float> expected = floats(single.run(inputs).or_exit());
    Session ramp = net.session({.max_batch = pick(1, 8), .quantize_activations = false}).or_exit();
    EXPECT_EQ(floats(ramp.run(inputs).or_exit()), expected) << i << "\n" << net.json();
    EXPECT_EQ(floats(ramp.run_cells(inputs).or_exit().back().values), expected) << i;
    const std::string path = scratch("random.entity");
    ASSERT_TRUE(net.save(path).ok());
    Session loaded =
        Network::load(path).or_exit().session({.quantize_activations = false}).or_exit();
    EXPECT_EQ(floats(loaded.run(inputs).or_exit()), expected) << i;
  }
}

}  // namespace
