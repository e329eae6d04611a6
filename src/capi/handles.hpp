// Handles: the opaque pointers of loom.h. They are not addresses. Each has the number of a slot,
// the kind of object, and a generation that the slot compares. So a freed handle, one of another
// kind and any other value are always found as errors. None of them reads foreign memory
// (docs/decisions/0021-c-handles.md).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "loom.h"
#include "loom/loom.hpp"
#ifndef LOOM_MINIMAL
#include "capi/options/option_kinds.hpp"
#endif

namespace loom::capi {

enum class Kind : uint8_t {
  none,
  array,
  engine,
  network,
  session,
  dataset,
  trainer,
  history,
  model,
  model_session,
  generation,
  tokenizer,
  reply_parser,
  batch,
  population,
  genome,
  mesh,
  model_file,
  options,
  mesh_trainer,
  telemetry,
  darts_search,
  architecture_search,
  deviation,
  adaptation,
  rules,
  lookup_text,
  sample_fitness,
  evaluator
};

#ifndef LOOM_MINIMAL
// With the texts that loom_history_epoch() lends.
struct KeptHistory {
  History history;
  std::vector<std::string> metrics;  // of each epoch
};
#endif

// The kind and the object of an opaque type.
template <class Handle>
struct HandleOf;
#define LOOM_HANDLE(handle, what, object)     \
  template <>                                 \
  struct HandleOf<handle> {                   \
    static constexpr Kind kKind = Kind::what; \
    using Object = object;                    \
  };
LOOM_HANDLE(loom_array, array, Tensor)
LOOM_HANDLE(loom_engine, engine, Engine)
LOOM_HANDLE(loom_network, network, Network)
LOOM_HANDLE(loom_session, session, Session)
LOOM_HANDLE(loom_model, model, Model)
LOOM_HANDLE(loom_model_session, model_session, ModelSession)
LOOM_HANDLE(loom_generation, generation, Generation)
LOOM_HANDLE(loom_tokenizer, tokenizer, Tokenizer)
LOOM_HANDLE(loom_rules, rules, std::shared_ptr<const CompiledRules>)
LOOM_HANDLE(loom_lookup_text, lookup_text, LookupText)
#ifndef LOOM_MINIMAL  // whose headers declare no more
LOOM_HANDLE(loom_dataset, dataset, Dataset)
LOOM_HANDLE(loom_trainer, trainer, Trainer)
LOOM_HANDLE(loom_history, history, KeptHistory)
LOOM_HANDLE(loom_reply_parser, reply_parser, ReplyParser)
LOOM_HANDLE(loom_batch, batch, Batch)
LOOM_HANDLE(loom_population, population, Population)
LOOM_HANDLE(loom_genome, genome, Genome)
LOOM_HANDLE(loom_mesh, mesh, Mesh)
LOOM_HANDLE(loom_model_file, model_file, ModelFile)
LOOM_HANDLE(loom_options, options, AnyOptions)
LOOM_HANDLE(loom_mesh_trainer, mesh_trainer, MeshTrainer)
LOOM_HANDLE(loom_telemetry, telemetry, std::shared_ptr<Telemetry>)
LOOM_HANDLE(loom_deviation, deviation, DeviationMetrics)
LOOM_HANDLE(loom_adaptation, adaptation, AdaptationTracker)
LOOM_HANDLE(loom_darts_search, darts_search, DartsSearch)
LOOM_HANDLE(loom_architecture_search, architecture_search, ArchitectureSearch)
LOOM_HANDLE(loom_sample_fitness, sample_fitness, SampleFitness)
LOOM_HANDLE(loom_evaluator, evaluator, Evaluator)
#endif
#undef LOOM_HANDLE

// The value of a new handle; 0 where there are too many. May throw std::bad_alloc.
uintptr_t new_handle(Kind kind, void* object);
// Errors: invalid_argument, saying what is wrong with the value.
Result<void*> object_of(uintptr_t handle, Kind kind);
// The same, and the handle means nothing any more.
Result<void*> take_object(uintptr_t handle, Kind kind);

template <class Handle>
Result<typename HandleOf<Handle>::Object*> object_of(const Handle* handle) {
  using Object = typename HandleOf<Handle>::Object;
  LOOM_ASSIGN(void* object,
              object_of(reinterpret_cast<uintptr_t>(handle), HandleOf<Handle>::kKind));
  return static_cast<Object*>(object);
}

// Errors: out_of_memory (more handles than there can be).
template <class Handle>
Status give(Handle** out, typename HandleOf<Handle>::Object object) {
  auto owned = std::make_unique<typename HandleOf<Handle>::Object>(std::move(object));
  const uintptr_t value = new_handle(HandleOf<Handle>::kKind, owned.get());
  if (value == 0) return Error{Code::out_of_memory, "too many handles; free some", {}};
  owned.release();
  *out = reinterpret_cast<Handle*>(value);
  return {};
}

}  // namespace loom::capi
