#include "learn/loss/ctc_batch.hpp"

#include <algorithm>
#include <limits>

#include "base/numbers/dmath.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

// log(e^a + e^b)
double add_logs(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == kNever ? a : a + dmath::log1p(dmath::exp(b - a));
}

// The lattice of one sample: the labels with a blank before, between and after them.
class Lattice {
 public:
  Lattice(const float* logits, int64_t steps, int64_t classes, std::span<const int32_t> labels,
          int64_t blank)
      : steps_(steps), classes_(classes), states_(2 * static_cast<int64_t>(labels.size()) + 1) {
    for (int64_t s = 0; s < states_; ++s)
      said_.push_back(s % 2 == 0 ? static_cast<int32_t>(blank)
                                 : labels[static_cast<size_t>(s / 2)]);
    log_p_.resize(static_cast<size_t>(steps * classes));
    for (int64_t t = 0; t < steps; ++t) normalize(logits + t * classes, t);
  }

  double log_p(int64_t t, int64_t k) const { return log_p_[static_cast<size_t>(t * classes_ + k)]; }
  double label_log_p(int64_t t, int64_t s) const { return log_p(t, said_[static_cast<size_t>(s)]); }
  int64_t states() const { return states_; }
  int32_t label(int64_t s) const { return said_[static_cast<size_t>(s)]; }

  // [step][state]: log p of what was said up to and in that step.
  std::vector<double> forward() const {
    std::vector<double> a(static_cast<size_t>(steps_ * states_), kNever);
    for (int64_t s = 0; s < std::min<int64_t>(states_, 2); ++s)
      a[static_cast<size_t>(s)] = label_log_p(0, s);
    for (int64_t t = 1; t < steps_; ++t) {
      const double* before = a.data() + (t - 1) * states_;
      for (int64_t s = 0; s < states_; ++s) {
        double from = before[s];
        if (s > 0) from = add_logs(from, before[s - 1]);
        if (skips(s)) from = add_logs(from, before[s - 2]);
        a[static_cast<size_t>(t * states_ + s)] = from + label_log_p(t, s);
      }
    }
    return a;
  }

  // [step][state]: log p of what is said after that step.
  std::vector<double> backward() const {
    std::vector<double> b(static_cast<size_t>(steps_ * states_), kNever);
    double* last = b.data() + (steps_ - 1) * states_;
    for (int64_t s = std::max<int64_t>(states_ - 2, 0); s < states_; ++s) last[s] = 0;
    for (int64_t t = steps_ - 1; t-- > 0;) {
      const double* after = b.data() + (t + 1) * states_;
      for (int64_t s = 0; s < states_; ++s) {
        double to = after[s] + label_log_p(t + 1, s);
        if (s + 1 < states_) to = add_logs(to, after[s + 1] + label_log_p(t + 1, s + 1));
        if (s + 2 < states_ && skips(s + 2))
          to = add_logs(to, after[s + 2] + label_log_p(t + 1, s + 2));
        b[static_cast<size_t>(t * states_ + s)] = to;
      }
    }
    return b;
  }

  double total(const std::vector<double>& forward) const {
    const double* last = forward.data() + (steps_ - 1) * states_;
    return states_ > 1 ? add_logs(last[states_ - 1], last[states_ - 2]) : last[0];
  }

 private:
  // Can state s follow s - 2: is it a label other than the one before?
  bool skips(int64_t s) const {
    return s % 2 == 1 && s > 1 &&
           said_[static_cast<size_t>(s)] != said_[static_cast<size_t>(s - 2)];
  }
  void normalize(const float* row, int64_t t) {
    const auto most = static_cast<double>(*std::max_element(row, row + classes_));
    double sum = 0;
    for (int64_t k = 0; k < classes_; ++k) sum += dmath::exp(static_cast<double>(row[k]) - most);
    const double all = most + dmath::log(sum);
    for (int64_t k = 0; k < classes_; ++k)
      log_p_[static_cast<size_t>(t * classes_ + k)] = static_cast<double>(row[k]) - all;
  }

  int64_t steps_, classes_, states_;
  std::vector<int32_t> said_;  // by each state
  std::vector<double> log_p_;
};

}  // namespace

double ctc_loss(const float* logits, int64_t steps, int64_t classes,
                std::span<const int32_t> labels, int64_t blank, double weight, float* gradient) {
  const Lattice lattice(logits, steps, classes, labels, blank);
  const std::vector<double> a = lattice.forward();
  const double whole = lattice.total(a);
  if (gradient == nullptr) return -whole;
  std::fill_n(gradient, steps * classes, 0.0f);
  if (whole == kNever || weight == 0) return -whole;
  const std::vector<double> b = lattice.backward();
  std::vector<double> share(static_cast<size_t>(classes));  // p(step says class | labels)
  for (int64_t t = 0; t < steps; ++t) {
    std::fill(share.begin(), share.end(), 0.0);
    for (int64_t s = 0; s < lattice.states(); ++s) {
      const auto at = static_cast<size_t>(t * lattice.states() + s);
      share[static_cast<size_t>(lattice.label(s))] += dmath::exp(a[at] + b[at] - whole);
    }
    for (int64_t k = 0; k < classes; ++k) {
      const double d = dmath::exp(lattice.log_p(t, k)) - share[static_cast<size_t>(k)];
      gradient[t * classes + k] = static_cast<float>(weight * d);
    }
  }
  return -whole;
}

