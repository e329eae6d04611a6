// The physics of two poles on a cart, held to what it must keep: energy, mirror images, momentum.
#include "lab/tasks/double_pole.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace loom::core::test {
namespace {

// Kinetic and potential energy of cart and poles, from mechanics rather than from the equations of
// motion: a uniform rod of half length l has the moment of inertia m l^2 / 3 about its middle.
double energy(const CartPoles& s) {
  double sum = 0.5 * 1.0 * s.v * s.v;
  const auto rod = [&](double m, double l, double angle, double speed) {
    const double across = s.v + l * speed * std::cos(angle), down = l * speed * std::sin(angle);
    return 0.5 * m * (across * across + down * down) + 0.5 * (m * l * l / 3) * speed * speed +
           m * 9.8 * l * std::cos(angle);
  };
  sum += rod(0.1, 0.5, s.long_angle, s.long_speed);
  return sum + rod(0.01, 0.05, s.short_angle, s.short_speed);
}

CartPoles random_state(std::mt19937& draw) {
  std::uniform_real_distribution<double> unit(-1, 1);
  return {unit(draw), unit(draw), 0.5 * unit(draw), unit(draw), 0.5 * unit(draw), unit(draw)};
}

TEST(DoublePole, KeepsItsEnergyWithoutForceAndFriction) {
  std::mt19937 draw(1);
  for (int i = 0; i < 100; ++i) {
    CartPoles s = random_state(draw);
    const double before = energy(s);
    for (int k = 0; k < 10; ++k) s = advance(s, 0, {0, 0});
    EXPECT_NEAR(energy(s), before, 1e-4) << i;
  }
}

TEST(DoublePole, TakesInTheWorkOfAForce) {
  std::mt19937 draw(2);
  for (int i = 0; i < 100; ++i) {
    const CartPoles before = random_state(draw);
    const double force = std::uniform_real_distribution<double>(-10, 10)(draw);
    const CartPoles after = advance(before, force, {0, 0});
    EXPECT_NEAR(energy(after) - energy(before), force * (after.x - before.x), 1e-5) << i;
  }
}

TEST(DoublePole, IsItsOwnMirrorImage) {
  std::mt19937 draw(3);
  for (int i = 0; i < 100; ++i) {
    const CartPoles s = random_state(draw);
    const CartPoles a = advance(s, 3, {2e-6, 0.1});
    const CartPoles b =
        advance({-s.x, -s.v, -s.long_angle, -s.long_speed, -s.short_angle, -s.short_speed}, -3,
                {2e-6, 0.1});
    EXPECT_EQ(a.x, -b.x);
    EXPECT_EQ(a.long_angle, -b.long_angle);
    EXPECT_EQ(a.short_speed, -b.short_speed);
  }
}

TEST(DoublePole, LosesEnergyToFriction) {
  CartPoles s = {.v = 1, .long_angle = 0.1, .long_speed = 1};
  const double before = energy(s);
  for (int k = 0; k < 5; ++k) s = advance(s, 0, {2e-3, 0.5});
  EXPECT_LT(energy(s), before);
}

TEST(DoublePole, FallsWhenNobodyHoldsIt) {
  const PoleController still = [](const std::array<float, 3>&) { return 0.5; };
  const int64_t steps = balance(still, pole_start(), 1000);
  EXPECT_GT(steps, 20);
  EXPECT_LT(steps, 200);
  EXPECT_EQ(balance(still, {}, 1000), 1000);  // upright, it stays
  EXPECT_LT(pole_fitness(still), 0.1);
  EXPECT_TRUE(failed({.x = 2.5}));
  EXPECT_TRUE(failed({.short_angle = -0.7}));
  EXPECT_TRUE(failed({.x = std::nan("")}));
  EXPECT_FALSE(failed({.x = 2.3, .long_angle = 0.6}));
}

}  // namespace
}  // namespace loom::core::test
