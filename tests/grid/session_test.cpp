// Sessions: inputs shorter than planned, state carried between passes, and the state after a
// refused input.
#include "grid/session.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "backend/cpu/cpu.hpp"
#include "grid/grid_testing.hpp"
#include "grid/init.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core::test {
namespace {

LayerConfig dense_layer(int64_t in, int64_t out) {
  return layer(LayerKind::dense, {{"in", in}, {"out", out}, {"activation", "tanh"}});
}
LayerConfig identity() {
  return layer(LayerKind::sequential, {});
}

class Runner {
 public:
  Runner(const GridSpec& grid, const Shape& input, int64_t sequences = 1) : pool_(1, true) {
    Result<Network> network = Network::finalize(grid, input);
    EXPECT_TRUE(network.ok()) << network.error().str();
    network_ = std::make_unique<Network>(std::move(*network));
    EXPECT_TRUE(init_params(*network_, DType::f32, 3, pool_).ok());
    SessionOptions options;
    options.sequences = sequences;
    options.activations = ActivationMode::f32;
    Result<Session> made = Session::create(*network_, cpu_ops(best_isa()), pool_, input, options);
    EXPECT_TRUE(made.ok()) << made.error().str();
    session_ = std::make_unique<Session>(std::move(*made));
  }

  Result<Tensor> run(const Tensor& x, size_t first, size_t last) {
    return session_->forward(x, first, last);
  }
  // All cells on sines; `pass` changes them.
  Result<std::vector<float>> run(const Shape& shape, int pass = 0) {
    x_.resize(static_cast<size_t>(shape.count()));
    for (size_t i = 0; i < x_.size(); ++i) {
      x_[i] = static_cast<float>(static_cast<int>(i * 7 + static_cast<size_t>(pass) * 5) % 11 - 5);
    }
    LOOM_ASSIGN(const Tensor y, run(input(shape), 0, network_->cells().size()));
    return std::vector<float>(y.f32(), y.f32() + y.shape.count());
  }
  Tensor input(const Shape& shape) {
    Tensor t;
    t.shape = shape;
    t.row_stride = shape.last();
    t.data = reinterpret_cast<std::byte*>(x_.data());
    return t;
  }
  Session& session() { return *session_; }

