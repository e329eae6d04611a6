// Derivatives of the unary kinds against central differences of the functions in double. Covers
// derivatives from the output, float and vector lanes, and inputs that could overflow.
#include "ops/gradients/activation_dx.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/numbers/bits.hpp"

namespace loom::core {
namespace {

constexpr float kMax = std::numeric_limits<float>::max();

double value(UnaryKind kind, double x) {
  switch (kind) {
    case UnaryKind::exp: return std::exp(x);
    case UnaryKind::log: return std::log(x);
    case UnaryKind::sqrt: return std::sqrt(x);
    case UnaryKind::neg: return -x;
    case UnaryKind::abs: return std::fabs(x);
    case UnaryKind::square: return x * x;
    case UnaryKind::reciprocal: return 1 / x;
    case UnaryKind::step: return x >= 0 ? 1 : 0;
    default: return activate<double>(static_cast<Activation>(kind), x);
  }
}

bool positive_only(UnaryKind kind) {
  return kind == UnaryKind::log || kind == UnaryKind::sqrt || kind == UnaryKind::reciprocal;
}

template <class Body>
void each_kind(Body body) {
  for (int k = 0; k < kUnaryKinds; ++k) body(static_cast<UnaryKind>(k));
}

TEST(ActivationDx, IsTheSlopeOfTheFunction) {
  each_kind([](UnaryKind kind) {
    // Steps off 0 and off the kinks of hard_swish.
    for (double x = positive_only(kind) ? 0.1013 : -9.9987; x < 10; x += 0.0371) {
      const double h = 1e-5;
      if (std::fabs(x) < 2 * h || std::fabs(std::fabs(x) - 3) < 2 * h) continue;
      const double slope = (value(kind, x + h) - value(kind, x - h)) / (2 * h);
      const double dx = activate_dx<double>(kind, x);
      ASSERT_NEAR(dx, slope, 1e-8 * (1 + std::fabs(slope) * 100))
          << static_cast<int>(kind) << " at " << x;
      ASSERT_NEAR(static_cast<double>(activate_dx<float>(kind, static_cast<float>(x))), dx,
                  2e-6 * (1 + std::fabs(dx)))
          << static_cast<int>(kind) << " at " << x;
    }
  });
}

TEST(ActivationDx, ComesFromTheOutputWhereTheKindAllows) {
  int allowed = 0;
  each_kind([&](UnaryKind kind) {
    if (!has_dx_from_output(kind)) return;
    ++allowed;
    for (double x = positive_only(kind) ? 0.1013 : -6.9987; x < 7; x += 0.0371) {
      const double dx = activate_dx<double>(kind, x);
      ASSERT_NEAR(activate_dx_from_output<double>(kind, value(kind, x)), dx,
                  1e-13 * (1 + std::fabs(dx)))
          << static_cast<int>(kind) << " at " << x;
    }
  });
  EXPECT_EQ(allowed, 8);
}

struct Tail {
  UnaryKind kind;
  double (*truth)(double);
  double low;  // from here to -2: small slopes
  double relative;
};

// If a function falls to 0 or to a constant, its slope is small, and every digit of it counts.
TEST(ActivationDx, SmallSlopesKeepTheirDigits) {
  const Tail cases[] = {
      {UnaryKind::elu, [](double x) { return std::exp(x); }, -87, 3e-7},
      {UnaryKind::softplus, [](double x) { return 1 / (1 + std::exp(-x)); }, -87, 3e-7},
      {UnaryKind::sigmoid,
       [](double x) { return std::exp(x) / ((1 + std::exp(x)) * (1 + std::exp(x))); }, -87, 5e-7},
      {UnaryKind::silu,
       [](double x) {
         const double s = 1 / (1 + std::exp(-x));
         return s * (1 + x * (1 - s));
       },
       -80, 1e-6},
      {UnaryKind::gelu_erf,
       [](double x) {
         return 0.5 * std::erfc(-x * M_SQRT1_2) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
       },
       -12, 1e-6},
      {UnaryKind::gelu_tanh,
       [](double x) {
         const double k = 2 * std::sqrt(2 / M_PI);
         const double s = 1 / (1 + std::exp(-k * (x + 0.044715 * x * x * x)));
         return s * (1 + x * k * (1 + 0.134145 * x * x) * (1 - s));
       },
       -9, 3e-5},
  };
  for (const Tail& c : cases) {
    for (double at = c.low; at < -2; at += 0.0137) {
      const auto x = static_cast<float>(at);
      const double truth = c.truth(static_cast<double>(x));
      ASSERT_NEAR(static_cast<double>(activate_dx<float>(c.kind, x)) / truth, 1, c.relative)
          << static_cast<int>(c.kind) << " at " << x;
      ASSERT_NEAR(activate_dx<double>(c.kind, static_cast<double>(x)) / truth, 1, 1e-12)
          << static_cast<int>(c.kind) << " at " << x;
    }
  }
}

TEST(ActivationDx, KinksTakeTheStatedSide) {
  const auto at_zero = [](UnaryKind kind) { return activate_dx<float>(kind, 0.0f); };
  EXPECT_EQ(at_zero(UnaryKind::relu), 0.0f);
  EXPECT_EQ(at_zero(UnaryKind::relu2), 0.0f);
  EXPECT_EQ(at_zero(UnaryKind::abs), 0.0f);
  EXPECT_EQ(at_zero(UnaryKind::leaky_relu), 0.01f);
  EXPECT_EQ(activate_dx_from_output<float>(UnaryKind::relu, 0.0f), 0.0f);
  EXPECT_EQ(activate_dx_from_output<float>(UnaryKind::leaky_relu, 0.0f), 0.01f);
  EXPECT_EQ(activate_dx_from_output<float>(UnaryKind::log, 2.0f), 0.0f) << "has none";
}

// Saturating functions have a slope of 0 or 1 there, not a NaN of two infinities.
TEST(ActivationDx, LargeInputsHaveFiniteSlopes) {
  for (int k = 0; k < kActivations; ++k) {
    const auto kind = static_cast<UnaryKind>(k);
    for (float x : {25.0f, 1e10f, 2e19f, 1e30f, kMax}) {
      const float up = activate_dx<float>(kind, x), down = activate_dx<float>(kind, -x);
      if (kind == UnaryKind::relu2) continue;
      EXPECT_TRUE(up == 0.0f || up == 1.0f) << k << " at " << x << ": " << up;
      EXPECT_TRUE(kind == UnaryKind::leaky_relu || kind == UnaryKind::linear ||
                  std::fabs(down) < 1e-8f)
          << k << " at " << -x << ": " << down;
    }
  }
}

typedef float Quad __attribute__((vector_size(16)));

TEST(ActivationDx, VectorLanesHaveTheBitsOfScalars) {
  each_kind([](UnaryKind kind) {
    for (uint64_t code = 0; code < 0xffffffff; code += 4 * 1000003) {
      Quad x;
      for (uint32_t i = 0; i < 4; ++i)
        x[i] = f32_from_bits(static_cast<uint32_t>(code) + i * 1000003);
      const Quad in = activate_dx<Quad>(kind, x), out = activate_dx_from_output<Quad>(kind, x);
      for (int i = 0; i < 4; ++i) {
        const float pairs[2][2] = {{in[i], activate_dx<float>(kind, x[i])},
                                   {out[i], activate_dx_from_output<float>(kind, x[i])}};
        for (const auto& [lane, alone] : pairs) {
          ASSERT_TRUE(f32_bits(lane) == f32_bits(alone) || (lane != lane && alone != alone))
              << static_cast<int>(kind) << " at " << x[i];
        }
      }
    }
  });
}

}  // namespace
}  // namespace loom::core
