// Data sets.
#include "capi/json_text.hpp"
#include "capi/reading.hpp"
#include "capi/support.hpp"

namespace {

using namespace loom;
using namespace loom::capi;

// Asks for one of the arrays. They share the memory of the data set, and keep it.
template <class F>
loom_status dataset_array(const loom_dataset* dataset, loom_array** out, F&& array) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Dataset* object, object_of(dataset));
    const Tensor t = array(*object);
    const auto owner = std::make_shared<const Dataset>(*object);
    return give(out, Tensor::borrow(t.data(), t.dtype(), t.shape(), t.strides(), owner));
  });
}

// Two parts of the samples, which cut(data, options) makes.
template <class F>
loom_status give_parts(const loom_dataset* dataset, const loom_split_options* options,
                       loom_dataset** first, loom_dataset** second, F&& cut) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(first, "first"));
    LOOM_TRY(clear(second, "second"));
    LOOM_ASSIGN(const Dataset* object, object_of(dataset));
    LOOM_ASSIGN(const loom_split_options from, options_of(options, "loom_split_options"));
    SplitOptions how;
    if (from.has_seed != 0) how.seed = from.seed;
    how.shuffle = from.keep_order == 0;
    LOOM_ASSIGN(Dataset::Parts parts, cut(*object, how));
    LOOM_TRY(give(first, std::move(parts.first)));
    const Status given = give(second, std::move(parts.second));
    if (given.ok()) return {};
    free_handle(*first);
    *first = nullptr;
    return given;
  });
}

void add_texts(JsonText& json, std::string_view name, const std::vector<std::string>& texts) {
  json.open('[', name);
  for (const std::string& text : texts) json.add("", text);
  json.close(']');
}

}  // namespace

extern "C" {

loom_status loom_dataset_from_arrays(const loom_tensor* x, const loom_tensor* y,
                                     loom_dataset** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Tensor inputs, tensor_of(x, "x"));
    Tensor targets;
    if (y != nullptr) {
      LOOM_ASSIGN(targets, tensor_of(y, "y"));
    }
    LOOM_ASSIGN(Dataset dataset, Dataset::from_arrays(inputs, targets));
    return give(out, std::move(dataset));
  });
}

loom_status loom_dataset_from_sequences(const loom_tensor* x, const loom_tensor* y,
                                        const loom_tensor* lengths, loom_dataset** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Tensor inputs, tensor_of(x, "x"));
    ArrayOptions options;
    LOOM_ASSIGN(options.lengths, tensor_of(lengths, "lengths"));
    Tensor targets;
    if (y != nullptr) {
      LOOM_ASSIGN(targets, tensor_of(y, "y"));
    }
    LOOM_ASSIGN(Dataset dataset, Dataset::from_arrays(inputs, targets, options));
    return give(out, std::move(dataset));
  });
}

loom_status loom_dataset_from_file(const char* path, const loom_network* network,
                                   const loom_dataset_options* options, loom_dataset** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string file, text_of(path, "path"));
    LOOM_ASSIGN(const Network* object, object_of(network));
    LOOM_ASSIGN(const DatasetOptions how, dataset_options(options));
    LOOM_ASSIGN(Dataset dataset, Dataset::from_file(file, *object, how));
    return give(out, std::move(dataset));
  });
}

loom_status loom_dataset_from_memory(const void* bytes, int64_t size, const char* name,
                                     const loom_network* network,
                                     const loom_dataset_options* options, loom_dataset** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const FileBytes file, file_of(bytes, size, name, false));
    LOOM_ASSIGN(const Network* object, object_of(network));
    LOOM_ASSIGN(const DatasetOptions how, dataset_options(options));
    LOOM_ASSIGN(Dataset dataset, Dataset::from_file(file, *object, how));
    return give(out, std::move(dataset));
  });
}

loom_status loom_dataset_get_info(const loom_dataset* dataset, loom_dataset_info* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const Dataset* object, object_of(dataset));
    loom_dataset_info info{};
    info.samples = object->samples();
    info.sample_rank = copy_shape(info.sample, object->sample());
    info.has_labels = object->has_labels() ? 1 : 0;
    info.has_targets = object->has_targets() ? 1 : 0;
    info.classes = static_cast<int64_t>(object->classes().size());
    return give_report(out, info, "loom_dataset_info");
  });
}

loom_status loom_dataset_class(const loom_dataset* dataset, int64_t index, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Dataset* object, object_of(dataset));
    const std::vector<std::string>& classes = object->classes();
    if (index < 0 || static_cast<size_t>(index) >= classes.size()) {
      return Error{Code::out_of_range,
                   "class " + std::to_string(index) + " of " + std::to_string(classes.size()),
                   {}};
    }
    return give_text(out, classes[static_cast<size_t>(index)]);
  });
}

loom_status loom_dataset_notes(const loom_dataset* dataset, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Dataset* object, object_of(dataset));
    std::string notes;
    for (const std::string& note : object->notes()) notes += (notes.empty() ? "" : "\n") + note;
    return give_text(out, notes);
  });
}

loom_status loom_dataset_x(const loom_dataset* dataset, loom_array** out) {
  return dataset_array(dataset, out, [](const Dataset& d) { return d.x(); });
}

loom_status loom_dataset_y(const loom_dataset* dataset, loom_array** out) {
  return dataset_array(dataset, out, [](const Dataset& d) { return d.y(); });
}

loom_status loom_dataset_lengths(const loom_dataset* dataset, loom_array** out) {
  return dataset_array(dataset, out, [](const Dataset& d) { return d.lengths(); });
}

loom_status loom_dataset_with_input(const loom_dataset* dataset, const char* name,
                                    const loom_tensor* values, loom_dataset** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Dataset* object, object_of(dataset));
    if (name == nullptr) return invalid("'name' is null");
    LOOM_ASSIGN(const Tensor given, tensor_of(values, "values"));
    LOOM_ASSIGN(Dataset with, object->with_input(name, given));
    return give(out, std::move(with));
  });
}

loom_status loom_dataset_with_classes(const loom_dataset* dataset, const char* const* names,
                                      int64_t count, loom_dataset** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Dataset* object, object_of(dataset));
    LOOM_ASSIGN(const std::vector<std::string> classes, texts_of(names, count, "names"));
    LOOM_ASSIGN(Dataset with, object->with_classes(classes));
    return give(out, std::move(with));
  });
}

loom_status loom_dataset_split(const loom_dataset* dataset, double share,
                               const loom_split_options* options, loom_dataset** first,
                               loom_dataset** second) {
  return give_parts(dataset, options, first, second,
                    [&](const Dataset& data, const auto& how) { return data.split(share, how); });
}

loom_status loom_dataset_fold(const loom_dataset* dataset, int64_t number, int64_t count,
                              const loom_split_options* options, loom_dataset** first,
                              loom_dataset** second) {
  return give_parts(dataset, options, first, second, [&](const Dataset& data, const auto& how) {
    return data.fold(number, count, how);
  });
}

loom_status loom_dataset_json(const loom_dataset* dataset, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Dataset* object, object_of(dataset));
    JsonText json;
    json.open('{');
    json.add("hash", object->hash());
    add_texts(json, "columns", object->columns());
    add_texts(json, "files", object->files());
    add_texts(json, "further_inputs", object->further_inputs());
    json.add("bytes", object->bytes());
    json.add("in_memory", static_cast<int>(object->in_memory()));
    json.close('}');
    return give_text(out, json.text());
  });
}

void loom_dataset_free(loom_dataset* dataset) {
  free_handle(dataset);
}

}  // extern "C"
