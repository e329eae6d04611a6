// Networks that tick.
#include "loom/mesh.hpp"

#include "capi/support.hpp"

using namespace loom;
using namespace loom::capi;

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
    LOOM_ASSIGN(Mesh mesh, Mesh::create(*object, how));
    return give(out, std::move(mesh));
  });
}

loom_status loom_mesh_set_input(loom_mesh* mesh, const loom_tensor* inputs) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Mesh * object, object_of(mesh));
    LOOM_ASSIGN(const Tensor x, tensor_of(inputs, "inputs"));
    return object->set_input(x);
  });
}

loom_status loom_mesh_tick(loom_mesh* mesh, int64_t count) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Mesh * object, object_of(mesh));
    return object->tick(count);
  });
}

loom_status loom_mesh_output(const loom_mesh* mesh, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Mesh* object, object_of(mesh));
    LOOM_ASSIGN(const Tensor y, object->output());
    LOOM_ASSIGN(Tensor copy, y.copied());
    return give(out, std::move(copy));
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

}  // extern "C"
