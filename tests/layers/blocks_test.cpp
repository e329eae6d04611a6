// Blocks against their formulas in doubles, written without graphs: random fields, weights and
// inputs. Other tests cover their parts. These check that the combination matches the name.
#include "layers/blocks/blocks.hpp"

#include "layers/block_rig.hpp"

namespace loom::core::test::block_formulas {
namespace {

class Blocks : public ::testing::TestWithParam<int> {
 protected:
  Choice choose{static_cast<uint64_t>(GetParam()) + 1};
};
INSTANTIATE_TEST_SUITE_P(Random, Blocks, ::testing::Range(0, 25));

TEST_P(Blocks, SqueezeExciteScalesChannelsByWhatTheirMeansSay) {
  const int64_t b = choose.from(1, 3), c = choose.from(1, 6), h = choose.from(1, 4);
  const int64_t axes = choose.from(1, 3), side = choose.from(1, 4);
  Shape shape{b, c, side};
  if (axes > 1) shape = Shape{b, c, side, 2};
  if (axes > 2) shape = Shape{b, c, side, 2, 3};
  Rig rig(block("SqueezeExcite", {{"channels", c}, {"hidden", h}, {"axes", axes}}), shape);
  const std::vector<float> x = random_values(shape.count(), 5);
  const int64_t positions = shape.count() / b / c;
  Values want = doubles(x);
  for (int64_t n = 0; n < b; ++n) {
    Values means;
    for (int64_t k = 0; k < c; ++k) {
      double sum = 0;
      for (int64_t i = 0; i < positions; ++i)
        sum += x[static_cast<size_t>((n * c + k) * positions + i)];
      means.push_back(sum / static_cast<double>(positions));
    }
    Values hidden = dense(means, rig.weight(0), rig.weight(1), c, h);
    for (double& v : hidden) v = std::max(v, 0.0);
    const Values factors = dense(hidden, rig.weight(2), rig.weight(3), h, c);
    for (int64_t k = 0; k < c; ++k) {
      for (int64_t i = 0; i < positions; ++i)
        want[static_cast<size_t>((n * c + k) * positions + i)] *=
            sigmoid(factors[static_cast<size_t>(k)]);
    }
  }
  expect_near(rig.run(x), want);
}

TEST_P(Blocks, SeparableConvIsOneOfEachChannelAndOneOfAll) {
  const int64_t b = choose.from(1, 3), c = choose.from(1, 5), f = choose.from(1, 5);
  const int64_t k = choose.from(1, 3), pad = choose.from(0, 2), stride = choose.from(1, 2);
  const int64_t n = choose.from(3, 8), m = (n + 2 * pad - k) / stride + 1;
  Rig rig(block("SeparableConv", {{"channels", c},
                                  {"filters", f},
                                  {"axes", 1},
                                  {"kernel", k},
                                  {"stride", stride},
                                  {"padding", pad},
                                  {"activation", "sigmoid"}}),
          Shape{b, c, n});
  const std::vector<float> x = random_values(b * c * n, 5);
  Values want;
  for (int64_t s = 0; s < b; ++s) {
    for (int64_t o = 0; o < f; ++o) {
      for (int64_t i = 0; i < m; ++i) {
        double sum = rig.weight(2)[static_cast<size_t>(o)];
        for (int64_t ch = 0; ch < c; ++ch) {
          double each = 0;
          for (int64_t t = 0; t < k; ++t) {
            const int64_t at = i * stride + t - pad;
            if (at < 0 || at >= n) continue;
            each += x[static_cast<size_t>((s * c + ch) * n + at)] *
                    rig.weight(0)[static_cast<size_t>(ch * k + t)];
          }
          sum += each * rig.weight(1)[static_cast<size_t>(o * c + ch)];
        }
        want.push_back(sigmoid(sum));
      }
    }
  }
  expect_near(rig.run(x), want);
}

TEST_P(Blocks, PositionsAreAddedToEachSample) {
  const int64_t b = choose.from(1, 3), t = choose.from(1, 7), w = choose.from(1, 7);
  const bool learned = choose.yes();
  Rig rig(block("Positions",
                {{"length", t}, {"width", w}, {"kind", learned ? "learned" : "sinusoidal"}}),
          Shape{b, t, w});
  const std::vector<float> x = random_values(b * t * w, 5);
  Values want = doubles(x);
  for (int64_t i = 0; i < b * t * w; ++i) {
    const int64_t flat_index = i / w % t, k = i % w;
    const double angle = static_cast<double>(flat_index) /
                         std::pow(10000.0, static_cast<double>(k - k % 2) / static_cast<double>(w));
    want[static_cast<size_t>(i)] += learned ? rig.weight(0)[static_cast<size_t>(flat_index * w + k)]
                                    : k % 2 == 0 ? std::sin(angle)
                                                 : std::cos(angle);
  }
  expect_near(rig.run(x), want);
}

// Attention of queries [b, t, w] over keys and values [b, s, w]; bias(head, query, key) is added.
template <class Bias>
Values attention(const Values& q, const Values& k, const Values& v, int64_t b, int64_t t, int64_t s,
                 int64_t w, int64_t heads, const Bias& bias) {
  const int64_t d = w / heads;
  Values out(static_cast<size_t>(b * t * w));
  for (int64_t n = 0; n < b; ++n) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < t; ++i) {
        Values p;
        double sum = 0;
        for (int64_t j = 0; j < s; ++j) {
          double dot = 0;
          for (int64_t e = 0; e < d; ++e)
            dot += q[static_cast<size_t>((n * t + i) * w + h * d + e)] *
                   k[static_cast<size_t>((n * s + j) * w + h * d + e)];
          p.push_back(std::exp(dot / std::sqrt(static_cast<double>(d)) + bias(h, i, j)));
          sum += p.back();
        }
        for (int64_t e = 0; e < d; ++e) {
          double mixed = 0;
          for (int64_t j = 0; j < s; ++j)
            mixed += p[static_cast<size_t>(j)] / sum *
                     v[static_cast<size_t>((n * s + j) * w + h * d + e)];
          out[static_cast<size_t>((n * t + i) * w + h * d + e)] = mixed;
        }
      }
    }
  }
  return out;
}