 private:
  ThreadPool pool_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<Session> session_;
  std::vector<float> x_;
};

LayerConfig recurrent(LayerKind kind, bool sequence) {
  return layer(kind, {{"in", 20}, {"hidden", 20}, {"return_sequence", sequence}});
}

TEST(Session, OfALongerInputHasTheBitsOfOneThatWasMadeForTheLength) {
  const auto beside = [](LayerConfig a, LayerConfig b) {
    return layer(LayerKind::parallel, {{"combine", "avg"}}, {std::move(a), std::move(b)});
  };
  const LayerConfig norm = layer(LayerKind::rms_norm, {{"width", 20}});
  for (const LayerKind kind : {LayerKind::rnn, LayerKind::lstm, LayerKind::gru}) {
    const std::vector<LayerConfig> around = {
        beside(recurrent(kind, true), norm), beside(norm, recurrent(kind, true)),
        layer(LayerKind::residual, {}, {recurrent(kind, true), norm, recurrent(kind, true)}),
        layer(LayerKind::sequential, {}, {norm, recurrent(kind, true), dense_layer(20, 20)})};
    for (size_t i = 0; i < around.size(); ++i) {
      const GridSpec grid = row_of({around[i], dense_layer(20, 5)});
      Runner longer(grid, Shape{2, 6, 20}, 2);
      for (const int64_t steps : {1, 2, 3, 5, 6}) {
        Runner made(grid, Shape{2, steps, 20}, 2);
        const auto got = longer.run(Shape{2, steps, 20}), want = made.run(Shape{2, steps, 20});
        ASSERT_TRUE(got.ok()) << got.error().str();
        ASSERT_TRUE(want.ok()) << want.error().str();
        EXPECT_EQ(*got, *want) << longer.session().arena_bytes() << ": kind "
                               << static_cast<int>(kind) << ", case " << i << ", " << steps;
      }
    }
  }
}

// The bound: three copies of the largest input of a product, in blocks of 32 bytes and 12 more; the
// outputs of layers; one scratch; and commands. An input has rows times columns numbers; once these
// were taken for rows.
TEST(Session, KeepsCopiesOfNoMoreThanTheInputsOfItsProducts) {
  constexpr int64_t kFixed = (256 << 10) + (128 << 10);
  std::mt19937 draw(5);
  const auto one_of = [&](int64_t first, int64_t last) {
    return std::uniform_int_distribution<int64_t>(first, last)(draw);
  };
  for (int round = 0; round < 30; ++round) {
    const int64_t rows = one_of(1, 40), sequence = one_of(0, 1) == 0 ? 1 : one_of(2, 6);
    std::vector<int64_t> widths = {one_of(1, 700)};
    std::vector<LayerConfig> layers;
    for (int64_t n = one_of(1, 3); n > 0; --n) {
      widths.push_back(one_of(1, 700));
      layers.push_back(dense_layer(widths.end()[-2], widths.back()));
    }
    const int64_t widest = *std::max_element(widths.begin(), widths.end());
    const int64_t all = std::accumulate(widths.begin(), widths.end(), int64_t{0});
    const Shape input = sequence == 1 ? Shape{rows, widths[0]} : Shape{rows, sequence, widths[0]};
    Runner runner(row_of(std::move(layers)), input);
    ASSERT_TRUE(runner.run(input).ok());
    const int64_t copies = 3 * rows * sequence * ((widest + 31) / 32) * 44;
    const int64_t values = 4 * rows * sequence * (2 * all + widest);
    EXPECT_LE(runner.session().arena_bytes(), copies + values + kFixed)
        << input.str() << ", at most " << widest << " wide";
  }
}

// y of a pass equals the input of two passes before: two feedback links in sequence, over layers
// that copy their input.
TEST(Session, FeedbackOfFeedbackComesOnePassLater) {
  GridSpec grid = row_of({identity(), identity(), identity()});
  ASSERT_TRUE(grid.put({0, 0, 1, 0}, {identity(), {}, Link{{0, 0, 0, 0}, true}}).ok());
  ASSERT_TRUE(grid.put({0, 0, 2, 0}, {identity(), {}, Link{{0, 0, 1, 0}, true}}).ok());
  Runner runner(grid, Shape{1, 3});
  Runner plain(row_of({identity()}), Shape{1, 3});
  const std::vector<float> zeros(3);
  for (int pass = 0; pass < 6; ++pass) {
    const auto y = runner.run(Shape{1, 3}, pass);
    ASSERT_TRUE(y.ok()) << y.error().str();
    EXPECT_EQ(*y, pass < 2 ? zeros : *plain.run(Shape{1, 3}, pass - 2)) << "pass " << pass;
  }
}

TEST(Session, APassInTwoCallsReadsTheSameFeedbackAsInOne) {
  GridSpec grid = row_of({dense_layer(4, 4), dense_layer(4, 4), dense_layer(4, 4)});
  ASSERT_TRUE(
      grid.put({0, 0, 1, 0}, {layer(LayerKind::residual, {}), {}, Link{{0, 0, 0, 0}, true}}).ok());
  ASSERT_TRUE(
      grid.put({0, 0, 2, 0}, {layer(LayerKind::residual, {}), {}, Link{{0, 0, 1, 0}, true}}).ok());
  Runner full(grid, Shape{2, 4}), split(grid, Shape{2, 4});
  for (int pass = 0; pass < 3; ++pass) {
    const std::vector<float> want = *full.run(Shape{2, 4}, pass);
    const Result<Tensor> half = split.run(full.input(Shape{2, 4}), 0, 2);
    ASSERT_TRUE(half.ok()) << half.error().str();
    const Result<Tensor> y = split.run(*half, 2, 3);
    ASSERT_TRUE(y.ok()) << y.error().str();
    EXPECT_EQ(std::vector<float>(y->f32(), y->f32() + 8), want) << "pass " << pass;
  }
}

TEST(Session, TakesInputsOfAnotherShapeAfterAResetAlone) {
  GridSpec grid = row_of({dense_layer(4, 4), dense_layer(4, 4)});
  ASSERT_TRUE(
      grid.put({0, 0, 1, 0}, {layer(LayerKind::residual, {}), {}, Link{{0, 0, 0, 0}, true}}).ok());
  Runner runner(grid, Shape{5, 4});
  ASSERT_TRUE(runner.run(Shape{5, 4}).ok());
  const auto refused = runner.run(Shape{2, 4});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "an input [2, 4] after one of [5, 4]: feedback links carry what the pass before gave, "
            "so inputs keep their shape; reset the session before another one");
  runner.session().reset();
  Runner fresh(grid, Shape{2, 4});
  for (int pass = 0; pass < 3; ++pass) {
    EXPECT_EQ(*runner.run(Shape{2, 4}, pass), *fresh.run(Shape{2, 4}, pass)) << pass;
  }
}

TEST(Session, AnInputThatIsRefusedLeavesNothingToRun) {
  Runner runner(row_of({recurrent(LayerKind::gru, true), dense_layer(20, 5)}), Shape{1, 4, 20});
  const auto want = runner.run(Shape{1, 4, 20});
  ASSERT_TRUE(want.ok());
  {
    std::vector<float> gone(9 * 20, 1e30f);
    Tensor large = runner.input(Shape{1, 9, 20});
    large.data = reinterpret_cast<std::byte*>(gone.data());
    ASSERT_FALSE(runner.run(large, 0, 2).ok());
  }
  EXPECT_EQ(runner.session().recorder().commands(), 0);
  EXPECT_EQ(*runner.run(Shape{1, 4, 20}), *want);
}

TEST(Session, RefusesToRunACellWithoutTheOneItReads) {
  GridSpec grid = row_of({dense_layer(4, 4), dense_layer(4, 4), dense_layer(4, 4)});
  ASSERT_TRUE(grid.put({0, 0, 2, 0}, {dense_layer(4, 4), {}, Link{{0, 0, 0, 0}}}).ok());
  Runner runner(grid, Shape{2, 4});
  ASSERT_TRUE(runner.run(Shape{2, 4}).ok());
  const Result<Tensor> y = runner.run(runner.input(Shape{2, 4}), 1, 3);
  ASSERT_FALSE(y.ok());
  EXPECT_EQ(y.error().message,
            "cell (0, 0, 2, 0) reads cell (0, 0, 0, 0), which is not part of this pass; run both "
            "in one");
}

}  // namespace
}  // namespace loom::core::test
