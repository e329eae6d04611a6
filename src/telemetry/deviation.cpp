// Deviation of answers: loom::DeviationMetrics.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/result.hpp"
#include "base/text.hpp"
#include "io/files/file.hpp"
#include "io/json/json.hpp"
#include "loom/evaluation.hpp"

namespace loom {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct BucketBound {
  const char* name;
  double above, upto;
};
constexpr BucketBound kBucketBounds[] = {
    {"0-10%", -1, 10},  {"10-20%", 10, 20},   {"20-30%", 20, 30},       {"30-40%", 30, 40},
    {"40-50%", 40, 50}, {"50-100%", 50, 100}, {"100%+", 100, kInfinite}};

double deviation_of(double answer, double truth) {
  constexpr double kTiny = 1e-10;
  if (!std::isfinite(answer) || !std::isfinite(truth)) return kInfinite;
  const double distance = std::fabs(answer - truth);
  return 100 * (std::fabs(truth) < kTiny ? distance : distance / std::fabs(truth));
}

bool is_valid(const DeviationMetrics::Sample& s) {
  return std::isfinite(s.answer) && std::isfinite(s.truth);
}

size_t bucket_of(double deviation) {
  size_t at = 0;
  while (at + 1 < std::size(kBucketBounds) && deviation > kBucketBounds[at].upto) ++at;
  return at;
}

// Values that JSON cannot express.
core::JsonValue json_number(double value) {
  constexpr double kMax = 1e9;
  if (std::isnan(value)) return core::JsonValue::real(0);
  if (std::isinf(value)) return core::JsonValue::real(value > 0 ? kMax : -kMax);
  return core::JsonValue::real(value);
}

core::JsonValue sample_json(const DeviationMetrics::Sample& s) {
  core::JsonValue one = core::JsonValue::object();
  one.add("answer", json_number(s.answer));
  one.add("truth", json_number(s.truth));
  one.add("deviation", json_number(s.deviation));
  if (!is_valid(s)) one.add("valid", core::JsonValue::boolean(false));
  return one;
}

Result<double> number_of(const core::JsonValue& of, std::string_view key, std::string_view where) {
  const core::JsonValue* value = of.find(key);
  if (value == nullptr)
    return core::bad_file(core::cat("a sample has no \"", key, "\""), std::string(where),
                          of.offset());
  return value->as_double(core::cat(where, ": ", key));
}

}  // namespace

void DeviationMetrics::add(double answer, double truth) {
  samples_.push_back(
      {static_cast<int64_t>(samples_.size()), answer, truth, deviation_of(answer, truth)});
}

void DeviationMetrics::add_class(int64_t called, int64_t is) {
  samples_.push_back({static_cast<int64_t>(samples_.size()), static_cast<double>(called),
                      static_cast<double>(is), called == is ? 0.0 : 100.0});
}

DeviationSummary DeviationMetrics::summary() const {
  DeviationSummary out;
  int64_t right = 0;
  for (const Sample& s : samples_) {
    ++out.samples;
    out.failures += s.deviation > 100 ? 1 : 0;
    right += s.deviation == 0 ? 1 : 0;
    if (!is_valid(s)) {
      ++out.invalid;
      continue;
    }
    out.average += s.deviation;
    out.score += std::max(0.0, 100 - s.deviation);
  }
  if (out.samples == 0) return out;
  const auto n = static_cast<double>(out.samples);
  out.score /= n;
  out.accuracy = 100 * static_cast<double>(right) / n;
  if (out.samples > out.invalid) out.average /= static_cast<double>(out.samples - out.invalid);
  return out;
}

std::vector<DeviationBucket> DeviationMetrics::buckets() const {
  std::vector<DeviationBucket> out;
  for (const BucketBound& b : kBucketBounds)
    out.push_back({b.name, std::max(b.above, 0.0), b.upto, {}});
  for (const Sample& s : samples_) out[bucket_of(s.deviation)].samples.push_back(s.index);
  return out;
}

std::vector<DeviationMetrics::Sample> DeviationMetrics::worst(int64_t count) const {
  std::vector<Sample> all = samples_;
  std::ranges::stable_sort(all, std::greater<>(), &Sample::deviation);
  all.resize(std::min(all.size(), static_cast<size_t>(std::max<int64_t>(count, 0))));
  return all;
}

Result<std::vector<DeviationMetrics::Sample>> DeviationMetrics::in_bucket(
    std::string_view name) const {
  std::string names;
  for (size_t i = 0; i < std::size(kBucketBounds); ++i) {
    names += core::cat(i == 0 ? "" : ", ", kBucketBounds[i].name);
    if (name != kBucketBounds[i].name) continue;
    std::vector<Sample> out;
    for (const Sample& s : samples_) {
      if (bucket_of(s.deviation) == i) out.push_back(s);
    }
    return out;
  }
  return core::make_error(
      Code::not_found, core::cat("no bucket \"", core::printable(name), "\"; there are ", names));
}

std::string DeviationMetrics::json() const {
  const DeviationSummary sum = summary();
  core::JsonValue all = core::JsonValue::object(), counts = core::JsonValue::object();
  core::JsonValue list = core::JsonValue::array();
  all.add("samples", core::JsonValue::integer(sum.samples));
  all.add("invalid", core::JsonValue::integer(sum.invalid));
  all.add("failures", core::JsonValue::integer(sum.failures));
  all.add("score", json_number(sum.score));
  all.add("average_deviation", json_number(sum.average));
  all.add("accuracy", json_number(sum.accuracy));
  for (const DeviationBucket& b : buckets())
    counts.add(b.name, core::JsonValue::integer(static_cast<int64_t>(b.samples.size())));
  all.add("buckets", std::move(counts));
  for (const Sample& s : samples_) list.push(sample_json(s));
  all.add("results", std::move(list));
  return core::dump_json(all);
}

Result<DeviationMetrics> DeviationMetrics::from_json(std::string_view text,
                                                     std::string_view where) {
  LOOM_ASSIGN(const core::JsonValue all, core::parse_json(text, where));
  const core::JsonValue* list = all.find("results");
  if (list == nullptr || !list->is_array())
    return core::bad_file("deviations have a list \"results\"", std::string(where), all.offset());
  DeviationMetrics out;
  for (const core::JsonValue& one : list->elements()) {
    Sample s;
    s.index = static_cast<int64_t>(out.samples_.size());
    LOOM_ASSIGN(s.answer, number_of(one, "answer", where));
    LOOM_ASSIGN(s.truth, number_of(one, "truth", where));
    LOOM_ASSIGN(s.deviation, number_of(one, "deviation", where));
    if (s.deviation < 0) return core::bad_file("a deviation below 0", std::string(where));
    if (one.find("valid") != nullptr) {
      s.answer = std::numeric_limits<double>::quiet_NaN();
      s.deviation = kInfinite;
    }
    out.samples_.push_back(s);
  }
  return out;
}

Status DeviationMetrics::save(const std::string& path) const {
  const std::string text = json() + "\n";
  return core::write_file_atomic(path, std::as_bytes(std::span(text)));
}

Result<DeviationMetrics> DeviationMetrics::load(const std::string& path) {
  LOOM_ASSIGN(const std::string text, core::read_file(path));
  return from_json(text, path);
}

}  // namespace loom
