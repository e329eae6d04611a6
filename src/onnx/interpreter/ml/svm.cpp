// Support vector machines of ai.onnx.ml. Probabilities are the second method of Wu, Lin and Weng
// (2004), "Probability estimates for multi-class classification by pairwise coupling". The
// iteration and its stopping bound are those of LIBSVM. See ml.hpp.
#include <algorithm>
#include <cmath>

#include "base/numbers/dmath.hpp"
#include "onnx/interpreter/ml/ml.hpp"

namespace loom::core::evaluate {
namespace {

enum class Kernel : uint8_t { linear, poly, rbf, sigmoid };

struct Machine {
  Kernel kernel = Kernel::linear;
  std::vector<double> parameters, vectors, coefficients, rho;
  int64_t count = 0, width = 0;  // of support vectors
};

Result<Machine> machine_of(const Call& c, int64_t vectors, int64_t width) {
  Machine m;
  const std::string name = c.text("kernel_type", "LINEAR");
  constexpr std::pair<std::string_view, Kernel> kRows[] = {{"LINEAR", Kernel::linear},
                                                           {"POLY", Kernel::poly},
                                                           {"RBF", Kernel::rbf},
                                                           {"SIGMOID", Kernel::sigmoid}};
  const auto* row = std::ranges::find_if(kRows, [&](const auto& r) { return r.first == name; });
  if (row == std::end(kRows)) return c.not_done(cat("kernel_type ", printable(name)));
  m.kernel = row->second;
  LOOM_ASSIGN(m.parameters, ml_numbers(c, "kernel_params"));
  LOOM_ASSIGN(m.vectors, ml_numbers(c, "support_vectors"));
  LOOM_ASSIGN(m.coefficients, ml_numbers(c, "coefficients"));
  LOOM_ASSIGN(m.rho, ml_numbers(c, "rho"));
  m.count = vectors;
  m.width = width;
  if (m.parameters.empty()) m.parameters = {0, 0, 0};
  if (m.parameters.size() != 3 || m.rho.empty()) return c.bad("three kernel_params, and rho");
  if (vectors < 0 || vectors > (1 << 26) ||
      static_cast<int64_t>(m.vectors.size()) != vectors * width)
    return c.bad(cat(m.vectors.size(), " numbers for ", vectors, " support vectors of ", width));
  return m;
}

double kernel_value(const Machine& m, const double* x, const double* y) {
  const double gamma = m.parameters[0], constant = m.parameters[1], degree = m.parameters[2];
  double sum = 0;
  for (int64_t i = 0; i < m.width; ++i)
    sum += m.kernel == Kernel::rbf ? (x[i] - y[i]) * (x[i] - y[i]) : x[i] * y[i];
  switch (m.kernel) {
    case Kernel::linear: return sum;
    case Kernel::poly: return pow(gamma * sum + constant, degree);
    case Kernel::rbf: return exp(-gamma * sum);
    default: return tanh(gamma * sum + constant);
  }
}

Status svm_regressor(const Call& c) {
  LOOM_ASSIGN(const FeatureRows x, feature_rows(c));
  const int64_t supports = c.integer("n_supports", 0);
  LOOM_ASSIGN(const PostTransform post, post_transform(c));
  LOOM_ASSIGN(const Machine m, machine_of(c, supports, x.width));
  const bool one_class = c.integer("one_class", 0) != 0;
  if (static_cast<int64_t>(m.coefficients.size()) != (supports > 0 ? supports : x.width))
    return c.bad(cat(m.coefficients.size(), " coefficients"));
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, {x.count, 1}));
  for (int64_t r = 0; r < x.count; ++r) {
    double sum = m.rho[0];
    for (int64_t k = 0; k < supports; ++k)
      sum += m.coefficients[static_cast<size_t>(k)] *
             kernel_value(m, x.row(r), m.vectors.data() + k * x.width);
    if (supports == 0) sum += kernel_value(m, x.row(r), m.coefficients.data());
    if (one_class) sum = sum > 0 ? 1 : -1;
    transform_scores(post, &sum, 1);
    y.data<double>()[r] = sum;
  }
  return c.give_as(y, OnnxType::f32);
}

// A classifier: a machine for each pair of classes, whose vectors are ordered by class.
struct Pairs {
  Machine machine;
  Dims each, first, labels;
  std::vector<double> a, b;  // of the probabilities; empty: there are none
  int64_t classes = 0;
};

Result<Pairs> pairs_of(const Call& c, int64_t width) {
  Pairs p;
  p.each = c.list("vectors_per_class");
  p.classes = static_cast<int64_t>(p.each.size());
  LOOM_ASSIGN(p.labels, class_labels(c, "classlabels_ints", "classlabels_strings"));
  LOOM_ASSIGN(p.a, ml_numbers(c, "prob_a"));
  LOOM_ASSIGN(p.b, ml_numbers(c, "prob_b"));
  if (p.classes < 2 || p.classes > 4096 ||
      (!p.labels.empty() && static_cast<int64_t>(p.labels.size()) != p.classes))
    return c.not_done("a classifier without vectors_per_class for each of its labels");
  int64_t all = 0;
  for (const int64_t n : p.each) {
    if (n < 0 || n > (1 << 26)) return c.bad("vectors_per_class below 0");
    p.first.push_back(all);
    all += n;
  }
  LOOM_ASSIGN(p.machine, machine_of(c, all, width));
  const auto pairs = static_cast<size_t>(p.classes * (p.classes - 1) / 2);
  const bool chances = p.a.empty() || (p.a.size() == pairs && p.b.size() == pairs);
  if (static_cast<int64_t>(p.machine.coefficients.size()) != all * (p.classes - 1) ||
      p.machine.rho.size() != pairs || !chances)
    return c.bad("coefficients, rho or probabilities that are not those of its pairs of classes");
  return p;
}

