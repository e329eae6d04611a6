// Populations and genomes of NEAT.
#include "loom/evolve.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "api/network/network_impl.hpp"
#include "base/text.hpp"
#include "base/threads/thread_pool.hpp"
#include "evolve/neat/genome_network.hpp"
#include "evolve/neat/neat.hpp"
#include "io/files/file.hpp"
#include "io/files/foreign_file.hpp"
#include "io/json/json.hpp"
#include "loom/graph.hpp"
#include "ops/activation.hpp"

namespace loom {

struct Genome::Impl {
  core::NeatGenome genome;
  core::GenomeNetwork run;
  bool recurrent = false;
  float slope = 1;
  std::vector<float> outputs;
};
struct Population::Impl {
  core::NeatPopulation neat;
};

namespace core {
namespace {

NeatSpec neat_spec(const NeatOptions& o) {
  NeatSpec s;
  const auto kind = [](loom::Activation a) { return static_cast<Activation>(a); };
  s.shape = {o.inputs, o.outputs, o.recurrent, o.connected, kind(o.output), {}};
  for (const loom::Activation a : o.hidden) s.shape.hidden.push_back(kind(a));
  s.rates.add_node = o.add_node;
  s.rates.add_connection = o.add_connection;
  s.rates.weights = o.change_weights;
  s.rates.new_weight = o.new_weight;
  s.rates.weight_step = o.weight_step;
  s.rates.weight_limit = o.weight_limit;
  s.rates.enable = o.enable;
  s.rates.activation = o.change_activation;
  s.rates.excess = o.excess;
  s.rates.disjoint = o.disjoint;
  s.rates.weight_difference = o.weight_difference;
  s.selection.population = o.population;
  s.selection.survivors = o.survivors;
  s.selection.patience = o.patience;
  s.selection.crisis = o.crisis;
  s.selection.alone = o.alone;
  s.selection.between = o.between;
  s.selection.crossed_only = o.crossed_only;
  s.threshold = o.threshold;
  s.slope = static_cast<float>(o.slope);
  s.seed = o.seed;
  return s;
}

GenerationReport generation_report(const NeatGeneration& g) {
  GenerationReport r;
  r.generation = g.generation;
  r.evaluations = g.evaluations;
  r.best = g.best;
  r.mean = g.mean;
  r.worst = g.worst;
  r.failed = g.failed;
  r.hidden = g.hidden;
  r.connections = g.connections;
  for (const auto& [id, members] : g.species) r.species.push_back({id, members});
  return r;
}

Result<loom::Genome> genome_handle(const core::NeatGenome& genome, const NeatSpec& spec) {
  auto impl = std::make_shared<loom::Genome::Impl>();
  impl->genome = genome;
  impl->recurrent = spec.shape.recurrent;
  impl->slope = spec.slope;
  LOOM_ASSIGN(impl->run, GenomeNetwork::create(genome, spec.shape.recurrent, spec.slope));
  impl->outputs.assign(impl->run.outputs(), 0.0f);
  return loom::Genome(std::move(impl));
}

// Consecutive values in one Dense: of the same level and activation.
struct DenseRun {
  size_t first = 0, count = 0;  // nodes
  size_t reads = 0;             // values before its level
};
std::vector<DenseRun> dense_runs(const GenomeNetwork& net) {
  std::vector<DenseRun> runs;
  const auto& nodes = net.nodes();
  size_t level_start = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool new_level = i == 0 || nodes[i].level != nodes[i - 1].level;
    if (new_level) level_start = net.inputs() + i;
    if (new_level || nodes[i].activation != nodes[i - 1].activation)
      runs.push_back({i, 0, level_start});
    ++runs.back().count;
  }
  return runs;
}

// The values, level by level.
class LayeredGraph {
 public:
  explicit LayeredGraph(size_t inputs) : values_(graph_.input()), width_(inputs) {}

  void add(const GenomeNetwork& net, const DenseRun& run) {
    if (run.reads > width_) join();
    parts_.push_back(graph_.add(
        Dense{.in = static_cast<int64_t>(run.reads),
              .out = static_cast<int64_t>(run.count),
              .activation = static_cast<loom::Activation>(net.nodes()[run.first].activation)},
        {values_}));
    waiting_ += run.count;
  }
  loom::Graph finish(const std::vector<size_t>& outputs) {
    join();
    std::vector<GraphValue> slices;
    for (size_t i = 0; i < outputs.size();) {
      size_t end = i + 1;
      while (end < outputs.size() && outputs[end] == outputs[end - 1] + 1) ++end;
      const auto from = static_cast<int64_t>(outputs[i]);
      slices.push_back(graph_.add(
          Slice{.starts = {from}, .ends = {from + static_cast<int64_t>(end - i)}, .axes = {-1}},
          {values_}));
      i = end;
    }
    graph_.output(slices.size() == 1 ? slices[0] : graph_.add(Concat{}, slices));
    return std::move(graph_);
  }

