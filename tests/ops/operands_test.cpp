// The declarations of op arguments (ops/operands.hpp), for every row of ops.def, and the defaults
// of omitted ones.
#include "ops/operands.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "ops/gradients/gradient_rules.hpp"
#include "ops/recording/visit.hpp"

namespace loom::core {
namespace {

struct Described {
  OpId op;
  size_t size;
  Gradient gradient;
  std::vector<size_t> row_positions;  // of its tensors in the struct
  bool writes;
};

template <class Args>
Described describe_row(OpId op) {
  Described row{op, sizeof(Args), gradient_kind<Args>(), {}, false};
  Args args;
  args = {};
  visit(args, [&](Tensor& t, Access access) {
    row.row_positions.push_back(static_cast<size_t>(reinterpret_cast<const std::byte*>(&t) -
                                                    reinterpret_cast<const std::byte*>(&args)));
    row.writes = row.writes || access != Access::read;
  });
  visit_parts(
      args, [&](const auto&, Access access) { row.writes = row.writes || access != Access::read; });
  return row;
}

void PrintTo(const Described& row, std::ostream* out) {
  *out << op_name(row.op);
}

std::vector<Described> every_row() {
  return {
#define LOOM_OP(name, Args) describe_row<Args>(OpId::name),
#include "ops/ops.def"
#undef LOOM_OP
  };
}

class OpRow : public testing::TestWithParam<Described> {};
INSTANTIATE_TEST_SUITE_P(Ops, OpRow, testing::ValuesIn(every_row()),
                         [](const auto& test) { return std::string(op_name(test.param.op)); });

TEST_P(OpRow, NamesTensorsOfItsOwnOnceEachAndWritesSomething) {
  std::vector<size_t> row_positions = GetParam().row_positions;
  ASSERT_FALSE(row_positions.empty());
  std::sort(row_positions.begin(), row_positions.end());
  for (size_t i = 0; i < row_positions.size(); ++i) {
    EXPECT_LE(row_positions[i] + sizeof(Tensor), GetParam().size);
    if (i > 0) {
      EXPECT_GE(row_positions[i], row_positions[i - 1] + sizeof(Tensor));
    }
  }
  EXPECT_TRUE(GetParam().writes);
}

TEST_P(OpRow, SaysHowGradientsSeeIt) {
  EXPECT_NE(GetParam().gradient, Gradient::missing);
}

TEST(OpRows, OfGradientsHaveNoneButThoseThatAreLayersToo) {
  for (const Described& row : every_row()) {
    const std::string_view name = op_name(row.op);
    if (!name.ends_with("_dx") && !name.ends_with("_dw")) continue;
    // A product with a transposed weight, and ConvTransposed.
    const bool layer = row.op == OpId::matmul_dx || row.op == OpId::conv_dx;
    EXPECT_EQ(row.gradient, layer ? Gradient::rule : Gradient::none) << name;
  }
}

// An op with only the required declarations.
struct SilentArgs {
  Tensor x, y;

  static void operands(auto& self, auto&& f) {
    reads(f, self.x);
    writes(f, self.y);
  }
};

TEST(SilentOp, GoesOnceOverItsFirstOperand) {
  Trace trace(DType::f32);
  const SilentArgs args{trace.fresh(Shape{3, 7}), trace.fresh(Shape{100, 7})};
  EXPECT_EQ(work_of(args), 21);
}

TEST(SilentOp, HasFormsForBothComputeTypesAndTouchesTensorsAlone) {
  EXPECT_FALSE(f32_only<SilentArgs>());
  EXPECT_FALSE(own_types<SilentArgs>());
  int parts = 0;
  visit_parts(SilentArgs{}, [&](const auto&, Access) { ++parts; });
  EXPECT_EQ(parts, 0);
}

TEST(SilentOp, RefusesAGradientThatIsAskedOfIt) {
  Trace trace(DType::f32, true);
  const SilentArgs args{trace.fresh(Shape{3, 7}), trace.fresh(Shape{3, 7})};
  const Tensor dy = trace.fresh(Shape{3, 7});
  Differentiator d(trace);
  EXPECT_TRUE(differentiate_op(d, args).ok()) << "no loss depends on it";
  d.want(args.y);
  d.seed(args.y, dy);
  const Status status = differentiate_op(d, args);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::unsupported);
  EXPECT_EQ(status.error().message,
            "the op has no gradient rule; use another layer, or train only what comes after it");
}

}  // namespace
}  // namespace loom::core
