// Adapters of weights: which weights have them, what a product with them is, and their merging.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/cpu.hpp"
#include "base/numbers/rng.hpp"
#include "base/threads/thread_pool.hpp"
#include "dtype/r16/r16.hpp"
#include "grid/adapters/merge.hpp"
#include "grid/grid_testing.hpp"
#include "grid/init.hpp"
#include "grid/session.hpp"

namespace loom::core::test {
namespace {

LayerConfig dense(int64_t in, int64_t out, const char* activation) {
  return layer(LayerKind::dense, {{"in", in}, {"out", out}, {"activation", activation}});
}

GridSpec with_cell(Cell cell) {
  GridSpec grid(1, 1, 1, 1);
  EXPECT_TRUE(grid.put({0, 0, 0, 0}, std::move(cell)).ok());
  return grid;
}

std::vector<float> values_of(const Tensor& t) {
  std::vector<float> values(static_cast<size_t>(t.shape.count()));
  const R16 geometry = r16_geometry(t.dtype, t.shape[0], t.shape[1]);
  for (int64_t row = 0; row < t.shape[0]; ++row)
    r16_decode(geometry, t.data, row, 0, t.shape[1], values.data() + row * t.shape[1]);
  return values;
}

// A network with random values everywhere, and its output for a fixed input.
struct Rig {
  ThreadPool pool{2, true};
  Network network;

  Rig(const GridSpec& grid, const Shape& input, DType dtype, bool random_b = true)
      : network(*Network::finalize(grid, input)) {
    EXPECT_TRUE(init_params(network, dtype, 3, pool).ok());
    for (size_t i = 0; random_b && i < network.params().size(); ++i) {
      const Param& p = network.params()[i];
      if (!p.spec.name.ends_with(".b")) continue;
      const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
        for (int64_t k = 0; k < count * p.spec.shape[1]; ++k)
          out[k] = Rng(9, i).uniform(static_cast<uint64_t>(first * p.spec.shape[1] + k)) - 0.5f;
        return {};
      };
      EXPECT_TRUE(network.load_param(static_cast<int>(i), DType::f32, rows, pool).ok());
    }
  }
  explicit Rig(Network made) : network(std::move(made)) {}

  std::vector<float> run(Isa isa = best_isa()) {
    SessionOptions options;
    options.sequences = network.input()[0];
    options.activations = ActivationMode::f32;
    Result<Session> session =
        Session::create(network, cpu_ops(isa), pool, network.input(), options);
    EXPECT_TRUE(session.ok()) << session.error().str();
    std::vector<float> x(static_cast<size_t>(network.input().count()));
    for (size_t i = 0; i < x.size(); ++i) x[i] = Rng(4, 1).uniform(i) - 0.5f;
    Tensor in;
    in.shape = network.input();
    in.row_stride = in.shape.last();
    in.data = reinterpret_cast<std::byte*>(x.data());
    const Result<Tensor> y = session->forward(in, 0, network.cells().size());
    EXPECT_TRUE(y.ok()) << y.error().str();
    return std::vector<float>(y->f32(), y->f32() + y->shape.count());
  }
};

// The example of each kind whose weights can have adapters.
struct Kind {
  const LayerDef* def;
  GridSpec plain, adapted;
  Shape input;
};

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  for (const LayerDef* def : layer_table()) {
    if (!has_products(*def)) continue;
    const LayerExample example = def->example();
    GridSpec plain = row_of(*make_layers(example.layers));
    GridSpec adapted = *with_adapter(plain, {{"*"}, "one", 3, 1.25, 0.5});
    adapted = *with_adapter(adapted, {{"*"}, "two", 1, -0.5});
    all.push_back({def, std::move(plain), std::move(adapted), example.input.after(2)});
  }
  return all;
}

TEST(Adapters, ANewOneChangesNoBit) {
  for (const Kind& kind : kinds()) {
    for (const DType dtype : {DType::f32, DType::i8}) {
      Rig plain(kind.plain, kind.input, dtype), adapted(kind.adapted, kind.input, dtype, false);
      // The values of the plain network; draws depend on the number of a parameter.
      for (size_t i = 0; i < plain.network.params().size(); ++i) {
        const Param& from = plain.network.params()[i];
        const int index = adapted.network.find_param(from.path);
        ASSERT_GE(index, 0) << from.path;
        std::copy(from.tensor.data, from.tensor.data + from.bytes(),
                  adapted.network.param(index).tensor.data);
      }
      EXPECT_EQ(plain.run(), adapted.run()) << kind.def->name << " " << dtype_name(dtype);
    }
  }
}

