// One pole on a cart, pushed left or right: a benchmark for evolution. Equations of Barto, Sutton
// and Anderson, "Neuronlike adaptive elements that can solve difficult learning control problems",
// 1983, without friction. The form is that of Florian, "Correct equations for the dynamics of the
// cart-pole system", 2007; Euler steps of 0.02 s. bench/neat_peer.py has the same in Python.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

namespace loom::core {

struct CartPole {
  double x = 0, v = 0, angle = 0, speed = 0;  // metres, radians, and both per second
};

// The state after 0.02 s under a force of 10 newton to the right or to the left.
CartPole pushed(const CartPole& from, bool right);
// The cart left the track of +-2.4 m, or the pole leans by more than 12 degrees.
bool fallen(const CartPole& state);

// Maps observations (x / 2.4, v / 2, angle / 0.21, speed / 2) to a number; above 0.5 pushes right.
using CartController = std::function<double(const std::array<float, 4>& seen)>;
// The mean over five starts of the balanced share of 1000 steps; 1 is solved.
double cart_fitness(const std::function<CartController()>& controller);

}  // namespace loom::core
