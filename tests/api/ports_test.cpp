// Networks with several inputs and outputs. Each random one consists of parts that are also
// networks with one input; the outputs of the parts, combined here, must equal those of the whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "loom/graph.hpp"
#include "loom/loom.hpp"
#include "loom/mesh.hpp"

namespace loom {
namespace {

class Ports {
 public:
  explicit Ports(unsigned seed) : random_(seed) {}
  int64_t upto(int64_t most) {
    return 1 + static_cast<int64_t>(random_() % static_cast<unsigned>(most));
  }
  Tensor numbers(const Shape& shape) {
    Tensor t = Tensor::zeros(shape).or_exit();
    for (float& v : t.mutable_values<float>().or_exit())
      v = static_cast<float>(random_() % 2001) / 1000.0f - 1.0f;
    return t;
  }
  Tensor ids(const Shape& shape, int64_t below) {
    Tensor t = Tensor::zeros(shape, DType::int64).or_exit();
    for (int64_t& v : t.mutable_values<int64_t>().or_exit())
      v = static_cast<int64_t>(random_() % static_cast<unsigned>(below));
    return t;
  }

 private:
  std::mt19937 random_;
};

// a(x) * b(state), b(state), table(word) + shared
Graph of_four(int64_t in, int64_t state, int64_t out, int64_t words) {
  Graph g;
  const GraphValue s = g.add(Input{.input = "state", .shape = {state}}, {g.input()}, "given state");
  const GraphValue w =
      g.add(Input{.input = "word", .shape = {1}, .ids = words}, {g.input()}, "word");
  const GraphValue all =
      g.add(Input{.input = "shared", .shape = {1, 1, out}, .batched = false}, {g.input()});
  const GraphValue a = g.add(Dense{.in = in, .out = out}, {g.input()}, "a");
  const GraphValue b =
      g.add(Dense{.in = state, .out = out, .activation = Activation::tanh}, {s}, "b");
  const GraphValue table = g.add(Embedding{.vocab = words, .width = out}, {w}, "table");
  g.output(g.add(Binary{.function = BinaryFunction::mul}, {a, b}, "product"));
  g.output(b);
  g.output(g.add(Binary{}, {table, all}, "sum"));
  return g;
}

// The part of `whole` at this node as a separate network.
Network part(const Network& whole, int node, Layer layer, const Shape& input) {
  Network net = Network::sequential({std::move(layer)}, {.input = input}).or_exit();
  for (const ParameterInfo& p : net.parameters()) {
    const std::string name =
        "(0, 0, 0, 0)/" + std::to_string(node) + p.name.substr(p.name.rfind('/'));
    EXPECT_TRUE(net.set_parameter(p.name, whole.parameter(name).or_exit()).ok()) << name;
  }
  return net;
}

std::vector<float> floats(const Tensor& t) {
  const auto v = t.values<float>().or_exit();
  return {v.begin(), v.end()};
}

TEST(Ports, RandomNetworksOfFourInputsGiveWhatTheirPartsGive) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Ports r(seed);
    const int64_t in = r.upto(9), state = r.upto(7), out = r.upto(11), words = r.upto(6);
    const int64_t n = r.upto(5);
    const Network net =
        Network::sequential({of_four(in, state, out, words)}, {.input = {in}, .seed = seed})
            .or_exit();
    const std::vector<Tensor> given = {r.numbers({n, in}), r.numbers({n, state}),
                                       r.ids({n, 1}, words), r.numbers({1, 1, out})};
    Session session = net.session({.max_batch = n}).or_exit();
    const auto got = session.run(given);
    ASSERT_TRUE(got.ok()) << got.error().str();
    ASSERT_EQ(got->size(), 3u);
    const auto a =
        floats(part(net, 3, Dense{.in = in, .out = out}, {in}).predict(given[0]).or_exit());
    const auto b =
        floats(part(net, 4, Dense{.in = state, .out = out, .activation = Activation::tanh}, {state})
                   .predict(given[1])
                   .or_exit());
    const auto rows = floats(
        part(net, 5, Embedding{.vocab = words, .width = out}, {1}).predict(given[2]).or_exit());
    const std::vector<float> all = floats(given[3]);
    const auto y = floats((*got)[0]), h = floats((*got)[1]), sum = floats((*got)[2]);
    EXPECT_EQ(h, b);
    ASSERT_EQ(sum.size(), rows.size());
    for (size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(y[i], a[i] * b[i]) << i;
      EXPECT_EQ(sum[i], rows[i] + all[i % all.size()]) << i;
    }
  }
}

