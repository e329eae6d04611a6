// loom evolve: networks that grow by NEAT, from samples or from any program that prints a fitness.
#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include "../plots/evolution_picture.hpp"
#include "../plots/learning.hpp"
#include "../plots/plot.hpp"
#include "../shared/outputs.hpp"
#include "../shared/progress.hpp"
#include "../shared/verbs.hpp"
#include "evolve_grid.hpp"
#include "fitness_command.hpp"

namespace loom::cli {
namespace {

struct EvolveFlags {
  EngineFlags engine;
  MemoryFlags memory;
  DataFlags data;
  NeatOptions neat;
  OptionFlags method;  // NeatOptions; a population saves them in its file
  bool force = false;
  EvolveGridFlags grid;  // of whole networks
  std::string fitness, output, genome, population, resume, svg, samples;
  std::string normalize = "standard";
  int64_t generations = 100;
  double goal = NAN, timeout = 60, validation = 0;
  bool json = false, quiet = false;
  Option has_generations, has_normalize, has_validation, has_timeout, has_goal;
};

Error evolve_error(std::string message) {
  return Error{Code::invalid_argument, std::move(message), {}, -1};
}

// A folder for the networks that a program scores; removed with its contents.
class Scratch {
 public:
  static Result<Scratch> create() {
    std::error_code error;
    std::string path = (std::filesystem::temp_directory_path(error) / "loom-XXXXXX").string();
    if (error || mkdtemp(path.data()) == nullptr)
      return Error{Code::io_error, "no folder for temporary files can be made", path, -1};
    return Scratch(path);
  }
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// How fitness is computed.
struct Judge {
  Fitness fitness;
  std::optional<SampleFitness> samples;
  std::optional<Dataset> validation;
  std::shared_ptr<Scratch> scratch;
  FitnessRecord record;  // saved with the population
};

// Saves layers, or nodes and connections of a genome with cycles.
Status save_genome(const Genome& genome, const std::string& path) {
  if (genome.recurrent()) return write_file(path, genome.json());
  LOOM_ASSIGN(const Network network, genome.network());
  return network.save(path);
}

Result<Judge> judge_by_command(const EvolveFlags& f) {
  Judge judge;
  judge.record.samples = false;
  judge.record.timeout = f.timeout;
  LOOM_ASSIGN(Scratch scratch, Scratch::create());
  judge.scratch = std::make_shared<Scratch>(std::move(scratch));
  auto next = std::make_shared<std::atomic<int64_t>>(0);
  judge.fitness = [folder = judge.scratch, next, command = f.fitness,
                   seconds = f.timeout](Genome& genome) -> Result<double> {
    const std::string path = fmt::format("{}/{}.json", folder->path(), (*next)++);
    LOOM_TRY(save_genome(genome, path));
    const Result<double> value = fitness_of(command, path, seconds);
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    return value;
  };
  return judge;
}

// A best fitness on other samples is meaningless for these. The two files contradict each other,
// and which one is wrong is unknown.
Status check_samples_of(const Population& population, const Dataset& data,
                        const std::string& path) {
  const std::optional<FitnessRecord>& record = population.fitness_record();
  if (!record || record->data_hash.empty() || record->data_hash == data.hash()) return {};
  return Error{Code::bad_file,
               "these are other samples than the population of --resume was judged by, or its hash "
               "of them is damaged; give those, or begin a new population without --resume",
               path, -1};
}

Result<Judge> judge_by_samples(const EvolveFlags& f, const Population& population,
                               const Engine& engine) {
  // Samples are read for a network with the genomes' widths.
  LOOM_ASSIGN(const Network reader,
              Network::sequential({Dense{.in = population.inputs(), .out = population.outputs()}},
                                  {.input = {population.inputs()}, .engine = engine}));
  LOOM_ASSIGN(const DatasetOptions how, f.data.options(population.outputs() > 1));
  LOOM_ASSIGN(Dataset data, read_samples(f.data.path, reader, how));
  LOOM_ASSIGN(const Normalize normalize, parse_normalize(f.normalize));
  LOOM_TRY(check_samples_of(population, data, f.data.path));
  Judge judge;
  judge.record = {true, normalize, f.validation, data.hash(), 0, {}};
  if (f.validation > 0) {
    LOOM_ASSIGN(Dataset::Parts parts, data.split(1 - f.validation, {.seed = population.seed()}));
    data = parts.first;
    judge.validation = parts.second;
  }
  LOOM_ASSIGN(judge.samples,
              SampleFitness::create(data, population.inputs(), population.outputs(), normalize));
  judge.fitness = *judge.samples;
  return judge;
}

// Options that are not given take the values of the population of --resume. Given options must be
// equal, except the timeout and the goal.
Status judge_as_before(EvolveFlags& f, const FitnessRecord& record) {
  if (record.samples != f.fitness.empty())
    return evolve_error(record.samples
                            ? "the population of --resume was judged by samples; give them as DATA"
                            : "the population of --resume was judged by a program; give --fitness");
  if (!f.has_timeout.given() && record.timeout > 0) f.timeout = record.timeout;
  if (!f.has_goal.given() && record.goal) f.goal = *record.goal;
  if (!record.samples) return {};
  const auto kept = [](std::string_view name, const std::string& value) {
    return evolve_error(
        fmt::format("{} is {} in the population of --resume; leave it out", name, value));
  };
  const std::string normalize(normalize_name(record.normalize));
  if (f.has_normalize.given() && f.normalize != normalize) return kept("--normalize", normalize);
  if (f.has_validation.given() && f.validation != record.validation)
    return kept("--validation", fmt::format("{}", record.validation));
  f.normalize = normalize;
  f.validation = record.validation;
  return {};
}

Result<Population> begin(EvolveFlags& f) {
  if (!f.resume.empty()) {
    LOOM_ASSIGN(Population population, Population::load(f.resume));
    if (population.fitness_record()) {
      LOOM_TRY(judge_as_before(f, *population.fitness_record()));
    } else if (f.fitness.empty() && !f.quiet && !f.json) {
      note(fmt::format("{} does not say how it was judged: --normalize {} --validation {}",
                       f.resume, f.normalize, f.validation));
    }
    return population;
  }
  return Population::create(f.neat);
}

std::string generation_line(const GenerationReport& g) {
  return fmt::format(
      "generation {:>4}  best {:<10.6g} mean {:<10.6g} {:>3} species  best has {} hidden, {} "
      "connections{}",
      g.generation, g.best, g.mean, g.species.size(), g.hidden, g.connections,
      g.failed > 0 ? fmt::format("  {} without a fitness", g.failed) : "");
}

struct Outcome {
  Evolution evolution;
  std::optional<Error> stopped;  // by Ctrl-C or by the fitness
  std::optional<Evaluation> validation;
};

// Runs the generations; the results are kept however they end.
Outcome breed(const EvolveFlags& f, Population& population, const Judge& judge, Keeper& keeper) {
  Outcome out;
  Progress bar("evolving", "generations", f.quiet || f.json);
  EvolveOptions options{.generations = f.generations, .threads = f.engine.threads};
  if (std::isfinite(f.goal)) options.goal = f.goal;
  int64_t done = 0;
  options.progress = [&](const GenerationReport& g) {
    population.set_fitness_record(judge.record);  // a failed run leaves the file unchanged
    if (!f.population.empty()) {
      keeper.save(f.population, [&](const std::string& name) { return population.save(name); });
    }
    if (!f.quiet && !f.json) {
      bar.finish();
      write_line(generation_line(g));
    }
    bar.update(++done, f.generations);
    return !interrupted();
  };
  const Fitness asked = [&](Genome& genome) -> Result<double> {
    if (interrupted()) return Error{Code::cancelled, "interrupted", {}, -1};
    return judge.fitness(genome);
  };
  const int64_t before = population.generation();
  const Result<Evolution> found = evolve(population, asked, options);
  bar.finish();
  if (found.ok()) {
    out.evolution = *found;
    return out;
  }
  out.stopped = found.error();
  out.evolution = {false, population.generation() - before,
                   (population.generation() - before) * population.size(),
                   population.best_fitness()};
  return out;
}

Result<Network> network_of(const Genome& genome, const Judge& judge, const Engine& engine) {
  if (judge.samples) return judge.samples->network(genome, engine);
  return genome.network(engine);
}

Status save_best(const EvolveFlags& f, const Population& population, const Judge& judge,
                 const Engine& engine, Keeper& keeper, Outcome& out) {
  if (population.generation() == 0) return {};
  keeper.begin_end();
  if (!f.population.empty())
    keeper.save(f.population, [&](const std::string& name) { return population.save(name); });
  LOOM_ASSIGN(const Genome best, population.best());
  if (!f.genome.empty())
    keeper.save(f.genome, [&](const std::string& name) {
      return write_file(name, judge.samples ? judge.samples->json(best) : best.json());
    });
  if (!f.svg.empty()) {
    keeper.save(f.svg, [&](const std::string& name) {
      const std::string of = f.fitness.empty() ? f.data.path : f.fitness;
      return write_file(name, evolution_svg(population.history(), "evolution on " + printable(of)));
    });
  }
  if (!f.output.empty() || judge.validation) {
    LOOM_ASSIGN(const Network network, network_of(best, judge, engine));
    if (!f.output.empty())
      keeper.save(f.output, [&](const std::string& name) { return network.save(name); });
    if (judge.validation) {
      LOOM_ASSIGN(Trainer scorer, Trainer::create(network, {}));
      LOOM_ASSIGN(out.validation, scorer.evaluate(*judge.validation));
    }
  }
  return keeper.finish();
}

void print_json(const Population& population, const Outcome& out) {
  Json generations = Json::array();
  for (const GenerationReport& g : population.history()) {
    Json species = Json::array();
    for (const SpeciesReport& s : g.species)
      species.push(Json::array_of({Json::integer(s.id), Json::integer(s.members)}));
    JsonObject line;
    line.set("generation", g.generation)
        .set("evaluations", g.evaluations)
        .set("best", g.best)
        .set("mean", g.mean)
        .set("worst", g.worst)
        .set("failed", g.failed)
        .set("hidden", g.hidden)
        .set("connections", g.connections)
        .set("species", species);
    generations.push(line.value());
  }
  JsonObject all;
  all.set("reached", out.evolution.reached)
      .set("best", population.best_fitness())
      .set("evaluations", out.evolution.evaluations);
  if (out.validation) all.set("validation_loss", out.validation->loss);
  if (out.validation && out.validation->accuracy)
    all.set("validation_accuracy", *out.validation->accuracy);
  all.set("generations", generations).print();
}

void print_text(const EvolveFlags& f, const Population& population, const Outcome& out) {
  const auto best = population.best();
  if (!best.ok()) return;
  if (!f.quiet) {
    Curves curves;
    for (const GenerationReport& g : population.history()) curves.train.push_back(g.best);
    write_out(braille_plot(curves, "best", "generation"));
  }
  if (!std::isfinite(population.best_fitness()))
    return write_line("no network has a finite fitness yet");
  std::string line = fmt::format(
      "best fitness {:.6g} after {} evaluations: {} hidden nodes, {} connections",
      population.best_fitness(), out.evolution.evaluations, best->hidden(), best->connections());
  if (out.validation && out.validation->accuracy) {
    line += ", validation accuracy " + percent(*out.validation->accuracy);
  } else if (out.validation) {
    line += fmt::format(", validation loss {:.6g}", out.validation->loss);
  }
  write_line(line);
}

Status check_inputs(const EvolveFlags& f) {
  if (f.data.path.empty() == f.fitness.empty())
    return evolve_error("give DATA, samples to answer, or --fitness CMD, a program that judges");
  for (const std::string& flag : f.method.given()) {
    if (!f.resume.empty())
      return evolve_error("--" + flag + " is as the population of --resume has it; leave it out");
  }
  if (f.resume.empty() && (f.neat.inputs < 1 || f.neat.outputs < 1))
    return evolve_error("give --inputs and --outputs, how many numbers a network takes and gives");
  if (f.neat.recurrent && f.fitness.empty())
    return evolve_error("--recurrent needs --fitness CMD: samples have no steps of time");
  if (!f.fitness.empty() && f.validation > 0)
    return evolve_error("--validation holds out samples of DATA, and there are none");
  return {};
}

Status check_outputs(const EvolveFlags& f) {
  LOOM_TRY(check_inputs(f));
  if (f.neat.recurrent && !f.output.empty())
    return evolve_error("a recurrent genome is not a network of layers; keep it with --genome");
  Outputs outputs(f.force);
  outputs.input("DATA", f.data.path);
  if (f.resume != f.population) outputs.input("--resume", f.resume);
  return outputs
      .file("-o", f.output, {".json", ".entity", ".safetensors", ".npz"}, "the best network")
      .file("--genome", f.genome, {".json"}, "nodes and connections of the best")
      .state("--population-file", f.population, {".json"}, "the population")
      .file("--svg", f.svg, {".svg"}, "fitness and species as SVG")
      .check();
}

// NETWORK DATA: the first path is a network.
int run_on_network(EvolveFlags& f) {
  for (const std::string& flag : f.method.given()) {
    if (flag != "population" && flag != "seed")
      return fail(kUsage, "--" + flag + " is for NEAT; leave it out beside a NETWORK");
    f.grid.method.set(flag, {f.method.text(flag)});
  }
  if (!f.fitness.empty() || !f.genome.empty() || std::isfinite(f.goal))
    return fail(kUsage,
                "--fitness, --genome and --goal are for NEAT; leave them out beside a NETWORK");
  if (f.has_normalize.given()) f.grid.method.set("normalize", {f.normalize});
  if (f.has_validation.given()) f.grid.method.set("validation", {fmt::format("{}", f.validation)});
  f.grid.network = f.data.path;
  f.data.path = f.samples;
  f.grid.output = f.output;
  f.grid.population_file = f.population;
  f.grid.resume = f.resume;
  f.grid.svg = f.svg;
  if (f.has_generations.given()) f.grid.generations = f.generations;
  f.grid.threads = f.engine.threads;
  f.grid.json = f.json;
  f.grid.quiet = f.quiet;
  f.grid.force = f.force;
  const Result<Engine> engine = f.engine.create(f.memory);
  return engine.ok() ? evolve_grid(f.grid, f.data, *engine) : fail(engine.error());
}

// The options of the population. Scores of classes and targets are any numbers; a program gets
// values between 0 and 1.
Status read_method(EvolveFlags& f) {
  if (f.fitness.empty()) f.neat.output = Activation::linear;
  return f.method.read(f.neat);
}

int run(EvolveFlags& f) {
  if (!f.samples.empty()) return run_on_network(f);
  const Status read = read_method(f);
  if (!read.ok()) return fail(read.error());
  const Status writable = check_outputs(f);
  if (!writable.ok()) return fail(writable.error());
  const Result<Engine> engine = f.engine.create(f.memory);
  if (!engine.ok()) return fail(engine.error());
  Result<Population> population = begin(f);
  if (!population.ok()) return fail(population.error());
  if (population->recurrent() && (!f.output.empty() || f.fitness.empty()))
    return fail(kUsage,
                "the population is recurrent: it takes --fitness, and --genome instead of "
                "-o");
  Result<Judge> judge =
      f.fitness.empty() ? judge_by_samples(f, *population, *engine) : judge_by_command(f);
  if (!judge.ok()) return fail(judge.error());
  if (std::isfinite(f.goal)) judge->record.goal = f.goal;
  Keeper keeper;
  Outcome out = breed(f, *population, *judge, keeper);
  const Status saved = save_best(f, *population, *judge, *engine, keeper, out);
  if (population->generation() > 0)
    f.json ? print_json(*population, out) : print_text(f, *population, out);
  if (out.stopped)
    return out.stopped->code == Code::cancelled ? fail_interrupted() : fail(*out.stopped);
  return saved.ok() ? kDone : fail(saved.error());
}

// The help shows the output activation of both forms.
std::vector<OptionInfo> neat_options(const NeatOptions& neat) {
  std::vector<OptionInfo> all = list_options(neat);
  for (OptionInfo& o : all) {
    if (o.flag == "output-activation") o.text = "linear for DATA, sigmoid for --fitness";
  }
  return all;
}

}  // namespace

Verb add_evolve(Command app) {
  auto f = std::make_shared<EvolveFlags>();
  f->neat.inputs = f->neat.outputs = 0;
  const Command verb =
      app.command("evolve", "Evolve networks: by NEAT, or whole networks of layers.");
  verb.examples(
      "  loom evolve examples/data/fruit.csv --inputs 4 --outputs 4 -o best.json --svg fruit.svg\n"
      "  loom evolve net.json table.csv --objectives accuracy,parameters --svg front.svg -o "
      "best.entity\n"
      "  loom evolve --fitness ./judge.sh --inputs 2 --outputs 1 --goal 15 -o best.json\n"
      "  loom evolve --fitness ./judge.sh --inputs 2 --outputs 1 --population-file pop.json\n"
      "  loom evolve --fitness ./judge.sh --resume pop.json --population-file pop.json\n"
      "CMD gets the file of a network as its last argument and prints its fitness, higher is\n"
      "better, on its last line. Settings of the population, --normalize and --validation come\n"
      "from the file with --resume. Outputs are linear for DATA, without --output-activation.\n"
      "NETWORK DATA, two files, evolves whole networks: layers, widths, connections, number "
      "types.");
  f->data.add(verb, false);
  verb.option("SAMPLES", f->samples, "DATA, where the first file is a NETWORK of layers");
  const Command search = verb.group("Search"), files = verb.group("Files"),
                output = verb.group("Output"), data = verb.group("Data");
  search.option("--fitness", f->fitness, "Program that judges a network, for a shell");
  f->has_timeout =
      search.option("--timeout", f->timeout, "Seconds that it may take for one network")
          .range(0.001, 1e6)
          .show_default();
  f->has_generations =
      search
          .option("--generations", f->generations,
                  "At most; with --resume so many more (default: 100, of whole networks 10)")
          .range(0, INT32_MAX);
  f->has_goal =
      search.option("--goal", f->goal, "Fitness that ends the search").range(-1e300, 1e300);
  f->method.add(verb, neat_options(f->neat), {});
  f->grid.add(verb);
  f->has_normalize =
      data.option("--normalize", f->normalize, "Inputs of DATA: none, standard, range")
          .show_default();
  f->has_validation = data.option("--validation", f->validation,
                                  "Share of DATA that is held out and scored at the end")
                          .range(0.0, 0.9)
                          .show_default();
  files.option("-o,--output", f->output, "The best network: .json, .entity, .safetensors, .npz");
  files.option("--genome", f->genome, "Its nodes and connections as .json");
  files.option("--population-file", f->population, "All of it as .json, after each generation");
  files.option("--resume", f->resume, "Go on from such a file, with the same bits");
  files.option("--svg", f->svg, "Draw fitness and species by generation");
  add_force(files, f->force);
  output.flag("--json", f->json, "The whole history as JSON");
  output.flag("--quiet", f->quiet, "The last line alone");
  f->engine.add_lanes(verb);
  f->memory.add(verb);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
