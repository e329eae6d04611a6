// The commands of a decoder layer for a prompt, and for one token. They run as a whole (several
// commands in one dispatch) and command by command. Both must leave the same values.
#include <cmath>
#include <cstdlib>

#include "backend/reference/reference.hpp"
#include "base/text.hpp"
#include "conformance/support.hpp"
#include "ops/recording/recorder.hpp"
#include "webgpu/distance.hpp"
#include "webgpu/gpu.hpp"
#include "webgpu/sample.hpp"

namespace loom::core::test {
namespace {

struct Case {
  DType dtype;
  ActivationMode mode;
  int64_t rows, width, inner, kv;
  bool bias;
};

// The values of a layer without its attention.
class Layer {
 public:
  explicit Layer(const Case& c)
      : x(c.rows, c.width, 0, 1, Values::smooth),
        gamma(1, c.width, 0, 2, Values::smooth),
        bias(1, c.inner, 0, 3, Values::smooth),
        wq(c.dtype, c.width, c.width, 4),
        wk(c.dtype, c.kv, c.width, 5),
        wv(c.dtype, c.kv, c.width, 6),
        wo(c.dtype, c.width, c.width, 7),
        gate(c.dtype, c.inner, c.width, 8),
        up(c.dtype, c.inner, c.width, 9),
        down(c.dtype, c.width, c.inner, 10) {
    const int64_t widths[] = {c.width, c.width, c.kv,    c.kv,    c.width, c.width,
                              c.width, c.inner, c.inner, c.inner, c.width, c.width};
    for (const int64_t width : widths) values.emplace_back(c.rows, width);
  }

  std::vector<MemoryRange> ranges() const {
    std::vector<MemoryRange> all;
    for (const Rows* r : {&x, &gamma, &bias}) all.push_back(range_of(r->tensor()));
    for (const Packed* w : {&wv, &wq, &wk, &wo, &up, &gate, &down}) {
      const Tensor& t = w->tensor();
      all.push_back({t.data, t.end() - t.data});
    }
    for (const Rows& r : values) all.push_back(range_of(r.tensor()));
    return all;
  }
  Status record(Recorder& r, const Case& c) const {
    const auto y = [&](size_t i) { return values[i].tensor(); };
    const auto b = [&](int64_t cols) {
      Tensor t = bias.tensor();
      t.shape = Shape{1, cols};
      return c.bias ? t : Tensor{};
    };
    NormArgs norm;
    norm.x = x.tensor();
    norm.gamma = gamma.tensor();
    norm.y = y(0);
    LOOM_TRY(r.norm(norm));
    LOOM_TRY(r.matmul({y(0), wq.tensor(), b(c.width), y(1)}));
    LOOM_TRY(r.matmul({y(0), wk.tensor(), b(c.kv), y(2)}));
    LOOM_TRY(r.matmul({y(0), wv.tensor(), b(c.kv), y(3)}));
    LOOM_TRY(r.matmul({y(1), wo.tensor(), b(c.width), y(4)}));
    LOOM_TRY(r.binary({x.tensor(), y(4), y(5), BinaryKind::add}));
    norm.x = y(5);
    norm.y = y(6);
    LOOM_TRY(r.norm(norm));
    LOOM_TRY(r.matmul({y(6), gate.tensor(), b(c.inner), y(7)}));
    LOOM_TRY(r.matmul({y(6), up.tensor(), b(c.inner), y(8)}));
    LOOM_TRY(r.gated({y(7), y(8), y(9), Activation::silu}));
    LOOM_TRY(r.matmul({y(9), down.tensor(), b(c.width), y(10)}));
    return r.binary({y(5), y(10), y(11), BinaryKind::add});
  }

