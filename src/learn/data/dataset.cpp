#include "learn/data/dataset.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>

#include "base/numbers/rng.hpp"
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

Status check_finite(std::string_view what, const std::vector<float>& values, int64_t each,
                    const Dataset& d) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] - values[i] == 0.0f || d.of_padding(i, each)) continue;
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

Status Dataset::check_lengths() const {
  if (lengths.empty()) return {};
  LOOM_TRY(check_size("lengths", lengths, samples, 1));
  if (sample.rank() == 0 || source != nullptr)
    return invalid("lengths are for samples in memory that have an axis of positions");
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] >= 1 && lengths[i] <= sample[0]) continue;
    return make_error(Code::out_of_range, cat("sample ", i, ": its length ", lengths[i],
                                              " must be from 1 to ", sample[0]));
  }
  return {};
}

const ExtraInput* Dataset::extra_input(std::string_view name) const {
  for (const ExtraInput& input : more) {
    if (input.name == name) return &input;
  }
  return nullptr;
}

namespace {

Status check_more(const ExtraInput& input, int64_t samples) {
  const std::string what = cat("values of the input '", printable(input.name), "'");
  const int64_t each = input.sample.count();
  if (!input.ids.empty()) return check_size(what, input.ids, samples, each);
  LOOM_TRY(check_size(what, input.values, samples, each));
  for (size_t i = 0; i < input.values.size(); ++i) {
    if (input.values[i] - input.values[i] == 0.0f) continue;
    return invalid(cat("sample ", static_cast<int64_t>(i) / each, ": value ",
                       static_cast<int64_t>(i) % each, " of the input '", printable(input.name),
                       "' is not finite"));
  }
  return {};
}

}  // namespace

Status Dataset::check_inputs() const {
  for (const ExtraInput& input : more) LOOM_TRY(check_more(input, samples));
  if (samples < 1) return invalid("the dataset is empty; give at least one sample");
  LOOM_TRY(check_lengths());
  const int64_t each = per_sample(*this);
  if (source != nullptr) {
    if (static_cast<int64_t>(source_rows.size()) == samples) return {};
    return invalid(cat("the dataset has ", source_rows.size(), " files for ", samples, " samples"));
  }
  if (!ids.empty()) return check_size("ids", ids, samples, each);
  LOOM_TRY(check_size("input values", inputs, samples, each));
  return check_finite("input", inputs, each, *this);
}

namespace {

Status check_weights(const std::vector<float>& weights, int64_t samples) {
  if (weights.empty()) return {};
  LOOM_TRY(check_size("weights", weights, samples, 1));
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += static_cast<double>(weights[i]);
    if (weights[i] >= 0.0f && weights[i] - weights[i] == 0.0f) continue;
    return invalid(cat("sample ", i, ": its weight is ", weights[i], ", must be 0 or more"));
  }
  return sum > 0 ? Status{} : invalid("every sample has weight 0; one at least must count");
}

}  // namespace

Status Dataset::check() const {
  LOOM_TRY(check_inputs());
  LOOM_TRY(check_weights(weights, samples));
  return check_targets();
}

Status Dataset::check_targets() const {
  if (has_labels()) {
    if (static_cast<int64_t>(labels.size()) % samples != 0) {
      return invalid(cat("the dataset has ", labels.size(), " labels for ", samples, " samples"));
    }
    size_t left_out = 0;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (ignores(labels[i])) ++left_out;
      if (ignores(labels[i]) || (labels[i] >= 0 && labels[i] < classes)) continue;
      if (of_padding(i, labels_per_sample())) continue;
      return make_error(Code::out_of_range,
                        cat("sample ", static_cast<int64_t>(i) / labels_per_sample(), ": label ",
                            labels[i], " must be from 0 to ", classes - 1));
    }
    if (left_out == labels.size()) {
      return invalid(
          cat("every label is ", *ignored, ", which is ignored; one at least must count"));
    }
    return {};
  }
  if (outputs < 1) return invalid("the dataset has no targets");
  LOOM_TRY(check_size("target values", targets, samples, outputs));
  return check_finite("target", targets, outputs, *this);
}

void Dataset::labels_to_targets() {
  outputs = labels_per_sample();
  targets.assign(labels.begin(), labels.end());
  labels.clear();
  classes = 0;
}

Dataset Dataset::select(std::span<const int64_t> rows) const {
  Dataset d;
  d.samples = static_cast<int64_t>(rows.size());
  d.sample = sample;
  d.outputs = outputs;
  d.classes = classes;
  d.inputs = chosen(inputs, samples, rows);
  d.ids = chosen(ids, samples, rows);
  d.source = source;
  d.source_rows = chosen(source_rows, samples, rows);
  for (const ExtraInput& m : more)
    d.more.push_back(
        {m.name, m.sample, chosen(m.values, samples, rows), chosen(m.ids, samples, rows)});
  d.targets = chosen(targets, samples, rows);
  d.labels = chosen(labels, samples, rows);
  d.weights = chosen(weights, samples, rows);
  d.lengths = chosen(lengths, samples, rows);
  d.ignored = ignored;
  d.ordered = ordered;
  return d;
}

