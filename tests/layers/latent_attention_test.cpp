// Latent attention against its definition in doubles: keys and values of every head are expanded.
#include "layers/layer_fixture.hpp"

namespace loom::core::test::latent_attention {
namespace {

struct Form {
  const char* name;
  int64_t heads = 3, head = 10, rope = 4, latent = 7, rank = 0, value = 5, window = 0;
  bool causal = true;
  int64_t plain() const { return head - rope; }
  LayerConfig config() const {
    return layer(LayerKind::multi_head_attention, {{"width", 9},
                                                   {"heads", heads},
                                                   {"kv_heads", heads},
                                                   {"head_dim", head},
                                                   {"rope_width", rope},
                                                   {"latent", latent},
                                                   {"latent_q", rank},
                                                   {"value_dim", value},
                                                   {"window", window},
                                                   {"causal", causal}});
  }
};
const Form kForms[] = {
    {.name = "plain queries"},
    {.name = "latent queries", .rank = 6},
    {.name = "wide latents", .latent = 32, .value = 16},
    {.name = "one head", .heads = 1, .value = 12},
    {.name = "a window", .window = 3},
    {.name = "both ways", .rank = 4, .causal = false},
};
constexpr int64_t kRows = 6;

Values normed(const Values& x, const Values& gain) {
  Values y = x;
  const size_t n = gain.size();
  for (size_t r = 0; r < x.size() / n; ++r) {
    double squares = 0;
    for (size_t i = 0; i < n; ++i) squares += x[r * n + i] * x[r * n + i];
    const double factor = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-6);
    for (size_t i = 0; i < n; ++i) y[r * n + i] = x[r * n + i] * factor * gain[i];
  }
  return y;
}

void turn(double* x, int64_t width, int64_t position) {
  for (int64_t j = 0; j < width / 2; ++j) {
    const double power = -2.0 * static_cast<double>(j) / static_cast<double>(width);
    const double angle = static_cast<double>(position) * std::pow(10000.0, power);
    const double a = x[j], b = x[j + width / 2];
    x[j] = a * std::cos(angle) - b * std::sin(angle);
    x[j + width / 2] = b * std::cos(angle) + a * std::sin(angle);
  }
}

// Queries [rows, heads, head] and keys of the same shape: the turned values are the last ones.
struct Heads {
  Values q, k, v;
};
Heads heads_of(const Form& f, const LayerRig& rig, const Values& x) {
  Heads out;
  const auto n = [](int64_t v) { return static_cast<size_t>(v); };
  if (f.rank > 0) {
    const Values down = linear(x, rig.weight("q_down"), {}, 9);
    out.q = linear(normed(down, rig.weight("q_down_norm")), rig.weight("q_up"), {}, n(f.rank));
  } else {
    out.q = linear(x, rig.weight("q"), {}, 9);
  }
  Values both = linear(x, rig.weight("kv_down"), {}, 9);
  const Values k_up = rig.weight("k_up"), v_up = rig.weight("v_up");
  const int64_t wide = f.latent + f.rope;
  for (int64_t r = 0; r < kRows; ++r) {
    double* row = both.data() + r * wide;
    turn(row + f.latent, f.rope, r);
    const Values c = normed(Values(row, row + f.latent), rig.weight("kv_down_norm"));
    for (int64_t h = 0; h < f.heads; ++h) {
      turn(out.q.data() + (r * f.heads + h) * f.head + f.plain(), f.rope, r);
      for (int64_t i = 0; i < f.plain(); ++i) {
        double sum = 0;
        for (int64_t j = 0; j < f.latent; ++j)
          sum += k_up[n((h * f.latent + j) * f.plain() + i)] * c[n(j)];
        out.k.push_back(sum);
      }
      out.k.insert(out.k.end(), row + f.latent, row + wide);
      for (int64_t i = 0; i < f.value; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < f.latent; ++j)
          sum += v_up[n((h * f.value + i) * f.latent + j)] * c[n(j)];
        out.v.push_back(sum);
      }
    }
  }
  return out;
}

Values expected(const Form& f, const LayerRig& rig, const Values& x) {
  const Heads s = heads_of(f, rig, x);
  Values joined(static_cast<size_t>(kRows * f.heads * f.value));
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t h = 0; h < f.heads; ++h) {
      Values weights;
      double total = 0;
      for (int64_t p = 0; p < kRows; ++p) {
        const bool seen = (!f.causal || p <= r) && (f.window == 0 || r - p < f.window);
        double score = 0;
        for (int64_t i = 0; i < f.head; ++i)
          score += s.q[static_cast<size_t>((r * f.heads + h) * f.head + i)] *
                   s.k[static_cast<size_t>((p * f.heads + h) * f.head + i)];
        weights.push_back(seen ? std::exp(score / std::sqrt(static_cast<double>(f.head))) : 0.0);
        total += weights.back();
      }
      for (int64_t i = 0; i < f.value; ++i) {
        double& y = joined[static_cast<size_t>((r * f.heads + h) * f.value + i)];
        for (int64_t p = 0; p < kRows; ++p)
          y += weights[static_cast<size_t>(p)] / total *
               s.v[static_cast<size_t>((p * f.heads + h) * f.value + i)];
      }
    }
  }
  return linear(joined, rig.weight("o"), {}, static_cast<size_t>(f.heads * f.value));
}

TEST(LatentAttention, EqualsAttentionOverExpandedKeysAndValues) {
  for (const Form& f : kForms) {
    SCOPED_TRACE(f.name);
    LayerRig rig(f.config(), Shape{kRows, 9}, 1, 16);
    const std::vector<float> x = random_values(kRows * 9, 5);
    expect_near(rig.run(x, Shape{kRows, 9}), expected(f, rig, doubles(x)), 1e-5);
  }
}

TEST(LatentAttention, KeepsOneKeyAndValueOfThePositionInTheCache) {
  const LayerConfig config = kForms[0].config();
  const StateSpec state = config.def->state(config);
  EXPECT_EQ(state.kv_heads, 1);
  EXPECT_EQ(state.head_dim, 11);
}

TEST(LatentAttention, ThatHasNoFormIsRefused) {
  const struct {
    std::vector<Field> fields;
    const char* message;
  } rows[] = {
      {{{"latent", 4}, {"rope_width", 0}},
       "MultiHeadAttention: the latent form needs rope and a rope_width below head_dim 4; "
       "rope_width is 0"},
      {{{"latent", 4}, {"rope_width", 2}, {"bias", true}},
       "MultiHeadAttention: the latent form has no bias, out_bias, qk_norm, sub_norm and clip, "
       "and as many kv_heads as heads"}};
  for (const auto& row : rows) {
    std::vector<Field> fields = {{"width", 8}, {"heads", 2}, {"kv_heads", 2}, {"head_dim", 4}};
    for (const Field& field : row.fields) fields.push_back(field);
    const Result<Shape> shape =
        infer_shape(layer(LayerKind::multi_head_attention, fields), Shape{4, 8});
    ASSERT_FALSE(shape.ok());
    EXPECT_EQ(shape.error().message, row.message);
  }
}

}  // namespace
}  // namespace loom::core::test::latent_attention
