// Networks that tick, and how they are trained.
#include "loom/mesh.hpp"

#include "capi/json_text.hpp"
#include "capi/options/options_as.hpp"
#include "capi/options/read_options.hpp"

using namespace loom;
using namespace loom::capi;

namespace {

Coord place_of(const int64_t at[4]) {
  return {at[0], at[1], at[2], at[3]};
}

Status add_ports(const loom_mesh_options& from, MeshOptions& to) {
  LOOM_ASSIGN(const auto ports, list_of(from.ports, from.port_count, "ports"));
  for (const loom_mesh_port& port : ports) {
    LOOM_ASSIGN(std::string name, text_of(port.name, "ports.name"));
    LOOM_ASSIGN(const auto shape, list_of(port.shape, port.rank, "ports.shape"));
    to.ports.push_back({std::move(name), Shape(shape.begin(), shape.end())});
  }
  return {};
}

Status add_links(const loom_mesh_options& from, MeshOptions& to) {
  LOOM_ASSIGN(const auto links, list_of(from.links, from.link_count, "links"));
  for (const loom_mesh_link& link : links) {
    MeshLink& mine = to.links.emplace_back();
    mine.to = place_of(link.to);
    if (link.has_source != 0) mine.from = place_of(link.source);
    if (link.port != nullptr) mine.port = link.port;
    mine.nothing = link.nothing != 0;
    mine.delay = non_zero(link.delay, mine.delay);
    mine.second = link.second != 0;
  }
  return {};
}

Result<MeshOptions> mesh_options(const loom_mesh_options* given) {
  LOOM_ASSIGN(const loom_mesh_options from, options_of(given, "loom_mesh_options"));
  MeshOptions to;
  to.batch = non_zero(from.batch, to.batch);
  to.zero_fill = from.zero_fill != 0;
  to.carry = from.carry != 0;
  to.quantize_activations = from.float_activations == 0;
  to.activity = from.activity != 0;
  LOOM_TRY(add_ports(from, to));
  LOOM_TRY(add_links(from, to));
  return to;
}

std::string cells_text(const Mesh& mesh) {
  JsonText json;
  json.open('[');
  for (const MeshCell& cell : mesh.cells()) {
    json.open('{');
    json.open('[', "at");
    for (const int64_t part : {cell.at.z, cell.at.y, cell.at.x, cell.at.l}) json.add("", part);
    json.close(']');
    json.add("layer", cell.layer);
    json.open('[', "output");
    for (const int64_t extent : cell.output) json.add("", extent);
    json.close(']');
    json.add("first_tick", cell.first_tick);
    json.add("holds", static_cast<int>(mesh.holds(cell.at)));
    json.close('}');
  }
  json.close(']');
  return json.text();
}

loom_mesh_epoch epoch_of(const MeshEpoch& from) {
  loom_mesh_epoch to{};
  to.struct_size = sizeof(to);
  to.number = from.number;
  to.loss = from.loss;
  to.has_accuracy = from.accuracy.has_value() ? 1 : 0;
  to.accuracy = from.accuracy.value_or(0);
  to.ticks_per_second = from.ticks_per_second;
  return to;
}

loom_status give_output(const loom_mesh* mesh, const int64_t* at, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Mesh* object, object_of(mesh));
    LOOM_ASSIGN(const Tensor y, at != nullptr ? object->output(place_of(at)) : object->output());
    LOOM_ASSIGN(Tensor copy, y.copied());
    return give(out, std::move(copy));
  });
}

loom_status give_input(loom_mesh* mesh, const char* port, const loom_tensor* inputs) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Mesh * object, object_of(mesh));
    LOOM_ASSIGN(const Tensor x, tensor_of(inputs, "inputs"));
    LOOM_ASSIGN(const std::string name, text_of(port, "port"));
    return object->set_input(x, name);
  });
}

}  // namespace

extern "C" {

loom_status loom_mesh_create(const loom_network* network, const loom_mesh_options* options,
                             loom_mesh** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Network* object, object_of(network));
    LOOM_ASSIGN(const MeshOptions how, mesh_options(options));
    LOOM_ASSIGN(Mesh mesh, Mesh::create(*object, how));
    return give(out, std::move(mesh));
  });
}

loom_status loom_mesh_set_input(loom_mesh* mesh, const loom_tensor* inputs) {
  return give_input(mesh, "input", inputs);
}

loom_status loom_mesh_set_port(loom_mesh* mesh, const char* port, const loom_tensor* inputs) {
  return give_input(mesh, port, inputs);
}

