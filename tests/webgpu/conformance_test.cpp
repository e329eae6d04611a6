// The conformance drivers against the GPU: every row of ops.def. It runs a selection of the cases
// that the CPU backends pass, each twice. LOOM_GPU_CASES changes the selection: `all` runs every
// case; `most` every case except for two ops with very many; `few` a third. sample.hpp may run a
// part of them. Integers must be equal. Floats must be within the bound of docs/webgpu.md: the root
// mean square of the differences is at most 1e-6 of that of the values or, if the values are small,
// of 0.1. The second run must have the same bits as the first. Some cases have sums that nearly
// cancel: with `all` and `most`, one case in a thousand may exceed the bound, but none 1e-5. Cases
// with non-finite results are skipped: WGSL lets compilers assume that there are none.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "backend/reference/reference.hpp"
#include "backend/webgpu/wgsl/weights.hpp"
#include "base/numbers/bits.hpp"
#include "base/text.hpp"
#include "conformance/support.hpp"
#include "webgpu/gpu.hpp"
#include "webgpu/sample.hpp"

namespace loom::core::test {
namespace {

// With inputs of magnitude 2, sums and differences have residues of about 1e-7. A result of that
// size, such as softmax_dx of one column, has no digits to compare.
constexpr double kResidues = 0.1;

std::string which_cases() {
  const char* cases = std::getenv("LOOM_GPU_CASES");
  return cases == nullptr ? "" : cases;
}
double bound() {
  return which_cases() == "all" || which_cases() == "most" ? 1e-5 : 1e-6;
}

// Counters for the last lines of a run.
int64_t compared = 0, beyond = 0;  // cases; of them more than 1e-6 off
double worst_error = 0;

// One case in this many runs; each op has some hundreds to some thousands. Ops with slow kernel
// compilation run fewer cases, chosen to cover nearly all number types.
int64_t stride_of(OpId op) {
  const std::string which = which_cases();
  if (which == "all") return 1;
  if (which == "most") {
    if (op == OpId::matmul_dx) return 7;
    return op == OpId::matmul ? 131 : op == OpId::squared_distance ? 23 : 1;
  }
  return (op == OpId::matmul ? 131 : op == OpId::pack ? 29 : 23) * (which == "few" ? 3 : 1);
}

int64_t stride = 1, case_number = 0;
// One in `one_in` of the cases that `stride` selects runs, from number `turn` on.
int64_t one_in = 1, turn = 0;
int64_t selected = 0, ran = 0;

bool finite(uint32_t word) {
  return (word & 0x7f800000u) != 0x7f800000u;
}

std::string difference(const Image& expected, const Image& got) {
  double error = 0, norm = 0, count = 0, worst = -1;
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
    ++count;
    if (!(std::abs(d) <= worst)) worst = std::abs(d), where = i;
  }
  norm = std::max(norm, count * kResidues * kResidues);
  const double normalized = norm > 0 ? std::sqrt(error / norm) : 0;
  ++compared;
  if (normalized > 1e-6) ++beyond;
  worst_error = std::max(worst_error, normalized);
  if (normalized <= bound()) return {};
  return cat("normalized error ", std::to_string(normalized * 1e6), "e-6; word ", where, " is ",
             f32_from_bits(got.words()[where]), ", reference has ",
             f32_from_bits(expected.words()[where]));
}

// The number of commands that an op's cases left to the CPU; -1 before its driver ran in this
// process.
std::array<int64_t, kOpCount> left_to_cpu = [] {
  std::array<int64_t, kOpCount> counts{};
  counts.fill(-1);
  return counts;
}();

void run_driver(void (*driver)()) {
  case_number = selected = ran = 0;
  driver();
}

// Runs the cases of `op`; returns the number of its commands that ran on the CPU. The device's
// counters continue across tests, so only the increase belongs to these cases.
int64_t conform(OpId op, void (*driver)()) {
  const size_t at = static_cast<size_t>(op);
  const int64_t before = gpu()->counts().fallbacks[at];
  stride = stride_of(op);
  if (is_sampled(op_name(op))) {
    one_in = static_cast<int64_t>(kOneIn);
    turn = static_cast<int64_t>(turn_of(op_name(op)));
  }
  run_driver(driver);
  // An op with few cases may have none in this selection; each op runs at least one.
  while (ran == 0 && turn > 0) {
    turn /= 2;
    run_driver(driver);
  }
  stride = one_in = 1;
  turn = 0;
  sample().count(static_cast<size_t>(ran), static_cast<size_t>(selected));
  left_to_cpu[at] = gpu()->counts().fallbacks[at] - before;
  return left_to_cpu[at];
}

Tensor in_f64(const Tensor& t, std::vector<double>& values) {
  values.resize(static_cast<size_t>(t.rows() * t.cols()));
  Tensor wide = t;
  wide.dtype = DType::f64;
  wide.row_stride = t.cols();
  wide.data = reinterpret_cast<std::byte*>(values.data());
  for (int64_t r = 0; r < t.rows(); ++r) std::copy_n(t.f32_row(r), t.cols(), wide.row<double>(r));
  return wide;
}

// entmax takes roots of differences: in f32 the reference itself is off by up to 3e-6. So the
// device is compared with the f64 body, without the overflow of f32.
void entmax_in_f64(const EntmaxArgs& args, const Lane& lane) {
  std::vector<double> x, y;
  EntmaxArgs wide = args;
  wide.x = in_f64(args.x, x);
  wide.y = in_f64(args.y, y);
  reference_ops_f64().entmax(wide, lane);
  reference_ops().entmax(args, lane);
  for (int64_t r = 0; r < args.y.rows(); ++r) {
    for (int64_t c = 0; c < args.y.cols(); ++c) {
      float& value = args.y.f32_row(r)[c];
      if (std::isfinite(value)) value = static_cast<float>(wide.y.row<double>(r)[c]);
    }
  }
}

// A long chain in f32 is inaccurate, most in types with offsets: their values have one sign, so all
// roundings go the same way. A device adds in pieces. Both are compared with the product in f64.
void matmul_in_f64(const MatmulArgs& args, const Lane& lane) {
  if (args.use_q8 || args.x.dtype != DType::f32 || args.y.dtype != DType::f32) {
    reference_ops().matmul(args, lane);
    return;
  }
  std::vector<double> x, y, bias;
  MatmulArgs wide = args;
  wide.x = in_f64(args.x, x);
  wide.y = in_f64(args.y, y);
  if (!args.bias.empty()) wide.bias = in_f64(args.bias, bias);
  reference_ops_f64().matmul(wide, lane);
  for (int64_t r = 0; r < args.y.rows(); ++r) {
    for (int64_t c = 0; c < args.y.cols(); ++c)
      args.y.f32_row(r)[c] = static_cast<float>(wide.y.row<double>(r)[c]);
  }
}

}  // namespace