TEST_P(Blocks, CrossAttentionReadsKeysAndValuesFromItsSecondInput) {
  const int64_t b = choose.from(1, 3), t = choose.from(1, 5), s = choose.from(1, 5);
  const int64_t heads = choose.from(1, 3), w = heads * choose.from(1, 4), c = choose.from(1, w);
  // Both inputs are slices of one: [b, t + s, w].
  GraphMaker g;
  const auto part = [&](const char* name, std::vector<int64_t> from, std::vector<int64_t> to) {
    return g.add(name, LayerKind::slice,
                 {{"starts", from}, {"ends", to}, {"axes", std::vector<int64_t>{1, 2}}},
                 {g.input()});
  };
  const GraphValue x = part("x", {0, 0}, {t, w}), context = part("context", {t, 0}, {t + s, c});
  const GraphValue y =
      g.add("cross", block("CrossAttention", {{"width", w}, {"context", c}, {"heads", heads}}),
            std::vector<GraphValue>{x, context});
  Rig rig(g.finish(y), Shape{b, t + s, w});
  const std::vector<float> all = random_values(b * (t + s) * w, 5);
  Values queries, keys;
  for (int64_t n = 0; n < b; ++n) {
    for (int64_t i = 0; i < t + s; ++i) {
      for (int64_t e = 0; e < (i < t ? w : c); ++e)
        (i < t ? queries : keys).push_back(all[static_cast<size_t>((n * (t + s) + i) * w + e)]);
    }
  }
  const Values q = dense(queries, rig.weight(0), rig.weight(1), w, w);
  const Values k = dense(keys, rig.weight(2), {}, c, w);
  const Values v = dense(keys, rig.weight(3), rig.weight(4), c, w);
  const Values mixed = attention(q, k, v, b, t, s, w, heads, [](auto...) { return 0.0; });
  ASSERT_EQ(rig.count(), 8u);  // the scale is one
  expect_near(rig.run(all), dense(mixed, rig.weight(6), rig.weight(7), w, w));
}

