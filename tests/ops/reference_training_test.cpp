// entmax, random numbers, losses and optimizers of the f64 reference: closed forms, central
// differences and hand-written updates.
#include "ops/f64.hpp"
#include "ops/ops.hpp"

namespace loom::core {
namespace {

using test::expect_close;
using test::expect_gradient;
using test::F64;
using test::run64;

// ---- entmax ----

std::vector<double> entmax(std::vector<double> x, float alpha, float scale = 1.0f) {
  const F64 in(1, static_cast<int64_t>(x.size())), out(1, in.cols());
  for (size_t i = 0; i < x.size(); ++i) in[static_cast<int64_t>(i)] = x[i];
  run64(&Ops::entmax, EntmaxArgs{in.tensor(), out.tensor(), scale, alpha});
  for (size_t i = 0; i < x.size(); ++i) x[i] = out[static_cast<int64_t>(i)];
  return x;
}

TEST(Entmax, AlphaTwoIsSparsemax) {
  EXPECT_EQ(entmax({3, 1, -1, -3}, 2.0f), (std::vector<double>{1, 0, 0, 0}));
  const std::vector<double> y = entmax({0.5, 0.25, 0, -3}, 2.0f), twelfths = {7, 4, 1, 0};
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], twelfths[i] / 12, 1e-15);
  EXPECT_EQ(entmax({2, 2, 2, 2}, 2.0f), (std::vector<double>{0.25, 0.25, 0.25, 0.25}));
}

TEST(Entmax, SumsToOneAndAgreesWithBisection) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const F64 random = F64::random(1, 50, seed);
    std::vector<double> x;
    for (int64_t i = 0; i < 50; ++i) x.push_back(3 * random[i]);
    x[7] = x[9];
    for (float alpha : {1.1f, 1.5f, 1.8f, 2.0f, 3.0f}) {
      const std::vector<double> y = entmax(x, alpha, 0.5f);
      double sum = 0;
      for (double value : y) sum += value;
      EXPECT_NEAR(sum, 1, 1e-10) << alpha;
    }
    // An alpha next to 1.5 and 2 is bisected, and differs by as little.
    for (float alpha : {1.5f, 2.0f}) {
      const std::vector<double> exact = entmax(x, alpha), near = entmax(x, alpha + 1e-6f);
      for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(exact[i], near[i], 1e-5) << alpha;
    }
  }
}

TEST(Entmax, KeepsMaskedValuesAtZeroAndNanVisible) {
  const double inf = __builtin_inf();
  for (float alpha : {1.25f, 1.5f, 2.0f}) {
    EXPECT_EQ(entmax({-inf, -inf}, alpha), (std::vector<double>{0, 0}));
    EXPECT_EQ(entmax({-inf, 4, -1e30}, alpha)[1], 1.0);
    EXPECT_TRUE(std::isnan(entmax({0, __builtin_nan(""), 1}, alpha)[1]));
  }
}

// ---- random numbers ----

F64 random_numbers(RandomKind kind, int64_t rows, int64_t cols, uint64_t stream, float step) {
  F64 y(rows, cols, 3);
  const F64 at(1, 1);
  at[0] = step;
  run64(&Ops::random, RandomArgs{y.tensor(), at.vector(), 99, stream, kind});
  return y;
}

// Mean and variance of 40000 numbers, within five standard errors of their own.
void expect_moments(RandomKind kind, double mean, double variance, double fourth) {
  const F64 y = random_numbers(kind, 200, 200, 5, 3);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < y.size(); ++i) sum += y[i];
  for (int64_t i = 0; i < y.size(); ++i) squares += (y[i] - mean) * (y[i] - mean);
  const double n = static_cast<double>(y.size());
  EXPECT_NEAR(sum / n, mean, 5 * std::sqrt(variance / n));
  EXPECT_NEAR(squares / n, variance, 5 * std::sqrt((fourth - variance * variance) / n));
}

TEST(Random, HasTheMomentsOfItsKind) {
  expect_moments(RandomKind::uniform, 0.5, 1.0 / 12, 1.0 / 80);
  expect_moments(RandomKind::normal, 0, 1, 3);
  const double variance = 1.6449340668482264;  // pi^2 / 6
  expect_moments(RandomKind::gumbel, 0.5772156649015329, variance, 5.4 * variance * variance);
}

