// Philox against the known answers of Random123 (kat_vectors, philox4x32-10), and the guarantees of
// Rng.
#include "base/numbers/rng.hpp"

#include <gtest/gtest.h>

#include <set>

namespace loom::core {
namespace {

TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(philox(0, 0, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // Counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0: the digits of pi.
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, NumbersDependOnSeedStreamAndIndexAlone) {
  const Rng rng(7, 3);
  EXPECT_EQ(rng.bits(5), philox(7, 3, 1)[1]);
  const uint32_t later = rng.bits(1000);
  EXPECT_EQ(rng.bits(5), philox(7, 3, 1)[1]) << "drawing out of order changes nothing";
  EXPECT_EQ(Rng(7, 3).bits(1000), later);
  EXPECT_NE(Rng(8, 3).bits(5), rng.bits(5));
  EXPECT_NE(Rng(7, 4).bits(5), rng.bits(5));
}

TEST(Rng, StreamsDoNotRepeatEachOther) {
  std::set<uint32_t> seen;
  for (uint64_t stream = 0; stream < 16; ++stream) {
    for (uint64_t i = 0; i < 64; ++i) seen.insert(Rng(1, stream).bits(i));
  }
  EXPECT_EQ(seen.size(), 16u * 64u);
}

TEST(Rng, UniformIsInUnitIntervalAndHasTheRightMoments) {
  const Rng rng(42, 0);
  const int n = 100000;
  double sum = 0, squares = 0;
  for (int i = 0; i < n; ++i) {
    const float u = rng.uniform(static_cast<uint64_t>(i));
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    sum += u;
    squares += static_cast<double>(u) * u;
  }
  EXPECT_NEAR(sum / n, 0.5, 0.005);
  EXPECT_NEAR(squares / n, 1.0 / 3.0, 0.005);
}

}  // namespace
}  // namespace loom::core
