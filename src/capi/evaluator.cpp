// Graphs of ONNX and TFLite files, run unchanged.
#include "loom/evaluator.hpp"

#include <algorithm>

#include "capi/json_text.hpp"
#include "capi/support.hpp"

namespace {

using namespace loom;
using namespace loom::capi;

void add_values(JsonText& json, std::string_view name, const std::vector<ValueInfo>& values) {
  json.open('[', name);
  for (const ValueInfo& value : values) {
    json.open('{');
    json.add("name", value.name);
    json.add("type", value.type);
    if (value.known_rank) {
      json.open('[', "shape");
      for (const int64_t extent : value.shape) json.add({}, extent);
      json.close(']');
    } else {
      json.null("shape");
    }
    json.close('}');
  }
  json.close(']');
}

Status load(Result<Evaluator> made, loom_evaluator** out) {
  if (!made.ok()) return made.error();
  return give(out, *std::move(made));
}

}  // namespace

extern "C" {

loom_status loom_evaluator_load(loom_engine* engine, const char* path, loom_evaluator** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string from, text_of(path, "path"));
    LOOM_ASSIGN(const Engine on, engine_of(engine));
    return load(Evaluator::load(from, &on), out);
  });
}

loom_status loom_evaluator_load_memory(loom_engine* engine, const void* bytes, int64_t size,
                                       const char* name, loom_evaluator** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const FileBytes from, file_of(bytes, size, name, false));
    LOOM_ASSIGN(const Engine on, engine_of(engine));
    return load(Evaluator::load(from, &on), out);
  });
}

loom_status loom_evaluator_json(const loom_evaluator* evaluator, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Evaluator* object, object_of(evaluator));
    JsonText json;
    json.open('{');
    add_values(json, "inputs", object->inputs());
    add_values(json, "outputs", object->outputs());
    json.close('}');
    return give_text(out, json.text());
  });
}

loom_status loom_evaluator_run(const loom_evaluator* evaluator, const loom_tensor* inputs,
                               int64_t count, loom_port_fn sink, void* user) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const Evaluator* object, object_of(evaluator));
    if (sink == nullptr) return invalid("'sink' is null; give a callback");
    LOOM_ASSIGN(const auto from, list_of(inputs, count, "inputs"));
    std::vector<Tensor> values;
    for (const loom_tensor& one : from) {
      LOOM_ASSIGN(values.emplace_back(), tensor_of(&one, "inputs"));
    }
    LOOM_ASSIGN(const std::vector<Tensor> y, object->run(values));
    std::vector<PortInfo> ports(y.size());
    for (size_t i = 0; i < y.size(); ++i) {
      ports[i].name = object->outputs()[i].name;
      ports[i].shape = y[i].shape();
    }
    return hand_out(ports, y, true, sink, user);
  });
}

void loom_evaluator_free(loom_evaluator* evaluator) {
  free_handle(evaluator);
}

}  // extern "C"
