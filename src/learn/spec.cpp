#include "learn/spec.hpp"

#include <algorithm>
#include <span>

#include "base/dmath.hpp"
#include "base/names.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kLosses[] = {
    "mse",      "mae",     "huber",    "softmax_ce", "bce", "kl",      "cosine",      "focal",
    "quantile", "poisson", "log_cosh", "hinge",      "ctc", "triplet", "contrastive", "infonce"};
// 2^x for the powers below.
double power(double base, double exponent) {
  if (base <= 0) return exponent == 0 ? 1.0 : 0.0;
  return dmath::exp(exponent * dmath::log(base));
}

double half_cosine(double t) {
  constexpr double kPi = 3.14159265358979323846;
  return 0.5 * (1.0 + dmath::cos(kPi * t));
}

double one_cycle(double rate, double t) {
  constexpr double kRise = 0.3, kStart = 1.0 / 25.0, kEnd = 1e-4;
  if (t < kRise) return rate * (1.0 + (kStart - 1.0) * half_cosine(t / kRise));
  return rate * (kEnd + (1.0 - kEnd) * half_cosine((t - kRise) / (1.0 - kRise)));
}

}  // namespace

Result<LossKind> parse_loss(std::string_view name) {
  if (to_lower_ascii(name) == "cross_entropy") return LossKind::softmax_ce;
  return value_named<LossKind>("loss", kLosses, name);
}
std::string_view loss_name(LossKind kind) {
  return kLosses[static_cast<size_t>(kind)];
}

float LossSpec::number() const {
  if (kind == LossKind::focal) return gamma;
  return kind == LossKind::quantile ? quantile : delta;
}

bool LossSpec::sequence() const {
  return kind == kCtcLoss;
}

bool LossSpec::pairs() const {
  return kind == kTripletLoss || kind == kContrastiveLoss || kind == kInfoNceLoss;
}

bool LossSpec::sides() const {
  return kind == LossKind::bce || kind == LossKind::focal || kind == LossKind::hinge;
}

double NoiseSpec::deviation(int64_t t) const {
  return std * power(static_cast<double>(t + 1), -0.5 * fade);
}

namespace {

// Where a step stands once the warm-up is over.
struct Place {
  int64_t step = 0;       // since the warm-up
  double share = 0;       // of the steps after it
  int64_t epoch = 0;      // full ones since the warm-up
  int64_t run_epoch = 0;  // and since the run began
  int64_t per_epoch = 1;
};

double scheduled(const ScheduleSpec& s, const Place& at, int64_t plateau_drops) {
  const int64_t every = std::max<int64_t>(s.every, 1);
  const auto decayed = [&](int64_t times) {
    return s.rate * power(s.gamma, static_cast<double>(times));
  };
  const auto between = [&](double share) { return s.floor + (s.rate - s.floor) * share; };
  switch (s.kind) {
    case ScheduleKind::constant: return s.rate;
    case ScheduleKind::step: return decayed(at.epoch / every);
    case ScheduleKind::multi_step:
      return decayed(std::count_if(s.milestones.begin(), s.milestones.end(),
                                   [&](int64_t m) { return at.run_epoch >= m; }));
    case ScheduleKind::exponential: return decayed(at.epoch);
    case ScheduleKind::cosine: return between(half_cosine(at.share));
    case ScheduleKind::cosine_restarts: {
      const int64_t period = every * at.per_epoch;
      return between(
          half_cosine(static_cast<double>(at.step % period) / static_cast<double>(period)));
    }
    case ScheduleKind::linear: return s.rate + (s.floor - s.rate) * at.share;
    case ScheduleKind::polynomial: return between(power(1.0 - at.share, s.power));
    case ScheduleKind::one_cycle: return one_cycle(s.rate, at.share);
    case ScheduleKind::plateau: return decayed(plateau_drops);
  }
  return s.rate;
}

}  // namespace

double learning_rate(const ScheduleSpec& s, int64_t step, int64_t total, int64_t per_epoch,
                     int64_t plateau_drops) {
  const int64_t after = std::max<int64_t>(step - s.warmup, 0);
  const int64_t span = std::max<int64_t>(total - s.warmup, 1);
  Place at;
  at.per_epoch = std::max<int64_t>(per_epoch, 1);
  at.step = after;
  at.share = std::min(1.0, static_cast<double>(after) / static_cast<double>(span));
  at.epoch = after / at.per_epoch;
  at.run_epoch = std::max(step, s.warmup) / at.per_epoch;
  const double rate = scheduled(s, at, plateau_drops);
  if (step >= s.warmup) return rate;
  return rate * static_cast<double>(step + 1) / static_cast<double>(s.warmup);
}

}  // namespace loom::core