TEST_P(Blocks, BiasedAttentionAddsWhatTheDistanceSays) {
  const int64_t b = choose.from(1, 2), t = choose.from(2, 6);
  const int64_t heads = choose.from(1, 6), w = heads * choose.from(1, 3);
  const bool causal = choose.yes();
  const char* kinds[] = {"alibi", "relative", "none"};
  const std::string kind = kinds[choose.from(0, 2)];
  Rig rig(
      block("BiasedAttention",
            {{"width", w}, {"heads", heads}, {"length", t}, {"bias", kind}, {"causal", causal}}),
      Shape{b, t, w});
  const std::vector<float> x = random_values(b * t * w, 5);
  const Values q = dense(doubles(x), rig.weight(0), rig.weight(1), w, w);
  const Values k = dense(doubles(x), rig.weight(2), {}, w, w);
  const Values v = dense(doubles(x), rig.weight(3), rig.weight(4), w, w);
  // The slopes of the paper, in the order of its code.
  const auto powers = [](int64_t n) {
    Values slopes;
    for (int64_t i = 1; i <= n; ++i)
      slopes.push_back(std::pow(2.0, -8.0 * static_cast<double>(i) / static_cast<double>(n)));
    return slopes;
  };
  int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  Values slopes = powers(power);
  const Values more = powers(2 * power);
  for (size_t i = 0; slopes.size() < static_cast<size_t>(heads); i += 2) slopes.push_back(more[i]);
  const auto bias = [&](int64_t h, int64_t i, int64_t j) {
    double sum = causal && j > i ? -1e9 : 0;
    if (kind == "alibi")
      sum -= slopes[static_cast<size_t>(h)] * static_cast<double>(std::abs(i - j));
    if (kind == "relative")
      sum += rig.weight(6)[static_cast<size_t>(h * (2 * t - 1) + j - i + t - 1)];
    return sum;
  };
  const Values mixed = attention(q, k, v, b, t, t, w, heads, bias);
  expect_near(rig.run(x),
              dense(mixed, rig.weight(rig.count() - 2), rig.weight(rig.count() - 1), w, w));
}

TEST_P(Blocks, EmbeddingBagIsTheMeanSumOrLargestOfItsRows) {
  const int64_t b = choose.from(1, 3), n = choose.from(1, 5), vocab = choose.from(1, 9),
                w = choose.from(1, 5);
  const char* modes[] = {"mean", "sum", "max"};
  const std::string mode = modes[choose.from(0, 2)];
  Rig rig(block("EmbeddingBag", {{"vocab", vocab}, {"width", w}, {"mode", mode}}), Shape{b, n});
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < b * n; ++i)
    ids.push_back(static_cast<int32_t>(choose.from(0, vocab - 1)));
  Values want;
  for (int64_t s = 0; s < b; ++s) {
    for (int64_t e = 0; e < w; ++e) {
      double sum = 0, most = -1e9;
      for (int64_t i = 0; i < n; ++i) {
        const double v =
            rig.weight(0)[static_cast<size_t>(ids[static_cast<size_t>(s * n + i)] * w + e)];
        sum += v;
        most = std::max(most, v);
      }
      want.push_back(mode == "max" ? most : mode == "sum" ? sum : sum / static_cast<double>(n));
    }
  }
  expect_near(rig.run_ids(ids), want);
}

// All states of an LSTM, an RNN (tanh) or a GRU over [t, in], gates i|f|g|o or r|z|n.
Values states(const std::string& kind, const Values& x, int64_t t, int64_t in, int64_t h,
              const std::vector<Values>& w) {
  const int64_t gates = kind == "lstm" ? 4 : kind == "gru" ? 3 : 1;
  Values state(static_cast<size_t>(h)), cell(static_cast<size_t>(h)), out;
  for (int64_t i = 0; i < t; ++i) {
    const Values row(x.begin() + i * in, x.begin() + (i + 1) * in);
    const Values a = dense(row, w[0], w[2], in, gates * h);
    const Values r = dense(state, w[1], kind == "gru" ? w[3] : Values{}, h, gates * h);
    Values next(static_cast<size_t>(h));
    for (size_t j = 0; j < static_cast<size_t>(h); ++j) {
      const auto at = [&](size_t gate) { return j + gate * static_cast<size_t>(h); };
      if (kind == "rnn") next[j] = std::tanh(a[j] + r[j]);
      if (kind == "lstm") {
        const auto sum = [&](size_t gate) { return a[at(gate)] + r[at(gate)]; };
        cell[j] = sigmoid(sum(1)) * cell[j] + sigmoid(sum(0)) * std::tanh(sum(2));
        next[j] = sigmoid(sum(3)) * std::tanh(cell[j]);
      }
      if (kind == "gru") {
        const double reset = sigmoid(a[at(0)] + r[at(0)]), keep = sigmoid(a[at(1)] + r[at(1)]);
        next[j] = (1 - keep) * std::tanh(a[at(2)] + reset * r[at(2)]) + keep * state[j];
      }
    }
    state = next;
    out.insert(out.end(), state.begin(), state.end());
  }
  return out;
}

