#include "lab/tasks/double_pole.hpp"

#include <algorithm>
#include <cmath>

#include "base/numbers/dmath.hpp"

namespace loom::core {
namespace {

constexpr double kGravity = -9.8, kCart = 1.0;
struct Pole {
  double mass, half;  // kg, half of its length in metres
};
constexpr Pole kLong{0.1, 0.5}, kShort{0.01, 0.05};
constexpr double kDegree = 3.14159265358979323846 / 180;

// The force of a pole on the cart, and the terms of its own acceleration.
struct Pull {
  double cos, torque, force, mass;
  Pull(const Pole& pole, double angle, double speed, double hinge) : cos(dmath::cos(angle)) {
    const double sin = dmath::sin(angle);
    torque = hinge * speed / (pole.mass * pole.half) + kGravity * sin;
    force = pole.mass * pole.half * speed * speed * sin + 0.75 * pole.mass * cos * torque;
    mass = pole.mass * (1 - 0.75 * cos * cos);
  }
  double acceleration(const Pole& pole, double cart) const {
    return -0.75 / pole.half * (cart * cos + torque);
  }
};

using Vector = std::array<double, 6>;  // in the order of CartPoles

Vector slope(const Vector& s, double force, const CartFriction& friction) {
  const Pull one(kLong, s[2], s[3], friction.hinge), two(kShort, s[4], s[5], friction.hinge);
  const double held = s[1] > 0 ? friction.track : s[1] < 0 ? -friction.track : 0.0;
  const double cart = (force - held + one.force + two.force) / (kCart + one.mass + two.mass);
  return {s[1], cart, s[3], one.acceleration(kLong, cart), s[5], two.acceleration(kShort, cart)};
}

Vector along(const Vector& s, const Vector& d, double time) {
  Vector out;
  for (size_t i = 0; i < out.size(); ++i) out[i] = s[i] + d[i] * time;
  return out;
}

Vector runge_kutta(const Vector& s, double force, const CartFriction& friction, double time) {
  const Vector a = slope(s, force, friction);
  const Vector b = slope(along(s, a, time / 2), force, friction);
  const Vector c = slope(along(s, b, time / 2), force, friction);
  const Vector d = slope(along(s, c, time), force, friction);
  Vector mean;
  for (size_t i = 0; i < mean.size(); ++i) mean[i] = (a[i] + 2 * b[i] + 2 * c[i] + d[i]) / 6;
  return along(s, mean, time);
}

CartPoles controlled(const PoleController& controller, const CartPoles& s) {
  const std::array<float, 3> seen = {static_cast<float>(s.x / 4.8),
                                     static_cast<float>(s.long_angle / 0.52),
                                     static_cast<float>(s.short_angle / 0.52)};
  return advance(s, (controller(seen) - 0.5) * 20);
}

}  // namespace

CartPoles advance(const CartPoles& from, double force, const CartFriction& friction) {
  constexpr double kStep = 0.01;
  Vector s = {from.x, from.v, from.long_angle, from.long_speed, from.short_angle, from.short_speed};
  for (int i = 0; i < 2; ++i) s = runge_kutta(s, force, friction, kStep);
  return {s[0], s[1], s[2], s[3], s[4], s[5]};
}

bool failed(const CartPoles& state) {
  constexpr double kTrack = 2.4, kLean = 36 * kDegree;
  // Written so that NaN counts as failed.
  return !(std::fabs(state.x) <= kTrack && std::fabs(state.long_angle) <= kLean &&
           std::fabs(state.short_angle) <= kLean);
}

CartPoles pole_start() {
  return {.long_angle = 0.07};
}

int64_t balance(const PoleController& controller, CartPoles from, int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) {
    from = controlled(controller, from);
    if (failed(from)) return i;
  }
  return steps;
}

double pole_fitness(const PoleController& controller) {
  constexpr int64_t kSteps = 1000, kLast = 100;
  std::array<double, kLast> tremble{};  // of the last steps, cyclic
  CartPoles s = pole_start();
  int64_t t = 0;
  while (t < kSteps) {
    s = controlled(controller, s);
    if (failed(s)) break;
    tremble[static_cast<size_t>(t++ % kLast)] =
        std::fabs(s.x) + std::fabs(s.v) + std::fabs(s.long_angle) + std::fabs(s.long_speed);
  }
  double steady = 0;
  if (t >= kLast) {
    double sum = 0;
    for (const double v : tremble) sum += v;
    steady = 0.75 / std::max(sum, 1e-9);
  }
  return 0.1 * static_cast<double>(t) / kSteps + 0.9 * steady;
}

int64_t pole_generality(const std::function<PoleController()>& controller) {
  constexpr int64_t kSteps = 1000;
  constexpr double kShares[] = {0.05, 0.25, 0.5, 0.75, 0.95};
  const auto between = [](double share, double most) { return (2 * share - 1) * most; };
  int64_t balanced = 0;
  for (const double x : kShares) {
    for (const double v : kShares) {
      for (const double angle : kShares) {
        for (const double speed : kShares) {
          const CartPoles from = {.x = between(x, 2.16),
                                  .v = between(v, 1.35),
                                  .long_angle = between(angle, 3.6 * kDegree),
                                  .long_speed = between(speed, 8.6 * kDegree)};
          balanced += balance(controller(), from, kSteps) == kSteps ? 1 : 0;
        }
      }
    }
  }
  return balanced;
}

}  // namespace loom::core
