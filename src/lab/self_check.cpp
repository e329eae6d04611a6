#include "lab/self_check.hpp"

#include <cstring>

#include "backend/reference/reference.hpp"
#include "base/numbers/rng.hpp"
#include "base/text.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core {
namespace {

// Odd extents, so that every kernel meets its remainders.
constexpr int64_t kRows = 5, kInner = 200, kOutputs = 37;

std::vector<float> random_values(uint64_t stream, int64_t count) {
  const Rng rng(7, stream);
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = rng.uniform(i) * 2.0f - 1.0f;
  return values;
}

Result<Buffer> pack(DType dtype, const R16& geometry) {
  const std::vector<float> w = random_values(static_cast<uint64_t>(dtype), kOutputs * kInner);
  LOOM_ASSIGN(Buffer memory, Buffer::allocate(geometry.bytes()));
  const TensorRange range = tensor_range(w.data(), kOutputs * kInner);
  r16_pack(geometry, w.data(), 0, kOutputs, ScaleScope::per_row, range, memory.data());
  return memory;
}

Result<std::vector<float>> multiply(const Ops& ops, ThreadPool& pool, ActivationMode mode,
                                    const Tensor& weights) {
  std::vector<float> x = random_values(1000, kRows * kInner);
  std::vector<float> y(static_cast<size_t>(kRows * kOutputs));
  Recorder recorder(ops, pool, mode);
  MatmulArgs args;
  args.x = f32_matrix(x.data(), kRows, kInner);
  args.w = weights;
  args.y = f32_matrix(y.data(), kRows, kOutputs);
  LOOM_TRY(recorder.matmul(args));
  LOOM_TRY(recorder.flush());
  return y;
}

Status check_dtype(const DTypeInfo& info, ActivationMode mode, ThreadPool& pool,
                   std::vector<SelfCheck>& checks) {
  const R16 geometry = r16_geometry(info.dtype, kOutputs, kInner);
  LOOM_ASSIGN(const Buffer memory, pack(info.dtype, geometry));
  const Tensor weights = r16_tensor(geometry, memory.data());
  LOOM_ASSIGN(const std::vector<float> want, multiply(reference_ops(), pool, mode, weights));
  for (SelfCheck& check : checks) {
    LOOM_ASSIGN(const std::vector<float> got, multiply(cpu_ops(check.isa), pool, mode, weights));
    ++check.checked;
    if (std::memcmp(want.data(), got.data(), want.size() * sizeof(float)) == 0) continue;
    const char* name = mode == ActivationMode::q8 ? " with q8 activations" : "";
    check.failed.push_back(cat(info.name, name));
  }
  return {};
}

}  // namespace

Result<std::vector<SelfCheck>> self_check() {
  std::vector<SelfCheck> checks;
  for (const Isa isa : available_isas()) checks.push_back({isa, 0, {}});
  ThreadPool pool(1);
  for (const DTypeInfo& info : dtype_table()) {
    LOOM_TRY(check_dtype(info, ActivationMode::f32, pool, checks));
    if (info.integer_path()) LOOM_TRY(check_dtype(info, ActivationMode::q8, pool, checks));
  }
  return checks;
}

}  // namespace loom::core
