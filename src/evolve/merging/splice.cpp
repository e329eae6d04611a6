#include "evolve/merging/splice.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/numbers/rng.hpp"
#include "base/text.hpp"
#include "bridge/finite_weight.hpp"
#include "evolve/dna/signature.hpp"
#include "evolve/merging/class_order.hpp"
#include "evolve/merging/sums.hpp"

namespace loom::core {
namespace {

// How a layer's parameters are crossed.
struct Crossing {
  double share = 0;  // of b: of blend
  int64_t head = 0;  // point: this many weights of the layer are a's
  uint64_t stream = 0;
  int64_t first = 0;  // offset of this parameter in the layer
};

class Crosser {
 public:
  Crosser(std::shared_ptr<const OpenedModel> a, std::shared_ptr<const OpenedModel> b,
          const BlendRule& rule)
      : a_(std::move(a)), b_(std::move(b)), rule_(rule) {}

  std::unordered_map<std::string, Crossing> crossings;  // by parameter; others stay a's
  RowOrders orders;                                     // of b, in the order of a's classes

  // Values of a parameter in both parents; they have the same path and shape.
  Status read(const Param& param, std::vector<float>& a, std::vector<float>& b) const {
    LOOM_ASSIGN(const SourceWeight first, finite_weight(source_of(*a_), param));
    LOOM_TRY(all_values(first, param.spec, a));
    LOOM_ASSIGN(const SourceWeight second, finite_weight(source_of(*b_), param));
    LOOM_TRY(all_values(second, param.spec, b));
    reorder_rows(orders, param, b);
    return {};
  }
  Status make(const Param& param, std::vector<float>& out) const {
    const auto found = crossings.find(param.path);
    if (found == crossings.end()) {
      LOOM_ASSIGN(const SourceWeight mine, finite_weight(source_of(*a_), param));
      return all_values(mine, param.spec, out);
    }
    std::vector<float> b;
    LOOM_TRY(read(param, out, b));
    cross(found->second, out, b);
    return {};
  }
  void cross(const Crossing& how, std::vector<float>& a, const std::vector<float>& b) const;

 private:
  std::shared_ptr<const OpenedModel> a_, b_;
  BlendRule rule_;
};

void Crosser::cross(const Crossing& how, std::vector<float>& a, const std::vector<float>& b) const {
  if (rule_.options.mode == SpliceMode::blend) {
    for (size_t i = 0; i < a.size(); ++i)
      a[i] = static_cast<float>(static_cast<double>(a[i]) * (1 - how.share) +
                                static_cast<double>(b[i]) * how.share);
    return;
  }
  const Rng rng(rule_.options.seed, how.stream);
  for (size_t i = 0; i < a.size(); ++i) {
    const int64_t input_index = how.first + static_cast<int64_t>(i);
    const bool mine = rule_.options.mode == SpliceMode::point
                          ? input_index < how.head
                          : static_cast<double>(rng.uniform(static_cast<uint64_t>(input_index))) <
                                1 - rule_.fitness_share;
    if (!mine) a[i] = b[i];
  }
}

// The layer of b at the same place, if it can be crossed with one of a; else why not.
std::string mismatch(const SignatureLeaf& a, const Network& na, const SignatureLeaf* b,
                     const Network& nb) {
  if (b == nullptr) return "the other has no layer there";
  if (a.type != b->type) return cat("the other has a layer ", b->type, " there");
  if (a.params.size() != b->params.size()) return "another shape";
  for (size_t i = 0; i < a.params.size(); ++i) {
    const Param &x = na.params()[static_cast<size_t>(a.params[i])],
                &y = nb.params()[static_cast<size_t>(b->params[i])];
    if (x.path != y.path || !(x.spec.shape == y.spec.shape)) return "another shape";
  }
  return {};
}

class Splicing {
 public:
  Splicing(const NamedModel& a, const NamedModel& b, const SpliceOptions& options)
      : a_(a), b_(b), options_(options) {}

