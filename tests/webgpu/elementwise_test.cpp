// Elementwise kernels on tensors so large that an invocation makes several values, with and without
// gaps between rows.
#include <cmath>

#include "backend/reference/reference.hpp"
#include "base/numbers/bits.hpp"
#include "base/text.hpp"
#include "conformance/support.hpp"
#include "webgpu/gpu.hpp"

namespace loom::core::test {
namespace {

uint32_t bits_of(float v) {
  return bit_cast<uint32_t>(v);
}

constexpr int64_t kRows = 1027, kCols = 1033;

template <class Args, class Row>
void check(const std::string& what, Row row, Args args, Tensor Args::*result, int64_t gap) {
  const Rows expected(kRows, kCols, gap), got(kRows, kCols, gap);
  args.*result = expected.tensor();
  reference_runner()(row, args);
  args.*result = got.tensor();
  other_runners()[0](row, args);
  for (size_t i = 0; i < expected.memory().size(); ++i) {
    const float a = expected.memory()[i], b = got.memory()[i];
    if (bits_of(a) == bits_of(b)) continue;  // the gaps between rows are not numbers
    ASSERT_NEAR(a, b, 1e-6f * std::max(1.0f, std::abs(a)))
        << what << ", gap " << gap << " at " << i;
  }
}

TEST(GpuElementwise, LargeTensors) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  for (const int64_t gap : {0, 3}) {
    const Rows x(kRows, kCols, gap, 1, Values::smooth), y(kRows, kCols, 0, 2, Values::smooth);
    const Rows row(1, kCols, 0, 3, Values::smooth);
    UnaryArgs unary;
    unary.x = x.tensor();
    unary.kind = UnaryKind::silu;
    check("unary", &Ops::unary, unary, &UnaryArgs::y, gap);
    BinaryArgs binary;
    binary.a = x.tensor();
    binary.b = y.tensor();
    binary.kind = BinaryKind::sub;
    check("binary", &Ops::binary, binary, &BinaryArgs::y, gap);
    binary.b = row.tensor();
    check("binary with a row", &Ops::binary, binary, &BinaryArgs::y, gap);
    FillArgs fill;
    fill.value = 0.75f;
    check("fill", &Ops::fill, fill, &FillArgs::y, gap);
    UnaryDxArgs dx;
    dx.x = x.tensor();
    dx.dy = y.tensor();
    dx.kind = UnaryKind::relu;
    dx.from_output = true;
    check("unary_dx", &Ops::unary_dx, dx, &UnaryDxArgs::dx, gap);
  }
}

}  // namespace
}  // namespace loom::core::test
