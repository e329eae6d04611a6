// Sessions of networks.
#include "capi/support.hpp"

namespace {

using namespace loom;
using namespace loom::capi;

// Into memory of the caller, which has to be of that shape.
Status copy_into(const Tensor& from, const loom_tensor* to) {
  LOOM_ASSIGN(const Tensor place, tensor_of(to, "outputs"));
  if (place.dtype() != from.dtype() || place.shape() != from.shape() || !place.contiguous()) {
    return invalid("the outputs are " + std::string(dtype_name(from.dtype())) + " " +
                   shape_text(from.shape()) + " without gaps; the memory given is " +
                   std::string(dtype_name(place.dtype())) + " " + shape_text(place.shape()));
  }
  if (!from.empty()) std::memcpy(to->data, from.data(), static_cast<size_t>(from.bytes()));
  return {};
}

loom_cell cell_of(const CellOutput& from, const loom_tensor& values) {
  loom_cell cell{};
  cell.struct_size = sizeof(cell);
  const int64_t at[] = {from.at.z, from.at.y, from.at.x, from.at.l};
  std::memcpy(cell.at, at, sizeof(at));
  cell.layer = from.layer.c_str();
  cell.values = &values;
  return cell;
}

}  // namespace

extern "C" {

loom_status loom_network_session(const loom_network* network, const loom_session_options* options,
                                 loom_session** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Network* object, object_of(network));
    LOOM_ASSIGN(const loom_session_options from, options_of(options, "loom_session_options"));
    SessionOptions how;
    how.max_batch = non_zero(from.max_batch, how.max_batch);
    how.quantize_activations = from.float_activations == 0;
    how.stateful = from.stateful != 0;
    how.max_steps = from.max_steps;
    LOOM_ASSIGN(Session session, object->session(how));
    return give(out, std::move(session));
  });
}

loom_status loom_session_run(loom_session* session, const loom_tensor* inputs, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(Session * object, object_of(session));
    LOOM_ASSIGN(const Tensor x, tensor_of(inputs, "inputs"));
    LOOM_ASSIGN(Tensor y, object->run(x));
    return give(out, std::move(y));
  });
}

loom_status loom_session_run_into(loom_session* session, const loom_tensor* inputs,
                                  const loom_tensor* outputs) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Session * object, object_of(session));
    LOOM_ASSIGN(const Tensor x, tensor_of(inputs, "inputs"));
    LOOM_ASSIGN(const Tensor y, object->run(x));
    return copy_into(y, outputs);
  });
}

loom_status loom_session_run_cells(loom_session* session, const loom_tensor* inputs,
                                   loom_cell_fn sink, void* user) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Session * object, object_of(session));
    LOOM_ASSIGN(const Tensor x, tensor_of(inputs, "inputs"));
    if (sink == nullptr) return invalid("'sink' is null; give a callback");
    LOOM_ASSIGN(const std::vector<CellOutput> cells, object->run_cells(x));
    for (const CellOutput& from : cells) {
      const Tensor& t = from.values;
      const loom_tensor values{static_cast<loom_dtype>(t.dtype()), static_cast<int32_t>(t.rank()),
                               t.shape().data(), nullptr, const_cast<std::byte*>(t.data())};
      const loom_cell cell = cell_of(from, values);
      if (sink(user, &cell) != 0)
        return Error{Code::cancelled, "the callback stopped the call", {}};
    }
    return {};
  });
}

loom_status loom_session_reset(loom_session* session) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Session * object, object_of(session));
    object->reset();
    return {};
  });
}

loom_status loom_session_position(const loom_session* session, int64_t* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Session* object, object_of(session));
    *out = object->position();
    return {};
  });
}

loom_status loom_session_bytes(const loom_session* session, int64_t* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Session* object, object_of(session));
    *out = object->bytes();
    return {};
  });
}

void loom_session_free(loom_session* session) {
  free_handle(session);
}

}  // extern "C"
