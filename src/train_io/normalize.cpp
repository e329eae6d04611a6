// Shifting and scaling of inputs: see dataset_files.hpp. Sums are in double, in the order of the
// samples, so the numbers are the same everywhere.
#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "train_io/dataset_files.hpp"

namespace loom::core {
namespace {

struct Column {
  double mean = 0, deviation = 0, min = 0, max = 0;
};

Column column_of(const Dataset& data, size_t col, size_t each) {
  Column c;
  c.min = c.max = static_cast<double>(data.inputs[col]);
  const auto n = static_cast<double>(data.samples);
  for (size_t i = col; i < data.inputs.size(); i += each) {
    const auto value = static_cast<double>(data.inputs[i]);
    c.mean += value / n;
    c.min = std::min(c.min, value);
    c.max = std::max(c.max, value);
  }
  for (size_t i = col; i < data.inputs.size(); i += each) {
    const double away = static_cast<double>(data.inputs[i]) - c.mean;
    c.deviation += away * away / n;
  }
  c.deviation = std::sqrt(c.deviation);
  return c;
}

}  // namespace

Normalization find_normalization(const Dataset& data, NormalizeKind kind) {
  Normalization out;
  if (kind == NormalizeKind::none || data.inputs.empty()) return out;
  const size_t each = data.inputs.size() / static_cast<size_t>(data.samples);
  for (size_t col = 0; col < each; ++col) {
    const Column c = column_of(data, col, each);
    const bool range = kind == NormalizeKind::range;
    const double width = range ? c.max - c.min : c.deviation;
    out.shift.push_back(static_cast<float>(range ? c.min : c.mean));
    out.scale.push_back(width > 1e-12 ? static_cast<float>(1.0 / width) : 1.0f);  // a constant
  }
  return out;
}

Status normalize(Dataset& data, const Normalization& normalization) {
  if (normalization.empty()) return {};
  if (data.inputs.empty()) return invalid("ids cannot be normalized");
  const size_t each = normalization.shift.size();
  if (data.inputs.size() != each * static_cast<size_t>(data.samples))
    return invalid(cat("normalization of ", each, " values for samples of another size"));
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    data.inputs[i] =
        (data.inputs[i] - normalization.shift[i % each]) * normalization.scale[i % each];
  }
  return {};
}

}  // namespace loom::core
