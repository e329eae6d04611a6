// Comparison of training methods: loom::TrainingComparison.
#include <algorithm>
#include <cmath>
#include <limits>

#include "loom/evaluation.hpp"

namespace loom {
namespace {

MethodReport report_of(const std::string& name, const std::vector<TrainingRun>& runs) {
  MethodReport out;
  out.name = name;
  out.runs = runs;
  std::vector<double> loss, accuracy, seconds, reached;
  for (const TrainingRun& r : runs) {
    loss.push_back(r.loss);
    seconds.push_back(r.seconds);
    if (r.accuracy) accuracy.push_back(*r.accuracy);
    if (r.to_target) reached.push_back(*r.to_target);
  }
  out.loss = spread_of(loss);
  out.accuracy = spread_of(accuracy);
  out.seconds = spread_of(seconds);
  out.to_target = spread_of(reached);
  return out;
}

// Runs with equal seeds got the same samples in the same order, so only the method differs.
Spread paired_difference(const std::vector<TrainingRun>& runs,
                         const std::vector<TrainingRun>& first) {
  std::vector<double> differences;
  for (const TrainingRun& r : runs) {
    const auto pair = std::ranges::find(first, r.seed, &TrainingRun::seed);
    if (pair == first.end()) continue;
    differences.push_back(r.accuracy && pair->accuracy ? *r.accuracy - *pair->accuracy
                                                       : r.loss - pair->loss);
  }
  return spread_of(differences);
}

// A run with a non-finite loss shows that its method may fail; it ranks below all others.
double judged_loss(const MethodReport& m) {
  return m.loss.not_finite > 0 || m.loss.count == 0 ? std::numeric_limits<double>::infinity()
                                                    : m.loss.mean;
}

}  // namespace

void TrainingComparison::add(std::string_view method, TrainingRun run) {
  auto at = std::ranges::find(methods_, method, &Method::name);
  if (at == methods_.end()) at = methods_.insert(at, {std::string(method), {}});
  at->runs.push_back(std::move(run));
}

std::vector<MethodReport> TrainingComparison::methods() const {
  std::vector<MethodReport> out;
  for (const Method& m : methods_) {
    out.push_back(report_of(m.name, m.runs));
    out.back().against_first = paired_difference(m.runs, methods_.front().runs);
  }
  return out;
}

std::optional<size_t> TrainingComparison::best() const {
  constexpr double kNear = 0.01;
  const std::vector<MethodReport> all = methods();
  double most = -std::numeric_limits<double>::infinity();
  for (const MethodReport& m : all) {
    if (std::isfinite(judged_loss(m)) && m.accuracy.count > 0)
      most = std::max(most, m.accuracy.mean);
  }
  std::optional<size_t> best;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!std::isfinite(judged_loss(all[i]))) continue;
    const bool near =
        !std::isfinite(most) || (all[i].accuracy.count > 0 && all[i].accuracy.mean >= most - kNear);
    if (near && (!best || judged_loss(all[i]) < judged_loss(all[*best]))) best = i;
  }
  return best;
}

}  // namespace loom