Values backwards(const Values& x, int64_t t, int64_t width) {
  Values out;
  for (int64_t i = t; i-- > 0;)
    out.insert(out.end(), x.begin() + i * width, x.begin() + (i + 1) * width);
  return out;
}

TEST_P(Blocks, RecurrentStackIsAStackOfLayersInOneDirectionOrBoth) {
  const char* kinds[] = {"rnn", "lstm", "gru"};
  const std::string kind = kinds[choose.from(0, 2)];
  const int64_t b = choose.from(1, 3), t = choose.from(1, 5), in = choose.from(1, 4),
                h = choose.from(1, 4);
  const int64_t layers = choose.from(1, 3);
  const bool both = choose.yes(), sequence = choose.yes();
  Rig rig(block("RecurrentStack", {{"kind", kind},
                                   {"in", in},
                                   {"hidden", h},
                                   {"layers", layers},
                                   {"bidirectional", both},
                                   {"return_sequence", sequence}}),
          Shape{b, t, in});
  const std::vector<float> all = random_values(b * t * in, 5);
  const size_t each = kind == "gru" ? 4 : 3;
  Values want;
  for (int64_t n = 0; n < b; ++n) {
    Values x(all.begin() + n * t * in, all.begin() + (n + 1) * t * in);
    int64_t width = in;
    Values last;
    for (size_t layer = 0; layer < static_cast<size_t>(layers); ++layer) {
      const auto weights = [&](size_t direction) {
        std::vector<Values> w;
        for (size_t i = 0; i < each; ++i)
          w.push_back(rig.weight(i + each * (direction + layer * (both ? 2 : 1))));
        return w;
      };
      const Values there = states(kind, x, t, width, h, weights(0));
      last.assign(there.end() - h, there.end());
      Values joined = there;
      if (both) {
        const Values reversed = states(kind, backwards(x, t, width), t, width, h, weights(1));
        last.insert(last.end(), reversed.end() - h, reversed.end());
        const Values back = backwards(reversed, t, h);
        joined.clear();
        for (int64_t i = 0; i < t; ++i) {
          joined.insert(joined.end(), there.begin() + i * h, there.begin() + (i + 1) * h);
          joined.insert(joined.end(), back.begin() + i * h, back.begin() + (i + 1) * h);
        }
      }
      x = joined;
      width = both ? 2 * h : h;
    }
    const Values& given = sequence ? x : last;
    want.insert(want.end(), given.begin(), given.end());
  }
  expect_near(rig.run(all), want);
}

