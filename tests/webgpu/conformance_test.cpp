// The conformance drivers against the GPU: every row of ops.def, a selection of the cases that the
// CPU backends stand (LOOM_GPU_CASES=all: every one). Integers must be equal; floats must be within
// the bound of docs/webgpu.md: the root mean square of the differences is at most 1e-6 of that of
// the values (a normalised squared error of 1e-12). Cases whose result is not finite are left out:
// WGSL lets compilers assume that there are none.
#include <cmath>
#include <cstdlib>

#include "backend/reference/reference.hpp"
#include "base/bits.hpp"
#include "base/text.hpp"
#include "conformance/support.hpp"
#include "webgpu/gpu.hpp"

namespace loom::test {
namespace {

constexpr double kBound = 1e-6;

// One case in this many is run; each op has some hundreds to some thousands.
int64_t stride() {
  const char* cases = std::getenv("LOOM_GPU_CASES");
  return cases != nullptr && std::string(cases) == "all" ? 1 : 23;
}

int64_t case_number = 0;

bool finite(uint32_t word) {
  return (word & 0x7f800000u) != 0x7f800000u;
}

std::string difference(const Image& expected, const Image& got) {
  double error = 0, norm = 0, worst = -1;
  size_t where = 0;
  for (size_t i = 0; i < expected.words().size(); ++i) {
    const uint32_t a = expected.words()[i], b = got.words()[i];
    if (!expected.is_float(i) || a == kPattern || b == kPattern) {
      if (a != b)
        return cat("word ", i, " is ", f32_from_bits(b), ", reference has ", f32_from_bits(a), " (",
                   b, ", ", a, ")");
      continue;
    }
    const double x = f32_from_bits(a), d = f32_from_bits(b) - x;
    norm += x * x;
    error += d * d;
    if (!(std::abs(d) <= worst)) worst = std::abs(d), where = i;
  }
  if (error <= kBound * kBound * norm) return {};
  return cat("normalised error ", std::to_string(std::sqrt(error / norm) * 1e6), "e-6; word ",
             where, " is ", f32_from_bits(got.words()[where]), ", reference has ",
             f32_from_bits(expected.words()[where]));
}

}  // namespace

bool tame_values() {
  return true;
}

const Runner& reference_runner() {
  static const Runner runner(reference_ops(), 1, "reference");
  return runner;
}

const std::vector<Runner>& other_runners() {
  static const std::vector<Runner> runners = {Runner(gpu()->ops(), 1, "webgpu")};
  return runners;
}

void expect_same_bits(const std::string& what, const std::function<Image(const Runner&)>& body) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  if (case_number++ % stride() != 0) return;
  if (testing::Test::HasFatalFailure()) return;
  const Image expected = body(reference_runner());
  for (size_t i = 0; i < expected.words().size(); ++i) {
    if (expected.is_float(i) && !finite(expected.words()[i])) return;
  }
  const Image got = body(other_runners()[0]);
  if (testing::Test::HasFatalFailure()) {
    ADD_FAILURE() << what;
    return;
  }
  ASSERT_EQ(got.words().size(), expected.words().size()) << what;
  const std::string wrong = difference(expected, got);
  EXPECT_EQ(wrong, "") << what;
}

#define LOOM_OP(op, Args)                                                                    \
  TEST(GpuConformance, op) {                                                                 \
    if (gpu() == nullptr) GTEST_SKIP() << no_gpu();                                          \
    conform_##op();                                                                          \
    EXPECT_EQ(gpu()->counts().fallbacks[static_cast<int>(OpId::op)], 0) << "ran on the CPU"; \
  }
#include "ops/ops.def"
#undef LOOM_OP

}  // namespace loom::test
