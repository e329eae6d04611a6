// Mixtures that keep some of their experts. Host sessions run only the experts that samples keep.
// The results must equal, bit for bit, those of a recording that runs all of them.
#include <gmock/gmock.h>

#include <cstring>
#include <limits>

#include "grid/init.hpp"
#include "grid/traced.hpp"
#include "layers/layer_fixture.hpp"
#include "ops/recording/program.hpp"

namespace loom::core::test::experts {
namespace {

struct Mixture {
  std::vector<LayerConfig> layers;
  Shape input;

  // `inside`: layers precede it, so that its input is a tensor of the plan too.
  explicit Mixture(uint64_t seed, bool inside = false) {
    const Rng rng(seed, 41);
    uint64_t at = 0;
    const auto from = [&](int64_t least, int64_t most) {
      return least + static_cast<int64_t>(rng.bits(at++) % static_cast<uint64_t>(most - least + 1));
    };
    const int64_t in = from(1, 40), out = from(1, 40), n = from(2, 8);
    std::vector<LayerConfig> children;
    const char* functions[] = {"linear", "relu", "silu", "tanh"};
    for (int64_t i = 0; i < n; ++i) {
      const int64_t inner = from(1, 20), form = from(0, 3);
      const auto dense = [&](int64_t a, int64_t b) {
        return layer(LayerKind::dense,
                     {{"in", a}, {"out", b}, {"activation", functions[from(0, 3)]}});
      };
      if (form == 0) {
        children.push_back(dense(in, out));
      } else if (form == 1) {
        children.push_back(layer(LayerKind::sequential, {}, {dense(in, inner), dense(inner, out)}));
      } else if (form == 2) {
        children.push_back(layer(LayerKind::sequential, {},
                                 {layer(LayerKind::swiglu, {{"width", in}, {"inner", inner}}),
                                  layer(LayerKind::rms_norm, {{"width", in}}), dense(in, out)}));
      } else {
        // A mixture within the mixture.
        children.push_back(layer(LayerKind::parallel, {{"combine", "filter"}, {"top_k", 1}},
                                 {dense(in, out), dense(in, out), dense(in, 2)}));
      }
    }
    children.push_back(layer(LayerKind::dense, {{"in", in}, {"out", n}}));
    layers.push_back(layer(LayerKind::parallel, {{"combine", "filter"}, {"top_k", from(1, n)}},
                           std::move(children)));
    if (from(0, 1) == 1) layers.push_back(layer(LayerKind::dense, {{"in", out}, {"out", 3}}));
    input = Shape{from(1, 9), in};
    if (!inside) return;
    input = Shape{from(1, 3), in};
    for (int64_t i = from(1, 2); i > 0; --i)
      layers.insert(layers.begin(), layer(LayerKind::rms_norm, {{"width", in}}));
  }
};

std::vector<float> values_of(const Tensor& t) {
  std::vector<float> out;
  for (int64_t r = 0; r < t.rows(); ++r)
    out.insert(out.end(), t.f32_row(r), t.f32_row(r) + t.cols());
  return out;
}

// All experts, as a recording.
std::vector<float> of_all(const Network& network, const std::vector<float>& x, const Ops& ops,
                          ThreadPool& pool) {
  Trace trace(ops.compute);
  TracedNetwork t = *trace_network(network, trace, {});
  std::vector<Tensor*> pins = {&t.x, &t.y};
  Program program = *Program::compile(std::move(trace), pins, ops, pool);
  std::copy(x.begin(), x.end(), t.x.f32());
  EXPECT_TRUE(program.run().ok());
  return values_of(t.y);
}

std::vector<float> of_session(const Network& network, std::vector<float> x, const Ops& ops,
                              ThreadPool& pool, OpProfile* profile = nullptr) {
  SessionOptions o;
  o.sequences = network.input()[0];
  o.activations = ActivationMode::f32;
  Session session = *Session::create(network, ops, pool, network.input(), o);
  session.recorder().set_profile(profile);
  Tensor t;
  t.shape = network.input();
  t.row_stride = t.shape.last();
  t.data = reinterpret_cast<std::byte*>(x.data());
  const Result<Tensor> y = session.forward(t, 0, network.cells().size());
  EXPECT_TRUE(y.ok()) << y.error().str();
  return y.ok() ? values_of(*y) : std::vector<float>();
}

std::vector<uint32_t> bits(const std::vector<float>& values) {
  std::vector<uint32_t> out(values.size());
  std::memcpy(out.data(), values.data(), values.size() * 4);
  return out;
}

class Experts : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Experts, ::testing::Range(0, 60));

TEST_P(Experts, ThatAreKeptGiveTheBitsOfRunningAll) {
  const Mixture m(static_cast<uint64_t>(GetParam()) + 1);
  ThreadPool pool(2, true);
  const DType dtypes[] = {DType::f32, DType::bf16, DType::i8};
  Network network = *Network::finalize(row_of(m.layers), m.input);
  ASSERT_TRUE(init_params(network, dtypes[GetParam() % 3], 5, pool).ok());
  std::vector<float> x = random_values(m.input.count(), 3);
  if (GetParam() % 4 == 0) std::fill(x.begin(), x.end(), -0.0f);
  for (const Isa isa : available_isas()) {
    EXPECT_EQ(bits(of_session(network, x, cpu_ops(isa), pool)),
              bits(of_all(network, x, cpu_ops(isa), pool)));
  }
}

// Memory of a skipped expert is reserved, and never overlaps memory that is still read.
TEST_P(Experts, BehindOtherLayersGiveTheBitsOfRunningAll) {
  const Mixture m(static_cast<uint64_t>(GetParam()) + 101, true);
  ThreadPool pool(2, true);
  Network network = *Network::finalize(row_of(m.layers), m.input);
  ASSERT_TRUE(init_params(network, DType::f32, 5, pool).ok());
  const Ops& ops = cpu_ops(best_isa());
  for (uint64_t sample = 0; sample < 6; ++sample) {
    const std::vector<float> x = random_values(m.input.count(), 3 + sample);
    EXPECT_EQ(bits(of_session(network, x, ops, pool)), bits(of_all(network, x, ops, pool)))
        << "sample " << sample;
  }
}

// A network of one mixture; expert 1 gives infinities.
Network overflowing(ThreadPool& pool) {
  const auto dense = [](int64_t out) { return layer(LayerKind::dense, {{"in", 2}, {"out", out}}); };
  Network network =
      *Network::finalize(row_of({layer(LayerKind::parallel, {{"combine", "filter"}, {"top_k", 1}},
                                       {dense(2), dense(2), dense(2)})}),
                         Shape{1, 2});
  for (size_t i = 0; i < network.params().size(); ++i) {
    const Param& p = network.params()[i];
    const auto rows = [&](int64_t, int64_t count, float* out) -> Status {
      const bool second = p.path.find("/1/") != std::string::npos;
      const bool gate = p.path.find("/2/") != std::string::npos;
      for (int64_t k = 0; k < count * (p.spec.matrix() ? 2 : 1); ++k)
        out[k] = gate     ? (p.spec.matrix() ? 0.0f
                             : k == 0        ? 5.0f
                                             : -5.0f)
                 : second ? std::numeric_limits<float>::infinity()
                          : 1.0f;
      return {};
    };
    EXPECT_TRUE(network.load_param(static_cast<int>(i), DType::f32, rows, pool).ok());
  }
  return network;
}

TEST(ExpertsLeftOut, SpoilNothingByWhatTheyWouldHaveGiven) {
  ThreadPool pool(1, true);
  const Network network = overflowing(pool);
  const Ops& ops = cpu_ops(best_isa());
  EXPECT_THAT(of_session(network, {1, 1}, ops, pool), ::testing::ElementsAre(3.0f, 3.0f));
  // If all run, zero times infinity is NaN.
  const std::vector<float> all = of_all(network, {1, 1}, ops, pool);
  EXPECT_NE(all[0], all[0]);
}

// Two of eight experts for each of `samples`, and eight of eight: counts the computed products.
TEST(ExpertsLeftOut, AreNotComputed) {
  ThreadPool pool(1, true);
  std::vector<LayerConfig> children;
  for (int i = 0; i < 8; ++i)
    children.push_back(layer(LayerKind::dense, {{"in", 64}, {"out", 64}}));
  children.push_back(layer(LayerKind::dense, {{"in", 64}, {"out", 8}}));
  const Network network = [&] {
    Network n = *Network::finalize(
        row_of({layer(LayerKind::parallel, {{"combine", "filter"}, {"top_k", 2}}, children)}),
        Shape{1, 64});
    EXPECT_TRUE(init_params(n, DType::f32, 5, pool).ok());
    return n;
  }();
  OpProfile profile;
  (void)of_session(network, random_values(64, 3), cpu_ops(best_isa()), pool, &profile);
  EXPECT_EQ(profile.calls[static_cast<int>(OpId::matmul)], 3) << "two experts and the gate";
}

}  // namespace
}  // namespace loom::core::test::experts
