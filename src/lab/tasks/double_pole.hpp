// Two poles on a cart: a benchmark for evolution. Equations and constants of Wieland, "Evolving
// neural network controllers for unstable systems", 1991, as Stanley and Miikkulainen (2002) use
// them; the fitness without velocities is that of Gruau, Whitley and Pyeatt (1996).
#pragma once

#include <array>
#include <cstdint>
#include <functional>

namespace loom::core {

struct CartPoles {
  // Metres, metres per second; radians and radians per second of the long and the short pole.
  double x = 0, v = 0;
  double long_angle = 0, long_speed = 0, short_angle = 0, short_speed = 0;

  bool operator==(const CartPoles&) const = default;
};

// Friction of the hinges and the track.
struct CartFriction {
  double hinge = 2e-6, track = 0;
};

// The state after 0.02 s, under a force in newton: two steps of the classical Runge-Kutta method.
CartPoles advance(const CartPoles& from, double force, const CartFriction& friction = {});

// The cart left the track of +-2.4 m, or a pole leans by more than 36 degrees.
bool failed(const CartPoles& state);

// Maps observations without velocities (position / 4.8, angles / 0.52) to an output between 0 and
// 1. The output is a force of -10 to 10 newton.
using PoleController = std::function<double(const std::array<float, 3>& seen)>;

// Steps until it failed, at most `steps`.
int64_t balance(const PoleController& controller, CartPoles from, int64_t steps);

// 0.1 t / 1000 + 0.9 f. t is the number of balanced steps, up to 1000, from a long pole at 0.07
// rad. From 100 steps on, f is 0.75 / the sum over the last 100 steps. The terms are |x| + |v| +
// |angle| + |speed| of cart and long pole, so oscillation lowers the fitness.
double pole_fitness(const PoleController& controller);

// The number of 625 starts from which it balances 1000 steps. A solution of the task has at least
// 200, and balances 100,000 steps from the first.
int64_t pole_generality(const std::function<PoleController()>& controller);

// The start of pole_fitness().
CartPoles pole_start();

}  // namespace loom::core