TEST(Ports, AreToldWithTheirNamesAndShapes) {
  const Network net = Network::sequential({of_four(3, 2, 4, 5)}, {.input = {3}}).or_exit();
  const NetworkInfo info = net.info();
  ASSERT_EQ(info.inputs.size(), 4u);
  EXPECT_EQ(info.inputs[0].name, "input");
  EXPECT_EQ(info.inputs[1].name, "state");
  EXPECT_EQ(info.inputs[2].name, "word");
  EXPECT_EQ(info.inputs[2].ids, 5);
  EXPECT_EQ(info.inputs[3].shape, (Shape{1, 1, 4}));
  EXPECT_FALSE(info.inputs[3].batched);
  ASSERT_EQ(info.outputs.size(), 3u);
  EXPECT_EQ(info.outputs[0].name, "product");
  EXPECT_EQ(info.outputs[1].name, "b");
  EXPECT_EQ(info.outputs[2].shape, (Shape{1, 4}));
}

TEST(Ports, AFileGivesTheSameBits) {
  const Network net = Network::sequential({of_four(3, 2, 4, 5)}, {.input = {3}}).or_exit();
  Ports r(5);
  const std::vector<Tensor> given = {r.numbers({2, 3}), r.numbers({2, 2}), r.ids({2, 1}, 5),
                                     r.numbers({1, 1, 4})};
  const auto want = net.session({.max_batch = 2}).or_exit().run(given).or_exit();
  for (const NetworkFormat format : {NetworkFormat::entity, NetworkFormat::json}) {
    const std::string bytes = net.save_bytes(format).or_exit();
    const Network read = Network::load(FileBytes{std::as_bytes(std::span(bytes))}).or_exit();
    const auto got = read.session({.max_batch = 2}).or_exit().run(given).or_exit();
    for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(floats(got[i]), floats(want[i])) << i;
  }
}

TEST(Ports, SeveralPiecesOfABatchGiveTheSameAsOneWhereSamplesShareNothing) {
  Graph g;
  const GraphValue s = g.add(Input{.input = "state", .shape = {3}}, {g.input()});
  g.output(g.add(Binary{.function = BinaryFunction::mul}, {g.input(), s}));
  g.output(s);
  const Network net = Network::sequential({g}, {.input = {3}}).or_exit();
  Ports r(9);
  const std::vector<Tensor> given = {r.numbers({7, 3}), r.numbers({7, 3})};
  const auto want = net.session({.max_batch = 7}).or_exit().run(given).or_exit();
  const auto got = net.session({.max_batch = 3}).or_exit().run(given).or_exit();
  EXPECT_EQ(floats(got[0]), floats(want[0]));
  EXPECT_EQ(floats(got[1]), floats(given[1]));
}

// The batch axis of a sample's output has several rows, or rows of all samples. Memory after the
// outputs was overwritten.
TEST(Ports, SamplesOfSeveralRowsStandOneAfterTheOther) {
  Ports r(2);
  const Network rows =
      Network::sequential({Dense{.in = 5, .out = 4}, View{.shape = {-1, 4, 1}}}, {.input = {3, 5}})
          .or_exit();
  Graph g;
  const GraphValue d = g.add(Dense{.in = 5, .out = 3}, {g.input()});
  const GraphValue c = g.add(Constant{.shape = {3, 3}}, {});
  g.output(g.add(Binary{.function = BinaryFunction::mul}, {d, c}));
  const Network fixed = Network::sequential({g}, {.input = {5}}).or_exit();
  for (const auto& [net, sample, each] :
       {std::tuple{rows, Shape{3, 5}, int64_t{12}}, std::tuple{fixed, Shape{5}, int64_t{9}}}) {
    Shape shape = sample;
    shape.insert(shape.begin(), 4);
    const Tensor x = r.numbers(shape);
    for (const int64_t batch : {1, 2, 3, 4}) {
      Session session = net.session({.max_batch = batch}).or_exit();
      const Tensor y = session.run(x).or_exit();
      ASSERT_EQ(y.size(), 4 * each);
      const std::vector<CellOutput> cells = session.run_cells(x).or_exit();
      EXPECT_EQ(floats(cells.back().values), floats(y));
      for (int64_t i = 0; i < 4; ++i) {
        const auto one = floats(session.run(x.slice(i, 1).or_exit()).or_exit());
        const auto all = floats(y);
        EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + i * each)) << i;
      }
    }
  }
}

