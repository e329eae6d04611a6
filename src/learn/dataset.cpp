#include "learn/dataset.hpp"

#include <algorithm>
#include <numeric>

#include "base/rng.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

int64_t per_sample(const Dataset& d) {
  return d.sample.rank() == 0 ? 1 : d.sample.count();
}

template <class T>
Status check_size(std::string_view what, const std::vector<T>& values, int64_t samples,
                  int64_t each) {
  if (static_cast<int64_t>(values.size()) == samples * each) return {};
  return invalid(
      cat("the dataset has ", values.size(), " ", what, ", must have ", samples, " x ", each));
}

Status check_finite(std::string_view what, const std::vector<float>& values, int64_t each) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] - values[i] == 0.0f) continue;
    return invalid(cat("sample ", static_cast<int64_t>(i) / each, ": ", what, " ",
                       static_cast<int64_t>(i) % each, " is not finite"));
  }
  return {};
}

template <class T>
std::vector<T> chosen(const std::vector<T>& all, int64_t samples, std::span<const int64_t> rows) {
  std::vector<T> out;
  if (all.empty() || samples == 0) return out;
  const int64_t each = static_cast<int64_t>(all.size()) / samples;
  out.reserve(rows.size() * static_cast<size_t>(each));
  for (const int64_t row : rows)
    out.insert(out.end(), all.begin() + row * each, all.begin() + (row + 1) * each);
  return out;
}

// A row is never moved back, so none is written over before it is read.
template <class T>
void keep_rows(std::vector<T>& values, int64_t samples, std::span<const int64_t> rows) {
  const int64_t each = samples > 0 ? static_cast<int64_t>(values.size()) / samples : 0;
  T* to = values.data();
  for (const int64_t row : rows) {
    const T* from = values.data() + row * each;
    if (from != to) std::copy_n(from, each, to);
    to += each;
  }
  values.resize(static_cast<size_t>(static_cast<int64_t>(rows.size()) * each));
}

}  // namespace

Status Dataset::check_inputs() const {
  if (samples < 1) return invalid("the dataset is empty; give at least one sample");
  const int64_t each = per_sample(*this);
  if (!ids.empty()) return check_size("ids", ids, samples, each);
  LOOM_TRY(check_size("input values", inputs, samples, each));
  return check_finite("input", inputs, each);
}

Status Dataset::check() const {
  LOOM_TRY(check_inputs());
  if (has_labels()) {
    if (static_cast<int64_t>(labels.size()) % samples != 0) {
      return invalid(cat("the dataset has ", labels.size(), " labels for ", samples, " samples"));
    }
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] >= 0 && labels[i] < classes) continue;
      return make_error(Code::out_of_range,
                        cat("sample ", static_cast<int64_t>(i) / labels_per_sample(), ": label ",
                            labels[i], " must be from 0 to ", classes - 1));
    }
    return {};
  }
  if (outputs < 1) return invalid("the dataset has no targets");
  LOOM_TRY(check_size("target values", targets, samples, outputs));
  return check_finite("target", targets, outputs);
}

Dataset Dataset::select(std::span<const int64_t> rows) const {
  Dataset d;
  d.samples = static_cast<int64_t>(rows.size());
  d.sample = sample;
  d.outputs = outputs;
  d.classes = classes;
  d.inputs = chosen(inputs, samples, rows);
  d.ids = chosen(ids, samples, rows);
  d.targets = chosen(targets, samples, rows);
  d.labels = chosen(labels, samples, rows);
  return d;
}

void Dataset::keep(std::span<const int64_t> rows) {
  keep_rows(inputs, samples, rows);
  keep_rows(ids, samples, rows);
  keep_rows(targets, samples, rows);
  keep_rows(labels, samples, rows);
  samples = static_cast<int64_t>(rows.size());
}

uint64_t Dataset::bytes() const {
  return (inputs.size() + targets.size()) * sizeof(float) +
         (ids.size() + labels.size()) * sizeof(int32_t);
}

// Fisher and Yates with one number per place.
std::vector<int64_t> permutation(int64_t n, uint64_t seed, uint64_t stream) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  const Rng rng(seed, stream);
  for (int64_t i = n - 1; i > 0; --i) {
    const uint64_t wide = (static_cast<uint64_t>(rng.bits(static_cast<uint64_t>(2 * i))) << 32) |
                          rng.bits(static_cast<uint64_t>(2 * i + 1));
    std::swap(order[static_cast<size_t>(i)],
              order[static_cast<size_t>(wide % static_cast<uint64_t>(i + 1))]);
  }
  return order;
}

}  // namespace loom::core