TEST(Random, NormalsOfAPairAreIndependent) {
  const F64 y = random_numbers(RandomKind::normal, 1, 40000, 6, 0);
  double product = 0, of_squares = 0;
  for (int64_t i = 0; i < y.size(); i += 2) {
    product += y[i] * y[i + 1];
    of_squares += (y[i] * y[i] - 1) * (y[i + 1] * y[i + 1] - 1);
  }
  EXPECT_NEAR(product / 20000, 0, 5 / std::sqrt(20000.0));
  EXPECT_NEAR(of_squares / 20000, 0, 5 * 2 / std::sqrt(20000.0));
}

TEST(Random, IsAFunctionOfSeedStreamStepAndIndex) {
  const F64 y = random_numbers(RandomKind::uniform, 2, 9, 7, 0);
  for (int64_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(y[i], static_cast<double>(Rng(99, 7).uniform(static_cast<uint64_t>(i))));
  }
  const F64 other_step = random_numbers(RandomKind::uniform, 2, 9, 7, 1);
  const F64 last_step = random_numbers(RandomKind::uniform, 2, 9, 7, 16777215.0f);
  const F64 stream = random_numbers(RandomKind::uniform, 2, 9, 8, 0);
  for (const F64* other : {&other_step, &last_step, &stream}) {
    int64_t equal = 0;
    for (int64_t i = 0; i < y.size(); ++i) equal += y[i] == (*other)[i] ? 1 : 0;
    EXPECT_EQ(equal, 0);
  }
  // f32 holds the same numbers, rounded.
  std::vector<float> single(18);
  const Tensor t = f32_matrix(single.data(), 2, 9);
  for (RandomKind kind : {RandomKind::uniform, RandomKind::normal, RandomKind::gumbel}) {
    const F64 wide = random_numbers(kind, 2, 9, 7, 0);
    reference_ops().random(RandomArgs{t, {}, 99, 7, kind}, Lane{});
    for (int64_t i = 0; i < 18; ++i) {
      EXPECT_EQ(single[static_cast<size_t>(i)], static_cast<float>(wide[i]));
    }
  }
}

// ---- losses ----

struct Loss {
  explicit Loss(LossKind kind, int64_t rows = 3, int64_t cols = 6)
      : pred(F64::random(rows, cols, 50, 1)),
        target(F64::random(rows, cols, 51)),
        weight(F64::random(1, rows, 52)),
        row_loss(1, rows),
        dpred(rows, cols, 2) {
    for (int64_t i = 0; i < pred.size(); ++i) pred[i] *= 3;
    args.pred = pred.tensor(), args.target = target.tensor(), args.weight = weight.vector();
    args.row_loss = row_loss.vector(), args.dpred = dpred.tensor();
    args.kind = kind;
  }
  // Targets of one row become positive and sum to 1; `zero` has none of it.
  void make_distributions(int64_t zero) const {
    for (int64_t r = 0; r < target.rows(); ++r) {
      double sum = 0;
      for (int64_t i = 0; i < target.cols(); ++i) {
        target.at(r, i) = i == zero ? 0.0 : std::abs(target.at(r, i)) + 0.1;
        sum += target.at(r, i);
      }
      for (int64_t i = 0; i < target.cols(); ++i) target.at(r, i) /= sum;
    }
  }
  double total() const {
    run64(&Ops::loss, args);
    double sum = 0;
    for (int64_t r = 0; r < row_loss.cols(); ++r) sum += row_loss[r];
    return sum;
  }
  // Checks that row_loss / weight equals value(r), and dpred the differences of their sum.
  void expect(const std::string& what, const std::function<double(int64_t)>& value) const {
    total();
    const F64 gradient(dpred.rows(), dpred.cols());
    for (int64_t i = 0; i < dpred.size(); ++i) gradient[i] = dpred[i];
    for (int64_t r = 0; r < pred.rows(); ++r) {
      expect_close(what, row_loss[r], weight[r] * value(r));
    }
    expect_gradient(what, pred, gradient, [&] { return total(); });
  }
  double mean(int64_t r, const std::function<double(double, double)>& f) const {
    double sum = 0;
    for (int64_t i = 0; i < pred.cols(); ++i) sum += f(pred.at(r, i), target.at(r, i));
    return sum / static_cast<double>(pred.cols());
  }
  double log_softmax(int64_t r, int64_t i) const {
    double sum = 0;
    for (int64_t j = 0; j < pred.cols(); ++j) sum += std::exp(pred.at(r, j));
    return pred.at(r, i) - std::log(sum);
  }