TEST(Ports, RefusesWhatDoesNotFit) {
  const Network net = Network::sequential({of_four(3, 2, 4, 5)}, {.input = {3}}).or_exit();
  Session session = net.session({.max_batch = 2}).or_exit();
  Ports r(5);
  const std::vector<Tensor> good = {r.numbers({2, 3}), r.numbers({2, 2}), r.ids({2, 1}, 5),
                                    r.numbers({1, 1, 4})};
  const auto refused = [&](std::vector<Tensor> given, std::string_view words) {
    const auto got = session.run(given);
    ASSERT_FALSE(got.ok()) << words;
    EXPECT_NE(got.error().message.find(words), std::string::npos) << got.error().message;
  };
  refused({good[0]}, "the network takes 4 inputs (input, state, word, shared), but 1 is given");
  EXPECT_FALSE(session.run(good[0]).ok());
  EXPECT_FALSE(session.run_cells(good[0]).ok());
  auto given = good;
  given[1] = r.numbers({2, 3});
  refused(given, "the input 'state' is [2, 3], must be [2, 2]");
  given = good;
  given[2] = r.ids({2, 1}, 1).to(DType::float32).or_exit();
  refused(given, "the input 'word' are ids");
  given[2] = Tensor::zeros({2, 1}, DType::int64).or_exit();
  given[2].mutable_values<int64_t>().or_exit()[1] = 5;
  refused(given, "id 5 must be from 0 to 4");
  given = {r.numbers({1, 3}), r.numbers({1, 2}), r.ids({1, 1}, 5), good[3]};
  refused(given, "1 samples need a session with max_batch 1");
}

// The second table had no row for ids of the first one: the pass read after its memory.
TEST(Ports, AnIdHasARowInEveryTableThatReadsIt) {
  Graph g;
  const GraphValue words = g.add(Embedding{.vocab = 100000, .width = 2}, {g.input()});
  const GraphValue kinds = g.add(Embedding{.vocab = 5, .width = 2}, {g.input()});
  g.output(g.add(Binary{}, {words, kinds}));
  const Parallel side{
      .children = {Embedding{.vocab = 100000, .width = 2}, Embedding{.vocab = 5, .width = 2}},
      .combine = Combine::add};
  Tensor far = Tensor::zeros({1, 4}, DType::int64).or_exit();
  far.mutable_values<int64_t>().or_exit()[2] = 90000;
  const Dataset data = Dataset::from_arrays(far, Tensor::zeros({1, 4, 2}).or_exit()).or_exit();
  for (const Layer& layer : {Layer(g), Layer(side)}) {
    const Network net = Network::sequential({layer}, {.input = {4}}).or_exit();
    EXPECT_EQ(net.info().inputs[0].ids, 5);
    Session session = net.session().or_exit();
    const auto run = session.run(far);
    ASSERT_FALSE(run.ok());
    EXPECT_NE(run.error().message.find("id 90000 must be from 0 to 4"), std::string::npos);
    const auto trained = Trainer::create(net, {}).or_exit().fit(data);
    ASSERT_FALSE(trained.ok());
    EXPECT_NE(trained.error().message.find("id 90000 at 2 must be from 0 to 4"), std::string::npos);
    Mesh mesh = Mesh::create(net).or_exit();
    EXPECT_FALSE(mesh.set_input(far).ok());
  }
}

TEST(Ports, AnInputThatAllSamplesShareIsNotTrainedWith) {
  Ports r(3);
  const Network net = Network::sequential({of_four(3, 2, 4, 5)}, {.input = {3}}).or_exit();
  const Dataset data = Dataset::from_arrays(r.numbers({6, 3}), r.numbers({6, 4}))
                           .or_exit()
                           .with_input("state", r.numbers({6, 2}))
                           .or_exit()
                           .with_input("word", r.ids({6, 1}, 5))
                           .or_exit()
                           .with_input("shared", r.numbers({6, 1, 4}))
                           .or_exit();
  Trainer trainer = Trainer::create(net).or_exit();
  const auto history = trainer.fit(data);
  ASSERT_FALSE(history.ok());
  EXPECT_NE(history.error().message.find("all samples share the input 'shared'"),
            std::string::npos);
}

TEST(Ports, ValuesThatAreNoIdsReachNoTable) {
  Graph floats_to_table;
  const GraphValue h = floats_to_table.add(Dense{.in = 3, .out = 2}, {floats_to_table.input()});
  floats_to_table.add(Embedding{.vocab = 4, .width = 2}, {h});
  EXPECT_FALSE(Network::sequential({floats_to_table}, {.input = {3}}).ok());
  Graph too_many;
  const GraphValue w =
      too_many.add(Input{.input = "word", .shape = {1}, .ids = 9}, {too_many.input()});
  const GraphValue t = too_many.add(Embedding{.vocab = 4, .width = 2}, {w});
  too_many.output(too_many.add(Dense{.in = 3, .out = 2}, {too_many.input()})).output(t);
  EXPECT_FALSE(Network::sequential({too_many}, {.input = {3}}).ok());
  Graph ids_to_numbers;
  const GraphValue id =
      ids_to_numbers.add(Input{.input = "word", .shape = {2}, .ids = 4}, {ids_to_numbers.input()});
  ids_to_numbers.add(Dense{.in = 2, .out = 2}, {id});
  EXPECT_FALSE(Network::sequential({ids_to_numbers}, {.input = {3}}).ok());
}

}  // namespace
}  // namespace loom