TEST(Adapters, HaveTheSameBitsOnEveryInstructionSet) {
  for (const Kind& kind : kinds()) {
    Rig rig(kind.adapted, kind.input, DType::f32);
    const std::vector<float> want = rig.run(Isa::scalar);
    for (const Isa isa : available_isas()) EXPECT_EQ(rig.run(isa), want) << kind.def->name;
  }
}

// W + sum of scale * B A in double, from the values of the parameters.
std::vector<double> expected_weight(const Network& network, const std::string& path,
                                    const std::vector<std::pair<std::string, double>>& adapters) {
  const auto param = [&](const std::string& name) {
    return values_of(network.params()[static_cast<size_t>(network.find_param(name))].tensor);
  };
  const Param& weight = network.params()[static_cast<size_t>(network.find_param(path))];
  const std::vector<float> base = values_of(weight.tensor);
  std::vector<double> sum(base.begin(), base.end());
  const auto rows = static_cast<size_t>(weight.spec.shape[0]);
  const auto cols = static_cast<size_t>(weight.spec.shape[1]);
  for (const auto& [name, scale] : adapters) {
    const std::vector<float> a = param(path + "." + name + ".a"),
                             b = param(path + "." + name + ".b");
    const size_t rank = a.size() / cols;
    for (size_t i = 0; i < rows; ++i)
      for (size_t k = 0; k < cols; ++k)
        for (size_t r = 0; r < rank; ++r)
          sum[i * cols + k] += scale * static_cast<double>(b[i * rank + r]) * a[r * cols + k];
  }
  return sum;
}

// A layer that does not use product() for a weight would ignore its adapter.
void expect_every_adapter_counts(const Kind& kind) {
  Rig rig(kind.adapted, kind.input, DType::f32);
  const std::vector<float> all = rig.run();
  for (size_t i = 0; i < rig.network.params().size(); ++i) {
    const Param& p = rig.network.params()[i];
    if (!p.adapter || !p.spec.name.ends_with(".b")) continue;
    const std::vector<float> values = values_of(p.tensor);
    const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
      const int64_t cols = p.spec.shape[1];
      for (int64_t k = 0; k < count * cols; ++k)
        out[k] = -3.0f * values[static_cast<size_t>(first * cols + k)];
      return {};
    };
    ASSERT_TRUE(rig.network.load_param(static_cast<int>(i), DType::f32, rows, rig.pool).ok());
    EXPECT_NE(rig.run(), all) << p.path;
  }
}

TEST(Adapters, MergeIntoTheWeightsThatGiveTheSameOutputs) {
  for (const Kind& kind : kinds()) {
    Rig rig(kind.adapted, kind.input, DType::f32);
    Rig merged(*Network::finalize(without_adapters(kind.adapted), kind.input));
    const Status done = merge_adapters(rig.network, merged.network, rig.pool);
    ASSERT_TRUE(done.ok()) << done.error().str();
    EXPECT_LT(merged.network.params().size(), rig.network.params().size());
    for (const Param& p : merged.network.params()) {
      if (rig.network.find_param(p.path + ".one.a") < 0) continue;
      const std::vector<float> got = values_of(p.tensor);
      const std::vector<double> want =
          expected_weight(rig.network, p.path, {{"one", 1.25}, {"two", -0.5}});
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(got[i], static_cast<float>(want[i])) << p.path << " " << i;
    }
    const std::vector<float> apart = rig.run(), together = merged.run();
    Rig plain(kind.plain, kind.input, DType::f32);
    double difference = 0, effect = 0;
    for (size_t i = 0; i < apart.size(); ++i) {
      difference = std::max(difference, std::fabs(double{apart[i]} - together[i]));
      effect = std::max(effect, std::fabs(double{apart[i]} - plain.run()[i]));
    }
    EXPECT_LT(difference, 4e-6) << kind.def->name;
    EXPECT_GT(effect, 1e-3) << kind.def->name;
    expect_every_adapter_counts(kind);
  }
}

