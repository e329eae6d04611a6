// Sessions of networks.
#include <algorithm>

#include "capi/support.hpp"

namespace {

using namespace loom;
using namespace loom::capi;

// Whether results can be computed where they are wanted: float32 without gaps, apart from `x`.
// count: their numbers.
bool takes_results(const loom_tensor* to, const Tensor& x, int64_t& count) {
  const bool plain = to != nullptr && to->data != nullptr && to->strides == nullptr &&
                     to->dtype == LOOM_FLOAT32 && to->rank > 0 && to->rank <= kMaxRank &&
                     to->shape != nullptr;
  if (!plain || !x.contiguous()) return false;
  count = count_of(*to);
  if (count < 1 || count > INT64_MAX / static_cast<int64_t>(sizeof(float))) return false;
  const auto* begin = static_cast<const std::byte*>(to->data);
  const std::byte* end = begin + count * static_cast<int64_t>(sizeof(float));
  return end <= x.data() || x.data() + x.bytes() <= begin;
}

// Into memory of the caller, which has to be of that shape.
Status copy_into(const Tensor& from, const loom_tensor* to) {
  LOOM_ASSIGN(const Tensor destination, tensor_of(to, "outputs"));
  if (destination.dtype() != from.dtype() || destination.shape() != from.shape() ||
      !destination.contiguous()) {
    return invalid("the outputs are " + std::string(dtype_name(from.dtype())) + " " +
                   shape_text(from.shape()) + " without gaps; the memory given is " +
                   std::string(dtype_name(destination.dtype())) + " " +
                   shape_text(destination.shape()));
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

Status loom::capi::hand_out(const std::vector<PortInfo>& ports, const std::vector<Tensor>& values,
                            bool outputs, loom_port_fn sink, void* user) {
  for (size_t i = 0; i < ports.size(); ++i) {
    const PortInfo& from = ports[i];
    loom_port port{};
    port.struct_size = sizeof(port);
    port.output = outputs ? 1 : 0;
    port.name = from.name.c_str();
    port.rank = static_cast<int32_t>(from.shape.size());
    std::copy_n(from.shape.data(), std::min<size_t>(from.shape.size(), 8), port.shape);
    port.batched = from.batched ? 1 : 0;
    port.ids = from.ids;
    loom_tensor view{};
    if (i < values.size()) {
      view = view_of(values[i]);
      port.values = &view;
    }
    if (sink(user, &port) != 0) return Error{Code::cancelled, "the callback stopped the call", {}};
  }
  return {};
}

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
    how.lengths = from.lengths != 0;
    LOOM_ASSIGN(Session session, object->session(how));
    return give(out, std::move(session));
  });
}

loom_status loom_session_run(loom_session* session, const loom_tensor* inputs, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(Session * object, object_of(session));
    LOOM_TRY(check_tensor(inputs, "inputs"));
    const Tensor x = borrowed(*inputs);
    LOOM_ASSIGN(Tensor y, object->run(x));
    return give(out, std::move(y));
  });
}

loom_status loom_session_run_into(loom_session* session, const loom_tensor* inputs,
                                  const loom_tensor* outputs) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Session * object, object_of(session));
    LOOM_TRY(check_tensor(inputs, "inputs"));
    const Tensor x = borrowed(*inputs);
    if (int64_t count = 0; takes_results(outputs, x, count)) {
      return object->run_into(x, {static_cast<float*>(outputs->data), static_cast<size_t>(count)},
                              {outputs->shape, static_cast<size_t>(outputs->rank)});
    }
    LOOM_ASSIGN(const Tensor y, object->run(x));
    return copy_into(y, outputs);
  });
}

loom_status loom_network_ports(const loom_network* network, loom_port_fn sink, void* user) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const Network* object, object_of(network));
    if (sink == nullptr) return invalid("'sink' is null; give a callback");
    const NetworkInfo info = object->info();
    LOOM_TRY(hand_out(info.inputs, {}, false, sink, user));
    return hand_out(info.outputs, {}, true, sink, user);
  });
}

loom_status loom_session_run_ports(loom_session* session, const loom_tensor* inputs, int64_t count,
                                   loom_port_fn sink, void* user) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Session * object, object_of(session));
    if (sink == nullptr) return invalid("'sink' is null; give a callback");
    if (inputs == nullptr || count < 1) return invalid("'inputs' is null or none; give them all");
    std::vector<Tensor> given;
    for (int64_t i = 0; i < count; ++i) {
      LOOM_ASSIGN(given.emplace_back(), tensor_of(inputs + i, "inputs"));
    }
    LOOM_ASSIGN(const std::vector<Tensor> y, object->run(given));
    return hand_out(object->outputs(), y, true, sink, user);
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
      const loom_tensor values = view_of(from.values);
      const loom_cell cell = cell_of(from, values);
      if (sink(user, &cell) != 0)
        return Error{Code::cancelled, "the callback stopped the call", {}};
    }
    return {};
  });
}

loom_status loom_session_set_lengths(loom_session* session, const int64_t* lengths, int64_t count) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Session * object, object_of(session));
    if (count < 0 || (count > 0 && lengths == nullptr)) return invalid("'lengths' is null");
    return object->set_lengths({lengths, static_cast<size_t>(count)});
  });
}

loom_status loom_session_state_count(loom_session* session, int64_t* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Session * object, object_of(session));
    if (out == nullptr) return invalid("'out' is null");
    LOOM_ASSIGN(const std::vector<Tensor> states, object->states());
    *out = static_cast<int64_t>(states.size());
    return {};
  });
}

loom_status loom_session_state(loom_session* session, int64_t index, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(Session * object, object_of(session));
    LOOM_ASSIGN(std::vector<Tensor> states, object->states());
    if (index < 0 || static_cast<size_t>(index) >= states.size()) {
      return Error{Code::out_of_range,
                   "state " + std::to_string(index) + " of " + std::to_string(states.size()),
                   {}};
    }
    return give(out, std::move(states[static_cast<size_t>(index)]));
  });
}

loom_status loom_session_set_states(loom_session* session, const loom_tensor* states,
                                    int64_t count) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Session * object, object_of(session));
    if (count < 0 || (count > 0 && states == nullptr)) return invalid("'states' is null");
    std::vector<Tensor> values;
    for (int64_t i = 0; i < count; ++i) {
      LOOM_ASSIGN(values.emplace_back(), tensor_of(states + i, "states"));
    }
    return object->set_states(values);
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