  Rows x, gamma, bias;
  Packed wq, wk, wv, wo, gate, up, down;
  std::vector<Rows> values;
};

void check(const Case& c) {
  const std::string what = cat(dtype_name(c.dtype), c.mode == ActivationMode::q8 ? " q8" : " f32",
                               ", ", c.rows, " rows, ", c.width, " wide");
  ThreadPool pool(1);
  Layer layer(c);
  const Ops& ops = gpu()->ops();
  const auto attached = Attached::attach(ops.device, layer.ranges(), MemoryUse::scratch, true);
  ASSERT_TRUE(attached.ok()) << attached.error().str();
  Recorder recorder(ops, pool, c.mode);
  ASSERT_TRUE(recorder.reserve(64, c.rows, std::max(c.inner, c.width), 16).ok());
  Status recorded = layer.record(recorder, c);
  ASSERT_TRUE(recorded.ok()) << recorded.error().str();
  std::vector<std::vector<float>> apart;
  for (int64_t i = 0; i < recorder.commands(); ++i) {
    const Status status = recorder.run(i, i + 1);
    ASSERT_TRUE(status.ok()) << what << ": " << status.error().str();
  }
  const auto fetch = [&] {
    for (const Rows& r : layer.values) {
      ASSERT_TRUE(to_host(ops, {r.tensor()}).ok());
    }
  };
  fetch();
  for (const Rows& r : layer.values) apart.push_back(r.memory());
  for (const Rows& r : layer.values) {
    std::fill_n(r.tensor().f32(), r.memory().size(), 0.0f);
    ASSERT_TRUE(to_device(ops, r.tensor()).ok());
  }
  ASSERT_TRUE(gpu()->wait().ok());
  const int64_t before = gpu()->counts().dispatches;
  Status status = recorder.run();
  if (status.ok()) status = gpu()->wait();
  ASSERT_TRUE(status.ok()) << what << ": " << status.error().str();
  const int most = c.rows == 1 ? 4 : c.mode == ActivationMode::q8 ? 7 : 6;
  EXPECT_LE(gpu()->counts().dispatches - before, most) << what;
  fetch();
  for (size_t i = 0; i < apart.size(); ++i) {
    // Rounding may turn single codes of quantized rows.
    const double bound = c.mode == ActivationMode::f32 || i < 4 ? 1e-6 : 2e-3;
    EXPECT_LE(distance(apart[i], layer.values[i].memory()), bound) << what << ", value " << i;
  }
}

TEST(GpuFusedMany, ALayerLeavesWhatItsCommandsLeave) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  constexpr auto kQ8 = ActivationMode::q8, kF32 = ActivationMode::f32;
  const std::vector<Case> cases = {
      {DType::q4_0, kQ8, 113, 96, 160, 40, false}, {DType::u4, kQ8, 20, 64, 96, 32, true},
      {DType::q4_0, kF32, 20, 64, 96, 32, true},   {DType::q4_k, kQ8, 20, 64, 256, 40, true},
      {DType::q2_k, kQ8, 9, 64, 256, 32, false},   {DType::q6_k, kF32, 20, 64, 96, 32, false},
      {DType::f16, kF32, 40, 72, 100, 24, false}};
  for (const Case& c : sampled("GpuFusedMany", cases)) check(c);
}

// lavapipe takes minutes to compile a whole row of a type with a table: LOOM_GPU_SLOW runs it
// there.
bool compiles_tables() {
  const bool lavapipe = gpu()->adapter().name.find("llvmpipe") != std::string::npos;
  return !lavapipe || std::getenv("LOOM_GPU_SLOW") != nullptr;
}

TEST(GpuFusedRow, ALayerLeavesWhatItsCommandsLeave) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  constexpr auto kQ8 = ActivationMode::q8, kF32 = ActivationMode::f32;
  std::vector<Case> cases;
  for (const DType dtype : {DType::q4_0, DType::u4, DType::nvfp4, DType::binary}) {
    cases.push_back({dtype, kQ8, 1, 96, 160, 40, dtype == DType::u4});
    cases.push_back({dtype, kF32, 1, 160, 64, 24, false});
  }
  for (const DType dtype : {DType::f32, DType::bf16, DType::i16, DType::nf4}) {
    if (dtype == DType::nf4 && !compiles_tables()) continue;
    cases.push_back({dtype, kF32, 1, 96, 160, 40, dtype == DType::i16});
  }
  for (const Case& c : sampled("GpuFusedRow", cases)) check(c);
}

// All forms of data around the codes of a block, with codes in one plane and in two. If a CPU
// emulates the GPU, rows of floats and of codes alternate, because compiling takes long there.
TEST(GpuFusedRow, ALayerOfSpansLeavesWhatItsCommandsLeave) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  constexpr auto kQ8 = ActivationMode::q8, kF32 = ActivationMode::f32;
  const bool fast = !gpu()->adapter().software;
  bool codes = false;
  std::vector<Case> cases;
  for (const DType dtype : {DType::q4_k, DType::q2_k, DType::q6_k, DType::q5_k, DType::u4g128,
                            DType::q3_k, DType::q5_1}) {
    if (fast || codes) cases.push_back({dtype, kQ8, 1, 256, 288, 40, true});
    if (fast || !codes) cases.push_back({dtype, kF32, 1, 96, 160, 40, true});
    codes = !codes;
  }
  for (const Case& c : sampled("GpuFusedRow", cases)) check(c);
}

}  // namespace
}  // namespace loom::core::test