void Dataset::keep(std::span<const int64_t> rows) {
  keep_rows(inputs, samples, rows);
  keep_rows(ids, samples, rows);
  keep_rows(source_rows, samples, rows);
  for (ExtraInput& m : more) {
    keep_rows(m.values, samples, rows);
    keep_rows(m.ids, samples, rows);
  }
  keep_rows(targets, samples, rows);
  keep_rows(labels, samples, rows);
  keep_rows(weights, samples, rows);
  keep_rows(lengths, samples, rows);
  samples = static_cast<int64_t>(rows.size());
}

Status Dataset::read_inputs(int64_t i, float* to) const {
  if (source != nullptr) return source->read(source_rows[static_cast<size_t>(i)], to);
  const int64_t each = static_cast<int64_t>(inputs.size()) / samples;
  std::copy_n(inputs.data() + i * each, each, to);
  return {};
}

Status Dataset::read_inputs(std::span<const int64_t> order, int64_t first, int64_t count, float* to,
                            ThreadPool* pool) const {
  const int64_t each = per_sample(*this);
  const auto row_of = [&](int64_t i) { return order[static_cast<size_t>(first + i)]; };
  if (source == nullptr || pool == nullptr) {
    for (int64_t i = 0; i < count; ++i) LOOM_TRY(read_inputs(row_of(i), to + i * each));
    return {};
  }
  std::vector<Status> done(static_cast<size_t>(count));
  std::atomic<int64_t> next = 0;
  pool->run([&](int /*lane*/, int /*lanes*/) {
    for (int64_t i = next++; i < count; i = next++)
      done[static_cast<size_t>(i)] = read_inputs(row_of(i), to + i * each);
  });
  for (const Status& status : done) LOOM_TRY(status);
  return {};
}

bool Dataset::of_padding(size_t i, int64_t each) const {
  if (lengths.empty() || each % sample[0] != 0) return false;
  const auto at = static_cast<int64_t>(i);
  return pads(at / each, at % each / (each / sample[0]), sample[0]);
}

std::vector<int64_t> Dataset::lengths_of(std::span<const int64_t> order, int64_t first,
                                         int64_t count) const {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count && !lengths.empty(); ++i)
    out.push_back(lengths[static_cast<size_t>(order[static_cast<size_t>(first + i)])]);
  return out;
}

void Dataset::clear_padding() {
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int64_t each = sample.count(), position = each / sample[0];
    const int64_t from = static_cast<int64_t>(i) * each + lengths[i] * position;
    const int64_t count = (sample[0] - lengths[i]) * position;
    if (!inputs.empty()) std::fill_n(inputs.begin() + from, count, 0.0f);
    if (!ids.empty()) std::fill_n(ids.begin() + from, count, 0);
  }
}

uint64_t Dataset::bytes() const {
  uint64_t others = 0;
  for (const ExtraInput& m : more) others += (m.values.size() + m.ids.size()) * sizeof(float);
  return others + (inputs.size() + targets.size() + weights.size()) * sizeof(float) +
         source_rows.size() * sizeof(int64_t) +
         (ids.size() + labels.size() + lengths.size()) * sizeof(int32_t);
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

std::vector<int64_t> balanced_order(const Dataset& data, uint64_t seed, int64_t epoch) {
  constexpr uint64_t kSamples = uint64_t{1} << 50, kPositions = uint64_t{1} << 51;
  const auto turn = static_cast<uint64_t>(epoch);
  std::map<int32_t, std::vector<int64_t>> groups;
  for (const int64_t row : permutation(data.samples, seed, kSamples + turn)) {
    const int32_t label = data.labels[static_cast<size_t>(row)];
    if (!data.ignores(label)) groups[label].push_back(row);
  }
  std::vector<const std::vector<int64_t>*> classes;
  for (const auto& [label, rows] : groups) classes.push_back(&rows);
  std::vector<int64_t> order(static_cast<size_t>(data.samples));
  const std::vector<int64_t> positions = permutation(data.samples, seed, kPositions + turn);
  for (size_t i = 0; i < order.size(); ++i) {
    const std::vector<int64_t>& rows = *classes[i % classes.size()];
    order[static_cast<size_t>(positions[i])] = rows[(i / classes.size()) % rows.size()];
  }
  return order;
}

std::vector<float> balanced_weights(const Dataset& data, int64_t classes) {
  std::vector<int64_t> counts(static_cast<size_t>(classes));
  int64_t all = 0, there = 0;
  for (const int32_t label : data.labels) {
    if (data.ignores(label)) continue;
    if (counts[static_cast<size_t>(label)]++ == 0) ++there;
    ++all;
  }
  std::vector<float> weights;
  for (const int64_t n : counts) {
    const double even = static_cast<double>(all) / static_cast<double>(there);
    weights.push_back(n > 0 ? static_cast<float>(even / static_cast<double>(n)) : 1.0f);
  }
  return weights;
}

}  // namespace loom::core