loom_status loom_mesh_tick(loom_mesh* mesh, int64_t count) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Mesh * object, object_of(mesh));
    return object->tick(count);
  });
}

loom_status loom_mesh_output(const loom_mesh* mesh, loom_array** out) {
  return give_output(mesh, nullptr, out);
}

loom_status loom_mesh_cell_output(const loom_mesh* mesh, const int64_t* at, loom_array** out) {
  if (at == nullptr) return fail(invalid("'at' is null; give the place of a cell"));
  return give_output(mesh, at, out);
}

loom_status loom_mesh_run(loom_mesh* mesh, const char* const* ports, const loom_tensor* samples,
                          int64_t count, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(Mesh * object, object_of(mesh));
    LOOM_ASSIGN(const std::vector<std::string> names, texts_of(ports, count, "ports"));
    LOOM_ASSIGN(const auto tensors, list_of(samples, count, "samples"));
    std::optional<Tensor> first;
    std::vector<MeshSamples> others;
    for (size_t i = 0; i < names.size(); ++i) {
      LOOM_ASSIGN(const Tensor x, tensor_of(&tensors[i], "samples"));
      if (names[i] == "input")
        first = x;
      else
        others.push_back({names[i], x});
    }
    if (!first) return invalid("no samples of the port 'input'; give them, one per tick");
    LOOM_ASSIGN(Tensor y, others.empty() ? object->run(*first) : object->run(*first, others));
    return give(out, std::move(y));
  });
}

loom_status loom_mesh_activity(const loom_mesh* mesh, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Mesh* object, object_of(mesh));
    if (object->activity().empty())
      return invalid("no activity was kept; set loom_mesh_options.activity and call run first");
    LOOM_ASSIGN(Tensor copy, object->activity().copied());
    return give(out, std::move(copy));
  });
}

loom_status loom_mesh_cells(const loom_mesh* mesh, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Mesh* object, object_of(mesh));
    return give_text(out, cells_text(*object));
  });
}

loom_status loom_mesh_get_info(const loom_mesh* mesh, loom_mesh_info* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const Mesh* object, object_of(mesh));
    loom_mesh_info info{};
    info.cells = static_cast<int64_t>(object->cells().size());
    info.ticks = object->ticks();
    info.stale = object->stale();
    info.latency = object->latency();
    info.bytes = object->bytes();
    return give_report(out, info, "loom_mesh_info");
  });
}

loom_status loom_mesh_reset(loom_mesh* mesh) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Mesh * object, object_of(mesh));
    return object->reset();
  });
}

void loom_mesh_free(loom_mesh* mesh) {
  free_handle(mesh);
}

loom_status loom_mesh_trainer_create(const loom_network* network, const loom_mesh_options* mesh,
                                     const loom_options* options, loom_mesh_trainer** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Network* object, object_of(network));
    LOOM_ASSIGN(const MeshOptions ticks, mesh_options(mesh));
    LOOM_ASSIGN(const MeshTrainerOptions how, options_as<MeshTrainerOptions>(options));
    LOOM_ASSIGN(MeshTrainer trainer, MeshTrainer::create(*object, ticks, how));
    return give(out, std::move(trainer));
  });
}

loom_status loom_mesh_trainer_fit(loom_mesh_trainer* trainer, const loom_dataset* stream,
                                  const loom_mesh_fit_options* options) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(MeshTrainer * object, object_of(trainer));
    LOOM_ASSIGN(const Dataset* data, object_of(stream));
    LOOM_ASSIGN(const loom_mesh_fit_options from, options_of(options, "loom_mesh_fit_options"));
    LOOM_ASSIGN(MeshFitOptions how, read_options(from));
    bool stopped = false;
    how.on_window = [&](int64_t done, int64_t total) {
      return !stopped && (from.on_window == nullptr || from.on_window(from.user, done, total) == 0);
    };
    how.on_epoch = [&](const MeshEpoch& epoch) {
      const loom_mesh_epoch seen = epoch_of(epoch);
      stopped = from.on_epoch != nullptr && from.on_epoch(from.user, &seen) != 0;
    };
    LOOM_ASSIGN(const auto epochs, object->fit(*data, how));
    if (stopped) return Error{Code::cancelled, "a callback ended the training", {}};
    return {};
  });
}

void loom_mesh_trainer_free(loom_mesh_trainer* trainer) {
  free_handle(trainer);
}

}  // extern "C"
