// How far answers are off, and adaptation while a network runs.
#include "loom/evaluation.hpp"

#include "capi/json_text.hpp"
#include "capi/options/read_options.hpp"
#include "capi/support.hpp"

using namespace loom;
using namespace loom::capi;

namespace {

Status give_indices(loom_array** out, const std::vector<DeviationMetrics::Sample>& samples) {
  std::vector<int64_t> indices;
  for (const DeviationMetrics::Sample& sample : samples) indices.push_back(sample.index);
  LOOM_ASSIGN(Tensor made, Tensor::copy(indices, {static_cast<int64_t>(indices.size())}));
  return give(out, std::move(made));
}

void add_window(JsonText& json, const AdaptationWindow& w) {
  json.open('{');
  json.add("outputs", w.outputs);
  json.add("right", w.right);
  json.add("accuracy", w.accuracy);
  json.add("outputs_per_second", w.outputs_per_second);
  json.add("task", w.task);
  json.close('}');
}

void add_change(JsonText& json, const TaskChange& c) {
  json.open('{');
  json.add("at", c.at);
  json.add("from", c.from);
  json.add("to", c.to);
  json.add("window_before", c.window_before);
  json.add("window_after", c.window_after);
  json.add("before", c.before);
  json.add("after", c.after);
  json.add("recovery_windows", c.recovery_windows);
  json.add("recovery_seconds", c.recovery_seconds);
  json.close('}');
}

std::string report_text(const AdaptationReport& report) {
  JsonText json;
  json.open('{');
  json.add("outputs", report.outputs);
  json.add("average", report.average);
  json.add("variance", report.variance);
  json.add("least", report.least);
  json.open('[', "windows");
  for (const AdaptationWindow& window : report.windows) add_window(json, window);
  json.close(']');
  json.open('[', "changes");
  for (const TaskChange& change : report.changes) add_change(json, change);
  json.close(']');
  json.close('}');
  return json.text();
}

}  // namespace

extern "C" {

loom_status loom_deviation_create(loom_deviation** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    return give(out, DeviationMetrics());
  });
}

loom_status loom_deviation_add(loom_deviation* deviation, const double* answers,
                               const double* truths, int64_t count) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(DeviationMetrics * object, object_of(deviation));
    LOOM_ASSIGN(const auto values, list_of(answers, count, "answers"));
    LOOM_ASSIGN(const auto expected, list_of(truths, count, "truths"));
    for (size_t i = 0; i < values.size(); ++i) object->add(values[i], expected[i]);
    return {};
  });
}

loom_status loom_deviation_add_classes(loom_deviation* deviation, const int64_t* called,
                                       const int64_t* is, int64_t count) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(DeviationMetrics * object, object_of(deviation));
    LOOM_ASSIGN(const auto values, list_of(called, count, "called"));
    LOOM_ASSIGN(const auto expected, list_of(is, count, "is"));
    for (size_t i = 0; i < values.size(); ++i) object->add_class(values[i], expected[i]);
    return {};
  });
}

loom_status loom_deviation_json(const loom_deviation* deviation, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const DeviationMetrics* object, object_of(deviation));
    return give_text(out, object->json());
  });
}

loom_status loom_deviation_from_json(const char* text, loom_deviation** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string json, text_of(text, "text"));
    LOOM_ASSIGN(DeviationMetrics made, DeviationMetrics::from_json(json));
    return give(out, std::move(made));
  });
}

loom_status loom_deviation_bucket(const loom_deviation* deviation, const char* name,
                                  loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const DeviationMetrics* object, object_of(deviation));
    LOOM_ASSIGN(const std::string bucket, text_of(name, "name"));
    LOOM_ASSIGN(const auto samples, object->in_bucket(bucket));
    return give_indices(out, samples);
  });
}

loom_status loom_deviation_worst(const loom_deviation* deviation, int64_t count, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const DeviationMetrics* object, object_of(deviation));
    return give_indices(out, object->worst(count));
  });
}

void loom_deviation_free(loom_deviation* deviation) {
  free_handle(deviation);
}

loom_status loom_adaptation_create(const loom_adaptation_options* options, loom_adaptation** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const loom_adaptation_options from, options_of(options, "loom_adaptation_options"));
    LOOM_ASSIGN(const AdaptationOptions how, read_options(from));
    LOOM_ASSIGN(AdaptationTracker tracker, AdaptationTracker::create(how));
    return give(out, std::move(tracker));
  });
}

loom_status loom_adaptation_schedule(loom_adaptation* adaptation, double at, int64_t task) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(AdaptationTracker * object, object_of(adaptation));
    return object->schedule(at, task);
  });
}

loom_status loom_adaptation_start(loom_adaptation* adaptation, int64_t task) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(AdaptationTracker * object, object_of(adaptation));
    object->start(task);
    return {};
  });
}

loom_status loom_adaptation_record(loom_adaptation* adaptation, int32_t right, int64_t* task,
                                   int32_t* over) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(AdaptationTracker * object, object_of(adaptation));
    if (right < -1 || right > 1) return invalid("'right' is not 1, 0, or -1 to count none");
    const int64_t now = right < 0 ? object->task() : object->record(right == 1);
    if (task != nullptr) *task = now;
    if (over != nullptr) *over = object->over() ? 1 : 0;
    return {};
  });
}

loom_status loom_adaptation_json(const loom_adaptation* adaptation, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const AdaptationTracker* object, object_of(adaptation));
    return give_text(out, report_text(object->report()));
  });
}

void loom_adaptation_free(loom_adaptation* adaptation) {
  free_handle(adaptation);
}

}  // extern "C"