 private:
  void join() {
    parts_.insert(parts_.begin(), values_);
    values_ = graph_.add(Concat{}, parts_);
    parts_.clear();
    width_ += waiting_;
    waiting_ = 0;
  }

  loom::Graph graph_;
  GraphValue values_;
  std::vector<GraphValue> parts_;  // of the level being added
  size_t width_, waiting_ = 0;
};

Status set_weights(loom::Network& to, const GenomeNetwork& net, const std::vector<DenseRun>& runs) {
  const std::vector<ParameterInfo> params = to.parameters();
  for (size_t r = 0; r < runs.size(); ++r) {
    const DenseRun& run = runs[r];
    std::vector<float> weight(run.count * run.reads, 0.0f), bias;
    for (size_t k = 0; k < run.count; ++k) {
      const GenomeNode& node = net.nodes()[run.first + k];
      for (const auto& [input_index, w] : node.inputs) weight[k * run.reads + input_index] = w;
      bias.push_back(node.bias);
    }
    const auto rows = static_cast<int64_t>(run.count), cols = static_cast<int64_t>(run.reads);
    LOOM_TRY(to.set_parameter(params[2 * r].name, loom::Tensor::view(weight.data(), {rows, cols})));
    LOOM_TRY(to.set_parameter(params[2 * r + 1].name, loom::Tensor::view(bias.data(), {rows})));
  }
  return {};
}

std::string_view role_name(NodeRole role) {
  constexpr std::string_view kNames[] = {"input", "bias", "output", "hidden"};
  return kNames[static_cast<size_t>(role)];
}

// Fitness of all members, computed by threads that take the next free one. After an error no more
// are started. The error of the first failed member is returned.
Status evaluate(const loom::Population& population, const Fitness& fitness, ThreadPool& pool,
                std::vector<double>& out) {
  std::vector<std::optional<Error>> errors(out.size());
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  const auto one = [&](size_t i) -> Result<double> {
    LOOM_ASSIGN(loom::Genome genome, population.genome(static_cast<int64_t>(i)));
    return fitness(genome);
  };
  pool.run([&](int, int) {
    for (size_t i = next++; i < out.size() && !failed; i = next++) {
      const Result<double> value = one(i);
      if (value.ok()) {
        out[i] = *value;
      } else {
        errors[i] = value.error();
        failed = true;
      }
    }
  });
  for (const std::optional<Error>& e : errors) {
    if (e) return *e;
  }
  return {};
}

}  // namespace
}  // namespace core

int64_t Genome::inputs() const {
  return static_cast<int64_t>(impl_->run.inputs());
}
int64_t Genome::outputs() const {
  return static_cast<int64_t>(impl_->run.outputs());
}
int64_t Genome::hidden() const {
  return impl_->genome.count(core::NodeRole::hidden);
}
int64_t Genome::connections() const {
  return impl_->genome.enabled();
}

bool Genome::recurrent() const {
  return impl_->recurrent;
}

Result<std::span<const float>> Genome::step(std::span<const float> x) {
  if (x.size() != impl_->run.inputs())
    return core::invalid(core::cat(x.size(), " numbers for a genome of ", inputs(), " inputs"));
  impl_->run.step(x, impl_->outputs);
  return std::span<const float>(impl_->outputs);
}

void Genome::reset() {
  impl_->run.reset();
}

Result<Network> Genome::network(const std::optional<Engine>& engine) const {
  if (impl_->recurrent) {
    return Error{Code::unsupported,
                 "a recurrent genome is not a network of layers; run it by Genome::step()",
                 {},
                 -1};
  }
  const core::GenomeNetwork& net = impl_->run;
  const std::vector<core::DenseRun> runs = core::dense_runs(net);
  core::LayeredGraph layers(net.inputs());
  for (const core::DenseRun& run : runs) layers.add(net, run);
  NetworkOptions options{.input = {inputs()}};
  options.engine = engine;
  LOOM_ASSIGN(Network out, Network::sequential({layers.finish(net.output_indices())}, options));
  LOOM_TRY(core::set_weights(out, net, runs));
  return out;
}

