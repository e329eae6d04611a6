// The rows that an inference-only build omits from its op tables.
#include <gtest/gtest.h>

#include "backend/reference/reference.hpp"
#include "backend/reference/training/training_rows.hpp"
#include "ops/op_id.hpp"

namespace loom::core {
namespace {

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

TEST(RowsOfTraining, AreEighteenOps) {
  int rows = 0;
  for (int i = 0; i < kOpCount; ++i) rows += of_training(op_name(static_cast<OpId>(i))) ? 1 : 0;
  EXPECT_EQ(rows, 18);
}

// Transposed convolutions and KMeans record these two forward.
TEST(RowsOfTraining, HoldEveryGradientButThoseOfForwardPasses) {
  for (int i = 0; i < kOpCount; ++i) {
    const std::string_view name = op_name(static_cast<OpId>(i));
    if (!ends_with(name, "_dx") && !ends_with(name, "_dw")) continue;
    EXPECT_EQ(of_training(name), name != "conv_dx" && name != "matmul_dx") << name;
  }
}

}  // namespace
}  // namespace loom::core
