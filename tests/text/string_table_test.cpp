// The vocabulary tables against the standard containers.
#include "text/models/string_table.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/numbers/rng.hpp"

namespace loom::core::text {
namespace {

TEST(StringTableTest, AnswersWhatAMapAnswers) {
  StringTable table;
  std::map<std::string, int32_t> reference;
  EXPECT_EQ(table.find("x"), -1);
  const Rng rng(7, 0);
  for (int32_t i = 0; i < 5000; ++i) {
    const uint32_t bits = rng.bits(static_cast<uint64_t>(i));
    std::string key(bits % 19, static_cast<char>('a' + bits / 19 % 3));
    key += std::to_string(bits / 64 % 900);
    const bool added = table.insert(key, i);
    EXPECT_EQ(added, reference.emplace(key, i).second);
  }
  EXPECT_EQ(table.size(), reference.size());
  for (const auto& [key, value] : reference) EXPECT_EQ(table.find(key), value);
  EXPECT_EQ(table.find("missing"), -1);
  for (size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(reference.at(std::string(table.key(i))), table.value(i));
  }
}

TEST(StringTableTest, KeepsTheEmptyKeyAndKeysWithZeros) {
  StringTable table;
  const std::string zeros[] = {"", std::string(1, '\0'), std::string(2, '\0'),
                               std::string(9, '\0')};
  for (int32_t i = 0; i < 4; ++i) EXPECT_TRUE(table.insert(zeros[i], i));
  for (int32_t i = 0; i < 4; ++i) EXPECT_EQ(table.find(zeros[i]), i);
}

TEST(PairTableTest, AnswersWhatAMapAnswers) {
  PairTable table;
  std::map<std::pair<int32_t, int32_t>, int32_t> reference;
  EXPECT_EQ(table.find(0, 0), nullptr);
  const Rng rng(7, 1);
  for (int32_t i = 0; i < 5000; ++i) {
    const uint32_t bits = rng.bits(static_cast<uint64_t>(i));
    const auto left = static_cast<int32_t>(bits % 61), right = static_cast<int32_t>(bits / 61 % 97);
    table.set(left, right, {i, left + right});
    reference[{left, right}] = i;
  }
  for (const auto& [pair, rank] : reference) {
    const PairTable::Merge* merge = table.find(pair.first, pair.second);
    ASSERT_NE(merge, nullptr);
    EXPECT_EQ(merge->rank, rank);
    EXPECT_EQ(merge->id, pair.first + pair.second);
  }
  EXPECT_EQ(table.find(62, 0), nullptr);
}

}  // namespace
}  // namespace loom::core::text
