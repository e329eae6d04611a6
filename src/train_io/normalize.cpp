// Shifting and scaling of inputs: see dataset_files.hpp. Sums are in double, in the order of the
// samples, so the numbers are the same everywhere.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.hpp"
#include "train_io/dataset_files.hpp"

namespace loom::core {
namespace {

struct Column {
  double mean = 0, deviation = 0, min = 0, max = 0;
  double count = 0;  // of values
  bool seen = false;
};

// The number of values of a sample before its end.
size_t real_values(const Dataset& data, int64_t i, size_t width) {
  if (data.lengths.empty()) return width;
  return width / static_cast<size_t>(data.sample[0]) *
         static_cast<size_t>(data.lengths[static_cast<size_t>(i)]);
}

// Calls add(value, column) for all values that are not padding, sample by sample.
template <class F>
Status each_input(const Dataset& data, size_t width, const F& add) {
  std::vector<float> row(width);
  for (int64_t i = 0; i < data.samples; ++i) {
    LOOM_TRY(data.read_inputs(i, row.data()));
    for (size_t col = 0; col < real_values(data, i, width); ++col)
      add(static_cast<double>(row[col]), col);
  }
  return {};
}

Result<std::vector<Column>> columns_of(const Dataset& data, size_t width) {
  std::vector<Column> columns(width);
  for (int64_t i = 0; i < data.samples; ++i) {
    for (size_t col = 0; col < real_values(data, i, width); ++col) ++columns[col].count;
  }
  LOOM_TRY(each_input(data, width, [&](double value, size_t col) {
    Column& c = columns[col];
    if (!std::exchange(c.seen, true)) c.min = c.max = value;
    c.mean += value / c.count;
    c.min = std::min(c.min, value);
    c.max = std::max(c.max, value);
  }));
  LOOM_TRY(each_input(data, width, [&](double value, size_t col) {
    const double away = value - columns[col].mean;
    columns[col].deviation += away * away / columns[col].count;
  }));
  for (Column& c : columns) c.deviation = std::sqrt(c.deviation);
  return columns;
}

// Another source's samples, shifted and scaled.
class NormalizedSource : public InputSource {
 public:
  NormalizedSource(std::shared_ptr<const InputSource> from, Normalization normalization)
      : from_(std::move(from)), normalization_(std::move(normalization)) {}

  Status read(int64_t row, float* to) const override {
    LOOM_TRY(from_->read(row, to));
    for (size_t i = 0; i < normalization_.shift.size(); ++i)
      to[i] = (to[i] - normalization_.shift[i]) * normalization_.scale[i];
    return {};
  }

 private:
  std::shared_ptr<const InputSource> from_;
  Normalization normalization_;
};

}  // namespace

Result<Normalization> find_normalization(const Dataset& data, Normalize kind) {
  Normalization out;
  if (kind == Normalize::none || !data.has_numbers()) return out;
  const auto each = static_cast<size_t>(data.sample.rank() == 0 ? 1 : data.sample.count());
  LOOM_ASSIGN(const std::vector<Column> columns, columns_of(data, each));
  for (const Column& c : columns) {
    const bool range = kind == Normalize::range;
    const double width = range ? c.max - c.min : c.deviation;
    out.shift.push_back(static_cast<float>(range ? c.min : c.mean));
    out.scale.push_back(width > 1e-12 ? static_cast<float>(1.0 / width) : 1.0f);  // a constant
  }
  return out;
}

Status normalize(Dataset& data, const Normalization& normalization) {
  if (normalization.empty()) return {};
  if (!data.has_numbers()) return invalid("ids cannot be normalized");
  const size_t each = normalization.shift.size();
  if (data.source != nullptr && data.sample.count() == static_cast<int64_t>(each)) {
    data.source = std::make_shared<NormalizedSource>(data.source, normalization);
    return {};
  }
  if (data.inputs.size() != each * static_cast<size_t>(data.samples))
    return invalid(cat("normalization of ", each, " values for samples of another size"));
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    data.inputs[i] =
        (data.inputs[i] - normalization.shift[i % each]) * normalization.scale[i % each];
  }
  data.clear_padding();
  return {};
}

}  // namespace loom::core
