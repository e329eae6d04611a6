// Telemetry of a run.
#include "loom/telemetry.hpp"

#include "capi/support.hpp"

using namespace loom;
using namespace loom::capi;

namespace {

// Calls f(telemetry), a Status.
template <class F>
loom_status with(const loom_telemetry* telemetry, F&& f) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const std::shared_ptr<Telemetry>* object, object_of(telemetry));
    return f(**object);
  });
}

Status line_to_caller(loom_line_fn call, void* user, std::string_view line) {
  if (call(user, std::string(line).c_str()) == 0) return {};
  return Error{Code::cancelled, "the function of the caller takes no more lines", {}};
}

}  // namespace

extern "C" {

loom_status loom_telemetry_open(const loom_telemetry_options* options, loom_telemetry** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const loom_telemetry_options from, options_of(options, "loom_telemetry_options"));
    TelemetryOptions how;
    how.json_lines = text_or(from.json_lines, "");
    how.tensorboard = text_or(from.tensorboard, "");
    how.prometheus = text_or(from.prometheus, "");
    how.http = text_or(from.http, "");
    how.udp = text_or(from.udp, "");
    how.tanhi = text_or(from.tanhi, "");
    how.queue = non_zero(from.queue, how.queue);
    if (from.on_line != nullptr) {
      how.on_line = [call = from.on_line, user = from.user](std::string_view line) {
        return line_to_caller(call, user, line);
      };
    }
    LOOM_ASSIGN(Telemetry opened, Telemetry::open(how));
    return give(out, std::make_shared<Telemetry>(std::move(opened)));
  });
}

loom_status loom_telemetry_scalar(loom_telemetry* telemetry, const char* tag, int64_t step,
                                  double value) {
  return with(telemetry, [&](Telemetry& sink) -> Status {
    LOOM_ASSIGN(const std::string name, text_of(tag, "tag"));
    sink.scalar(name, step, value);
    return {};
  });
}

loom_status loom_telemetry_histogram(loom_telemetry* telemetry, const char* tag, int64_t step,
                                     const loom_tensor* values) {
  return with(telemetry, [&](Telemetry& sink) -> Status {
    LOOM_ASSIGN(const std::string name, text_of(tag, "tag"));
    LOOM_ASSIGN(const Tensor tensor, tensor_of(values, "values"));
    return sink.histogram(name, step, tensor);
  });
}

loom_status loom_telemetry_picture(loom_telemetry* telemetry, const loom_network* network) {
  return with(telemetry, [&](Telemetry& sink) -> Status {
    LOOM_ASSIGN(const Network* object, object_of(network));
    sink.picture(*object);
    return {};
  });
}

loom_status loom_telemetry_weights(loom_telemetry* telemetry, int64_t step,
                                   const loom_network* network) {
  return with(telemetry, [&](Telemetry& sink) -> Status {
    LOOM_ASSIGN(const Network* object, object_of(network));
    return sink.weights(step, *object);
  });
}

loom_status loom_telemetry_begin_run(loom_telemetry* telemetry, const char* label) {
  return with(telemetry, [&](Telemetry& sink) -> Status {
    LOOM_ASSIGN(const std::string name, text_of(label, "label"));
    sink.begin_run(name);
    return {};
  });
}

loom_status loom_telemetry_get_info(const loom_telemetry* telemetry, loom_telemetry_info* out) {
  return with(telemetry, [&](Telemetry& sink) -> Status {
    loom_telemetry_info info{};
    info.dropped = sink.dropped();
    info.passes_dropped = sink.passes_dropped();
    return give_report(out, info, "loom_telemetry_info");
  });
}

loom_status loom_telemetry_close(loom_telemetry* telemetry, double seconds) {
  return with(telemetry, [&](Telemetry& sink) -> Status {
    constexpr double kMax = 1e6;  // seconds
    if (!(seconds >= 0 && seconds <= kMax))
      return invalid("'seconds' is " + std::to_string(seconds) + ", must be 0 to 1000000");
    const double most = seconds == 0 ? 5 : seconds;
    return sink.close(std::chrono::milliseconds(static_cast<int64_t>(most * 1000)));
  });
}

void loom_telemetry_free(loom_telemetry* telemetry) {
  free_handle(telemetry);
}

}  // extern "C"