std::vector<double> decisions(const Pairs& p, const double* x) {
  const Machine& m = p.machine;
  std::vector<double> k(static_cast<size_t>(m.count)), out;
  for (int64_t i = 0; i < m.count; ++i)
    k[static_cast<size_t>(i)] = kernel_value(m, x, m.vectors.data() + i * m.width);
  for (int64_t i = 0; i < p.classes; ++i) {
    for (int64_t j = i + 1; j < p.classes; ++j) {
      double sum = m.rho[out.size()];
      const auto add = [&](int64_t own, int64_t row) {
        const int64_t from = p.first[static_cast<size_t>(own)];
        for (int64_t v = from; v < from + p.each[static_cast<size_t>(own)]; ++v)
          sum += m.coefficients[static_cast<size_t>(row * m.count + v)] * k[static_cast<size_t>(v)];
      };
      add(i, j - 1);
      add(j, i);
      out.push_back(sum);
    }
  }
  return out;
}

// Probabilities of classes from those of each against each other: r[i][j] of i where it is i or j.
std::vector<double> coupled(const std::vector<double>& r, int64_t classes) {
  const auto n = static_cast<size_t>(classes);
  std::vector<double> q(n * n), p(n, 1.0 / static_cast<double>(n)), qp(n);
  for (size_t t = 0; t < n; ++t) {
    for (size_t j = 0; j < n; ++j) {
      if (j == t) continue;
      q[t * n + t] += r[j * n + t] * r[j * n + t];
      q[t * n + j] = -r[j * n + t] * r[t * n + j];
    }
  }
  const double bound = 0.005 / static_cast<double>(n);
  for (int64_t round = 0; round < std::max<int64_t>(100, classes); ++round) {
    double pqp = 0, most = 0;
    for (size_t t = 0; t < n; ++t) {
      qp[t] = 0;
      for (size_t j = 0; j < n; ++j) qp[t] += q[t * n + j] * p[j];
      pqp += p[t] * qp[t];
    }
    for (size_t t = 0; t < n; ++t) most = std::max(most, std::abs(qp[t] - pqp));
    if (most < bound) break;
    for (size_t t = 0; t < n; ++t) {
      const double own = q[t * n + t], step = (pqp - qp[t]) / own;
      p[t] += step;
      pqp = (pqp + step * (step * own + 2 * qp[t])) / (1 + step) / (1 + step);
      for (size_t j = 0; j < n; ++j) {
        qp[j] = (qp[j] + step * q[t * n + j]) / (1 + step);
        p[j] /= 1 + step;
      }
    }
  }
  return p;
}

std::vector<double> probabilities(const Pairs& p, const std::vector<double>& sums) {
  const auto n = static_cast<size_t>(p.classes);
  std::vector<double> r(n * n);
  size_t pair = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j, ++pair) {
      double chance = sums[pair] * p.a[pair] + p.b[pair];
      transform_scores(PostTransform::logistic, &chance, 1);
      chance = std::clamp(1 - chance, 1e-7, 1 - 1e-7);
      r[i * n + j] = chance;
      r[j * n + i] = 1 - chance;
    }
  }
  return coupled(r, p.classes);
}

// The class that most pairs decide for; of equal ones the first.
size_t max_votes(const Pairs& p, const std::vector<double>& sums) {
  std::vector<double> votes(static_cast<size_t>(p.classes));
  size_t pair = 0;
  for (size_t i = 0; i < votes.size(); ++i) {
    for (size_t j = i + 1; j < votes.size(); ++j) ++votes[sums[pair++] > 0 ? i : j];
  }
  return best_score(votes);
}

Status svm_classifier(const Call& c) {
  LOOM_ASSIGN(const FeatureRows x, feature_rows(c));
  LOOM_ASSIGN(const PostTransform post, post_transform(c));
  LOOM_ASSIGN(const Pairs p, pairs_of(c, x.width));
  LOOM_ASSIGN(Value labels, c.make(OnnxType::i64, {x.count}));
  std::vector<double> all;
  for (int64_t r = 0; r < x.count; ++r) {
    std::vector<double> scores = decisions(p, x.row(r));
    const size_t best = max_votes(p, scores);  // whatever the probabilities say
    if (!p.a.empty()) scores = probabilities(p, scores);
    if (scores.size() == 1)
      second_score(scores, post == PostTransform::none ? 2 : 0, post);
    else
      transform_scores(post, scores.data(), static_cast<int64_t>(scores.size()));
    labels.data<int64_t>()[r] = p.labels.empty() ? static_cast<int64_t>(best) : p.labels[best];
    all.insert(all.end(), scores.begin(), scores.end());
  }
  const int64_t width = x.count > 0 ? static_cast<int64_t>(all.size()) / x.count : p.classes;
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, {x.count, width}));
  std::ranges::copy(all, y.data<double>());
  LOOM_TRY(c.give(std::move(labels), 0));
  return c.give_as(y, OnnxType::f32, 1);
}

constexpr Operator kSvm[] = {
    {"ai.onnx.ml", "SVMRegressor", svm_regressor,
     "a coefficients kernel_params kernel_type n_supports one_class post_transform rho "
     "support_vectors"},
    {"ai.onnx.ml", "SVMClassifier", svm_classifier,
     "a classlabels_ints classlabels_strings coefficients kernel_params kernel_type post_transform "
     "prob_a prob_b rho support_vectors vectors_per_class"},
};

}  // namespace

std::span<const Operator> svm_operators() {
  return kSvm;
}

}  // namespace loom::core::evaluate
