// Fitness of genomes on samples, and the likeness of two signatures.
#include "capi/options/options_as.hpp"

namespace {

using namespace loom;
using namespace loom::capi;

}  // namespace

extern "C" {

loom_status loom_dna_similarity(const loom_tensor* a, const loom_tensor* b, double* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Tensor first, tensor_of(a, "a"));
    LOOM_ASSIGN(const Tensor second, tensor_of(b, "b"));
    LOOM_ASSIGN(*out, dna_similarity(first, second));
    return {};
  });
}

loom_status loom_sample_fitness_create(const loom_dataset* data, int64_t inputs, int64_t outputs,
                                       loom_normalize normalize, loom_sample_fitness** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Dataset* samples, object_of(data));
    Normalize how = Normalize::none;
    LOOM_TRY(read_enum(normalize, "normalize", how));
    LOOM_ASSIGN(SampleFitness fitness, SampleFitness::create(*samples, inputs, outputs, how));
    return give(out, std::move(fitness));
  });
}

loom_status loom_sample_fitness_score(const loom_sample_fitness* fitness, loom_genome* genome,
                                      double* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const SampleFitness* object, object_of(fitness));
    LOOM_ASSIGN(Genome * judged, object_of(genome));
    LOOM_ASSIGN(*out, (*object)(*judged));
    return {};
  });
}

loom_status loom_sample_fitness_network(const loom_sample_fitness* fitness,
                                        const loom_genome* genome, loom_engine* engine,
                                        loom_network** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const SampleFitness* object, object_of(fitness));
    LOOM_ASSIGN(const Genome* from, object_of(genome));
    LOOM_ASSIGN(const Engine on, engine_of(engine));
    LOOM_ASSIGN(Network network, object->network(*from, on));
    return give(out, std::move(network));
  });
}

loom_status loom_sample_fitness_json(const loom_sample_fitness* fitness, const loom_genome* genome,
                                     char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const SampleFitness* object, object_of(fitness));
    LOOM_ASSIGN(const Genome* from, object_of(genome));
    return give_text(out, object->json(*from));
  });
}

void loom_sample_fitness_free(loom_sample_fitness* fitness) {
  free_handle(fitness);
}

}  // extern "C"
