// Populations that grow, how alike networks are, and children of two.
#include <algorithm>

#include "capi/options/options_as.hpp"
#include "capi/options/read_options.hpp"

namespace {

using namespace loom;
using namespace loom::capi;

Result<NeatOptions> neat_options(const loom_neat_options* given) {
  LOOM_ASSIGN(const loom_neat_options from, options_of(given, "loom_neat_options"));
  NeatOptions options;
  options.inputs = non_zero(from.inputs, options.inputs);
  options.outputs = non_zero(from.outputs, options.outputs);
  options.population = non_zero(from.population, options.population);
  if (from.has_seed != 0) options.seed = from.seed;
  options.recurrent = from.recurrent != 0;
  options.connected = from.unconnected == 0;
  LOOM_ASSIGN(options.output, parse_activation(text_or(from.output, "sigmoid")));
  LOOM_ASSIGN(const Activation hidden, parse_activation(text_or(from.hidden, "sigmoid")));
  options.hidden = {hidden};
  options.slope = non_zero(from.slope, options.slope);
  if (from.has_add_node != 0) options.add_node = from.add_node;
  if (from.has_add_connection != 0) options.add_connection = from.add_connection;
  options.weight_step = non_zero(from.weight_step, options.weight_step);
  options.threshold = non_zero(from.threshold, options.threshold);
  return options;
}

// Rows [rows, inputs] as float32. Errors: invalid_argument (other widths).
Result<Tensor> rows_of(const loom_tensor* given, int64_t inputs) {
  LOOM_ASSIGN(const Tensor x, tensor_of(given, "inputs"));
  if (x.rank() != 2 || x.shape()[1] != inputs) {
    return invalid("the inputs are " + shape_text(x.shape()) + "; give [rows, " +
                   std::to_string(inputs) + "]");
  }
  return x.to(DType::float32);
}

// Writes [rows, outputs] to `out`, one step for each row.
Status run_rows(Genome& genome, const Tensor& x, bool anew, std::span<float> out) {
  LOOM_ASSIGN(const std::span<const float> values, x.values<float>());
  const auto inputs = static_cast<size_t>(genome.inputs());
  const auto outputs = static_cast<size_t>(genome.outputs());
  if (anew) genome.reset();
  for (size_t row = 0; row < static_cast<size_t>(x.shape()[0]); ++row) {
    LOOM_ASSIGN(const std::span<const float> y, genome.step(values.subspan(row * inputs, inputs)));
    std::copy(y.begin(), y.end(), out.begin() + static_cast<ptrdiff_t>(row * outputs));
  }
  return {};
}

loom_population_report report_of(const GenerationReport& from) {
  loom_population_report report{};
  report.generation = from.generation;
  report.evaluations = from.evaluations;
  report.best = from.best;
  report.mean = from.mean;
  report.worst = from.worst;
  report.failed = from.failed;
  report.hidden = from.hidden;
  report.connections = from.connections;
  report.species = static_cast<int64_t>(from.species.size());
  return report;
}

constexpr DnaMode kDnaModes[] = {DnaMode::functional, DnaMode::strict, DnaMode::aligned,
                                 DnaMode::permutation};

}  // namespace

extern "C" {

loom_status loom_population_create(const loom_neat_options* options, loom_population** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const NeatOptions how, neat_options(options));
    LOOM_ASSIGN(Population population, Population::create(how));
    return give(out, std::move(population));
  });
}

loom_status loom_population_create_with(const loom_options* options, loom_population** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const NeatOptions how, options_as<NeatOptions>(options));
    LOOM_ASSIGN(Population population, Population::create(how));
    return give(out, std::move(population));
  });
}

loom_status loom_population_load(const char* path, loom_population** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string file, text_of(path, "path"));
    LOOM_ASSIGN(Population population, Population::load(file));
    return give(out, std::move(population));
  });
}

loom_status loom_population_save(const loom_population* population, const char* path) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const Population* object, object_of(population));
    LOOM_ASSIGN(const std::string file, text_of(path, "path"));
    return object->save(file);
  });
}

loom_status loom_population_get_info(const loom_population* population, loom_population_info* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const Population* object, object_of(population));
    loom_population_info info{};
    info.size = object->size();
    info.inputs = object->inputs();
    info.outputs = object->outputs();
    info.recurrent = object->recurrent() ? 1 : 0;
    info.generation = object->generation();
    info.best_fitness = object->best_fitness();
    info.seed = object->seed();
    return give_report(out, info, "loom_population_info");
  });
}

loom_status loom_population_report_of(const loom_population* population, int64_t generation,
                                      loom_population_report* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const Population* object, object_of(population));
    const std::vector<GenerationReport> history = object->history();
    if (generation < 0 || generation >= static_cast<int64_t>(history.size())) {
      return Error{Code::out_of_range,
                   "generation " + std::to_string(generation) + " of " +
                       std::to_string(history.size()) + " reported generations",
                   {}};
    }
    return give_report(out, report_of(history[static_cast<size_t>(generation)]),
                       "loom_population_report");
  });
}