  F64 pred, target, weight, row_loss, dpred;
  LossArgs args;
};

TEST(Loss, OfDifferencesIsTheMean) {
  const Loss mse(LossKind::mse), mae(LossKind::mae);
  mse.expect("mse", [&](int64_t r) {
    return mse.mean(r, [](double p, double t) { return (p - t) * (p - t); });
  });
  mae.expect("mae", [&](int64_t r) {
    return mae.mean(r, [](double p, double t) { return std::abs(p - t); });
  });
  Loss huber(LossKind::huber);
  huber.args.delta = 0.75f;
  huber.expect("huber", [&](int64_t r) {
    return huber.mean(r, [](double p, double t) {
      const double a = std::abs(p - t);
      return a <= 0.75 ? a * a / 2 : 0.75 * (a - 0.375);
    });
  });
}

TEST(Loss, MeansOfOtherFunctionsAreTheirFormulas) {
  Loss quantile(LossKind::quantile);
  quantile.args.delta = 0.25f;
  quantile.expect("quantile", [&](int64_t r) {
    return quantile.mean(
        r, [](double p, double t) { return std::max(0.25 * (t - p), -0.75 * (t - p)); });
  });
  const Loss poisson(LossKind::poisson), log_cosh(LossKind::log_cosh), hinge(LossKind::hinge);
  poisson.expect("poisson", [&](int64_t r) {
    return poisson.mean(r, [](double p, double t) { return std::exp(p) - t * p; });
  });
  log_cosh.expect("log_cosh", [&](int64_t r) {
    return log_cosh.mean(r, [](double p, double t) { return std::log(std::cosh(p - t)); });
  });
  hinge.expect("hinge", [&](int64_t r) {
    return hinge.mean(r, [](double p, double t) { return std::max(0.0, 1 - (t > 0 ? p : -p)); });
  });
  log_cosh.pred[0] = 1e30;
  log_cosh.total();
  EXPECT_TRUE(std::isfinite(log_cosh.row_loss[0]));
}

TEST(Loss, FocalIsBceTimesAPowerOfWhatIsLeft) {
  for (const float gamma : {0.0f, 0.5f, 1.0f, 2.0f, 3.5f}) {
    for (const float alpha : {-1.0f, 0.25f}) {
      Loss focal(LossKind::focal);
      focal.make_distributions(1);
      focal.args.delta = gamma;
      focal.args.alpha = alpha;
      const auto g = static_cast<double>(gamma), a = static_cast<double>(alpha);
      focal.expect("focal", [&](int64_t r) {
        return focal.mean(r, [&](double x, double t) {
          const double p = 1 / (1 + std::exp(-x));
          const double cross = -t * std::log(p) - (1 - t) * std::log(1 - p);
          const double side = a < 0 ? 1 : a * t + (1 - a) * (1 - t);
          return side * std::pow(1 - (p * t + (1 - p) * (1 - t)), g) * cross;
        });
      });
      focal.pred[0] = -2000;
      focal.pred[1] = 2000;
      EXPECT_TRUE(std::isfinite(focal.total())) << gamma;
      for (int64_t i = 0; i < 6; ++i) EXPECT_TRUE(std::isfinite(focal.dpred.at(0, i))) << gamma;
    }
  }
}

TEST(Loss, BceIsThatOfTheSigmoid) {
  const Loss bce(LossKind::bce);
  bce.make_distributions(1);
  bce.expect("bce", [&](int64_t r) {
    return bce.mean(r, [](double x, double t) {
      const double p = 1 / (1 + std::exp(-x));
      return -t * std::log(p) - (1 - t) * std::log(1 - p);
    });
  });
  bce.pred[0] = -2000;
  bce.pred[1] = 2000;
  EXPECT_TRUE(std::isfinite(bce.total()));
}

