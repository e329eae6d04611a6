// ConvLSTM beside its formula in doubles: random extents, kernels, weights and inputs.
#include "layers/layer_fixture.hpp"

namespace loom::core::test::conv_lstm_formula {
namespace {

struct Sizes {
  int64_t batch, steps, channels, filters, height, width, tall, wide;
};

// Gate `row` of one sample at (y, x): a convolution of an image [channels, H, W] with zero padding.
double convolved(const Values& image, const Values& w, int64_t channels, int64_t row, int64_t y,
                 int64_t x, const Sizes& s) {
  double sum = 0;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < s.tall; ++i) {
      for (int64_t j = 0; j < s.wide; ++j) {
        const int64_t at = y + i - s.tall / 2, to = x + j - s.wide / 2;
        if (at < 0 || at >= s.height || to < 0 || to >= s.width) continue;
        const int64_t tap = ((row * channels + c) * s.tall + i) * s.wide + j;
        sum += image[static_cast<size_t>((c * s.height + at) * s.width + to)] *
               w[static_cast<size_t>(tap)];
      }
    }
  }
  return sum;
}

double sigmoid(double v) {
  return 1 / (1 + std::exp(-v));
}

// All states of one sample, [T, F, H, W].
Values states(const Values& x, const Values& wx, const Values& wh, const Values& bias,
              const Sizes& s) {
  const int64_t positions = s.height * s.width, size = s.filters * positions;
  Values h(static_cast<size_t>(size)), cell(static_cast<size_t>(size)), out;
  for (int64_t t = 0; t < s.steps; ++t) {
    const auto first = x.begin() + t * s.channels * positions;
    const Values image(first, first + s.channels * positions);
    Values next(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i) {
      const int64_t f = i / positions, y = i % positions / s.width, col = i % s.width;
      const auto gate = [&](int64_t g) {
        const int64_t row = g * s.filters + f;
        return convolved(image, wx, s.channels, row, y, col, s) +
               convolved(h, wh, s.filters, row, y, col, s) + bias[static_cast<size_t>(row)];
      };
      double& c = cell[static_cast<size_t>(i)];
      c = sigmoid(gate(1)) * c + sigmoid(gate(0)) * std::tanh(gate(2));
      next[static_cast<size_t>(i)] = sigmoid(gate(3)) * std::tanh(c);
    }
    h = next;
    out.insert(out.end(), h.begin(), h.end());
  }
  return out;
}

class ConvLstm : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Random, ConvLstm, ::testing::Range(0, 20));

TEST_P(ConvLstm, GivesTheStatesOfItsFormula) {
  const Rng rng(static_cast<uint64_t>(GetParam()) + 1, 4);
  uint64_t at = 0;
  const auto from = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(rng.bits(at++) % static_cast<uint64_t>(most - least + 1));
  };
  const Sizes s{from(1, 3), from(1, 4), from(1, 3),         from(1, 3),
                from(1, 5), from(1, 5), 2 * from(0, 2) + 1, 2 * from(0, 1) + 1};
  const bool sequence = from(0, 1) == 1;
  Result<LayerConfig> layer =
      make_layer(LayerKind::conv_lstm, {{"channels", s.channels},
                                        {"filters", s.filters},
                                        {"kernel", std::vector<int64_t>{s.tall, s.wide}},
                                        {"return_sequence", sequence}});
  ASSERT_TRUE(layer.ok()) << layer.error().str();
  const Shape input{s.batch, s.steps, s.channels, s.height, s.width};
  LayerRig rig(std::move(*layer), input, s.batch);
  const std::vector<float> x = random_values(input.count(), 5);
  const std::vector<float> got = rig.run(x, input);
  const int64_t size = s.filters * s.height * s.width, each = input.count() / s.batch;
  Values want;
  for (int64_t n = 0; n < s.batch; ++n) {
    const Values sample(x.begin() + n * each, x.begin() + (n + 1) * each);
    const Values all = states(sample, rig.weight("wx"), rig.weight("wh"), rig.weight("bias"), s);
    want.insert(want.end(), sequence ? all.begin() : all.end() - size, all.end());
  }
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5) << i;
}

TEST(ConvLstmErrors, SayWhatIsWrongInOneLine) {
  const auto text = [](const std::vector<Field>& fields, const Shape& in) {
    const Result<LayerConfig> layer = make_layer(LayerKind::conv_lstm, fields);
    return layer.ok() ? infer_shape(*layer, in).error().message : layer.error().message;
  };
  EXPECT_EQ(text({{"kernel", 2}}, Shape{1, 2, 1, 4, 4}), "ConvLSTM: kernel is 2, must be odd");
  EXPECT_EQ(text({{"channels", 3}}, Shape{1, 2, 1, 4, 4}),
            "ConvLSTM: input [1, 2, 1, 4, 4] must be [batch, time, 3, height, width]");
}

}  // namespace
}  // namespace loom::core::test::conv_lstm_formula
