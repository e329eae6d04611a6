// Evolution of whole networks: trains and scores the members of evolve/networks/architectures.hpp.
#include "loom/architectures.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <optional>

#include "api/engine/impl.hpp"
#include "api/network/network_impl.hpp"
#include "api/train/scored_data.hpp"
#include "base/text.hpp"
#include "evolve/networks/architectures.hpp"
#include "io/files/file.hpp"
#include "io/files/foreign_file.hpp"
#include "learn/trainer.hpp"

namespace loom::core {

namespace {

constexpr double kFailedLoss = 1e9;  // of a network whose training came to no finite number

TrainerSpec trainer_options(const ArchitectureSpec& spec, const Dataset& train) {
  TrainerSpec o;
  o.step.loss.kind = default_loss(train.has_labels());
  o.step.class_ids = train.has_labels();
  o.step.seed = o.seed = spec.seed;
  o.schedule.kind = ScheduleKind::cosine;
  o.rate = spec.training.rate;
  o.epochs = spec.training.epochs;
  o.batch = spec.training.batch;
  return o;
}

// Inherited weights become masters; parts that a mutation added without values are initialized.
Status begin_with(const GridGenome& genome, Trainer& trainer) {
  const Network& network = trainer.network();
  for (const StateTensor& state : trainer.step().state()) {
    const int index = network.find_param(state.name);
    if (index < 0) continue;
    const GenePosition gene = gene_position(network.params()[static_cast<size_t>(index)]);
    const auto& values = genome.cells[gene.cell].values;
    const auto held = values.find(gene.name);
    if (held == values.end()) continue;
    if (static_cast<int64_t>(held->second.size()) != state.tensor.shape.count())
      return invalid(cat("a genome has ", held->second.size(), " values for ", state.name));
    std::copy(held->second.begin(), held->second.end(), state.tensor.f32());
  }
  LOOM_TRY(trainer.step().restored(0));
  return trainer.step().refresh_scales();
}

void keep_weights(Trainer& trainer, GridGenome& genome) {
  const Network& network = trainer.network();
  for (const StateTensor& state : trainer.step().state()) {
    const int index = network.find_param(state.name);
    if (index < 0) continue;
    const GenePosition gene = gene_position(network.params()[static_cast<size_t>(index)]);
    const float* from = state.tensor.f32();
    genome.cells[gene.cell].values[gene.name].assign(from, from + state.tensor.shape.count());
  }
}

bool all_finite(const GridGenome& genome) {
  for (const GeneCell& cell : genome.cells) {
    for (const auto& [name, values] : cell.values) {
      for (const float v : values) {
        if (!std::isfinite(v)) return false;
      }
    }
  }
  return true;
}

Status score_member(const ArchitectureSpec& spec, const ScoredData& data, const Ops& ops,
                    ArchitectureMember& member) {
  ThreadPool pool(1);
  LOOM_ASSIGN(const NetworkSpec described, member.genome.spec());
  LOOM_ASSIGN(Trainer trainer, Trainer::create(described.grid, data.train,
                                               trainer_options(spec, data.train), ops, pool));
  if (!spec.training.fresh) LOOM_TRY(begin_with(member.genome, trainer));
  bool finite = true;
  for (int64_t e = 0; e < spec.training.epochs && finite; ++e) {
    LOOM_ASSIGN(const EpochReport epoch, trainer.epoch(data.train, {}));
    finite = std::isfinite(epoch.train_loss);
  }
  const auto begin = std::chrono::steady_clock::now();
  LOOM_ASSIGN(const Evaluation scores, trainer.evaluate(data.held));
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  GridGenome trained = member.genome;
  keep_weights(trainer, trained);
  finite = finite && std::isfinite(scores.loss) && all_finite(trained);
  member.score = {};
  member.score.accuracy = finite ? scores.accuracy.value_or(0) : 0.0;
  member.score.loss = finite ? scores.loss : kFailedLoss;
  member.score.parameters = static_cast<double>(trainer.network().param_count());
  member.score.bytes = static_cast<double>(trainer.network().param_bytes());
  const bool timed = std::ranges::find(spec.aims, ArchitectureAim::time) != spec.aims.end();
  if (timed) member.score.seconds = took / static_cast<double>(data.held.samples);
  if (finite) member.genome = std::move(trained);
  return {};
}

ArchitectureInfo info_of(const ArchitectureMember& m) {
  return {m.id,
          m.parent,
          m.other,
          m.born,
          m.birth,
          m.genome.text(),
          m.score.accuracy,
          m.score.loss,
          static_cast<int64_t>(m.score.parameters),
          static_cast<int64_t>(m.score.bytes),
          m.score.seconds};
}

ArchitectureReport report_of(const ArchitectureGeneration& g) {
  return {g.generation,
          g.evaluated,
          g.rejected,
          g.front,
          g.best_accuracy,
          g.best_loss,
          static_cast<int64_t>(g.least_parameters)};
}

// The weights of a loaded network, in the order of its cells.
Result<GridGenome> genome_of(const loom::Network& network) {
  LOOM_ASSIGN(GridGenome genome, GridGenome::of(network.impl().model.network));
  LOOM_ASSIGN(const Network row, genome.finalized(1));
  const std::vector<ParameterInfo> names = network.parameters();
  if (names.size() != row.params().size())
    return unsupported("a network with shared parameters does not evolve");
  for (size_t i = 0; i < names.size(); ++i) {
    LOOM_ASSIGN(const loom::Tensor values, network.parameter(names[i].name));
    LOOM_ASSIGN(const std::span<const float> all, values.values<float>());
    const GenePosition gene = gene_position(row.params()[i]);
    genome.cells[gene.cell].values[gene.name].assign(all.begin(), all.end());
  }
  return genome;
}

Result<ArchitectureSpec> spec_of(const ArchitectureOptions& o) {
  ArchitectureSpec s;
  s.population = o.population;
  s.seed = o.seed;
  s.cross = o.cross;
  s.aims.clear();
  for (const std::string& name : o.objectives) {
    LOOM_ASSIGN(const ArchitectureAim aim, parse_aim(name));
    s.aims.push_back(aim);
  }
  s.rates.most_parameters = o.most_parameters;
  for (int i = 0; i < kGridChanges && o.retype; ++i)
    s.rates.changes.push_back(static_cast<GridChange>(i));
  if (o.normalize == Normalize::as_trained)
    return invalid("there is no training to normalize as; choose none, standard or range");
  if (o.epochs < 1 || o.batch < 1 || !(o.rate >= 0))
    return invalid("epochs and batch must be at least 1, and rate at least 0");
  if (!(o.validation > 0 && o.validation < 1))
    return invalid(cat("validation is ", o.validation, ", must be between 0 and 1"));
  s.training = {o.epochs, o.batch, o.rate, o.validation, static_cast<int64_t>(o.normalize),
                o.fresh};
  return s;
}

}  // namespace
}  // namespace loom::core

