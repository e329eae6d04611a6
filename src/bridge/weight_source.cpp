#include "bridge/weight_source.hpp"

#include <algorithm>

#include "base/numbers/dmath.hpp"
#include "bridge/finite_weight.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMeasureValues = int64_t{1} << 16;

// Processes whole rows, as many as fit; measured rows are decoded next to the source.
Status measure(const Param& param, const SourceWeight& weight, PackReport& report) {
  const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
  const int64_t rows = param.spec.matrix() ? param.spec.shape[0] : param.spec.shape.count();
  const int64_t step = std::max<int64_t>(1, kMeasureValues / std::max<int64_t>(cols, 1));
  std::vector<float> before(static_cast<size_t>(std::min(step, rows) * cols)), after = before;
  double squares = 0, errors = 0, dot = 0, after_squares = 0;
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = std::min(step, rows - first);
    LOOM_TRY(weight.rows(first, count, before.data()));
    for (int64_t r = 0; r < count && param.spec.matrix(); ++r) {
      const R16 g = r16_geometry(param.tensor.dtype, rows, cols);
      r16_decode(g, param.tensor.data, first + r, 0, cols, after.data() + r * cols);
    }
    if (!param.spec.matrix()) std::copy_n(param.tensor.f32() + first, count, after.data());
    for (int64_t i = 0; i < count * cols; ++i) {
      const double a = static_cast<double>(before[static_cast<size_t>(i)]);
      const double b = static_cast<double>(after[static_cast<size_t>(i)]);
      squares += a * a;
      after_squares += b * b;
      dot += a * b;
      errors += (a - b) * (a - b);
      report.max_error = std::max(report.max_error, a > b ? a - b : b - a);
    }
  }
  const double n = static_cast<double>(std::max<int64_t>(rows * cols, 1));
  report.rms = __builtin_sqrt(squares / n);
  report.error = __builtin_sqrt(errors / n);
  const double lengths = __builtin_sqrt(squares) * __builtin_sqrt(after_squares);
  report.cosine = lengths > 0 ? dot / lengths : squares == after_squares ? 1.0 : 0.0;
  return {};
}

int64_t bytes_in(const Param& param, DType dtype) {
  const Shape& shape = param.spec.shape;
  if (!param.spec.matrix()) return plain_bytes(DType::f32, shape);
  return r16_geometry(dtype, shape[0], shape[1]).bytes();
}

// place() writes only existing rows. The rows that fill the last group of 16 must equal those of
// packing, so that equal matrices are equal bytes.
void pack_absent_rows(const R16& matrix, std::byte* data) {
  const int64_t count = matrix.rows % kR16Rows;
  if (count == 0) return;
  const std::vector<float> zeros(static_cast<size_t>(count * matrix.cols));
  r16_pack(matrix, zeros.data(), matrix.rows - count, count, ScaleScope::per_row, {}, data);
}

}  // namespace

Status load_weight(Network& network, int index, DType dtype, const SourceWeight& weight,
                   ThreadPool& pool, ScaleScope scope) {
  const Param& param = network.params()[static_cast<size_t>(index)];
  const bool exact = weight.copy_row && dtype == weight.stored && param.spec.matrix();
  if (!exact) {
    if (dtype_info(dtype).scale == ScaleRule::absmean && weight.mean_scope != ScaleScope::per_row)
      scope = weight.mean_scope;
    std::vector<float> held = weight.held;
    const auto needs = static_cast<size_t>(
        param.spec.matrix() ? param.spec.shape[0] * r16_frozen_values(dtype) : 0);
    const bool holds = dtype == weight.held_dtype && !held.empty() && held.size() == needs;
    LOOM_TRY(network.load_param(index, dtype, weight.rows, pool, scope,
                                {holds ? held.data() : nullptr}));
    return weight.packed ? weight.packed(param.tensor) : Status();
  }
  LOOM_TRY(network.allocate_param(index, dtype));
  const R16 matrix = r16_geometry(dtype, param.spec.shape[0], param.spec.shape[1]);
  pack_absent_rows(matrix, param.memory.data());
  for (int64_t row = 0; row < matrix.rows; ++row)
    LOOM_TRY(weight.copy_row(row, matrix, param.memory.data()));
  return weight.packed ? weight.packed(param.tensor) : Status();
}

namespace {

Result<std::span<const std::byte>> pack_one(Network& network, int index, DType dtype,
                                            const WeightSource& source, const PackPolicy& policy,
                                            ThreadPool& pool) {
  if (index > 0) {
    Param& before = network.param(index - 1);
    before.memory = Buffer();
    before.tensor = Tensor{};
  }
  const Param& param = network.params()[static_cast<size_t>(index)];
  LOOM_ASSIGN(const SourceWeight weight, finite_weight(source, param));
  const ScaleScope scope = policy.scope ? policy.scope(param) : ScaleScope::per_row;
  LOOM_TRY(load_weight(network, index, dtype, weight, pool, scope));
  if (policy.report) {
    const DType from = param.spec.matrix() ? weight.original.value_or(weight.stored) : DType::f32;
    PackReport report{param.path, param.spec.shape, from, param.tensor.dtype};
    report.bytes_from = bytes_in(param, from);
    report.bytes_to = param.bytes();
    LOOM_TRY(measure(param, weight, report));
    policy.report(report);
  }
  if (weight.release) weight.release();
  return std::span<const std::byte>(param.tensor.data, static_cast<size_t>(param.bytes()));
}

}  // namespace

Result<std::vector<EntityOutput>> packed_outputs(Network& network, const WeightSource& source,
                                                 const PackPolicy& policy, ThreadPool& pool) {
  std::vector<EntityOutput> outputs;
  for (size_t i = 0; i < network.params().size(); ++i) {
    const Param& param = network.params()[i];
    LOOM_ASSIGN(const SourceWeight weight, source.weight(param));
    EntityOutput out;
    out.path = param.path;
    out.shape = param.spec.shape;
    out.layout = param.spec.matrix() ? BlobLayout::r16 : BlobLayout::plain;
    out.dtype = param.spec.matrix() ? policy.dtype(param, weight.stored) : DType::f32;
    out.data = [&network, &source, &policy, &pool, i, dtype = out.dtype] {
      return pack_one(network, static_cast<int>(i), dtype, source, policy, pool);
    };
    outputs.push_back(std::move(out));
  }
  return outputs;
}

}  // namespace loom::core
