// Texts that are written together.
#include "loom/batch.hpp"

#include "capi/support.hpp"

namespace {

using namespace loom;
using namespace loom::capi;

// Errors: out_of_range (there is no such sequence).
Status sequence_of(const Batch& batch, int64_t sequence) {
  if (sequence >= 0 && sequence < batch.sequences()) return {};
  return Error{Code::out_of_range,
               "sequence " + std::to_string(sequence) + " of " + std::to_string(batch.sequences()),
               {}};
}

// Runs f for a sequence that exists.
template <class Handle, class F>
loom_status with_sequence(Handle* batch, int64_t sequence, F&& f) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Batch * object, object_of(batch));
    LOOM_TRY(sequence_of(*object, sequence));
    return f(*object);
  });
}

// The same for an output, which f gives.
template <class Handle, class T, class F>
loom_status value_of(Handle* batch, int64_t sequence, T* out, F&& f) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(Batch * object, object_of(batch));
    LOOM_TRY(sequence_of(*object, sequence));
    *out = f(*object);
    return {};
  });
}

}  // namespace

extern "C" {

loom_status loom_model_batch(const loom_model* model, const loom_batch_options* options,
                             loom_batch** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Model* object, object_of(model));
    LOOM_ASSIGN(const loom_batch_options from, options_of(options, "loom_batch_options"));
    BatchOptions how;
    how.sequences = non_zero(from.sequences, how.sequences);
    how.session.context = from.context;
    how.session.chunk = from.chunk;
    if (from.has_cache_type != 0) {
      LOOM_ASSIGN(how.session.cache_type, dtype_of(from.cache_type));
    }
    LOOM_ASSIGN(Batch batch, Batch::create(*object, how));
    return give(out, std::move(batch));
  });
}

loom_status loom_batch_start(loom_batch* batch, int64_t sequence, const int32_t* prompt,
                             int64_t count, const loom_generate_options* options) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Batch * object, object_of(batch));
    LOOM_TRY(sequence_of(*object, sequence));
    LOOM_ASSIGN(const auto ids, list_of(prompt, count, "prompt"));
    LOOM_ASSIGN(const GenerateOptions how, generate_options(options));
    return object->start(sequence, ids, how);
  });
}

loom_status loom_batch_step(loom_batch* batch) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Batch * object, object_of(batch));
    return object->step();
  });
}

loom_status loom_batch_running(const loom_batch* batch, int64_t* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Batch* object, object_of(batch));
    *out = object->running();
    return {};
  });
}

loom_status loom_batch_is_running(const loom_batch* batch, int64_t sequence, int32_t* out) {
  return value_of(batch, sequence, out,
                  [&](const Batch& object) { return object.running(sequence) ? 1 : 0; });
}

loom_status loom_batch_cancel(loom_batch* batch, int64_t sequence) {
  return with_sequence(batch, sequence, [&](Batch& object) -> Status {
    object.cancel(sequence);
    return {};
  });
}

loom_status loom_batch_take(loom_batch* batch, int64_t sequence, loom_generation** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(Batch * object, object_of(batch));
    LOOM_TRY(sequence_of(*object, sequence));
    LOOM_ASSIGN(Generation made, object->take(sequence));
    return give(out, std::move(made));
  });
}

loom_status loom_batch_rewind(loom_batch* batch, int64_t sequence, int64_t position) {
  return with_sequence(batch, sequence, [&](Batch& object) -> Status {
    if (position < 0 || position > object.position(sequence)) {
      return Error{Code::out_of_range,
                   "position " + std::to_string(position) + " of " +
                       std::to_string(object.position(sequence)),
                   {}};
    }
    object.rewind(sequence, position);
    return {};
  });
}

loom_status loom_batch_get_info(const loom_batch* batch, loom_batch_info* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const Batch* object, object_of(batch));
    const BatchCounts counts = object->counts();
    loom_batch_info info{};
    info.sequences = object->sequences();
    info.shares_passes = object->shares_passes() ? 1 : 0;
    info.context = object->context();
    info.bytes = object->bytes();
    info.positions = counts.positions;
    info.reused = counts.reused;
    info.evicted = counts.evicted;
    return give_report(out, info, "loom_batch_info");
  });
}

loom_status loom_batch_position(const loom_batch* batch, int64_t sequence, int64_t* out) {
  return value_of(batch, sequence, out,
                  [&](const Batch& object) { return object.position(sequence); });
}

loom_status loom_batch_erase(loom_batch* batch, int64_t sequence) {
  return with_sequence(batch, sequence, [&](Batch& object) -> Status {
    object.erase(sequence);
    return {};
  });
}

loom_status loom_batch_reuse(loom_batch* batch, int64_t sequence, const int32_t* prompt,
                             int64_t count, int64_t* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(Batch * object, object_of(batch));
    LOOM_TRY(sequence_of(*object, sequence));
    LOOM_ASSIGN(const auto ids, list_of(prompt, count, "prompt"));
    *out = object->reuse(sequence, ids);
    return {};
  });
}

loom_status loom_batch_set_salt(loom_batch* batch, int64_t sequence, uint64_t salt) {
  return with_sequence(batch, sequence, [&](Batch& object) -> Status {
    object.set_salt(sequence, salt);
    return {};
  });
}

loom_status loom_batch_salt(const loom_batch* batch, int64_t sequence, uint64_t* out) {
  return value_of(batch, sequence, out, [&](const Batch& object) { return object.salt(sequence); });
}

loom_status loom_batch_save_state(const loom_batch* batch, int64_t sequence, const char* path) {
  return with_sequence(batch, sequence, [&](const Batch& object) -> Status {
    LOOM_ASSIGN(const std::string to, text_of(path, "path"));
    return object.save_state(sequence, to);
  });
}

loom_status loom_batch_load_state(loom_batch* batch, int64_t sequence, const char* path) {
  return with_sequence(batch, sequence, [&](Batch& object) -> Status {
    LOOM_ASSIGN(const std::string from, text_of(path, "path"));
    return object.load_state(sequence, from);
  });
}

void loom_batch_free(loom_batch* batch) {
  free_handle(batch);
}

}  // extern "C"
