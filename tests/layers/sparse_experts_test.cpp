// The layer Experts against a literal evaluation in double, which knows no pairs and no order of
// rows. A row alone has the bits that it has in a batch.
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "layers/layer_fixture.hpp"

namespace loom::core::test::sparse_experts {
namespace {

struct Form {
  const char* name;
  int64_t width = 12, inner = 16, experts = 6, chosen = 2, shared = 0, groups = 1;
  int64_t chosen_groups = 1, group_best = 2;
  bool sigmoid = false, normalize = true, bias = false, router_bias = false, choice_bias = false;
  bool shared_gate = false, relu = false, mixer = false, scale_inputs = false;
  double scale = 1, limit = 0, gate_scale = 1, up_offset = 0, jitter = 0.01;

  LayerConfig config() const {
    return layer(LayerKind::experts, {{"width", width},
                                      {"inner", inner},
                                      {"experts", experts},
                                      {"chosen", chosen},
                                      {"activation", relu ? "relu" : "silu"},
                                      {"score", mixer     ? "sparsemixer"
                                                : sigmoid ? "sigmoid"
                                                          : "softmax"},
                                      {"normalize", normalize},
                                      {"scale", scale},
                                      {"bias", bias},
                                      {"router_bias", router_bias},
                                      {"choice_bias", choice_bias},
                                      {"groups", groups},
                                      {"chosen_groups", chosen_groups},
                                      {"group_best", group_best},
                                      {"shared_inner", shared},
                                      {"shared_gate", shared_gate},
                                      {"limit", limit},
                                      {"gate_scale", gate_scale},
                                      {"up_offset", up_offset},
                                      {"scale_inputs", scale_inputs},
                                      {"jitter", jitter}});
  }
};

const Form kForms[] = {
    {.name = "softmax"},
    {.name = "one expert for a row", .chosen = 1, .normalize = false},
    {.name = "all experts", .chosen = 6, .normalize = false},
    {.name = "a scale of the weights", .normalize = false, .scale = 2.5},
    {.name = "sigmoid, relu", .sigmoid = true, .relu = true},
    {.name = "a choice bias", .sigmoid = true, .choice_bias = true},
    {.name = "biases", .bias = true, .router_bias = true},
    {.name = "inner widths inside of a group", .inner = 21, .bias = true},
    {.name = "a shared expert", .shared = 7},
    {.name = "a gated shared expert", .shared = 16, .shared_gate = true},
    {.name = "two of three groups", .groups = 3, .chosen_groups = 2, .sigmoid = true},
    {.name = "a group of the best", .groups = 3, .chosen_groups = 1, .group_best = 1},
    {.name = "more experts than rows", .experts = 40, .chosen = 3},
    {.name = "limited gates and offset ups",
     .shared = 7,
     .limit = 0.2,
     .gate_scale = 1.702,
     .up_offset = 1},
    {.name = "scaled inputs",
     .chosen = 1,
     .shared = 7,
     .sigmoid = true,
     .normalize = false,
     .scale_inputs = true},
    {.name = "sparsemixer", .normalize = false, .mixer = true, .jitter = 0.3},
    {.name = "sparsemixer of near experts", .normalize = false, .mixer = true},
};

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// Rows [first, first + count) of a matrix with `cols` columns.
Values rows_of(const Values& m, int64_t first, int64_t count, int64_t cols) {
  return {m.begin() + first * cols, m.begin() + (first + count) * cols};
}

Values mlp(const Form& f, const Values& x, const Values& gate, const Values& up, const Values& down,
           const Values& gate_bias, const Values& up_bias, const Values& down_bias) {
  Values g = linear(x, gate, gate_bias, x.size());
  Values u = linear(x, up, up_bias, x.size());
  for (size_t i = 0; i < g.size(); ++i) {
    if (f.limit > 0) {
      g[i] = std::min(g[i], f.limit);
      u[i] = std::clamp(u[i], -f.limit, f.limit);
    }
    g[i] =
        (f.relu ? std::max(g[i], 0.0) : g[i] * sigmoid(f.gate_scale * g[i])) * (u[i] + f.up_offset);
  }
  return linear(g, down, down_bias, g.size());
}

Values scores_of(const Form& f, const LayerRig& rig, const Values& x) {
  Values s = linear(x, rig.weight("router"), f.router_bias ? rig.weight("router_bias") : Values{},
                    x.size());
  if (f.mixer) return s;
  if (f.sigmoid) {
    for (double& v : s) v = sigmoid(v);
    return s;
  }
  double sum = 0;
  for (double& v : s) sum += v = std::exp(v);
  for (double& v : s) v /= sum;
  return s;
}

// The chosen experts: a sorted list of all eligible ones, cut off.
std::vector<size_t> chosen_of(const Form& f, const Values& ranked) {
  const auto length = static_cast<size_t>(f.experts / f.groups);
  std::vector<size_t> groups(static_cast<size_t>(f.groups));
  Values sums(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    groups[g] = g;
    Values best = rows_of(ranked, static_cast<int64_t>(g * length), f.experts / f.groups, 1);
    std::sort(best.rbegin(), best.rend());
    sums[g] = std::accumulate(
        best.begin(), best.begin() + std::min<int64_t>(f.group_best, std::ssize(best)), 0.0);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [&](size_t a, size_t b) { return sums[a] > sums[b]; });
  groups.resize(static_cast<size_t>(f.chosen_groups));
  std::vector<size_t> experts;
  for (size_t e = 0; e < ranked.size(); ++e) {
    if (std::count(groups.begin(), groups.end(), e / length) > 0) experts.push_back(e);
  }
  std::stable_sort(experts.begin(), experts.end(),
                   [&](size_t a, size_t b) { return ranked[a] > ranked[b]; });
  experts.resize(static_cast<size_t>(f.chosen));
  return experts;
}

// The weights of the two chosen experts of sparsemixer: the second ignores the first.
Values mixed(const Form& f, const Values& logits, const std::vector<size_t>& chosen) {
  Values weights(logits.size());
  for (size_t k = 0; k < 2; ++k) {
    const double own = logits[chosen[k]];
    double sum = 0;
    for (size_t j = 0; j < logits.size(); ++j) {
      if (k == 1 && j == chosen[0]) continue;
      const double distance = (own - logits[j]) / std::max(std::abs(logits[j]), own);
      if (distance <= 2 * f.jitter) sum += std::exp(logits[j] - own);
    }
    weights[chosen[k]] = 1 / sum;
  }
  return weights;
}

Values expected(const Form& f, const LayerRig& rig, const Values& x) {
  Values s = scores_of(f, rig, x);
  Values ranked = s;
  if (f.choice_bias) {
    const Values bias = rig.weight("choice_bias");
    for (size_t e = 0; e < s.size(); ++e) ranked[e] += bias[e];
  }
  const std::vector<size_t> chosen = chosen_of(f, ranked);
  if (f.mixer) s = mixed(f, s, chosen);
  double total = 0;
  for (const size_t e : chosen) total += s[e];
  Values y(x.size());
  for (const size_t i : chosen) {
    const auto e = static_cast<int64_t>(i);
    const auto bias = [&](const char* name, int64_t n) {
      return f.bias ? rows_of(rig.weight(name), e * n, n, 1) : Values{};
    };
    const auto matrix = [&](const char* name, int64_t n, int64_t cols) {
      return rows_of(rig.weight(name), e * n, n, cols);
    };
    const double weight = f.scale * (f.normalize ? s[i] / total : s[i]);
    Values in = x;
    for (double& v : in) v *= f.scale_inputs ? weight : 1;
    const Values part =
        mlp(f, in, matrix("expert_gate", f.inner, f.width), matrix("expert_up", f.inner, f.width),
            matrix("expert_down", f.width, f.inner), bias("expert_gate_bias", f.inner),
            bias("expert_up_bias", f.inner), bias("expert_down_bias", f.width));
    for (size_t k = 0; k < y.size(); ++k) y[k] += part[k] * (f.scale_inputs ? 1 : weight);
  }
  if (f.shared == 0) return y;
  const Values part = mlp(f, x, rig.weight("shared_gate"), rig.weight("shared_up"),
                          rig.weight("shared_down"), {}, {}, {});
  const double share =
      f.shared_gate ? sigmoid(linear(x, rig.weight("shared_router"), {}, x.size())[0]) : 1;
  for (size_t k = 0; k < y.size(); ++k) y[k] += share * part[k];
  return y;
}

class SparseExperts : public testing::TestWithParam<Form> {};
INSTANTIATE_TEST_SUITE_P(Forms, SparseExperts, testing::ValuesIn(kForms), [](const auto& test) {
  std::string name = test.param.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

TEST_P(SparseExperts, EqualTheSumOfTheChosenExperts) {
  const Form& f = GetParam();
  LayerRig rig(f.config(), Shape{9, f.width});
  const std::vector<float> x = random_values(9 * f.width, 3);
  Values want;
  for (int64_t r = 0; r < 9; ++r) {
    const Values y = expected(f, rig, rows_of(doubles(x), r, 1, f.width));
    want.insert(want.end(), y.begin(), y.end());
  }
  expect_near(rig.run(x, Shape{9, f.width}), want, 1e-5);
}

TEST_P(SparseExperts, GiveARowItsBitsInAnyBatch) {
  const Form& f = GetParam();
  LayerRig rig(f.config(), Shape{33, f.width});
  const std::vector<float> x = random_values(33 * f.width, 4);
  const std::vector<float> all = rig.run(x, Shape{33, f.width});
  for (const int64_t rows : {1, 2, 5, 17}) {
    for (int64_t r = 0; r + rows <= 33; r += rows) {
      const std::vector<float> part(x.begin() + r * f.width, x.begin() + (r + rows) * f.width);
      const std::vector<float> want(all.begin() + r * f.width, all.begin() + (r + rows) * f.width);
      ASSERT_EQ(rig.run(part, Shape{rows, f.width}), want) << rows << " rows from " << r;
    }
  }
}

TEST(SparseExpertsOptions, ThatDescribeNoLayerAreRefused) {
  struct Refused {
    Form form;
    const char* message;
  };
  const Refused cases[] = {
      {{.name = "", .chosen = 7}, "Experts: 7 experts are chosen from 6"},
      {{.name = "", .groups = 4}, "Experts: 6 experts do not form 4 equal groups"},
      {{.name = "", .groups = 2, .chosen_groups = 3}, "Experts: 3 groups are chosen from 2"},
      {{.name = "", .chosen = 3, .groups = 3}, "Experts: 3 experts are chosen from 2"},
      {{.name = "", .groups = 3, .group_best = 3},
       "Experts: group_best is 3, but a group has 2 experts"},
      {{.name = "", .chosen = 3, .mixer = true}, "Experts: sparsemixer chooses 2 experts, not 3"},
      {{.name = "", .scale_inputs = true},
       "Experts: scale_inputs needs one chosen expert, there are 2"}};
  for (const Refused& c : cases) {
    const Result<Shape> shape = infer_shape(c.form.config(), Shape{4, 12});
    ASSERT_FALSE(shape.ok()) << c.message;
    EXPECT_EQ(shape.error().message, c.message);
  }
  EXPECT_EQ(infer_shape(Form{.name = ""}.config(), Shape{4, 13}).error().message,
            "Experts: input [4, 13] must end in 12");
}

}  // namespace
}  // namespace loom::core::test::sparse_experts
