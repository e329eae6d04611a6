#include "convert/quantize/quantized_source.hpp"

#include <algorithm>

#include "bridge/finite_weight.hpp"
#include "convert/quantize/factor.hpp"
#include "dtype/r16/r16_quantize.hpp"

namespace loom::core {
namespace {

constexpr int64_t kBatch = 256;  // rows in memory as f32

// Everything that weights the errors of a matrix; empty: nothing does.
struct Weighting {
  std::vector<float> importance;
  std::vector<float> factor;
  ErrorWeights view() const {
    ErrorWeights w;
    if (!importance.empty()) w.importance = importance.data();
    if (!factor.empty()) w.factor = factor.data();
    return w;
  }
};

Result<Weighting> weighting_of(const Param& param, const QuantizePlan& plan) {
  Weighting out;
  const int64_t cols = param.spec.shape[1];
  if (plan.text == nullptr) {
    if (plan.importance == nullptr) return out;
    const auto found = plan.importance->means.find(param.path);
    // Means of single experts do not fit rows of all of them.
    if (found == plan.importance->means.end()) return out;
    if (static_cast<int64_t>(found->second.size()) != cols) return out;
    out.importance = found->second;
    return out;
  }
  LOOM_ASSIGN(const std::vector<float>* moments, plan.text->moments(param.path));
  if (moments == nullptr) return out;
  const auto count = static_cast<float>(plan.text->rows());
  for (int64_t k = 0; k < cols; ++k)
    out.importance.push_back((*moments)[static_cast<size_t>(k * cols + k)] / count);
  if (!plan.feedback) return out;
  out.factor = inverse_factor(*moments, cols, plan.damping, *plan.pool);
  return out;
}

class QuantizedSource : public ModelSource {
 public:
  QuantizedSource(const ModelSource& inner, QuantizePlan plan)
      : ModelSource(inner), inner_(inner), plan_(std::move(plan)) {
    packed = {};
  }
  Result<SourceWeight> weight(const Param& param) const override;
  bool in_memory() const override { return inner_.in_memory(); }

 private:
  const ModelSource& inner_;
  QuantizePlan plan_;
};

Result<SourceWeight> QuantizedSource::weight(const Param& param) const {
  LOOM_ASSIGN(SourceWeight weight, inner_.weight(param));
  if (!param.spec.matrix()) return weight;
  const DType dtype = plan_.dtype(param, weight.stored);
  if (dtype == weight.stored) return weight;
  SourceWeight out = weight;
  out.original = weight.stored;
  out.stored = dtype;
  out.copy_row = nullptr;
  if (!r16_can_quantize(dtype) || (plan_.text == nullptr && plan_.importance == nullptr))
    return out;
  // The matrix is quantized once, when its first row is asked for.
  auto codes = std::make_shared<std::vector<std::byte>>();
  out.copy_row = [this, codes, param = &param, dtype](int64_t row, const R16& matrix,
                                                      std::byte* to) -> Status {
    if (codes->empty()) {
      LOOM_ASSIGN(const SourceWeight values, finite_weight(inner_, *param));
      LOOM_ASSIGN(*codes, quantize_matrix(values, *param, dtype, plan_));
    }
    r16_copy_row(matrix, codes->data(), row, to);
    return {};
  };
  return out;
}

}  // namespace

Result<std::vector<std::byte>> quantize_matrix(const SourceWeight& weight, const Param& param,
                                               DType dtype, const QuantizePlan& plan) {
  const int64_t rows = param.spec.shape[0], cols = param.spec.shape[1];
  const R16 g = r16_geometry(dtype, rows, cols);
  std::vector<std::byte> codes(static_cast<size_t>(g.bytes()));
  std::vector<float> values(static_cast<size_t>(std::min(kBatch, rows) * cols));
  TensorRange range;
  const auto batches = [&](auto&& body) -> Status {
    for (int64_t first = 0; first < rows; first += kBatch) {
      const int64_t count = std::min(kBatch, rows - first);
      LOOM_TRY(weight.rows(first, count, values.data()));
      body(first, count);
    }
    return {};
  };
  LOOM_TRY(batches([&](int64_t, int64_t count) {
    const TensorRange part = tensor_range(values.data(), count * cols);
    range.min = std::min(range.min, part.min);
    range.max = std::max(range.max, part.max);
  }));
  LOOM_ASSIGN(const Weighting weighting, weighting_of(param, plan));
  const ErrorWeights errors = weighting.view();
  LOOM_TRY(batches([&](int64_t first, int64_t count) {
    plan.pool->run([&](int lane, int lanes) {
      for (int64_t r = lane * kR16Rows; r < count; r += lanes * kR16Rows) {
        r16_quantize(g, values.data() + r * cols, first + r, std::min(kR16Rows, count - r), range,
                     errors, codes.data());
      }
    });
  }));
  return codes;
}

std::unique_ptr<ModelSource> quantized_source(const ModelSource& source, QuantizePlan plan) {
  return std::make_unique<QuantizedSource>(source, std::move(plan));
}

}  // namespace loom::core
