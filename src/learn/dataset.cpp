#include "learn/dataset.hpp"

#include "base/text.hpp"

namespace loom {
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
std::vector<T> part(const std::vector<T>& all, int64_t samples, int64_t first, int64_t count) {
  if (all.empty() || samples == 0) return {};
  const int64_t each = static_cast<int64_t>(all.size()) / samples;
  return {all.begin() + first * each, all.begin() + (first + count) * each};
}

}  // namespace

Status Dataset::check() const {
  if (samples < 1) return invalid("the dataset is empty; give at least one sample");
  const int64_t each = per_sample(*this);
  if (ids.empty()) {
    LOOM_TRY(check_size("input values", inputs, samples, each));
    LOOM_TRY(check_finite("input", inputs, each));
  } else {
    LOOM_TRY(check_size("ids", ids, samples, each));
  }
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

Dataset Dataset::slice(int64_t first, int64_t count) const {
  Dataset d;
  d.samples = count;
  d.sample = sample;
  d.outputs = outputs;
  d.classes = classes;
  d.inputs = part(inputs, samples, first, count);
  d.ids = part(ids, samples, first, count);
  d.targets = part(targets, samples, first, count);
  d.labels = part(labels, samples, first, count);
  return d;
}

void Dataset::truncate(int64_t count) {
  const auto cut = [&](auto& values) {
    values.resize(values.size() / static_cast<size_t>(samples) * static_cast<size_t>(count));
  };
  if (count >= samples) return;
  cut(inputs);
  cut(ids);
  cut(targets);
  cut(labels);
  samples = count;
}

}  // namespace loom
