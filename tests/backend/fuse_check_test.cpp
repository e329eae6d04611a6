#include "backend/cpu/fuse_check.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace loom::core {
namespace {

TEST(FuseCheck, AHostThatRoundsOncePasses) {
  EXPECT_TRUE(rounds_once([](float a, float b, float c) { return std::fma(a, b, c); }));
}

TEST(FuseCheck, AHostThatRoundsTheProductFirstIsRefused) {
  EXPECT_FALSE(rounds_once([](float a, float b, float c) {
    volatile float product = a * b;
    return product + c;
  }));
}

TEST(FuseCheck, AHostThatRoundsThroughDoubleIsRefused) {
  EXPECT_FALSE(rounds_once([](float a, float b, float c) {
    volatile double sum = static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c);
    return static_cast<float>(sum);
  }));
}

TEST(FuseCheck, AHostThatFlushesSubnormalsIsRefused) {
  EXPECT_FALSE(rounds_once([](float a, float b, float c) {
    const float sum = std::fma(a, b, c);
    return std::fabs(sum) < 0x1p-126f ? 0.0f : sum;
  }));
}

}  // namespace
}  // namespace loom::core