bool tame_values() {
  return true;
}
bool packs(DType dtype) {
  return webgpu::packs(dtype);
}

const Runner& reference_runner() {
  static const Ops ops = [] {
    Ops reference = reference_ops();
    reference.entmax = &entmax_in_f64;
    reference.matmul = &matmul_in_f64;
    return reference;
  }();
  static const Runner runner(ops, 1, "reference");
  return runner;
}

const std::vector<Runner>& other_runners() {
  static const std::vector<Runner> runners = {Runner(gpu()->ops(), 1, "webgpu")};
  return runners;
}

void expect_same_bits(const std::string& what, const std::function<Image(const Runner&)>& body) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  if (case_number++ % stride != 0) return;
  if (selected++ % one_in != turn) return;
  if (testing::Test::HasFatalFailure()) return;
  const Image expected = body(reference_runner());
  for (size_t i = 0; i < expected.words().size(); ++i) {
    if (expected.is_float(i) && !finite(expected.words()[i])) return;
  }
  ++ran;
  const Image got = body(other_runners()[0]);
  const Image again = body(other_runners()[0]);
  if (testing::Test::HasFatalFailure()) {
    ADD_FAILURE() << what;
    return;
  }
  ASSERT_EQ(got.words().size(), expected.words().size()) << what;
  const std::string wrong = difference(expected, got);
  EXPECT_EQ(wrong, "") << what;
  EXPECT_TRUE(again.words() == got.words()) << what << ": two runs differ";
}

// An op that has a kernel has one for all its cases; one without ran on the CPU, and was counted.
static void expect_on_device(OpId op, int64_t left) {
  if (webgpu::has_kernel(op)) {
    EXPECT_EQ(left, 0) << op_name(op) << " ran on the CPU";
  } else {
    EXPECT_GT(left, 0) << op_name(op) << " was not counted";
  }
}

// Detects a kernel that is missing from the list of kernels.hpp.
TEST(GpuKernels, AreThereForEveryOpButThoseThatTheCpuComputesOnPurpose) {
  // roll: the toy of tests/extend. Products with experts and recurrences have no kernel yet.
  constexpr std::string_view kOnTheCpu[] = {
      "roll",           "top_experts",       "group_rows",       "expert_matmul",
      "causal_conv",    "selective_scan",    "expert_matmul_dx", "expert_matmul_dw",
      "causal_conv_dx", "selective_scan_dx", "selective_scan_db"};
  for (int i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<OpId>(i);
    const bool named = std::ranges::find(kOnTheCpu, op_name(op)) != std::end(kOnTheCpu);
    EXPECT_NE(webgpu::has_kernel(op), named) << op_name(op);
  }
}

#define LOOM_OP(op, Args)                                         \
  TEST(GpuConformance, op) {                                      \
    if (gpu() == nullptr) GTEST_SKIP() << no_gpu();               \
    expect_on_device(OpId::op, conform(OpId::op, &conform_##op)); \
  }
#include "ops/ops.def"
#undef LOOM_OP

// Runs after the others; alone it runs them itself.
TEST(GpuConformance, EveryOpHasAKernel) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  int on_device = 0;
#define LOOM_OP(op, Args)                                                     \
  {                                                                           \
    int64_t left = left_to_cpu[static_cast<size_t>(OpId::op)];                \
    if (left < 0) left = conform(OpId::op, &conform_##op);                    \
    EXPECT_GT(other_runners()[0].runs(OpId::op), 0) << #op << " was not run"; \
    expect_on_device(OpId::op, left);                                         \
    on_device += left == 0 ? 1 : 0;                                           \
  }
#include "ops/ops.def"
#undef LOOM_OP
  std::printf("%d of %d ops have kernels\n", on_device, kOpCount);
}

// Runs after the others and prints their results.
TEST(GpuConformanceSum, IsPrinted) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  std::printf("%lld cases with floats, the worst %.2fe-6 off, %lld of them beyond 1e-6\n",
              static_cast<long long>(compared), worst_error * 1e6, static_cast<long long>(beyond));
  EXPECT_LE(beyond * 1000, compared);
}

}  // namespace loom::core::test