std::vector<int32_t> ctc_best_path(const float* logits, int64_t steps, int64_t classes,
                                   int64_t blank) {
  std::vector<int32_t> path;
  int64_t before = blank;
  for (int64_t t = 0; t < steps; ++t) {
    const float* row = logits + t * classes;
    const int64_t best = std::max_element(row, row + classes) - row;
    if (best != blank && best != before) path.push_back(static_cast<int32_t>(best));
    before = best;
  }
  return path;
}

int64_t ctc_least_steps(std::span<const int32_t> labels) {
  auto steps = static_cast<int64_t>(labels.size());
  for (size_t i = 1; i < labels.size(); ++i) steps += labels[i] == labels[i - 1] ? 1 : 0;
  return steps;
}

std::span<const int32_t> ctc_labels(const Dataset& data, int64_t sample) {
  const auto each = static_cast<size_t>(data.labels_per_sample());
  const std::span<const int32_t> all =
      std::span(data.labels).subspan(static_cast<size_t>(sample) * each, each);
  const auto end = std::find_if(all.begin(), all.end(), [&](int32_t l) { return data.ignores(l); });
  return all.first(static_cast<size_t>(end - all.begin()));
}

int64_t ctc_steps(const Dataset& data, int64_t sample, int64_t rows) {
  const bool early = data.pads(sample, rows - 1, rows);
  return early ? data.lengths[static_cast<size_t>(sample)] : rows;
}

Status check_ctc(const Dataset& data, int64_t rows, int64_t classes, int64_t blank) {
  if (!data.has_labels()) return invalid("ctc needs class labels: some for each sample");
  if (blank < 0 || blank >= classes)
    return invalid(cat("the blank of ctc is ", blank, ", must be from 0 to ", classes - 1));
  const auto each = static_cast<size_t>(data.labels_per_sample());
  for (int64_t i = 0; i < data.samples; ++i) {
    const std::span<const int32_t> labels = ctc_labels(data, i);
    for (size_t j = 0; j < each; ++j) {
      const int32_t label = data.labels[static_cast<size_t>(i) * each + j];
      if (j >= labels.size() && !data.ignores(label))
        return invalid(cat("sample ", i, ": label ", label, " is after the end of its labels"));
      if (j < labels.size() && (label == blank || label < 0 || label >= classes))
        return make_error(Code::out_of_range,
                          cat("sample ", i, ": label ", label, " must be from 0 to ", classes - 1,
                              " and not the blank ", blank));
    }
    const int64_t least = ctc_least_steps(labels), steps = ctc_steps(data, i, rows);
    if (least > steps)
      return invalid(
          cat("sample ", i, ": its labels need ", least,
              " rows of a prediction (equal neighbours a blank between them), there are ", steps));
  }
  return {};
}

CtcBatch ctc_batch(const Dataset& data, std::span<const int64_t> samples, const LossSpec& loss,
                   const Tensor& y, std::span<const double> weights, const Tensor& dy,
                   ThreadPool& pool) {
  const auto count = static_cast<int64_t>(samples.size());
  const int64_t most = y.rows() / y.shape[0], classes = y.cols();
  CtcBatch out;
  out.losses.resize(samples.size());
  std::vector<int64_t> right(samples.size());
  pool.run([&](int lane, int lanes) {
    std::vector<float> rows(static_cast<size_t>(most * classes)), gradient(rows.size());
    for (int64_t i = lane; i < count; i += lanes) {
      const auto at = static_cast<size_t>(i);
      const int64_t steps = ctc_steps(data, samples[at], most);
      for (int64_t t = 0; t < steps; ++t)
        std::copy_n(y.f32_row(i * most + t), classes, rows.data() + t * classes);
      std::fill(gradient.begin() + steps * classes, gradient.end(), 0.0f);  // of padding
      const std::span<const int32_t> labels = ctc_labels(data, samples[at]);
      out.losses[at] = ctc_loss(rows.data(), steps, classes, labels, loss.blank,
                                weights.empty() ? 0.0 : weights[at],
                                weights.empty() ? nullptr : gradient.data());
      const std::vector<int32_t> path = ctc_best_path(rows.data(), steps, classes, loss.blank);
      right[at] = std::equal(path.begin(), path.end(), labels.begin(), labels.end()) ? 1 : 0;
      for (int64_t t = 0; !weights.empty() && t < most; ++t)
        std::copy_n(gradient.data() + t * classes, classes, dy.f32_row(i * most + t));
    }
  });
  for (const int64_t r : right) out.right += r;
  return out;
}

}  // namespace loom::core
