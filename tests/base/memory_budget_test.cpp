// Sizes as users write them, and the account that readers share.
#include "base/memory_budget.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace loom::core {
namespace {

TEST(MemoryBudget, SizesAreReadAndWrittenInStepsOf1024) {
  const struct {
    const char* text;
    uint64_t bytes;  // 0 means refused
  } rows[] = {{"1", 1},
              {"65536", 65536},
              {"64K", 65536},
              {"512M", uint64_t{512} << 20},
              {"512mb", uint64_t{512} << 20},
              {"2G", uint64_t{2} << 30},
              {"3T", uint64_t{3} << 40},
              {"", 0},
              {"0", 0},
              {"0M", 0},
              {"M", 0},
              {"-1M", 0},
              {"1.5G", 0},
              {"2 G", 0},
              {"2X", 0},
              {"2GG", 0},
              {"99999999999999999999", 0},
              {"99999999999T", 0}};
  for (const auto& row : rows) {
    const Result<uint64_t> bytes = parse_size(row.text);
    EXPECT_EQ(bytes.ok(), row.bytes > 0) << row.text;
    EXPECT_EQ(bytes.ok() ? *bytes : 0, row.bytes) << row.text;
  }
  EXPECT_EQ(size_text(0), "0 bytes");
  EXPECT_EQ(size_text(1023), "1023 bytes");
  EXPECT_EQ(size_text(uint64_t{512} << 20), "512 MB");
  EXPECT_EQ(size_text(5153960755), "4.8 GB");
  EXPECT_EQ(size_text(UINT64_MAX), "16777216 TB");
}

TEST(MemoryBudget, CopiesShareOneAccountAndSharesGiveBack) {
  const MemoryBudget budget(1000);
  const MemoryBudget copy = budget;
  {
    std::optional<MemoryShare> share;
    Result<MemoryShare> taken = budget.take(600, "the values", "f");
    ASSERT_TRUE(taken.ok());
    share.emplace(std::move(*taken));
    EXPECT_EQ(copy.left(), 400u);
    const Result<MemoryShare> more = copy.take(401, "the labels", "g");
    ASSERT_FALSE(more.ok());
    EXPECT_EQ(more.error().code, Code::out_of_memory);
    EXPECT_EQ(more.error().str(),
              "g: needs 401 bytes for the labels, and 400 bytes of the memory budget of 1000 bytes "
              "are left; give more with --memory SIZE, or read a smaller file");
    EXPECT_EQ(copy.left(), 400u);
  }
  EXPECT_EQ(copy.left(), 1000u);
  EXPECT_FALSE(copy.take(UINT64_MAX, "", "").ok());
  EXPECT_TRUE(MemoryBudget().take(UINT64_MAX, "", "").ok());
  EXPECT_EQ(MemoryBudget(1000, true, 300).left(), 700u);
}

TEST(MemoryBudget, ArchivesMayUnpackToMoreWhereAPersonSaidSo) {
  constexpr uint64_t kMb = uint64_t{1} << 20;
  const MemoryBudget guess(uint64_t{1} << 40, false);
  EXPECT_EQ(guess.max_unpacked(1), 256 * kMb);
  EXPECT_EQ(guess.max_unpacked(10 * kMb), 500 * kMb);
  EXPECT_EQ(guess.max_unpacked(UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(MemoryBudget(kMb).max_unpacked(1), UINT64_MAX);
  EXPECT_EQ(MemoryBudget().max_unpacked(1), UINT64_MAX);
}

}  // namespace
}  // namespace loom::core