// A sample that is nearly learned: its small loss and gradient keep their digits.
TEST(Loss, BceKeepsTheDigitsOfSmallLosses) {
  for (double x : {3.0, 20.0, 37.0, 51.0, 300.0}) {
    for (double t : {0.0, 1.0}) {
      const F64 pred(1, 1), target(1, 1), row_loss(1, 1), dpred(1, 1);
      pred[0] = t == 1 ? x : -x;
      target[0] = t;
      LossArgs args;
      args.kind = LossKind::bce;
      args.pred = pred.tensor();
      args.target = target.tensor();
      args.row_loss = row_loss.vector();
      args.dpred = dpred.tensor();
      run64(&Ops::loss, args);
      EXPECT_NEAR(row_loss[0] / std::log1p(std::exp(-x)), 1, 1e-14) << x << " " << t;
      const double slope = 1 / (1 + std::exp(x));
      EXPECT_NEAR(dpred[0] / (t == 1 ? -slope : slope), 1, 1e-14) << x << " " << t;
    }
  }
}

TEST(Loss, SoftmaxCeTakesIdsAndDistributions) {
  for (float smoothing : {0.0f, 0.125f}) {
    Loss ids(LossKind::softmax_ce), dense(LossKind::softmax_ce), any(LossKind::softmax_ce);
    std::vector<int32_t> classes = {4, 0, 5};
    ids.args.target = Tensor{DType::i32, Layout::plain, Shape{3}, 3,
                             reinterpret_cast<std::byte*>(classes.data())};
    dense.make_distributions(2);
    ids.args.smoothing = dense.args.smoothing = any.args.smoothing = smoothing;
    const double s = smoothing;
    ids.expect("ids", [&](int64_t r) {
      double sum = 0;
      for (int64_t i = 0; i < 6; ++i) {
        const double t = i == classes[static_cast<size_t>(r)] ? 1 : 0;
        sum -= ((1 - s) * t + s / 6) * ids.log_softmax(r, i);
      }
      return sum;
    });
    for (Loss* loss : {&dense, &any}) {
      loss->expect("dense", [&](int64_t r) {
        double sum = 0;
        for (int64_t i = 0; i < 6; ++i) {
          sum -= ((1 - s) * loss->target.at(r, i) + s / 6) * loss->log_softmax(r, i);
        }
        return sum;
      });
    }
  }
}

TEST(Loss, KlIsTheDivergence) {
  for (int64_t zero : {-1, 3}) {
    const Loss kl(LossKind::kl);
    kl.make_distributions(zero);
    kl.expect("kl", [&](int64_t r) {
      double sum = 0;
      for (int64_t i = 0; i < 6; ++i) {
        const double t = kl.target.at(r, i);
        if (t > 0) sum += t * (std::log(t) - kl.log_softmax(r, i));
      }
      return sum;
    });
  }
}

TEST(Loss, CosineIsOneMinusTheCosine) {
  const Loss cosine(LossKind::cosine);
  cosine.expect("cosine", [&](int64_t r) {
    double pt = 0, pp = 0, tt = 0;
    for (int64_t i = 0; i < 6; ++i) {
      const double p = cosine.pred.at(r, i), t = cosine.target.at(r, i);
      pt += p * t, pp += p * p, tt += t * t;
    }
    return 1 - pt / std::sqrt(pp * tt);
  });
  // Zeros have no direction, and no NaN.
  for (int64_t i = 0; i < 6; ++i) cosine.pred.at(0, i) = cosine.target.at(1, i) = 0;
  EXPECT_TRUE(std::isfinite(cosine.total()));
  EXPECT_EQ(cosine.row_loss[0], cosine.weight[0]);
  EXPECT_TRUE(std::isfinite(cosine.dpred.at(0, 0)));
  EXPECT_EQ(cosine.dpred.at(1, 3), 0.0);
}

