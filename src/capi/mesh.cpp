// Networks that tick.
#include "loom/mesh.hpp"

#include "capi/support.hpp"

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
    LOOM_ASSIGN(const loom_mesh_options from, options_of(options, "loom_mesh_options"));
    MeshOptions how;
    how.batch = non_zero(from.batch, how.batch);
    how.zero_fill = from.zero_fill != 0;
    how.carry = from.carry != 0;
    how.quantize_activations = from.float_activations == 0;
    LOOM_TRY(add_ports(from, how));
    LOOM_TRY(add_links(from, how));
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

}  // extern "C"
