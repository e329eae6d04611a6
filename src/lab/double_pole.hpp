// Two poles on a cart: a task that evolution is measured by. Equations and constants of Wieland,
// "Evolving neural network controllers for unstable systems", 1991, as Stanley and Miikkulainen
// (2002) use them; the fitness without velocities is that of Gruau, Whitley and Pyeatt (1996).
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

// How much the hinges and the track hold back.
struct CartFriction {
  double hinge = 2e-6, track = 0;
};

// 0.02 s further, under a force in newton: two steps of the classical Runge-Kutta method.
CartPoles advance(const CartPoles& from, double force, const CartFriction& friction = {});

// The cart left the track of +-2.4 m, or a pole leans by more than 36 degrees.
bool failed(const CartPoles& state);

// From what a controller sees, without velocities (position / 4.8, angles / 0.52), to its output
// between 0 and 1, which is a force of -10 to 10 newton.
using PoleController = std::function<double(const std::array<float, 3>& seen)>;

// Steps until it failed, at most so many.
int64_t balance(const PoleController& controller, CartPoles from, int64_t steps);

// 0.1 t / 1000 + 0.9 f, where t is the steps of 1000 from a long pole at 0.07 rad, and f, from
// 100 steps on, 0.75 / the sum over the last 100 of |x| + |v| + |angle| + |speed| of cart and long
// pole: what trembles is worth less.
double pole_fitness(const PoleController& controller);

// Of 625 starts, in how many it balances 1000 steps. A solution of the task has at least 200, and
// balances 100,000 steps from the first.
int64_t pole_generality(const std::function<PoleController()>& controller);

// The start of pole_fitness().
CartPoles pole_start();

}  // namespace loom::core