TEST(Loss, RowsThatDoNotCountGiveZeros) {
  for (int kind = 0; kind <= static_cast<int>(LossKind::hinge); ++kind) {
    const Loss loss(static_cast<LossKind>(kind));
    loss.weight[1] = 0;
    for (int64_t i = 0; i < 6; ++i) loss.pred.at(1, i) = loss.target.at(1, i) = std::nan("");
    loss.total();
    EXPECT_EQ(loss.row_loss[1], 0.0);
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(loss.dpred.at(1, i), 0.0);
  }
  Loss ids(LossKind::softmax_ce);
  std::vector<int32_t> classes = {-1, 2, 6};
  ids.args.target =
      Tensor{DType::i32, Layout::plain, Shape{3}, 3, reinterpret_cast<std::byte*>(classes.data())};
  ids.total();
  for (int64_t r : {0, 2}) {
    EXPECT_EQ(ids.row_loss[r], 0.0);
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(ids.dpred.at(r, i), 0.0);
  }
  EXPECT_NE(ids.row_loss[1], 0.0);
}

TEST(Loss, GradientsAtZeroAreZero) {
  for (LossKind kind : {LossKind::mae, LossKind::huber}) {
    const Loss loss(kind);
    loss.pred[0] = loss.target[0];
    loss.total();
    EXPECT_EQ(loss.dpred[0], 0.0);
  }
}

// A logit of -inf, as from a mask, costs nothing if the target is 0.
TEST(Loss, MaskedLogitsAreFreeWithoutTarget) {
  const Loss kl(LossKind::kl), ce(LossKind::softmax_ce);
  for (const Loss* loss : {&kl, &ce}) {
    loss->make_distributions(2);
    for (int64_t r = 0; r < 3; ++r) loss->pred.at(r, 2) = -__builtin_inf();
    EXPECT_TRUE(std::isfinite(loss->total()));
    for (int64_t r = 0; r < 3; ++r) EXPECT_EQ(loss->dpred.at(r, 2), 0.0);
  }
}

TEST(Loss, WithoutWeightsAndGradientsGivesTheLossAlone) {
  Loss loss(LossKind::mse);
  for (int64_t r = 0; r < 3; ++r) loss.weight[r] = 1;
  const double total = loss.total();
  loss.args.weight = {}, loss.args.dpred = {};
  EXPECT_EQ(loss.total(), total);
}

// ---- optimizers ----

struct Hand {
  double rate = 0.125, b1 = 0.875, b2 = 0.75, eps = 0.0625, decay = 0.25, c3 = 0.375;
};

// One step of one parameter, as the formulas read.
void hand_step(const Hand& o, UpdateKind kind, int step, double g, double& p, double& m,
               double& v) {
  const double c1 = 1 - std::pow(o.b1, step), c2 = 1 - std::pow(o.b2, step);
  switch (kind) {
    case UpdateKind::sgd: p -= o.rate * (g + o.decay * p); return;
    case UpdateKind::momentum:
      m = o.b1 * m + g + o.decay * p;
      p -= o.rate * m;
      return;
    case UpdateKind::nesterov: {
      const double full = g + o.decay * p;
      m = o.b1 * m + full;
      p -= o.rate * (full + o.b1 * m);
      return;
    }
    case UpdateKind::rmsprop: {
      const double full = g + o.decay * p;
      v = o.b2 * v + (1 - o.b2) * full * full;
      p -= o.rate * full / (std::sqrt(v) + o.eps);
      return;
    }
    case UpdateKind::adam:
    case UpdateKind::adamw: {
      const bool apart = kind == UpdateKind::adamw;
      const double full = apart ? g : g + o.decay * p;
      m = o.b1 * m + (1 - o.b1) * full;
      v = o.b2 * v + (1 - o.b2) * full * full;
      if (apart) p *= 1 - o.rate * o.decay;
      p -= o.rate * (m / c1) / (std::sqrt(v / c2) + o.eps);
      return;
    }
    case UpdateKind::adagrad: {
      const double full = g + o.decay * p;
      v += full * full;
      p -= o.rate * full / (std::sqrt(v) + o.eps);
      return;
    }
    case UpdateKind::adadelta: {
      const double full = g + o.decay * p;
      v = o.b2 * v + (1 - o.b2) * full * full;
      const double d = std::sqrt((m + o.eps) / (v + o.eps)) * full;
      m = o.b2 * m + (1 - o.b2) * d * d;
      p -= o.rate * d;
      return;
    }
    case UpdateKind::adamax: {
      const double full = g + o.decay * p;
      m = o.b1 * m + (1 - o.b1) * full;
      v = std::max(o.b2 * v, std::abs(full) + o.eps);
      p -= o.rate / c1 * m / v;
      return;
    }
    case UpdateKind::nadam:
    case UpdateKind::radam: {
      const double full = g + o.decay * p, c3 = step == 2 ? 0 : o.c3;
      m = o.b1 * m + (1 - o.b1) * full;
      v = o.b2 * v + (1 - o.b2) * full * full;
      if (kind == UpdateKind::nadam) {
        p -= o.rate * (c1 * full + c3 * m) / (std::sqrt(v / c2) + o.eps);
      } else {
        p -= o.rate * m / c1 * (c3 > 0 ? c3 / (std::sqrt(v) + o.eps) : 1);
      }
      return;
    }
    case UpdateKind::lion: {
      const double mixed = o.b1 * m + (1 - o.b1) * g;
      p -= o.rate * ((mixed > 0) - (mixed < 0) + o.decay * p);
      m = o.b2 * m + (1 - o.b2) * g;
      return;
    }
  }
}