namespace loom {

struct ArchitectureSearch::Impl {
  Impl(core::Architectures all, core::ScoredData scored, const core::Ops* with)
      : population(std::move(all)), data(std::move(scored)), ops(with) {}
  core::Architectures population;
  core::ScoredData data;
  const core::Ops* ops;
};

Result<ArchitectureSearch> ArchitectureSearch::create(const Network& seed, const Dataset& data,
                                                      const ArchitectureOptions& options) {
  LOOM_ASSIGN(const core::ArchitectureSpec spec, core::spec_of(options));
  LOOM_ASSIGN(core::GridGenome genome, core::genome_of(seed));
  LOOM_ASSIGN(core::Architectures all, core::Architectures::create(std::move(genome), spec));
  const core::ArchitectureTraining& how = spec.training;
  LOOM_ASSIGN(core::ScoredData scored,
              core::split_scored(data, how.validation, spec.seed, how.normalize));
  all.data_hash = scored.split->data;
  return ArchitectureSearch(std::make_shared<Impl>(std::move(all), std::move(scored),
                                                   &core::cpu_ops(seed.impl().engine.impl().isa)));
}

Result<ArchitectureSearch> ArchitectureSearch::load(const std::string& path, const Dataset& data) {
  LOOM_ASSIGN(const std::string text, core::read_file(path, uint64_t{256} << 20));
  Result<core::Architectures> read = core::Architectures::from_text(text, path);
  if (!read.ok()) return core::file_error(read.error(), path);
  core::Architectures all = std::move(*read);
  const core::ArchitectureTraining& how = all.spec().training;
  LOOM_ASSIGN(core::ScoredData scored,
              core::split_scored(data, how.validation, all.spec().seed, how.normalize));
  if (!all.data_hash.empty() && all.data_hash != scored.split->data)
    return core::bad_file(
        "was scored on other samples, or its hash of them is damaged; give those, or begin a new "
        "population without it",
        path);
  all.data_hash = scored.split->data;
  return ArchitectureSearch(
      std::make_shared<Impl>(std::move(all), std::move(scored), &core::cpu_ops(core::best_isa())));
}

Status ArchitectureSearch::save(const std::string& path) const {
  const std::string text = impl_->population.text() + "\n";
  return core::write_file_atomic(path, std::as_bytes(std::span(text)));
}

Result<ArchitectureReport> ArchitectureSearch::step(
    int threads, const std::function<bool(int64_t, int64_t)>& on_network) {
  std::vector<core::ArchitectureMember> children = impl_->population.breed();
  std::atomic<size_t> next{0};
  std::mutex report_mutex;
  int64_t done = 0;
  std::optional<Error> error;
  core::ThreadPool pool(threads);
  // Which lane trains which network depends on time; the results do not.
  pool.run([&](int, int) {
    for (size_t i = next++; i < children.size(); i = next++) {
      const Status scored =
          core::score_member(impl_->population.spec(), impl_->data, *impl_->ops, children[i]);
      const std::lock_guard<std::mutex> lock(report_mutex);
      if (!scored.ok() && !error) error = scored.error();
      const auto all = static_cast<int64_t>(children.size());
      if (!error && on_network && !on_network(++done, all))
        error = Error{Code::cancelled, "stopped by on_network", {}, -1};
      if (error) next = children.size();
    }
  });
  if (error) return *error;
  LOOM_TRY(impl_->population.advance(std::move(children)));
  return core::report_of(impl_->population.history().back());
}

std::vector<ArchitectureInfo> ArchitectureSearch::members() const {
  std::vector<ArchitectureInfo> out;
  for (const core::ArchitectureMember& m : impl_->population.members())
    out.push_back(core::info_of(m));
  return out;
}

std::vector<ArchitectureInfo> ArchitectureSearch::front() const {
  std::vector<ArchitectureInfo> out;
  for (const size_t i : impl_->population.front())
    out.push_back(core::info_of(impl_->population.members()[i]));
  return out;
}

std::vector<ArchitectureReport> ArchitectureSearch::history() const {
  std::vector<ArchitectureReport> out;
  for (const core::ArchitectureGeneration& g : impl_->population.history())
    out.push_back(core::report_of(g));
  return out;
}

ArchitectureInfo ArchitectureSearch::seed() const {
  core::ArchitectureMember m;
  m.birth = "the seed";
  m.genome = impl_->population.seed();
  m.score = impl_->population.seed_score();
  return core::info_of(m);
}

std::vector<std::string> ArchitectureSearch::objectives() const {
  std::vector<std::string> out;
  for (const core::ArchitectureAim aim : impl_->population.spec().aims)
    out.emplace_back(core::aim_name(aim));
  return out;
}

Result<Network> ArchitectureSearch::network(int64_t id, const std::optional<Engine>& engine) const {
  for (const core::ArchitectureMember& m : impl_->population.members()) {
    if (m.id != id) continue;
    return core::network_of(m.genome, impl_->data, impl_->population.spec().seed, engine);
  }
  return Error{Code::not_found, core::cat("no member has the id ", id), {}, -1};
}

}  // namespace loom
