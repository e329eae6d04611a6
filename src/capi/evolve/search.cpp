// Architecture search: by gradients, and by evolution of whole networks.
#include "capi/json_text.hpp"
#include "capi/options/options_as.hpp"
#include "loom/architectures.hpp"
#include "loom/darts.hpp"

using namespace loom;
using namespace loom::capi;

namespace {

void add_numbers(JsonText& json, std::string_view name, const std::vector<double>& values) {
  json.open('[', name);
  for (const double value : values) json.add("", value);
  json.close(']');
}

void add_report(JsonText& json, const DartsReport& report) {
  json.open('{');
  json.add("epoch", report.epoch);
  json.add("train_loss", report.train_loss);
  json.add("validation_loss", report.validation_loss);
  if (report.accuracy)
    json.add("accuracy", *report.accuracy);
  else
    json.null("accuracy");
  json.open('[', "weights");
  for (const std::vector<double>& weights : report.weights) add_numbers(json, "", weights);
  json.close(']');
  json.close('}');
}

std::string search_text(const DartsSearch& search) {
  JsonText json;
  json.open('{');
  json.add("epoch", search.epoch());
  json.add("epochs", search.epochs());
  json.add("seed_parameters", search.seed_parameters());
  json.open('[', "cells");
  for (const DartsCell& cell : search.cells()) {
    json.open('{');
    json.add("cell", cell.cell);
    json.open('[', "branches");
    for (const std::string& branch : cell.branches) json.add("", branch);
    json.close(']');
    add_numbers(json, "weights", cell.weights);
    json.close('}');
  }
  json.close(']');
  json.open('[', "history");
  for (const DartsReport& report : search.history()) add_report(json, report);
  json.close(']');
  json.close('}');
  return json.text();
}

void add_member(JsonText& json, std::string_view name, const ArchitectureInfo& info) {
  json.open('{', name);
  json.add("id", info.id);
  json.add("parent", info.parent);
  json.add("other", info.other);
  json.add("born", info.born);
  json.add("birth", info.birth);
  json.add("form", info.form);
  json.add("accuracy", info.accuracy);
  json.add("loss", info.loss);
  json.add("parameters", info.parameters);
  json.add("bytes", info.bytes);
  json.add("seconds", info.seconds);
  json.close('}');
}

void add_members(JsonText& json, std::string_view name, const std::vector<ArchitectureInfo>& all) {
  json.open('[', name);
  for (const ArchitectureInfo& info : all) add_member(json, "", info);
  json.close(']');
}

std::string search_text(const ArchitectureSearch& search) {
  JsonText json;
  json.open('{');
  json.open('[', "objectives");
  for (const std::string& objective : search.objectives()) json.add("", objective);
  json.close(']');
  add_member(json, "seed", search.seed());
  add_members(json, "members", search.members());
  add_members(json, "front", search.front());
  json.open('[', "history");
  for (const ArchitectureReport& r : search.history()) {
    json.open('{');
    json.add("generation", r.generation);
    json.add("evaluated", r.evaluated);
    json.add("rejected", r.rejected);
    json.add("front", r.front);
    json.add("best_accuracy", r.best_accuracy);
    json.add("best_loss", r.best_loss);
    json.add("least_parameters", r.least_parameters);
    json.close('}');
  }
  json.close(']');
  json.close('}');
  return json.text();
}

// Shared by both kinds of searches.
template <class Handle>
loom_status save_search(const Handle* search, const char* path) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const auto* object, object_of(search));
    LOOM_ASSIGN(const std::string file, text_of(path, "path"));
    return object->save(file);
  });
}

template <class Handle>
loom_status give_search(const Handle* search, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const auto* object, object_of(search));
    return give_text(out, search_text(*object));
  });
}

template <class Handle>
loom_status load_search(const char* path, const loom_dataset* data, Handle** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string file, text_of(path, "path"));
    LOOM_ASSIGN(const Dataset* samples, object_of(data));
    LOOM_ASSIGN(auto search, HandleOf<Handle>::Object::load(file, *samples));
    return give(out, std::move(search));
  });
}

template <class Options, class Handle>
loom_status create_search(const loom_network* network, const loom_dataset* data,
                          const loom_options* options, Handle** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Network* object, object_of(network));
    LOOM_ASSIGN(const Dataset* samples, object_of(data));
    LOOM_ASSIGN(const Options how, options_as<Options>(options));
    LOOM_ASSIGN(auto search, HandleOf<Handle>::Object::create(*object, *samples, how));
    return give(out, std::move(search));
  });
}

}  // namespace

extern "C" {

loom_status loom_darts_search_create(const loom_network* network, const loom_dataset* data,
                                     const loom_options* options, loom_darts_search** out) {
  return create_search<DartsOptions>(network, data, options, out);
}

loom_status loom_darts_search_load(const char* path, const loom_dataset* data,
                                   loom_darts_search** out) {
  return load_search(path, data, out);
}

loom_status loom_darts_search_save(const loom_darts_search* search, const char* path) {
  return save_search(search, path);
}

loom_status loom_darts_search_step(loom_darts_search* search, loom_progress_fn progress,
                                   void* user) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(DartsSearch * object, object_of(search));
    const auto done = object->step(progress_of(progress, user));
    return done.ok() ? Status() : Status(done.error());
  });
}

loom_status loom_darts_search_json(const loom_darts_search* search, char** out) {
  return give_search(search, out);
}

loom_status loom_darts_search_found(const loom_darts_search* search, int64_t max_parameters,
                                    loom_network** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const DartsSearch* object, object_of(search));
    LOOM_ASSIGN(Network network, object->found(max_parameters));
    return give(out, std::move(network));
  });
}

loom_status loom_darts_search_choice(const loom_darts_search* search, int64_t max_parameters,
                                     loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const DartsSearch* object, object_of(search));
    LOOM_ASSIGN(const std::vector<int64_t> choice, object->choice(max_parameters));
    LOOM_ASSIGN(Tensor made, Tensor::copy(choice, {static_cast<int64_t>(choice.size())}));
    return give(out, std::move(made));
  });
}

void loom_darts_search_free(loom_darts_search* search) {
  free_handle(search);
}

loom_status loom_architecture_search_create(const loom_network* seed, const loom_dataset* data,
                                            const loom_options* options,
                                            loom_architecture_search** out) {
  return create_search<ArchitectureOptions>(seed, data, options, out);
}

loom_status loom_architecture_search_load(const char* path, const loom_dataset* data,
                                          loom_architecture_search** out) {
  return load_search(path, data, out);
}

loom_status loom_architecture_search_save(const loom_architecture_search* search,
                                          const char* path) {
  return save_search(search, path);
}

loom_status loom_architecture_search_step(loom_architecture_search* search, int32_t threads,
                                          loom_progress_fn progress, void* user) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(ArchitectureSearch * object, object_of(search));
    const auto done = object->step(threads, progress_of(progress, user));
    return done.ok() ? Status() : Status(done.error());
  });
}

loom_status loom_architecture_search_json(const loom_architecture_search* search, char** out) {
  return give_search(search, out);
}

loom_status loom_architecture_search_network(const loom_architecture_search* search, int64_t id,
                                             loom_engine* engine, loom_network** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const ArchitectureSearch* object, object_of(search));
    LOOM_ASSIGN(const Engine on, engine_of(engine));
    LOOM_ASSIGN(Network network, object->network(id, on));
    return give(out, std::move(network));
  });
}

void loom_architecture_search_free(loom_architecture_search* search) {
  free_handle(search);
}

}  // extern "C"
