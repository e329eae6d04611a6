#include "evolve/networks/architectures.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kArchitectureStream = uint64_t{1} << 58;
constexpr const char* kAimNames[] = {"accuracy", "loss", "parameters", "bytes", "time"};

}  // namespace

Result<ArchitectureAim> parse_aim(std::string_view name) {
  for (size_t i = 0; i < std::size(kAimNames); ++i) {
    if (name == kAimNames[i]) return static_cast<ArchitectureAim>(i);
  }
  return invalid(cat("no objective '", printable(name),
                     "'; there are accuracy, loss, parameters, bytes, time"));
}

const char* aim_name(ArchitectureAim aim) {
  return kAimNames[static_cast<size_t>(aim)];
}

double ArchitectureScore::of(ArchitectureAim aim) const {
  const double all[] = {-accuracy, loss, parameters, bytes, seconds};
  return all[static_cast<size_t>(aim)];
}

Result<Architectures> Architectures::create(GridGenome seed, const ArchitectureSpec& spec) {
  constexpr int64_t kMaxMembers = 1 << 14;
  if (spec.population < 2 || spec.population > kMaxMembers)
    return invalid(cat("population is ", spec.population, ", must be 2 to ", kMaxMembers));
  if (spec.aims.empty()) return invalid("no objective: choose at least one");
  if (!(spec.cross >= 0 && spec.cross <= 1))
    return invalid(cat("cross is ", spec.cross, ", must be between 0 and 1"));
  Architectures out;
  out.spec_ = spec;
  LOOM_ASSIGN(const Network network, seed.finalized(1));
  if (network.params().empty()) return invalid("a network without weights has nothing to evolve");
  out.seed_ = std::move(seed);
  return out;
}

Aims Architectures::aims_of(const ArchitectureMember& member) const {
  Aims out;
  for (const ArchitectureAim aim : spec_.aims) out.push_back(member.score.of(aim));
  return out;
}

std::vector<size_t> Architectures::front() const {
  std::vector<Aims> all;
  for (const ArchitectureMember& m : members_) all.push_back(aims_of(m));
  const std::vector<int> ranks = front_ranks(all);
  std::vector<size_t> out;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_duplicate = std::ranges::any_of(out, [&](size_t k) { return all[k] == all[i]; });
    if (ranks[i] == 0 && !is_duplicate) out.push_back(i);
  }
  std::ranges::stable_sort(out, {}, [&](size_t i) { return all[i][0]; });
  return out;
}

// A parent is the better of two random members, by rank and then by crowding; members are in that
// order already.
ArchitectureMember Architectures::child(Draws& draws, int64_t& rejected) const {
  const auto parent = [&] {
    return std::min(draws.below(members_.size()), draws.below(members_.size()));
  };
  constexpr double kShareOfOther = 0.4;
  ArchitectureMember out;
  out.born = static_cast<int64_t>(history_.size());
  const ArchitectureMember& first = members_[parent()];
  out.parent = first.id;
  out.genome = first.genome;
  if (draws.chance(spec_.cross)) {
    const ArchitectureMember& second = members_[parent()];
    CrossReport report;
    GridGenome crossed = cross_genomes(first.genome, second.genome, kShareOfOther, draws, report);
    const Result<Network> network = crossed.finalized(1);
    const bool fits = network.ok() && (spec_.rates.most_parameters <= 0 ||
                                       network->param_count() <= spec_.rates.most_parameters);
    if (second.id != first.id && fits) {
      out.other = second.id;
      out.genome = std::move(crossed);
      out.birth = cat(report.from_a, " cells of ", first.id, ", ", report.from_b, " of ", second.id,
                      ", ", report.blended, " blended; ");
    }
  }
  const ChangeReport change = change_genome(out.genome, spec_.rates, draws);
  rejected += change.rejected;
  out.birth += change.change ? change.what : "as it was";
  return out;
}

std::vector<ArchitectureMember> Architectures::breed() const {
  Draws draws(spec_.seed, kArchitectureStream + history_.size());
  std::vector<ArchitectureMember> out;
  rejected_ = 0;
  int64_t id = next_id_;
  for (int64_t i = 0; i < spec_.population; ++i) {
    ArchitectureMember m;
    if (!members_.empty()) {
      m = child(draws, rejected_);
    } else {
      m.genome = seed_;
      m.birth = "the seed";
      if (i > 0) {
        const ChangeReport change = change_genome(m.genome, spec_.rates, draws);
        rejected_ += change.rejected;
        m.birth = change.change ? change.what : "the seed";
      }
    }
    m.id = id++;
    out.push_back(std::move(m));
  }
  return out;
}

Status Architectures::advance(std::vector<ArchitectureMember> children) {
  if (children.empty()) return invalid("no children were scored");
  if (members_.empty()) seed_score_ = children[0].score;
  ArchitectureGeneration g;
  g.generation = static_cast<int64_t>(history_.size());
  g.evaluated = static_cast<int64_t>(children.size());
  g.rejected = rejected_;
  for (ArchitectureMember& c : children) {
    next_id_ = std::max(next_id_, c.id + 1);
    members_.push_back(std::move(c));
  }
  std::vector<Aims> all;
  for (const ArchitectureMember& m : members_) all.push_back(aims_of(m));
  std::vector<ArchitectureMember> next;
  for (const size_t i : select_best(all, static_cast<size_t>(spec_.population)))
    next.push_back(std::move(members_[i]));
  members_ = std::move(next);
  g.front = static_cast<int64_t>(front().size());
  g.best_accuracy = members_[0].score.accuracy;
  g.best_loss = members_[0].score.loss;
  g.least_parameters = members_[0].score.parameters;
  for (const ArchitectureMember& m : members_) {
    g.best_accuracy = std::max(g.best_accuracy, m.score.accuracy);
    g.best_loss = std::min(g.best_loss, m.score.loss);
    g.least_parameters = std::min(g.least_parameters, m.score.parameters);
  }
  history_.push_back(g);
  return {};
}

}  // namespace loom::core
