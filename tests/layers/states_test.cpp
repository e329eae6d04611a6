// States that recurrent layers read and return: a sequence in two parts has the same bits as the
// whole, through nodes of a Graph and through sessions. Kinds, extents and positions are random.
#include <gmock/gmock.h>

#include "base/threads/thread_pool.hpp"
#include "grid/init.hpp"
#include "layers/blocks/blocks.hpp"
#include "layers/core/graph.hpp"
#include "layers/layer_fixture.hpp"

namespace loom::core::test::carried_states {
namespace {

using ::testing::HasSubstr;

LayerConfig block(std::string_view name, const std::vector<Field>& fields) {
  Result<LayerConfig> made = make_layer(*find_layer(name), fields);
  EXPECT_TRUE(made.ok()) << made.error().str();
  return std::move(*made);
}

// The parameters of a case; `stack` 0 means the plain kind.
struct Case {
  std::string kind;
  int64_t batch, steps, cut, in, hidden, stack;
  bool sequence;

  explicit Case(uint64_t seed) {
    const Rng rng(seed, 31);
    uint64_t at = 0;
    const auto from = [&](int64_t least, int64_t most) {
      return least + static_cast<int64_t>(rng.bits(at++) % static_cast<uint64_t>(most - least + 1));
    };
    const char* kinds[] = {"rnn", "lstm", "gru"};
    kind = kinds[from(0, 2)];
    batch = from(1, 4);
    steps = from(2, 9);
    cut = from(1, steps - 1);
    in = from(1, 5);
    hidden = from(1, 6);
    stack = from(0, 3);
    sequence = from(0, 1) == 1;
  }
  int64_t parts() const { return kind == "lstm" ? 2 : 1; }
  Shape state() const { return stack == 0 ? Shape{batch, hidden} : Shape{batch, stack, hidden}; }
  LayerConfig layer(bool initial, bool final) const {
    std::vector<Field> fields = {{"in", in},
                                 {"hidden", hidden},
                                 {"return_sequence", sequence},
                                 {"initial_state", initial},
                                 {"final_state", final}};
    if (stack > 0) {
      fields.insert(fields.end(), {{"kind", kind}, {"layers", stack}});
      return block("RecurrentStack", fields);
    }
    return block(kind == "rnn" ? "RNN" : kind == "lstm" ? "LSTM" : "GRU", fields);
  }
  // A Graph that gives it its state from inputs of the network, and all of its outputs.
  LayerConfig ports() const {
    GraphNames names;
    std::vector<LayerConfig> nodes;
    std::vector<std::string> reads = {"input"};
    std::vector<int64_t> extents = {hidden};
    if (stack > 0) extents = {stack, hidden};
    for (int64_t p = 0; p < parts(); ++p) {
      const std::string name = p == 0 ? "h" : "c";
      nodes.push_back(block("Input", {{"input", name}, {"shape", extents}}));
      names.nodes.push_back({name, std::vector<std::string>{"input"}});
      reads.push_back(name);
    }
    nodes.push_back(layer(true, true));
    names.nodes.push_back({"layer", reads});
    for (int64_t o = 0; o <= parts(); ++o)
      names.outputs.push_back(o == 0 ? "layer" : "layer:" + std::to_string(o));
    Result<LayerConfig> graph = make_graph(*wire_graph(names), std::move(nodes));
    EXPECT_TRUE(graph.ok()) << graph.error().str();
    return std::move(*graph);
  }
};

Tensor view_of(std::vector<float>& values, const Shape& shape) {
  Tensor t;
  t.shape = shape;
  t.row_stride = shape.last();
  t.data = reinterpret_cast<std::byte*>(values.data());
  return t;
}

std::vector<float> values_of(const Tensor& t) {
  std::vector<float> out;
  for (int64_t r = 0; r < t.rows(); ++r)
    out.insert(out.end(), t.f32_row(r), t.f32_row(r) + t.cols());
  return out;
}

struct Runner {
  ThreadPool pool{2, true};
  std::unique_ptr<Network> network;
  std::optional<Session> session;