TEST(Adapters, FreezeTheWeightAndAreTrainedThemselves) {
  const Rig rig(with_cell({dense(5, 4, "relu"), {}, {}, {}, {}, {{{"weight"}, "lora", 2}}}),
                Shape{3, 5}, DType::i8);
  std::vector<std::string> trained, frozen;
  for (const Param& p : rig.network.params()) (p.frozen ? frozen : trained).push_back(p.path);
  EXPECT_EQ(frozen, (std::vector<std::string>{"(0, 0, 0, 0)/weight"}));
  EXPECT_EQ(trained, (std::vector<std::string>{"(0, 0, 0, 0)/bias", "(0, 0, 0, 0)/weight.lora.a",
                                               "(0, 0, 0, 0)/weight.lora.b"}));
  EXPECT_EQ(rig.network.params()[0].tensor.dtype, DType::i8);
  EXPECT_EQ(rig.network.params()[2].tensor.dtype, DType::f32);
  EXPECT_EQ(rig.network.params()[2].spec.shape, (Shape{2, 5}));
  EXPECT_EQ(rig.network.params()[3].spec.shape, (Shape{4, 2}));
}

TEST(Adapters, WrongOnesAreRefusedInOneLine) {
  const struct {
    std::vector<AdapterSpec> adapters;
    const char* message;
  } cases[] = {
      {{{{"bias"}}}, "cell (0, 0, 0, 0): the adapter 'lora' selects 'bias'; it has weight"},
      {{{{"weight", "q"}}}, "cell (0, 0, 0, 0): the adapter 'lora' selects 'q'; it has weight"},
      {{{{}}}, "cell (0, 0, 0, 0): the adapter 'lora' selects no weights"},
      {{{{"*"}}, {{"weight"}}}, "(0, 0, 0, 0)/weight has two adapters 'lora'"},
      {{{{"*"}, "a b"}},
       "cell (0, 0, 0, 0): an adapter has the name 'a b'; names have letters, digits, - and _"},
      {{{{"*"}, "lora", 0}},
       "cell (0, 0, 0, 0): the adapter 'lora': rank is 0, must be from 1 to 65536"},
      {{{{"*"}, "lora", 8, std::nan("")}},
       "cell (0, 0, 0, 0): the adapter 'lora': scale must be a finite number"},
      {{{{"*"}, "lora", 8, 1, 1.0}},
       "cell (0, 0, 0, 0): the adapter 'lora': dropout is 1, must be from 0 to below 1"},
  };
  for (const auto& c : cases) {
    const Result<Network> network = Network::finalize(
        with_cell({dense(5, 4, "relu"), {}, {}, {}, {}, c.adapters}), Shape{3, 5});
    ASSERT_FALSE(network.ok()) << c.message;
    EXPECT_EQ(network.error().message, c.message);
  }
  const Result<Network> norm = Network::finalize(
      with_cell({layer(LayerKind::rms_norm, {{"width", 5}}), {}, {}, {}, {}, {{{"*"}}}}),
      Shape{3, 5});
  ASSERT_FALSE(norm.ok());
  EXPECT_EQ(norm.error().message,
            "cell (0, 0, 0, 0): the adapter 'lora' selects '*'; none of its weights can have one");
  const Result<GridSpec> none = with_adapter(row_of({dense(5, 4, "relu")}), {{"q", "v"}});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "no weight of a product is named q or v");
}

TEST(Adapters, OfASharedWeightAreNotMerged) {
  GridSpec grid(1, 1, 2, 1);
  ASSERT_TRUE(grid.put({0, 0, 0, 0}, {dense(4, 4, "tanh")}).ok());
  ASSERT_TRUE(
      grid.put({0, 0, 1, 0},
               {dense(4, 4, "linear"), Coord{0, 0, 0, 0}, {}, {}, {}, {{{"weight"}, "lora", 2}}})
          .ok());
  const Rig rig(grid, Shape{2, 4}, DType::f32);
  Network merged = *Network::finalize(without_adapters(grid), Shape{2, 4});
  ThreadPool pool(1, true);
  const Status done = merge_adapters(rig.network, merged, pool);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().message,
            "(0, 0, 0, 0)/weight is shared by 2 layers, so an adapter of one of them cannot be "
            "merged into it");
}

}  // namespace
}  // namespace loom::core::test
