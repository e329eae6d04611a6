#include "lab/tasks/cart_pole.hpp"

#include <cmath>

#include "base/numbers/dmath.hpp"

namespace loom::core {

CartPole pushed(const CartPole& from, bool right) {
  constexpr double kGravity = 9.8, kMass = 1.1, kPole = 0.1, kHalf = 0.5, kForce = 10, kStep = 0.02;
  const double sin = dmath::sin(from.angle), cos = dmath::cos(from.angle);
  const double pull =
      ((right ? kForce : -kForce) + kPole * kHalf * from.speed * from.speed * sin) / kMass;
  const double turn =
      (kGravity * sin - cos * pull) / (kHalf * (4.0 / 3.0 - kPole * cos * cos / kMass));
  const double push = pull - kPole * kHalf * turn * cos / kMass;
  return {from.x + kStep * from.v, from.v + kStep * push, from.angle + kStep * from.speed,
          from.speed + kStep * turn};
}

bool fallen(const CartPole& state) {
  constexpr double kTrack = 2.4, kLean = 12 * 3.14159265358979323846 / 180;
  // Written so that NaN counts as fallen.
  return !(std::fabs(state.x) <= kTrack && std::fabs(state.angle) <= kLean);
}

double cart_fitness(const std::function<CartController()>& controller) {
  constexpr int kStarts = 5, kSteps = 1000;
  int64_t steps = 0;
  for (int i = 0; i < kStarts; ++i) {
    const double side = i - 2;
    CartPole s{0.4 * side, -0.2 * side, 0.03 * side, 0.1 * (i * 3 % kStarts - 2)};
    const CartController control = controller();
    for (int t = 0; t < kSteps; ++t, ++steps) {
      const std::array<float, 4> seen = {static_cast<float>(s.x / 2.4), static_cast<float>(s.v / 2),
                                         static_cast<float>(s.angle / 0.21),
                                         static_cast<float>(s.speed / 2)};
      s = pushed(s, control(seen) > 0.5);
      if (fallen(s)) break;
    }
  }
  return static_cast<double>(steps) / (kStarts * kSteps);
}

}  // namespace loom::core
