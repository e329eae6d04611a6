// Every layer against the formula of its head comment, evaluated naively in double precision.
#include "layers/layer_fixture.hpp"

namespace loom::core::test {
namespace {

double silu(double x) {
  return x / (1 + std::exp(-x));
}

TEST(Dense, IsXTimesWTransposedPlusBiasThenActivation) {
  for (const char* activation : {"linear", "relu", "tanh", "sigmoid", "silu"}) {
    LayerRig rig(
        layer(LayerKind::dense, {{"in", 19}, {"out", 33}, {"activation", std::string(activation)}}),
        Shape{5, 19});
    const auto x = random_values(5 * 19, 1);
    Values want = linear(doubles(x), rig.weight("weight"), rig.weight("bias"), 19);
    for (double& v : want) {
      const std::string name = activation;
      if (name == "relu") v = v > 0 ? v : 0;
      if (name == "tanh") v = std::tanh(v);
      if (name == "sigmoid") v = 1 / (1 + std::exp(-v));
      if (name == "silu") v = silu(v);
    }
    expect_near(rig.run(x, Shape{5, 19}), want, 2e-6);
  }
}

TEST(Dense, TreatsEveryAxisButTheLastAsRows) {
  LayerRig rig(layer(LayerKind::dense, {{"in", 8}, {"out", 4}}), Shape{2, 3, 8});
  const auto x = random_values(48, 2);
  expect_near(rig.run(x, Shape{2, 3, 8}),
              linear(doubles(x), rig.weight("weight"), rig.weight("bias"), 8), 2e-6);
}

TEST(Embedding, CopiesTheRowOfEachId) {
  LayerRig rig(layer(LayerKind::embedding, {{"vocab", 21}, {"width", 6}}), Shape{1, 4});
  const Values table = rig.weight("weight");
  const auto y = rig.run_ids({20, 0, 7, 7}, Shape{1, 4});
  const int ids[] = {20, 0, 7, 7};
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 6; ++j)
      EXPECT_EQ(y[i * 6 + j], table[static_cast<size_t>(ids[i]) * 6 + j]);
  }
}

TEST(RmsNorm, DividesByTheRootMeanSquareAndScales) {
  LayerRig rig(layer(LayerKind::rms_norm, {{"width", 45}, {"eps", 1e-5}}), Shape{3, 45});
  const auto x = random_values(3 * 45, 3);
  const Values gamma = rig.weight("gamma");
  Values want(x.size());
  for (size_t r = 0; r < 3; ++r) {
    double sum = 0;
    for (size_t i = 0; i < 45; ++i) sum += double(x[r * 45 + i]) * x[r * 45 + i];
    for (size_t i = 0; i < 45; ++i)
      want[r * 45 + i] = x[r * 45 + i] / std::sqrt(sum / 45 + 1e-5) * gamma[i];
  }
  expect_near(rig.run(x, Shape{3, 45}), want, 2e-6);
}

TEST(Swiglu, GatesTheUpProjectionAndProjectsDown) {
  for (bool bias : {false, true}) {
    LayerRig rig(layer(LayerKind::swiglu, {{"width", 12}, {"inner", 20}, {"bias", bias}}),
                 Shape{4, 12});
    const auto x = random_values(48, 4);
    const auto b = [&](const char* name) { return bias ? rig.weight(name) : Values{}; };
    Values m = linear(doubles(x), rig.weight("gate"), b("gate_bias"), 12);
    const Values up = linear(doubles(x), rig.weight("up"), b("up_bias"), 12);
    for (size_t i = 0; i < m.size(); ++i) m[i] = silu(m[i]) * up[i];
    expect_near(rig.run(x, Shape{4, 12}), linear(m, rig.weight("down"), b("down_bias"), 20), 4e-6);
  }
}

struct AttentionCase {
  const char* name;
  int heads, kv_heads, head_dim;
  bool bias, qk_norm, causal, rope;
  int window;
};

class Attention : public ::testing::TestWithParam<AttentionCase> {};

void rotate(Values& t, size_t rows, size_t heads, size_t d, double theta) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t h = 0; h < heads; ++h) {
      double* v = t.data() + (r * heads + h) * d;
      for (size_t j = 0; j < d / 2; ++j) {
        const double angle = double(r) * std::pow(theta, -2.0 * double(j) / double(d));
        const double a = v[j], b = v[j + d / 2];
        v[j] = a * std::cos(angle) - b * std::sin(angle);
        v[j + d / 2] = b * std::cos(angle) + a * std::sin(angle);
      }
    }
  }
}

void norm_heads(Values& t, const Values& gamma, double eps) {
  const size_t d = gamma.size();
  for (size_t at = 0; at < t.size(); at += d) {
    double sum = 0;
    for (size_t i = 0; i < d; ++i) sum += t[at + i] * t[at + i];
    for (size_t i = 0; i < d; ++i)
      t[at + i] = t[at + i] / std::sqrt(sum / double(d) + eps) * gamma[i];
  }
}