TEST_P(Blocks, MambaIsASelectiveStateSpace) {
  const int64_t b = choose.from(1, 2), t = choose.from(1, 6), w = choose.from(1, 5),
                n = choose.from(1, 4);
  const int64_t e = w * choose.from(1, 2), k = choose.from(1, 4), r = choose.from(1, 3);
  Rig rig(
      block("Mamba", {{"width", w}, {"state", n}, {"expand", e / w}, {"kernel", k}, {"rank", r}}),
      Shape{b, t, w});
  const std::vector<float> x = random_values(b * t * w, 5);
  ASSERT_EQ(rig.count(), 9u);
  const Values in = rig.weight(0), taps = rig.weight(1), tap_bias = rig.weight(2),
               chosen = rig.weight(3);
  const Values steps = rig.weight(4), step_bias = rig.weight(5), logs = rig.weight(6),
               d = rig.weight(7);
  const auto silu = [](double v) { return v * sigmoid(v); };
  Values want;
  for (int64_t s = 0; s < b; ++s) {
    const Values both =
        dense(Values(x.begin() + s * t * w, x.begin() + (s + 1) * t * w), in, {}, w, 2 * e);
    Values state(static_cast<size_t>(e * n));
    for (int64_t i = 0; i < t; ++i) {
      Values u;
      for (int64_t c = 0; c < e; ++c) {
        double sum = tap_bias[static_cast<size_t>(c)];
        for (int64_t j = 0; j < k; ++j) {
          const int64_t at = i - (k - 1) + j;
          if (at >= 0)
            sum += taps[static_cast<size_t>(c * k + j)] * both[static_cast<size_t>(at * 2 * e + c)];
        }
        u.push_back(silu(sum));
      }
      const Values made = dense(u, chosen, {}, e, r + 2 * n);
      const Values rate = dense(Values(made.begin(), made.begin() + r), steps, step_bias, r, e);
      Values y;
      for (int64_t c = 0; c < e; ++c) {
        const double step = std::log1p(std::exp(rate[static_cast<size_t>(c)]));
        double sum = d[static_cast<size_t>(c)] * u[static_cast<size_t>(c)];
        for (int64_t j = 0; j < n; ++j) {
          double& h = state[static_cast<size_t>(c * n + j)];
          h = std::exp(-step * std::exp(logs[static_cast<size_t>(c * n + j)])) * h +
              step * made[static_cast<size_t>(r + j)] * u[static_cast<size_t>(c)];
          sum += h * made[static_cast<size_t>(r + n + j)];
        }
        y.push_back(sum * silu(both[static_cast<size_t>(i * 2 * e + e + c)]));
      }
      const Values out = dense(y, rig.weight(8), {}, e, w);
      want.insert(want.end(), out.begin(), out.end());
    }
  }
  expect_near(rig.run(x), want);
}

TEST(BlockNames, AreNoNamesOfKindsAndAreSaidWithThem) {
  const std::vector<std::string> names = layer_names();
  EXPECT_EQ(names.size(), layer_table().size() + block_table().size());
  for (const LayerDef* def : block_table()) {
    EXPECT_EQ(find_layer(def->name), def) << def->name;
    EXPECT_NE(def->expand, nullptr) << def->name;
  }
  EXPECT_EQ(find_layer("Sqeeze"), nullptr);
}

TEST(BlockErrors, SayWhatIsWrongInOneLine) {
  const struct {
    const char* name;
    std::vector<Field> fields;
    const char* message;
  } cases[] = {
      {"SqueezeExcite",
       {{"chanels", 3}},
       "SqueezeExcite has no field 'chanels'; it has channels, hidden, axes, activation, gate"},
      {"CrossAttention",
       {{"width", 5}, {"heads", 2}},
       "CrossAttention: heads 2 must divide the width 5"},
      {"BiasedAttention",
       {{"bias", "t5"}},
       "BiasedAttention: unknown bias 't5'; known are alibi, relative, none"},
      {"Positions",
       {{"kind", "rotary"}},
       "Positions: unknown kind 'rotary'; known are learned, sinusoidal"},
      {"EmbeddingBag",
       {{"mode", "min"}},
       "EmbeddingBag: unknown mode 'min'; known are mean, sum, max"},
      {"RecurrentStack",
       {{"kind", "xlstm"}},
       "RecurrentStack: unknown kind 'xlstm'; known are rnn, lstm, gru"},
      {"Mamba", {{"state", 0}}, "Mamba: state is 0, must be from 1 to 65536"},
  };
  for (const auto& c : cases) {
    const Make made = block(c.name, c.fields);
    ASSERT_FALSE(made.ok()) << c.name;
    EXPECT_EQ(made.error().message, c.message);
  }
}

TEST(BlockErrors, RefuseAnActivationThatTheKindDoesNotUse) {
  const Make made = block("RecurrentStack", {{"kind", "gru"}, {"activation", "zzz"}});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message.rfind("unknown activation 'zzz'; known are ", 0), 0u);
}

}  // namespace
}  // namespace loom::core::test::block_formulas