loom_status loom_population_genome(const loom_population* population, int64_t index,
                                   loom_genome** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Population* object, object_of(population));
    LOOM_ASSIGN(Genome genome, object->genome(index));
    return give(out, std::move(genome));
  });
}

loom_status loom_population_best(const loom_population* population, loom_genome** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Population* object, object_of(population));
    LOOM_ASSIGN(Genome genome, object->best());
    return give(out, std::move(genome));
  });
}

loom_status loom_population_run(const loom_population* population, const loom_tensor* inputs,
                                loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Population* object, object_of(population));
    LOOM_ASSIGN(const Tensor x, rows_of(inputs, object->inputs()));
    LOOM_ASSIGN(Tensor y, Tensor::zeros({object->size(), x.shape()[0], object->outputs()}));
    LOOM_ASSIGN(const std::span<float> values, y.mutable_values<float>());
    const auto each = static_cast<size_t>(x.shape()[0] * object->outputs());
    for (int64_t i = 0; i < object->size(); ++i) {
      LOOM_ASSIGN(Genome genome, object->genome(i));
      LOOM_TRY(run_rows(genome, x, true, values.subspan(static_cast<size_t>(i) * each, each)));
    }
    return give(out, std::move(y));
  });
}

loom_status loom_population_tell(loom_population* population, const double* fitness,
                                 int64_t count) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Population * object, object_of(population));
    LOOM_ASSIGN(const auto values, list_of(fitness, count, "fitness"));
    return object->tell(values);
  });
}

void loom_population_free(loom_population* population) {
  free_handle(population);
}

loom_status loom_genome_get_info(const loom_genome* genome, loom_genome_info* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const Genome* object, object_of(genome));
    loom_genome_info info{};
    info.inputs = object->inputs();
    info.outputs = object->outputs();
    info.hidden = object->hidden();
    info.connections = object->connections();
    info.recurrent = object->recurrent() ? 1 : 0;
    return give_report(out, info, "loom_genome_info");
  });
}

loom_status loom_genome_run(loom_genome* genome, const loom_tensor* inputs, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(Genome * object, object_of(genome));
    LOOM_ASSIGN(const Tensor x, rows_of(inputs, object->inputs()));
    LOOM_ASSIGN(Tensor y, Tensor::zeros({x.shape()[0], object->outputs()}));
    LOOM_ASSIGN(const std::span<float> values, y.mutable_values<float>());
    LOOM_TRY(run_rows(*object, x, false, values));
    return give(out, std::move(y));
  });
}

loom_status loom_genome_reset(loom_genome* genome) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(Genome * object, object_of(genome));
    object->reset();
    return {};
  });
}

loom_status loom_genome_network(const loom_genome* genome, loom_engine* engine,
                                loom_network** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Genome* object, object_of(genome));
    LOOM_ASSIGN(const Engine on, engine_of(engine));
    LOOM_ASSIGN(Network network, object->network(on));
    return give(out, std::move(network));
  });
}

loom_status loom_genome_json(const loom_genome* genome, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Genome* object, object_of(genome));
    return give_text(out, object->json());
  });
}

void loom_genome_free(loom_genome* genome) {
  free_handle(genome);
}

loom_status loom_network_compare_dna(const loom_network* a, const loom_network* b,
                                     loom_dna_mode mode, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Network* first, object_of(a));
    LOOM_ASSIGN(const Network* second, object_of(b));
    LOOM_ASSIGN(const auto at, enum_of<size_t>(mode, std::size(kDnaModes), "mode"));
    DnaOptions options;
    options.mode = kDnaModes[at];
    LOOM_ASSIGN(const DnaComparison comparison, compare_dna(*first, *second, options));
    return give_text(out, comparison.json());
  });
}

loom_status loom_network_dna(const loom_network* network, const char* at, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Network* object, object_of(network));
    LOOM_ASSIGN(const std::string cell, text_of(at, "at"));
    LOOM_ASSIGN(Tensor signature, dna_signature(*object, cell));
    return give(out, std::move(signature));
  });
}

loom_status loom_network_splice(const loom_network* a, const loom_network* b,
                                const loom_splice_options* options, loom_network** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Network* first, object_of(a));
    LOOM_ASSIGN(const Network* second, object_of(b));
    LOOM_ASSIGN(const loom_splice_options from, options_of(options, "loom_splice_options"));
    LOOM_ASSIGN(const SpliceOptions how, read_options(from));
    LOOM_ASSIGN(SplicedNetwork child, splice(*first, *second, how));
    return give(out, std::move(child.network));
  });
}

}  // extern "C"
