// A hard Gumbel softmax gives one-hot rows and has the gradient of the soft one.
#include "learn/train_rig.hpp"
#include "ops/gradients/gradient.hpp"
#include "ops/recording/program.hpp"

namespace loom::core::test {
namespace {

struct Values {
  std::vector<float> y, dx;
};

Values run(bool hard) {
  Values out;
  ThreadPool pool(1);
  Result<Network> network = Network::finalize(
      row_of({layer(LayerKind::softmax,
                    {{"variant", "gumbel"}, {"temperature", 0.7}, {"hard", hard}})}),
      Shape{16, 6});
  EXPECT_TRUE(network.ok());
  Trace trace(DType::f32, true);
  TraceOptions options;
  options.training = true;
  options.seed = 3;
  Result<TracedNetwork> t = trace_network(*network, trace, options);
  EXPECT_TRUE(t.ok()) << t.error().str();
  Tensor dy = trace.fresh(t->y.shape);
  Differentiator d(trace);
  d.want(t->x);
  d.seed(t->y, dy);
  EXPECT_TRUE(d.run().ok());
  Tensor dx = d.gradient(t->x);
  std::vector<Tensor*> pins = {&t->x, &t->y, &t->step, &dy, &dx};
  Result<Program> program = Program::compile(std::move(trace), pins, cpu_ops(best_isa()), pool);
  EXPECT_TRUE(program.ok());
  for (int64_t i = 0; i < t->x.shape.count(); ++i) {
    t->x.f32()[i] = static_cast<float>(std::sin(0.9 * static_cast<double>(i)));
    dy.f32()[i] = static_cast<float>(std::cos(0.4 * static_cast<double>(i)));
  }
  t->step.f32()[0] = 5;
  EXPECT_TRUE(program->run().ok());
  out.y.assign(t->y.f32(), t->y.f32() + t->y.shape.count());
  out.dx.assign(dx.f32(), dx.f32() + dx.shape.count());
  return out;
}

TEST(StraightThrough, HardRowsHaveTheGradientOfSoftOnes) {
  const Values soft = run(false), hard = run(true);
  EXPECT_EQ(hard.dx, soft.dx);
  std::vector<int> winners;
  for (size_t r = 0; r < 16; ++r) {
    const auto row = soft.y.begin() + static_cast<int64_t>(r * 6);
    const auto best = std::max_element(row, row + 6) - row;
    winners.push_back(static_cast<int>(best));
    for (int64_t c = 0; c < 6; ++c) {
      EXPECT_NEAR(hard.y[r * 6 + static_cast<size_t>(c)], c == best ? 1.0f : 0.0f, 2e-7f);
    }
  }
  std::sort(winners.begin(), winners.end());
  EXPECT_NE(winners.front(), winners.back()) << "the noise moves the choice";
}

}  // namespace
}  // namespace loom::core::test