std::string Genome::json() const {
  using core::JsonValue;
  JsonValue nodes = JsonValue::array(), connections = JsonValue::array();
  for (const core::NodeGene& n : impl_->genome.nodes) {
    JsonValue node = JsonValue::object();
    node.add("id", JsonValue::integer(n.id));
    node.add("role", JsonValue::string(std::string(core::role_name(n.role))));
    if (n.role == core::NodeRole::output || n.role == core::NodeRole::hidden)
      node.add("activation", JsonValue::string(std::string(core::activation_name(n.activation))));
    nodes.push(std::move(node));
  }
  for (const core::ConnectionGene& c : impl_->genome.connections) {
    JsonValue gene = JsonValue::object();
    gene.add("innovation", JsonValue::integer(c.innovation));
    gene.add("from", JsonValue::integer(c.from));
    gene.add("to", JsonValue::integer(c.to));
    gene.add("weight", JsonValue::real(static_cast<double>(c.weight)));
    gene.add("enabled", JsonValue::boolean(c.enabled));
    connections.push(std::move(gene));
  }
  JsonValue out = JsonValue::object();
  out.add("slope", JsonValue::real(static_cast<double>(impl_->slope)));
  out.add("recurrent", JsonValue::boolean(impl_->recurrent));
  out.add("nodes", std::move(nodes));
  out.add("connections", std::move(connections));
  return core::dump_json(out) + "\n";
}

Result<Population> Population::create(const NeatOptions& options) {
  auto impl = std::make_shared<Impl>();
  LOOM_ASSIGN(impl->neat, core::NeatPopulation::create(core::neat_spec(options)));
  return Population(std::move(impl));
}

Result<Population> Population::load(const std::string& path) {
  constexpr uint64_t kMaxBytes = uint64_t{256} << 20;
  LOOM_ASSIGN(const std::string text, core::read_file(path, kMaxBytes));
  auto impl = std::make_shared<Impl>();
  Result<core::NeatPopulation> read =
      core::NeatPopulation::from_text(text, core::printable(path, 4096));
  if (!read.ok()) return core::file_error(read.error(), path);
  impl->neat = std::move(*read);
  return Population(std::move(impl));
}

Status Population::save(const std::string& path) const {
  const std::string text = impl_->neat.text();
  return core::write_file_atomic(path, std::as_bytes(std::span(text)));
}

int64_t Population::size() const {
  return static_cast<int64_t>(impl_->neat.genomes().size());
}
int64_t Population::inputs() const {
  return impl_->neat.spec().shape.inputs;
}
int64_t Population::outputs() const {
  return impl_->neat.spec().shape.outputs;
}
bool Population::recurrent() const {
  return impl_->neat.spec().shape.recurrent;
}
uint64_t Population::seed() const {
  return impl_->neat.spec().seed;
}

Result<Genome> Population::genome(int64_t index) const {
  if (index < 0 || index >= size())
    return core::invalid(core::cat("no genome ", index, " in a population of ", size()));
  return core::genome_handle(impl_->neat.genomes()[static_cast<size_t>(index)], impl_->neat.spec());
}

Status Population::tell(std::span<const double> fitness) {
  return impl_->neat.tell(fitness);
}

int64_t Population::generation() const {
  return static_cast<int64_t>(impl_->neat.history().size());
}

const std::optional<FitnessRecord>& Population::fitness_record() const {
  return impl_->neat.fitness_record;
}
void Population::set_fitness_record(const FitnessRecord& record) {
  impl_->neat.fitness_record = record;
}

std::vector<GenerationReport> Population::history() const {
  std::vector<GenerationReport> out;
  for (const core::NeatGeneration& g : impl_->neat.history())
    out.push_back(core::generation_report(g));
  return out;
}

Result<Genome> Population::best() const {
  if (impl_->neat.history().empty())
    return core::invalid("there is no best genome before the first call of tell()");
  return core::genome_handle(impl_->neat.best(), impl_->neat.spec());
}

double Population::best_fitness() const {
  return impl_->neat.best_fitness();
}

Result<Evolution> evolve(Population& population, const Fitness& fitness,
                         const EvolveOptions& options) {
  if (!fitness) return core::invalid("there is no fitness to evolve by");
  if (options.generations < 0)
    return core::invalid(core::cat("generations is ", options.generations, ", must be at least 0"));
  core::ThreadPool pool(options.threads);
  Evolution out;
  out.best = population.best_fitness();
  const auto reached = [&] { return options.goal && population.best_fitness() >= *options.goal; };
  std::vector<double> values(static_cast<size_t>(population.size()));
  while (!reached() && out.generations < options.generations) {
    LOOM_TRY(core::evaluate(population, fitness, pool, values));
    LOOM_TRY(population.tell(values));
    ++out.generations;
    out.evaluations += population.size();
    out.best = population.best_fitness();
    if (options.progress && !options.progress(population.history().back()))
      return Error{Code::cancelled, "evolution was stopped", {}, -1};
  }
  out.reached = reached();
  return out;
}

}  // namespace loom
