#include "convert/quantize/target_bits.hpp"

#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "bridge/finite_weight.hpp"
#include "dtype/r16/r16.hpp"
#include "llm/decoder_role.hpp"
#include "llm/sessions/perplexity.hpp"

namespace loom::core {
namespace {

// From the fewest bits to the most.
constexpr DType kTypes[] = {DType::q2_k, DType::q3_k, DType::q4_k,
                            DType::q5_k, DType::q6_k, DType::q8_0};
constexpr size_t kCount = std::size(kTypes);
constexpr size_t kProbed = 1;    // the type whose loss is measured
constexpr int64_t kWindows = 2;  // that are read for a measurement
constexpr int64_t kRows = 16;

struct Matrix {
  size_t param = 0;
  int64_t weights = 0;
  DType types[kCount] = {};
  double bytes[kCount] = {}, loss[kCount] = {};
  size_t chosen = 0;
};

class Search {
 public:
  Search(const ModelSource& source, TextMoments& text, const TargetOptions& options)
      : source_(source), text_(text), options_(options) {}

  Status measure();
  Result<std::unordered_map<std::string, DType>> choose();

 private:
  // Squared errors of a type, weighted by `means`; the probed type stays in the network.
  Status measure(Matrix& m, const std::vector<float>* means);
  Result<double> divergence();

  const ModelSource& source_;
  TextMoments& text_;
  const TargetOptions& options_;
  std::vector<Matrix> matrices_;
  std::vector<float> logits_;  // of the model as it is
};

Result<double> Search::divergence() {
  double sum = 0;
  size_t at = 0, rows = 0;
  LOOM_TRY(text_.logits(kWindows, [&](const float* row, int64_t n) {
    const auto count = static_cast<size_t>(n);
    sum += kl_divergence(std::span(logits_).subspan(at, count), std::span(row, count));
    at += count;
    ++rows;
  }));
  return sum / static_cast<double>(rows);
}

Status Search::measure(Matrix& m, const std::vector<float>* means) {
  const Param& param = text_.network().params()[m.param];
  const int64_t rows = param.spec.shape[0], cols = param.spec.shape[1];
  LOOM_ASSIGN(const SourceWeight weight, finite_weight(source_, param));
  std::vector<float> values(static_cast<size_t>(kRows * cols)), decoded = values;
  std::vector<std::byte> packed;
  const R16 own = r16_geometry(param.tensor.dtype, rows, cols);
  const std::vector<std::byte> before(param.tensor.data, param.tensor.data + own.bytes());
  for (int64_t first = 0; first < rows; first += kRows) {
    const int64_t count = std::min(kRows, rows - first);
    LOOM_TRY(weight.rows(first, count, values.data()));
    for (size_t t = kCount; t-- > 0;) {
      const R16 g = r16_geometry(m.types[t], count, cols);
      packed.resize(static_cast<size_t>(g.bytes()));
      r16_pack(g, values.data(), 0, count, ScaleScope::per_row, {}, packed.data());
      for (int64_t r = 0; r < count; ++r) {
        r16_decode(g, packed.data(), r, 0, cols, decoded.data() + r * cols);
        for (int64_t k = 0; k < cols; ++k) {
          const auto i = static_cast<size_t>(r * cols + k);
          const double d = static_cast<double>(values[i]) - static_cast<double>(decoded[i]);
          const float by = means != nullptr ? (*means)[static_cast<size_t>(k)] : 1.0f;
          m.loss[t] += static_cast<double>(by) * d * d;
        }
      }
      if (t == kProbed)
        r16_pack(own, decoded.data(), first, count, ScaleScope::per_row, {}, param.tensor.data);
    }
  }
  LOOM_ASSIGN(const double measured, divergence());
  std::copy(before.begin(), before.end(), param.tensor.data);
  const double by = m.loss[kProbed] > 0 ? measured / m.loss[kProbed] : 0;
  for (double& loss : m.loss) loss *= by;
  return {};
}

Status Search::measure() {
  LOOM_ASSIGN(const Importance importance, text_.importance());
  LOOM_TRY(text_.logits(
      kWindows, [&](const float* row, int64_t n) { logits_.insert(logits_.end(), row, row + n); }));
  const std::vector<Param>& params = text_.network().params();
  for (size_t p = 0; p < params.size(); ++p) {
    if (!params[p].spec.matrix()) continue;
    const DecoderRole role = decoder_piece(params[p], source_.config).role;
    if (is_router(role) || role == DecoderRole::positions) continue;
    Matrix m;
    m.param = p;
    const Shape& shape = params[p].spec.shape;
    m.weights = shape.count();
    for (size_t t = 0; t < kCount; ++t) {
      m.types[t] = options_.written(kTypes[t], shape[1]);
      m.bytes[t] = static_cast<double>(r16_geometry(m.types[t], shape[0], shape[1]).bytes());
    }
    matrices_.push_back(m);
  }
  for (size_t i = 0; i < matrices_.size(); ++i) {
    if (options_.progress &&
        !options_.progress(static_cast<int64_t>(i), static_cast<int64_t>(matrices_.size())))
      return make_error(Code::cancelled, "the search for types was stopped");
    const auto found = importance.means.find(params[matrices_[i].param].path);
    LOOM_TRY(measure(matrices_[i], found == importance.means.end() ? nullptr : &found->second));
  }
  return {};
}

// Upgrades the matrix that loses least per byte, until nothing fits.
Result<std::unordered_map<std::string, DType>> Search::choose() {
  double used = 0, most = 0, weights = 0;
  for (const Matrix& m : matrices_) {
    used += m.bytes[0];
    most += m.bytes[kCount - 1];
    weights += static_cast<double>(m.weights);
  }
  const double room = options_.bits * weights / 8;
  if (room < used || room > most)
    return invalid(cat("target_bits is ", options_.bits, ", must be from ", used * 8 / weights,
                       " to ", most * 8 / weights, " for this model"));
  while (true) {
    Matrix* best = nullptr;
    size_t to = 0;
    double gain = 0;
    for (Matrix& m : matrices_) {
      for (size_t t = m.chosen + 1; t < kCount; ++t) {
        const double bytes = m.bytes[t] - m.bytes[m.chosen];
        if (used + bytes > room) continue;
        const double by = bytes > 0 ? (m.loss[m.chosen] - m.loss[t]) / bytes : 0;
        if (best != nullptr && by <= gain) continue;
        best = &m, to = t, gain = by;
      }
    }
    if (best == nullptr) break;
    used += best->bytes[to] - best->bytes[best->chosen];
    best->chosen = to;
  }
  std::unordered_map<std::string, DType> out;
  for (const Matrix& m : matrices_) out[text_.network().params()[m.param].path] = m.types[m.chosen];
  return out;
}

}  // namespace

Result<std::unordered_map<std::string, DType>> types_for_bits(const ModelSource& source,
                                                              TextMoments& text,
                                                              const TargetOptions& options) {
  Search search(source, text, options);
  LOOM_TRY(search.measure());
  return search.choose();
}

}  // namespace loom::core
