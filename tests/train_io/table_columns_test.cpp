// Columns of tables by the names that a network was trained with.
#include "train_io/table_columns.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/numbers/rng.hpp"

namespace loom::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TableColumns, AreFoundByNameOrRefused) {
  struct Case {
    std::vector<std::string> header, inputs, targets;
    std::vector<int64_t> others, column_index;  // no places: an error
    const char* error;
  };
  const Case cases[] = {
      {{"a", "b", "y"}, {"a", "b"}, {"y"}, {}, {0, 1, 2}, ""},
      {{"b", "a", "y"}, {"a", "b"}, {"y"}, {}, {1, 0, 2}, ""},
      {{"y", "b", "a"}, {"a", "b"}, {"y"}, {}, {2, 1, 0}, ""},
      {{" b", "a ", "y"}, {"a", "b"}, {"y"}, {}, {1, 0, 2}, ""},
      {{"b", "kind", "a"}, {"a", "b"}, {"y"}, {}, {1, 2, 0}, ""},  // the one that is left
      {{"b", "w", "a", "y"}, {"a", "b"}, {"y"}, {1}, {1, -1, 0, 2}, ""},
      {{}, {"a", "b"}, {"y"}, {}, {0, 1, 2}, ""},
      {{"p", "q", "r"}, {}, {}, {}, {0, 1, 2}, ""},
      {{"a", "c", "y"}, {"a", "b"}, {"y"}, {}, {}, "has no column 'b'"},
      {{"a", "B", "y"}, {"a", "b"}, {"y"}, {}, {}, "its columns are a, B, y; rename them"},
      {{"a", "a", "b"}, {"a", "b"}, {"y"}, {}, {}, "has two columns 'a'"},
      {{"a", "b", "y"}, {"a", "b"}, {"y"}, {1}, {}, "has no column 'b'"},  // it is the weight
  };
  for (const Case& c : cases) {
    const TableLayout layout{c.header, 3 + std::ssize(c.others) * (c.header.size() > 3 ? 1 : 0), 2,
                             1, c.others};
    const auto column_index = places_of_columns(layout, {c.inputs, c.targets}, "t.csv");
    ASSERT_EQ(column_index.ok(), c.error[0] == '\0') << testing::PrintToString(c.header);
    if (column_index.ok()) {
      EXPECT_EQ(*column_index, c.column_index) << testing::PrintToString(c.header);
    } else {
      EXPECT_THAT(column_index.error().str(), HasSubstr(c.error));
      EXPECT_THAT(column_index.error().str(), HasSubstr("t.csv"));
    }
  }
}

TEST(TableColumns, AreNamedAsTheyLieInTheNetwork) {
  const TableLayout layout{{"y", "b", "w", "a"}, 4, 2, 1, {2}};
  const TableColumns known{{"a", "b"}, {"y"}};
  const auto column_index = places_of_columns(layout, known, "t.csv").value();
  EXPECT_EQ(names_of_columns(layout, column_index), known);
  EXPECT_THAT(known.all(), ElementsAre("a", "b", "y"));
  EXPECT_EQ(split_columns(known.all(), 2), known);
  EXPECT_TRUE(names_of_columns({{"a", "a", "y"}, 3, 2, 1, {}}, {0, 1, 2}).empty()) << "two of one";
  EXPECT_TRUE(names_of_columns({{}, 3, 2, 1, {}}, {0, 1, 2}).empty()) << "no header";
}

// Any order of any number of columns gives each value its place.
TEST(TableColumns, OfShuffledTablesComeToTheirPlaces) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const Rng rng(seed, 4);
    const auto inputs = 1 + static_cast<int64_t>(rng.bits(0) % 12);
    const auto targets = 1 + static_cast<int64_t>(rng.bits(1) % 3);
    std::vector<int64_t> order(static_cast<size_t>(inputs + targets));
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.bits(i + 2) % i]);
    TableColumns known;
    TableLayout layout{{}, inputs + targets, inputs, targets, {}};
    const auto name = [](int64_t i) { return "column " + std::to_string(i); };
    for (int64_t i = 0; i < inputs; ++i) known.inputs.push_back(name(i));
    for (int64_t i = 0; i < targets; ++i) known.targets.push_back(name(inputs + i));
    for (const int64_t i : order) layout.header.push_back(name(i));
    EXPECT_EQ(places_of_columns(layout, known, "t.csv").value(), order) << seed;
  }
}

}  // namespace
}  // namespace loom::core