TEST(Optimize, ThreeStepsAreTheFormulas) {
  const Hand o;
  for (int k = 0; k <= static_cast<int>(UpdateKind::radam); ++k) {
    const auto kind = static_cast<UpdateKind>(k);
    const F64 p = F64::random(3, 5, 60, 1), m(3, 5), v(3, 5, 2), hyper(1, 4), scale(1, 1);
    const F64 hand_p = F64::random(3, 5, 60), hand_m(3, 5), hand_v(3, 5);
    scale[0] = 0.5;
    for (int step = 1; step <= 3; ++step) {
      const F64 g = F64::random(3, 5, 60 + static_cast<uint64_t>(step));
      hyper[0] = o.rate, hyper[1] = 1 - std::pow(o.b1, step), hyper[2] = 1 - std::pow(o.b2, step);
      hyper[3] = step == 2 ? 0 : o.c3;
      OptimizeArgs args{p.tensor(), g.tensor(), m.tensor(), v.tensor(), hyper.vector()};
      args.scale = scale.vector();
      args.kind = kind;
      args.beta1 = 0.875f, args.beta2 = 0.75f, args.eps = 0.0625f, args.decay = 0.25f;
      run64(&Ops::optimize, args);
      for (int64_t i = 0; i < p.size(); ++i) {
        hand_step(o, kind, step, g[i] / 2, hand_p[i], hand_m[i], hand_v[i]);
        expect_close(cat("kind ", k, ", step ", step), p[i], hand_p[i]);
        expect_close("m", m[i], hand_m[i]);
        expect_close("v", v[i], hand_v[i]);
      }
    }
  }
}

TEST(Optimize, ANanScaleLeavesEverythingUnchanged) {
  const F64 p = F64::random(2, 5, 70), m = F64::random(2, 5, 71), v = F64::random(2, 5, 72);
  const F64 g = F64::random(2, 5, 73), hyper(1, 4), scale(1, 1);
  scale[0] = std::nan("");
  OptimizeArgs args{p.tensor(), g.tensor(), m.tensor(), v.tensor(), hyper.vector()};
  args.scale = scale.vector();
  args.kind = UpdateKind::adam;
  run64(&Ops::optimize, args);
  const F64 p0 = F64::random(2, 5, 70), m0 = F64::random(2, 5, 71), v0 = F64::random(2, 5, 72);
  for (int64_t i = 0; i < p.size(); ++i) {
    EXPECT_EQ(p[i], p0[i]);
    EXPECT_EQ(m[i], m0[i]);
    EXPECT_EQ(v[i], v0[i]);
  }
}

}  // namespace
}  // namespace loom::core
