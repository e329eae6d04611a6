// Networks and their sessions.
#include "capi/reading.hpp"
#include "capi/support.hpp"

static_assert(LOOM_FORMAT_SAFETENSORS == static_cast<int>(loom::NetworkFormat::safetensors));

namespace {

using namespace loom;
using namespace loom::capi;

Result<SaveOptions> save_options(const loom_save_options* given) {
  LOOM_ASSIGN(const loom_save_options from, options_of(given, "loom_save_options"));
  SaveOptions options;
  if (from.has_dtype != 0) {
    LOOM_ASSIGN(options.dtype, dtype_of(from.dtype));
  }
  options.with_weights = from.without_weights == 0;
  if (from.progress != nullptr) {
    options.progress = [from](uint64_t done, uint64_t total) {
      return from.progress(from.user, static_cast<int64_t>(done), static_cast<int64_t>(total)) == 0;
    };
  }
  return options;
}

loom_network_info info_of(const NetworkInfo& from) {
  loom_network_info info{};
  info.input_rank = copy_shape(info.input, from.input);
  info.output_rank = copy_shape(info.output, from.output);
  info.layers = from.layers;
  info.parameters = from.parameters;
  info.trainable = from.trainable;
  info.bytes = from.bytes;
  info.dtype = static_cast<loom_dtype>(from.dtype);
  info.fresh = from.fresh ? 1 : 0;
  info.trained = from.trained ? 1 : 0;
  info.takes_ids = from.takes_ids ? 1 : 0;
  info.normalizes = from.normalizes ? 1 : 0;
  copy_text(info.loss, from.loss);
  info.classes = static_cast<int64_t>(from.classes.size());
  return info;
}

Error out_of_range(int64_t index, size_t count, const char* what) {
  return {Code::out_of_range,
          std::string(what) + " " + std::to_string(index) + " of " + std::to_string(count),
          {}};
}

// Asks for one text of a network.
template <class F>
loom_status network_text(const loom_network* network, char** out, F&& text) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Network* object, object_of(network));
    return give_text(out, text(*object));
  });
}

}  // namespace

extern "C" {

loom_status loom_network_from_json(loom_engine* engine, const char* json,
                                   const loom_load_options* options, loom_network** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string text, text_of(json, "json"));
    LOOM_ASSIGN(const LoadOptions how, load_options(engine, options));
    LOOM_ASSIGN(Network network, Network::from_json(text, how));
    return give(out, std::move(network));
  });
}

loom_status loom_network_load(loom_engine* engine, const char* path,
                              const loom_load_options* options, loom_network** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string file, text_of(path, "path"));
    LOOM_ASSIGN(const LoadOptions how, load_options(engine, options));
    LOOM_ASSIGN(Network network, Network::load(file, how));
    return give(out, std::move(network));
  });
}

loom_status loom_network_load_memory(loom_engine* engine, const void* bytes, int64_t size,
                                     const char* name, const loom_load_options* options,
                                     loom_network** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const loom_load_options from, options_of(options, "loom_load_options"));
    LOOM_ASSIGN(const FileBytes file, file_of(bytes, size, name, from.borrow != 0));
    LOOM_ASSIGN(const LoadOptions how, load_options(engine, options));
    LOOM_ASSIGN(Network network, Network::load(file, how));
    return give(out, std::move(network));
  });
}

loom_status loom_network_save_memory(const loom_network* network, loom_network_format format,
                                     const loom_save_options* options, void** out, int64_t* size) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_TRY(clear(size, "size"));
    LOOM_ASSIGN(const Network* object, object_of(network));
    LOOM_ASSIGN(const NetworkFormat to, enum_of<NetworkFormat>(format, "format"));
    LOOM_ASSIGN(const SaveOptions how, save_options(options));
    LOOM_ASSIGN(const std::string bytes, object->save_bytes(to, how));
    char* copy = nullptr;
    LOOM_TRY(give_text(&copy, bytes));
    *out = copy;
    *size = static_cast<int64_t>(bytes.size());
    return {};
  });
}

loom_status loom_network_save(const loom_network* network, const char* path,
                              const loom_save_options* options) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const Network* object, object_of(network));
    LOOM_ASSIGN(const std::string file, text_of(path, "path"));
    LOOM_ASSIGN(const SaveOptions how, save_options(options));
    return object->save(file, how);
  });
}

void loom_network_free(loom_network* network) {
  free_handle(network);
}

loom_status loom_network_json(const loom_network* network, char** out) {
  return network_text(network, out, [](const Network& n) { return n.json(); });
}

loom_status loom_network_summary(const loom_network* network, char** out) {
  return network_text(network, out, [](const Network& n) { return n.summary(); });
}

loom_status loom_network_get_info(const loom_network* network, loom_network_info* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const Network* object, object_of(network));
    return give_report(out, info_of(object->info()), "loom_network_info");
  });
}

loom_status loom_network_class(const loom_network* network, int64_t index, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Network* object, object_of(network));
    const std::vector<std::string> classes = object->info().classes;
    if (index < 0 || static_cast<size_t>(index) >= classes.size())
      return out_of_range(index, classes.size(), "class");
    return give_text(out, classes[static_cast<size_t>(index)]);
  });
}

loom_status loom_network_parameter_count(const loom_network* network, int64_t* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Network* object, object_of(network));
    *out = static_cast<int64_t>(object->parameters().size());
    return {};
  });
}

loom_status loom_network_parameter_info(const loom_network* network, int64_t index,
                                        loom_parameter_info* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const Network* object, object_of(network));
    const std::vector<ParameterInfo> all = object->parameters();
    if (index < 0 || static_cast<size_t>(index) >= all.size())
      return out_of_range(index, all.size(), "parameter");
    const ParameterInfo& from = all[static_cast<size_t>(index)];
    loom_parameter_info info{};
    info.dtype = static_cast<loom_dtype>(from.dtype);
    info.rank = copy_shape(info.shape, from.shape);
    copy_text(info.name, from.name);
    return give_report(out, info, "loom_parameter_info");
  });
}

loom_status loom_network_parameter(const loom_network* network, const char* name,
                                   loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Network* object, object_of(network));
    LOOM_ASSIGN(const std::string which, text_of(name, "name"));
    LOOM_ASSIGN(Tensor values, object->parameter(which));
    return give(out, std::move(values));
  });
}

loom_status loom_network_set_parameter(loom_network* network, const char* name,
                                       const loom_tensor* values) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Network * object, object_of(network));
    LOOM_ASSIGN(const std::string which, text_of(name, "name"));
    LOOM_ASSIGN(const Tensor from, tensor_of(values, "values"));
    return object->set_parameter(which, from);
  });
}

loom_status loom_network_predict(const loom_network* network, const loom_tensor* inputs,
                                 loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Network* object, object_of(network));
    LOOM_ASSIGN(const Tensor x, tensor_of(inputs, "inputs"));
    LOOM_ASSIGN(Tensor y, object->predict(x));
    return give(out, std::move(y));
  });
}

loom_status loom_network_probabilities(const loom_network* network, const loom_tensor* outputs,
                                       loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Network* object, object_of(network));
    LOOM_ASSIGN(const Tensor scores, tensor_of(outputs, "outputs"));
    LOOM_ASSIGN(Tensor shares, object->probabilities(scores));
    return give(out, std::move(shares));
  });
}

}  // extern "C"