// One sequence of T rows through the layer, in double.
Values naive_attention(const AttentionCase& c, const LayerRig& rig, const Values& x, size_t width) {
  const size_t d = size_t(c.head_dim), heads = size_t(c.heads), kv = size_t(c.kv_heads),
               rows = x.size() / width;
  const auto b = [&](const char* name) { return c.bias ? rig.weight(name) : Values{}; };
  Values q = linear(x, rig.weight("q"), b("q_bias"), width);
  Values k = linear(x, rig.weight("k"), b("k_bias"), width);
  const Values v = linear(x, rig.weight("v"), b("v_bias"), width);
  if (c.qk_norm) {
    norm_heads(q, rig.weight("q_norm"), 1e-6);
    norm_heads(k, rig.weight("k_norm"), 1e-6);
  }
  if (c.rope) {
    rotate(q, rows, heads, d, 10000);
    rotate(k, rows, kv, d, 10000);
  }
  Values mixed(rows * heads * d);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t h = 0; h < heads; ++h) {
      const size_t g = h / (heads / kv);
      const size_t hi = c.causal ? r + 1 : rows;
      const size_t lo = c.window > 0 && r + 1 > size_t(c.window) ? r + 1 - size_t(c.window) : 0;
      Values w;
      double sum = 0;
      for (size_t p = lo; p < hi; ++p) {
        double s = 0;
        for (size_t i = 0; i < d; ++i) s += q[(r * heads + h) * d + i] * k[(p * kv + g) * d + i];
        w.push_back(std::exp(s / std::sqrt(double(d))));
        sum += w.back();
      }
      for (size_t p = lo; p < hi; ++p) {
        for (size_t i = 0; i < d; ++i) {
          mixed[(r * heads + h) * d + i] += w[p - lo] / sum * v[(p * kv + g) * d + i];
        }
      }
    }
  }
  return linear(mixed, rig.weight("o"), {}, heads * d);
}

LayerConfig attention_layer(const AttentionCase& c, int width) {
  return layer(LayerKind::multi_head_attention, {{"width", width},
                                                 {"heads", c.heads},
                                                 {"kv_heads", c.kv_heads},
                                                 {"head_dim", c.head_dim},
                                                 {"bias", c.bias},
                                                 {"qk_norm", c.qk_norm},
                                                 {"causal", c.causal},
                                                 {"rope", c.rope},
                                                 {"window", c.window}});
}

TEST_P(Attention, EqualsTheNaiveFormulaForEverySequenceOfTheBatch) {
  const AttentionCase& c = GetParam();
  constexpr int kWidth = 24, kRows = 21;
  LayerRig rig(attention_layer(c, kWidth), Shape{2, kRows, kWidth}, 2);
  const auto x = random_values(2 * kRows * kWidth, 5);
  const Values all = doubles(x);
  Values want;
  for (int s = 0; s < 2; ++s) {
    const Values one(all.begin() + s * kRows * kWidth, all.begin() + (s + 1) * kRows * kWidth);
    const Values y = naive_attention(c, rig, one, kWidth);
    want.insert(want.end(), y.begin(), y.end());
  }
  expect_near(rig.run(x, Shape{2, kRows, kWidth}), want, 2e-5);
}

TEST_P(Attention, GivesTheSameBitsForAPromptInPieces) {
  const AttentionCase& c = GetParam();
  if (!c.causal) GTEST_SKIP() << "pieces need a causal layer";
  constexpr int kWidth = 24, kRows = 21;
  LayerRig rig(attention_layer(c, kWidth), Shape{1, kRows, kWidth});
  const auto x = random_values(kRows * kWidth, 6);
  const auto full = rig.run(x, Shape{1, kRows, kWidth});
  for (int piece : {1, 4, 13}) {
    rig.session().rewind(0);
    std::vector<float> joined;
    for (int at = 0; at < kRows; at += piece) {
      const int n = std::min(piece, kRows - at);
      const auto y =
          rig.run({x.begin() + at * kWidth, x.begin() + (at + n) * kWidth}, Shape{1, n, kWidth});
      joined.insert(joined.end(), y.begin(), y.end());
      rig.session().advance(n);
    }
    EXPECT_EQ(joined, full) << "pieces of " << piece;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Variants, Attention,
    ::testing::Values(AttentionCase{"Plain", 2, 2, 16, false, false, true, false, 0},
                      AttentionCase{"Rope", 2, 2, 16, false, false, true, true, 0},
                      AttentionCase{"Grouped", 6, 2, 16, false, false, true, true, 0},
                      AttentionCase{"MultiQuery", 5, 1, 16, true, false, true, true, 0},
                      AttentionCase{"QkNorm", 4, 2, 32, true, true, true, true, 0},
                      AttentionCase{"Window", 3, 1, 16, false, false, true, true, 5},
                      AttentionCase{"Full", 3, 3, 16, false, false, false, false, 0},
                      AttentionCase{"OddHeadWidth", 2, 1, 10, false, false, true, true, 0}),
    [](const auto& test) { return test.param.name; });

TEST(Residual, AddsItsInputToWhatItsChildrenMakeOfIt) {
  std::vector<LayerConfig> children;
  children.push_back(layer(LayerKind::dense, {{"in", 9}, {"out", 9}}));
  LayerRig rig(layer(LayerKind::residual, {}, std::move(children)), Shape{4, 9});
  const auto x = random_values(36, 8);
  Values want = linear(doubles(x), rig.weight("weight"), rig.weight("bias"), 9);
  for (size_t i = 0; i < want.size(); ++i) want[i] += x[i];
  expect_near(rig.run(x, Shape{4, 9}), want, 2e-6);
}

TEST(Sequential, RunsItsChildrenInOrderAndAnEmptyOneIsTheIdentity) {
  std::vector<LayerConfig> children;
  children.push_back(layer(LayerKind::sequential, {}));
  children.push_back(layer(LayerKind::rms_norm, {{"width", 6}}));
  children.push_back(layer(LayerKind::dense, {{"in", 6}, {"out", 3}}));
  LayerRig rig(layer(LayerKind::sequential, {}, std::move(children)), Shape{2, 6});
  const auto x = random_values(12, 9);
  Values normed = doubles(x);
  norm_heads(normed, rig.weight("gamma"), 1e-6);
  expect_near(rig.run(x, Shape{2, 6}), linear(normed, rig.weight("weight"), rig.weight("bias"), 6),
              3e-6);
}

}  // namespace
}  // namespace loom::core::test