  Runner(LayerConfig layer, const Case& c, Isa isa) {
    Result<Network> made =
        Network::finalize(row_of({std::move(layer)}), Shape{c.batch, c.steps, c.in});
    EXPECT_TRUE(made.ok()) << made.error().str();
    network = std::make_unique<Network>(std::move(*made));
    EXPECT_TRUE(init_params(*network, DType::f32, 5, pool).ok());
    SessionOptions o;
    o.sequences = c.batch;
    session.emplace(*Session::create(*network, cpu_ops(isa), pool, network->input(), o));
  }
  // Steps [from, to) of x, as the next pass.
  std::vector<float> step(const Case& c, const std::vector<float>& x, int64_t from, int64_t to) {
    std::vector<float> piece;
    for (int64_t b = 0; b < c.batch; ++b)
      piece.insert(piece.end(), x.begin() + (b * c.steps + from) * c.in,
                   x.begin() + (b * c.steps + to) * c.in);
    const Result<Tensor> y =
        session->forward(view_of(piece, Shape{c.batch, to - from, c.in}), 0, 1);
    EXPECT_TRUE(y.ok()) << y.error().str();
    return y.ok() ? values_of(*y) : std::vector<float>();
  }
};

// The outputs of both parts in the form of the whole.
std::vector<float> joined(const Case& c, const std::vector<float>& a, const std::vector<float>& b) {
  if (!c.sequence) return b;
  std::vector<float> out;
  const int64_t first = c.cut * c.hidden, second = (c.steps - c.cut) * c.hidden;
  for (int64_t s = 0; s < c.batch; ++s) {
    out.insert(out.end(), a.begin() + s * first, a.begin() + (s + 1) * first);
    out.insert(out.end(), b.begin() + s * second, b.begin() + (s + 1) * second);
  }
  return out;
}

class CarriedStates : public ::testing::TestWithParam<int> {
 protected:
  Case c{static_cast<uint64_t>(GetParam()) + 1};
  std::vector<float> x = random_values(c.batch * c.steps * c.in, 3);
};
INSTANTIATE_TEST_SUITE_P(Seeds, CarriedStates, ::testing::Range(0, 40));

TEST_P(CarriedStates, ThroughPortsGiveTheBitsOfOneRun) {
  for (const Isa isa : available_isas()) {
    Runner full(c.layer(false, false), c, isa), parts(c.ports(), c, isa);
    const std::vector<float> want = full.step(c, x, 0, c.steps);
    std::vector<std::vector<float>> states(
        static_cast<size_t>(c.parts()), std::vector<float>(static_cast<size_t>(c.state().count())));
    std::vector<float> pieces[2];
    for (int half = 0; half < 2; ++half) {
      std::vector<Tensor> given;
      for (std::vector<float>& s : states) given.push_back(view_of(s, c.state()));
      ASSERT_TRUE(parts.session->give(given).ok());
      pieces[half] = half == 0 ? parts.step(c, x, 0, c.cut) : parts.step(c, x, c.cut, c.steps);
      // The session has advanced; only the input of the node matters.
      parts.session->advance(1);
      for (size_t p = 0; p < states.size(); ++p)
        states[p] = values_of(parts.session->results()[p + 1]);
    }
    EXPECT_EQ(joined(c, pieces[0], pieces[1]), want);
  }
}

TEST_P(CarriedStates, ThroughSessionsGiveTheBitsOfOneRun) {
  Runner full(c.layer(false, false), c, best_isa()), first(c.layer(false, false), c, best_isa()),
      second(c.layer(false, false), c, best_isa());
  const std::vector<float> want = full.step(c, x, 0, c.steps);
  const std::vector<float> a = first.step(c, x, 0, c.cut);
  first.session->advance(c.cut);
  std::vector<std::vector<float>> states;
  std::vector<Tensor> given;
  const std::vector<Tensor> left = first.session->recurrent_states().value();
  for (const Tensor& t : left) states.push_back(values_of(t));
  for (size_t i = 0; i < states.size(); ++i) given.push_back(view_of(states[i], left[i].shape));
  ASSERT_TRUE(second.session->set_states(given).ok());
  EXPECT_EQ(joined(c, a, second.step(c, x, c.cut, c.steps)), want);
  second.session->reset();
  EXPECT_EQ(second.step(c, x, 0, c.steps), want) << "reset() begins at zeros";
}

TEST(CarriedStateErrors, SayWhatANodeMustRead) {
  const Case c(1);
  const auto refused = [](const LayerConfig& layer, std::vector<Shape> in) {
    const Result<std::vector<Shape>> out = infer_all(layer, in);
    return out.ok() ? "" : out.error().message;
  };
  const LayerConfig lstm = block("LSTM", {{"in", 3}, {"hidden", 4}, {"initial_state", true}});
  EXPECT_EQ(refused(lstm, {Shape{2, 5, 3}}),
            "LSTM takes 3 inputs with initial_state, but 1 is given");
  EXPECT_EQ(refused(lstm, {Shape{2, 5, 3}, Shape{2, 4}, Shape{2, 3}}),
            "LSTM: the state it begins with is [2, 3], must be [2, 4]");
  EXPECT_EQ(refused(block("GRU", {{"in", 3}, {"hidden", 4}}), {Shape{2, 5, 3}, Shape{2, 4}}),
            "GRU takes 1 input without initial_state, but 2 are given");
  Runner run(c.layer(false, false), c, best_isa());
  EXPECT_THAT(run.session->set_states({}).error().message, HasSubstr("0 states are given"));
}

}  // namespace
}  // namespace loom::core::test::carried_states
