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
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Batch* object, object_of(batch));
    LOOM_TRY(sequence_of(*object, sequence));
    *out = object->running(sequence) ? 1 : 0;
    return {};
  });
}

loom_status loom_batch_cancel(loom_batch* batch, int64_t sequence) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Batch * object, object_of(batch));
    LOOM_TRY(sequence_of(*object, sequence));
    object->cancel(sequence);
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
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Batch * object, object_of(batch));
    LOOM_TRY(sequence_of(*object, sequence));
    if (position < 0 || position > object->position(sequence)) {
      return Error{Code::out_of_range,
                   "position " + std::to_string(position) + " of " +
                       std::to_string(object->position(sequence)),
                   {}};
    }
    object->rewind(sequence, position);
    return {};
  });
}

void loom_batch_free(loom_batch* batch) {
  free_handle(batch);
}

}  // extern "C"
