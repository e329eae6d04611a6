#include "lab/tasks/pursuit.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>

#include "base/numbers/rng.hpp"
#include "base/threads/thread_pool.hpp"
#include "grid/builders.hpp"
#include "grid/init.hpp"
#include "learn/step/train_step.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kPursuitStream = uint64_t{1} << 54;
enum Direction : size_t { kUp, kDown, kLeft, kRight, kDirections };
constexpr int64_t kChase = 0, kAvoid = 1;

struct Point {
  double x = 0.5, y = 0.5;
};

// Agent and target, and a sequence of random numbers.
class Square {
 public:
  explicit Square(uint64_t seed) : rng_(seed, kPursuitStream) { reset_positions(); }

  std::array<float, 8> observed(int64_t task, bool knows_task) const {
    const double dx = target_.x - agent_.x, dy = target_.y - agent_.y;
    const double flag = knows_task && task == kChase ? 1.0 : 0.0;
    const std::array<double, 8> all = {
        agent_.x, agent_.y, target_.x, target_.y, dx, dy, std::sqrt(dx * dx + dy * dy), flag};
    std::array<float, 8> out;
    std::ranges::transform(all, out.begin(), [](double v) { return static_cast<float>(v); });
    return out;
  }

  size_t right(int64_t task) const {
    const double sign = task == kChase ? 1.0 : -1.0;
    const double dx = sign * (target_.x - agent_.x), dy = sign * (target_.y - agent_.y);
    if (std::fabs(dx) > std::fabs(dy)) return dx > 0 ? kRight : kLeft;
    return dy > 0 ? kUp : kDown;
  }

  // After a number of steps both are placed elsewhere: an agent at its target, or in a corner,
  // would otherwise see only that for the rest of the time.
  void move(size_t direction) {
    constexpr double kStep = 0.02, kDrift = 0.005;
    constexpr int kEpisode = 25;
    if (++moves_ % kEpisode == 0) return reset_positions();
    agent_.x += direction == kRight ? kStep : direction == kLeft ? -kStep : 0.0;
    agent_.y += direction == kUp ? kStep : direction == kDown ? -kStep : 0.0;
    agent_ = {std::clamp(agent_.x, 0.0, 1.0), std::clamp(agent_.y, 0.0, 1.0)};
    target_.x = std::clamp(target_.x + kDrift * (2 * unit() - 1), 0.1, 0.9);
    target_.y = std::clamp(target_.y + kDrift * (2 * unit() - 1), 0.1, 0.9);
  }

 private:
  double unit() { return static_cast<double>(rng_.uniform(next_++)); }
  void reset_positions() {
    agent_ = {unit(), unit()};
    target_ = {0.1 + 0.8 * unit(), 0.1 + 0.8 * unit()};
  }

  Rng rng_;
  uint64_t next_ = 0;
  int64_t moves_ = 0;
  Point agent_, target_;
};

Result<NetworkSpec> pursuit_network() {
  constexpr std::array<int64_t, 7> kWidths = {8, 32, 64, 64, 64, 32, 4};
  std::vector<LayerConfig> layers;
  for (size_t i = 0; i + 1 < kWidths.size(); ++i) {
    const char* activation = i + 2 < kWidths.size() ? "tanh" : "sigmoid";
    LOOM_ASSIGN(LayerConfig layer, make_layer(LayerKind::dense, {{"in", kWidths[i]},
                                                                 {"out", kWidths[i + 1]},
                                                                 {"activation", activation}}));
    layers.push_back(std::move(layer));
  }
  return build_row(std::move(layers), Shape{kWidths.front()});
}

// The index of the largest answer; unset if an answer is not finite.
std::optional<size_t> chosen(const Tensor& y) {
  size_t best = 0;
  for (size_t i = 0; i < kDirections; ++i) {
    if (!std::isfinite(y.f32()[i])) return std::nullopt;
    if (y.f32()[i] > y.f32()[best]) best = i;
  }
  return best;
}

// One step: observe, answer, learn from the answer, move.
Status pursue(const PursuitSpec& spec, Square& square, AdaptationTracker& tracker, TrainStep& step,
              PursuitRun& run) {
  const int64_t task = tracker.task();
  const std::array<float, 8> seen = square.observed(task, spec.knows_task);
  const size_t right = square.right(task);
  std::ranges::copy(seen, step.x().f32());
  for (size_t i = 0; i < kDirections; ++i) step.target().f32()[i] = i == right ? 1.0f : 0.0f;
  step.weight().f32()[0] = 1.0f;
  LOOM_ASSIGN(const StepResult done, step.run(spec.rule ? spec.rate : 0.0));
  const std::optional<size_t> direction = chosen(step.y());
  if (!direction || !done.finite || !std::isfinite(done.loss)) ++run.not_finite;
  tracker.record(direction == right);
  square.move(direction.value_or(kUp));
  return {};
}

}  // namespace

double pursuit_rate(Rule rule) {
  constexpr double kRates[] = {0.3, 0.1, 1.0, 0.02, 0.2};
  return kRates[static_cast<size_t>(rule)];
}

Result<PursuitRun> run_pursuit(const PursuitSpec& spec, const Ops& ops, ThreadPool& pool) {
  LOOM_ASSIGN(const NetworkSpec described, pursuit_network());
  LOOM_ASSIGN(Network network, Network::finalize(described.grid, described.input.after(1)));
  LOOM_TRY(init_params(network, DType::f32, spec.seed, pool));
  TrainStepOptions how;
  how.optimizer.kind = loom::OptimizerKind::sgd;
  if (spec.rule) how.rule.kind = *spec.rule;
  how.seed = spec.seed;
  LOOM_ASSIGN(TrainStep step, TrainStep::create(network, how, ops, pool));

  const auto steps = std::make_shared<int64_t>(0);
  AdaptationOptions windows{.duration = spec.duration, .window = spec.window};
  if (spec.per_second > 0) {
    windows.clock = [steps, rate = static_cast<double>(spec.per_second)] {
      return static_cast<double>(*steps) / rate;
    };
  }
  LOOM_ASSIGN(AdaptationTracker tracker, AdaptationTracker::create(windows));
  LOOM_TRY(tracker.schedule(spec.duration / 3, kAvoid));
  LOOM_TRY(tracker.schedule(2 * spec.duration / 3, kChase));
  Square square(spec.seed);
  PursuitRun run;
  const auto begin = std::chrono::steady_clock::now();
  tracker.start(kChase);
  while (!tracker.over()) {
    LOOM_TRY(pursue(spec, square, tracker, step, run));
    ++*steps;
  }
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  run.report = tracker.report();
  return run;
}

}  // namespace loom::core