  Result<Spliced> run() {
    LOOM_ASSIGN(const BlendRule rule, blend_rule(options_));
    if ((a_.model->decoder == nullptr) != (b_.model->decoder == nullptr))
      return invalid(cat("a language model and a network are not spliced; the first is ", a_.path),
                     b_.path);
    LOOM_TRY(check_weights(*a_.model, a_.path));
    LOOM_TRY(check_weights(*b_.model, b_.path));
    LOOM_ASSIGN(const Network na, bare_network(*a_.model));
    LOOM_ASSIGN(const Network nb, bare_network(*b_.model));
    crosser_ = std::make_shared<Crosser>(a_.model, b_.model, rule);
    if (na.input() == nb.input()) LOOM_TRY(same_columns(a_, b_));
    Result<RowOrders> orders = match_by_name(a_, b_, nb, report_.notes);
    if (orders.ok()) {
      crosser_->orders = std::move(*orders);
    } else {
      keep_classes(na, orders.error().message);
    }
    LOOM_TRY(cross_layers(na, nb, rule));
    Spliced out;
    out.report = std::move(report_);
    LOOM_ASSIGN(out.child, made_model(a_.model, [crosser = crosser_](const Param& param,
                                                                     std::vector<float>& values) {
                  return crosser->make(param, values);
                }));
    return out;
  }

 private:
  // The layer of the classes stays a's, because b's classes differ.
  void keep_classes(const Network& network, const std::string& why);
  Status cross_layers(const Network& na, const Network& nb, const BlendRule& rule);
  Status cross_layer(const Network& network, const SignatureLeaf& leaf, uint64_t stream,
                     const BlendRule& rule, SplicedLayer& layer);
  Status measure(const Network& network, const SignatureLeaf& leaf, double& similarity) const;

