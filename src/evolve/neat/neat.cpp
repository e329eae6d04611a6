#include "evolve/neat/neat.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace loom::core {
namespace {

// Streams of generations, apart from those of weights, noise and signals.
constexpr uint64_t kNeatStream = uint64_t{1} << 52;

Status check_share(std::string_view name, double value) {
  if (value >= 0 && value <= 1) return {};
  return invalid(cat(name, " is ", value, ", must be between 0 and 1"));
}

Status check_size(std::string_view name, double value) {
  constexpr double kMax = 1e6;  // keeps weights within float32
  if (value >= 0 && value <= kMax) return {};
  return invalid(cat(name, " is ", value, ", must be between 0 and ", kMax));
}

Status check_count(std::string_view name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return invalid(cat(name, " is ", value, ", must be ", least, " to ", most));
}

}  // namespace

Status check_neat(const NeatSpec& spec) {
  constexpr int64_t kMaxNodes = 1 << 12, kMaxMembers = 1 << 20, kMaxGenes = 1 << 23;
  LOOM_TRY(check_count("inputs", spec.shape.inputs, 1, kMaxNodes));
  LOOM_TRY(check_count("outputs", spec.shape.outputs, 1, kMaxNodes));
  LOOM_TRY(check_count("population", spec.selection.population, 2, kMaxMembers));
  LOOM_TRY(check_count("patience", spec.selection.patience, 1, INT32_MAX));
  LOOM_TRY(check_count("crisis", spec.selection.crisis, 1, INT32_MAX));
  LOOM_TRY(check_count("champion_from", spec.selection.champion_from, 0, kMaxMembers));
  const int64_t genes = spec.shape.inputs + 1 + spec.shape.outputs +
                        (spec.shape.connected ? (spec.shape.inputs + 1) * spec.shape.outputs : 0);
  if (genes > kMaxGenes / spec.selection.population)
    return invalid(cat("a population of ", spec.selection.population, " genomes of ", genes,
                       " genes is too large; at most ", kMaxGenes,
                       " are held: take fewer members, or connected = false"));
  if (spec.shape.hidden.empty()) return invalid("no activation for hidden nodes");
  const NeatRates& r = spec.rates;
  const Selection& s = spec.selection;
  const std::pair<std::string_view, double> shares[] = {
      {"add_node", r.add_node},
      {"add_connection", r.add_connection},
      {"weights", r.weights},
      {"new_weight", r.new_weight},
      {"enable", r.enable},
      {"activation", r.activation},
      {"keep_disabled", r.keep_disabled},
      {"average", r.average},
      {"survivors", s.survivors},
      {"alone", s.alone},
      {"between", s.between},
      {"crossed_only", s.crossed_only},
  };
  for (const auto& [name, value] : shares) LOOM_TRY(check_share(name, value));
  const std::pair<std::string_view, double> sizes[] = {
      {"weight_step", r.weight_step},   {"first_weight", r.first_weight},
      {"weight_limit", r.weight_limit}, {"excess", r.excess},
      {"disjoint", r.disjoint},         {"weight_difference", r.weight_difference},
      {"threshold", spec.threshold},    {"slope", static_cast<double>(spec.slope)},
  };
  for (const auto& [name, value] : sizes) LOOM_TRY(check_size(name, value));
  return {};
}

Result<NeatPopulation> NeatPopulation::create(const NeatSpec& spec) {
  LOOM_TRY(check_neat(spec));
  NeatPopulation out;
  out.spec_ = spec;
  out.innovations_ = Innovations(spec.shape.inputs + 1 + spec.shape.outputs);
  Draws draws(spec.seed, kNeatStream);
  for (int64_t i = 0; i < spec.selection.population; ++i)
    out.genomes_.push_back(first_genome(spec.shape, spec.rates, out.innovations_, draws));
  out.group({});
  return out;
}

void NeatPopulation::group(const std::vector<NeatGenome>& representatives) {
  // The first member of a new species stands for it.
  std::vector<const NeatGenome*> heads;
  for (const NeatGenome& g : representatives) heads.push_back(&g);
  for (Species& s : species_) s.members.clear();
  for (size_t i = 0; i < genomes_.size(); ++i) {
    size_t home = 0;
    while (home < heads.size() &&
           distance(genomes_[i], *heads[home], spec_.rates) >= spec_.threshold)
      ++home;
    if (home == heads.size()) {
      heads.push_back(&genomes_[i]);
      species_.push_back({});
      species_.back().id = next_species_++;
    }
    species_[home].members.push_back(i);
  }
  std::erase_if(species_, [](const Species& s) { return s.members.empty(); });
}

void NeatPopulation::breed(const std::vector<Birth>& births, Draws& draws) {
  std::vector<NeatGenome> representatives;
  for (const Species& s : species_)
    representatives.push_back(genomes_[s.members[draws.below(s.members.size())]]);
  std::vector<NeatGenome> next;
  next.reserve(births.size());
  for (const Birth& b : births) {
    next.push_back(b.other ? crossed(genomes_[b.parent], genomes_[*b.other], spec_.rates, draws)
                           : genomes_[b.parent]);
    if (b.mutated) mutate(next.back(), spec_.shape, spec_.rates, innovations_, draws);
  }
  genomes_ = std::move(next);
  group(representatives);
}

NeatGeneration NeatPopulation::report(std::span<const double> fitness, size_t top) const {
  NeatGeneration g;
  g.generation = static_cast<int64_t>(history_.size());
  g.evaluations =
      static_cast<int64_t>(fitness.size()) + (history_.empty() ? 0 : history_.back().evaluations);
  int64_t counted = 0;
  for (const double f : fitness) {
    if (!std::isfinite(f)) continue;
    g.best = counted == 0 ? f : std::max(g.best, f);
    g.worst = counted == 0 ? f : std::min(g.worst, f);
    ++counted;
  }
  g.failed = static_cast<int64_t>(fitness.size()) - counted;
  // Divided before it is added, so that the mean of the largest numbers is one too.
  for (const double f : fitness) {
    if (std::isfinite(f)) g.mean += f / static_cast<double>(counted);
  }
  g.mean = std::clamp(g.mean, g.worst, g.best);
  g.hidden = genomes_[top].count(NodeRole::hidden);
  g.connections = genomes_[top].enabled();
  for (const Species& s : species_)
    g.species.emplace_back(s.id, static_cast<int64_t>(s.members.size()));
  return g;
}

Status NeatPopulation::tell(std::span<const double> fitness) {
  if (fitness.size() != genomes_.size())
    return invalid(cat(fitness.size(), " numbers as the fitness of ", genomes_.size(), " genomes"));
  const size_t top = rank_species(species_, fitness);
  history_.push_back(report(fitness, top));
  ++stagnant_;
  if (best_.nodes.empty() || ranked(fitness[top]) > best_fitness_) {
    best_ = genomes_[top];
    best_fitness_ = ranked(fitness[top]);
    stagnant_ = 0;
  }
  std::vector<int64_t> sizes;
  for (const NeatGenome& g : genomes_)
    sizes.push_back(static_cast<int64_t>(g.nodes.size() + g.connections.size()));
  Draws draws(spec_.seed, kNeatStream + history_.size());
  breed(plan_births(species_, fitness, sizes, spec_.selection, stagnant_, draws), draws);
  return {};
}

}  // namespace loom::core