  const NamedModel &a_, &b_;
  const SpliceOptions& options_;
  std::shared_ptr<Crosser> crosser_;
  SpliceReport report_;
  const Node* kept_ = nullptr;  // of keep_classes()
  uint64_t done_ = 0;
};

void Splicing::keep_classes(const Network& network, const std::string& why) {
  kept_ = layer_of_classes(network);
  report_.notes.push_back(cat(
      b_.path, ": ", why,
      kept_ == nullptr ? "; classes are matched by number" : "; the last layer is not crossed"));
}

Status Splicing::cross_layers(const Network& na, const Network& nb, const BlendRule& rule) {
  const std::vector<CellSignature> mine = cells_of(na), others = cells_of(nb);
  std::unordered_map<std::string_view, const SignatureLeaf*> there;
  for (const CellSignature& cell : others) {
    for (const SignatureLeaf& leaf : cell.leaves) there.emplace(leaf.at, &leaf);
  }
  const auto divisions = other_divisions(na, nb);
  int64_t common = 0;
  for (const CellSignature& cell : mine) {
    for (const SignatureLeaf& leaf : cell.leaves) {
      SplicedLayer layer{leaf.at, std::string(leaf.type), leaf.count, 0, 0, 0, {}};
      const auto found = there.find(leaf.at);
      layer.skipped = mismatch(leaf, na, found == there.end() ? nullptr : found->second, nb);
      const auto divided = divisions.find(leaf.at);
      if (layer.skipped.empty() && divided != divisions.end())
        layer.skipped = cat("the other has ", divided->second);
      if (layer.skipped.empty() && kept_ != nullptr && kept_->params == leaf.params)
        layer.skipped = "the other has other classes";
      if (layer.skipped.empty()) {
        ++common;
        LOOM_TRY(cross_layer(na, leaf, report_.layers.size(), rule, layer));
      }
      report_.crossed += layer.changed > 0 ? 1 : 0;
      done_ += static_cast<uint64_t>(leaf.count);
      if (options_.progress && !options_.progress(done_, static_cast<uint64_t>(na.param_count())))
        return make_error(Code::cancelled, "stopped");
      report_.layers.push_back(std::move(layer));
    }
  }
  if (common == 0)
    return invalid(cat("has no layer in common with ", a_.path,
                       ": no cell has the same kind and shapes in both"),
                   b_.path);
  return {};
}

Status Splicing::measure(const Network& network, const SignatureLeaf& leaf,
                         double& similarity) const {
  LaneSum ab, aa, bb;
  std::vector<float> a, b;
  for (const int index : leaf.params) {
    LOOM_TRY(crosser_->read(network.params()[static_cast<size_t>(index)], a, b));
    const auto n = static_cast<int64_t>(a.size());
    ab.add_products(a.data(), b.data(), n);
    aa.add_products(a.data(), a.data(), n);
    bb.add_products(b.data(), b.data(), n);
  }
  similarity = cosine_of(ab.total(), aa.total(), bb.total());
  return {};
}

Status Splicing::cross_layer(const Network& network, const SignatureLeaf& leaf, uint64_t stream,
                             const BlendRule& rule, SplicedLayer& layer) {
  // A layer with shared weights has those of their owner, which are crossed once.
  const bool shared = std::ranges::all_of(leaf.params, [&](int index) {
    return crosser_->crossings.count(network.params()[static_cast<size_t>(index)].path) > 0;
  });
  if (shared) {
    layer.skipped = "it has the weights of a layer before it";
    return {};
  }
  LOOM_TRY(measure(network, leaf, layer.similarity));
  Crossing how;
  how.share = rule.share(layer.similarity);
  const double split = std::clamp(options_.split, 0.0, 1.0);
  how.head = static_cast<int64_t>(static_cast<double>(leaf.count) * split);
  how.stream = stream;
  std::vector<float> a, b, child;
  for (const int index : leaf.params) {
    const Param& param = network.params()[static_cast<size_t>(index)];
    if (!crosser_->crossings.emplace(param.path, how).second) continue;
    LOOM_TRY(crosser_->read(param, a, b));
    child = a;
    crosser_->cross(how, child, b);
    for (size_t i = 0; i < a.size(); ++i) layer.changed += child[i] != a[i] ? 1 : 0;
    how.first += static_cast<int64_t>(a.size());
  }
  if (options_.mode == SpliceMode::blend) layer.share = how.share;
  if (options_.mode == SpliceMode::point && leaf.count > 0)
    layer.share = 1 - static_cast<double>(how.head) / static_cast<double>(leaf.count);
  if (options_.mode == SpliceMode::uniform) layer.share = rule.fitness_share;
  return {};
}

}  // namespace

double BlendRule::share(double similarity) const {
  const bool rated = options.fitness_a.has_value();
  if (options.law == BlendLaw::original) {
    const double sum = rated ? *options.fitness_a + *options.fitness_b : 0;
    if (!(sum > 0)) return options.alpha;
    return std::clamp(*options.fitness_b / sum * (0.5 + 0.5 * similarity), 0.0, 1.0);
  }
  if (!rated) return options.alpha;
  if (fitness_share == 0.5) return 0.5;
  // Similar layers are blended by fitness; blending would damage others.
  const double fitter = fitness_share > 0.5 ? 1 : 0;
  return fitter + std::max(similarity, 0.0) * (fitness_share - fitter);
}

Result<BlendRule> blend_rule(const SpliceOptions& options) {
  if (options.fitness_a.has_value() != options.fitness_b.has_value())
    return invalid("one fitness alone says nothing: give that of both parents, or none");
  if (!(options.alpha >= 0 && options.alpha <= 1))
    return invalid("alpha must be from 0 (the first parent) to 1 (the second)");
  if (!std::isfinite(options.split)) return invalid("split must be a finite number");
  BlendRule rule{options, 0.5};
  if (!options.fitness_a) return rule;
  const double a = *options.fitness_a, b = *options.fitness_b;
  if (!std::isfinite(a) || !std::isfinite(b))
    return invalid("a fitness must be a finite number; higher is better");
  constexpr double kFitterByRank = 2.0 / 3.0;
  if (a == b) return rule;
  if (a < 0 || b < 0) {
    rule.fitness_share = b > a ? kFitterByRank : 1 - kFitterByRank;
  } else {
    rule.fitness_share = b / (a + b);
  }
  return rule;
}

Result<Spliced> spliced_model(const NamedModel& a, const NamedModel& b,
                              const SpliceOptions& options) {
  return Splicing(a, b, options).run();
}

}  // namespace loom::core
