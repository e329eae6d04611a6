// Ensembles of decision trees, of all versions of ai.onnx.ml. Trees are made into one array of
// nodes when the graph is opened; every place that a file names is checked there. See ml.hpp.
#include <algorithm>
#include <cmath>
#include <map>

#include "onnx/interpreter/ml/ml.hpp"

namespace loom::core::evaluate {
namespace {

enum class Branch : uint8_t { leaf, le, lt, ge, gt, eq, ne, member };
enum class Aggregate : uint8_t { sum, average, least, most };

struct TreeNode {
  Branch branch = Branch::leaf;
  bool missing = false;  // NaN goes to the true side
  int64_t feature = 0;
  double split = 0;
  int64_t yes = -1, no = -1;  // nodes
  // For a leaf, its weights; for a membership test, its values.
  int64_t first = 0, last = 0;
};
struct Weight {
  int64_t target = 0;
  double value = 0;
};

struct Ensemble : Prepared {
  std::vector<TreeNode> nodes;
  std::vector<int64_t> roots;
  std::vector<Weight> weights;
  std::vector<double> members, base;
  Dims labels;
  int64_t targets = 1, features = 0;
  Aggregate aggregate = Aggregate::sum;
  PostTransform post = PostTransform::none;
  bool one_class = false, all_positive = true;  // of the weights

  int64_t leaf(int64_t root, const double* x) const;
};

bool takes(const Ensemble& e, const TreeNode& n, double x) {
  if (n.missing && x != x) return true;
  switch (n.branch) {
    case Branch::le: return x <= n.split;
    case Branch::lt: return x < n.split;
    case Branch::ge: return x >= n.split;
    case Branch::gt: return x > n.split;
    case Branch::eq: return x == n.split;
    case Branch::ne: return x != n.split;
    default:
      return std::find(e.members.begin() + n.first, e.members.begin() + n.last, x) !=
             e.members.begin() + n.last;
  }
}

int64_t Ensemble::leaf(int64_t root, const double* x) const {
  int64_t at = root;
  while (nodes[static_cast<size_t>(at)].branch != Branch::leaf) {
    const TreeNode& n = nodes[static_cast<size_t>(at)];
    at = takes(*this, n, x[n.feature]) ? n.yes : n.no;
  }
  return at;
}

// No node may be reached from itself: then every walk ends.
Status acyclic(const Call& c, const Ensemble& e) {
  enum : uint8_t { unseen, open, done };
  std::vector<uint8_t> state(e.nodes.size(), unseen);
  for (const int64_t root : e.roots) {
    std::vector<int64_t> stack = {root};
    while (!stack.empty()) {
      const auto at = static_cast<size_t>(stack.back());
      if (state[at] != unseen) {
        state[at] = done;
        stack.pop_back();
        continue;
      }
      state[at] = open;
      if (e.nodes[at].branch == Branch::leaf) continue;
      for (const int64_t child : {e.nodes[at].yes, e.nodes[at].no}) {
        const uint8_t visited = state[static_cast<size_t>(child)];
        if (visited == open) return c.bad("a tree that leads back into itself");
        if (visited == unseen) stack.push_back(child);
      }
    }
  }
  return {};
}

Result<Branch> branch_of(const Call& c, const std::string& name) {
  const std::pair<std::string_view, Branch> rows[] = {
      {"LEAF", Branch::leaf},     {"BRANCH_LEQ", Branch::le}, {"BRANCH_LT", Branch::lt},
      {"BRANCH_GTE", Branch::ge}, {"BRANCH_GT", Branch::gt},  {"BRANCH_EQ", Branch::eq},
      {"BRANCH_NEQ", Branch::ne}};
  for (const auto& [row, branch] : rows) {
    if (row == name) return branch;
  }
  return c.not_done(cat("a node of mode ", printable(name)));
}

Result<Aggregate> aggregate_of(const Call& c) {
  const std::string name = c.text("aggregate_function", "SUM");
  if (name == "SUM") return Aggregate::sum;
  if (name == "AVERAGE") return Aggregate::average;
  if (name == "MIN") return Aggregate::least;
  if (name == "MAX") return Aggregate::most;
  return c.not_done(cat("aggregate_function ", printable(name)));
}

using Key = std::pair<int64_t, int64_t>;  // tree and node, as the file counts them

Status read_nodes(const Call& c, Ensemble& e, std::map<Key, int64_t>& indices) {
  const Dims trees = c.list("nodes_treeids"), ids = c.list("nodes_nodeids"),
             features = c.list("nodes_featureids"), yes = c.list("nodes_truenodeids"),
             no = c.list("nodes_falsenodeids"), missing = c.list("nodes_missing_value_tracks_true");
  LOOM_ASSIGN(const std::vector<double> splits, ml_numbers(c, "nodes_values"));
  const OnnxAttribute* modes = c.node.find("nodes_modes");
  const size_t n = trees.size();
  if (modes == nullptr || n == 0 || ids.size() != n || features.size() != n || yes.size() != n ||
      no.size() != n || splits.size() != n || modes->texts.size() != n ||
      (!missing.empty() && missing.size() != n))
    return c.bad("lists of nodes that differ in length, or no node");
  for (size_t i = 0; i < n; ++i) {
    if (!indices.emplace(Key{trees[i], ids[i]}, static_cast<int64_t>(i)).second)
      return c.bad(cat("node ", ids[i], " of tree ", trees[i], " occurs twice"));
    if (i == 0 || trees[i] != trees[i - 1]) e.roots.push_back(static_cast<int64_t>(i));
  }
  for (size_t i = 0; i < n; ++i) {
    TreeNode& node = e.nodes.emplace_back();
    LOOM_ASSIGN(node.branch, branch_of(c, modes->texts[i]));
    node.missing = !missing.empty() && missing[i] != 0;
    node.split = splits[i];
    node.feature = features[i];
    if (node.branch == Branch::leaf) continue;
    const auto a = indices.find({trees[i], yes[i]}), b = indices.find({trees[i], no[i]});
    if (a == indices.end() || b == indices.end() || node.feature < 0)
      return c.bad(cat("node ", ids[i], " of tree ", trees[i], " leads nowhere"));
    node.yes = a->second;
    node.no = b->second;
    e.features = std::max(e.features, node.feature + 1);
  }
  return {};
}

// Weights of leaves, `kind` being "class" or "target".
Status read_weights(const Call& c, const std::string& kind, Ensemble& e,
                    const std::map<Key, int64_t>& indices) {
  const Dims trees = c.list(kind + "_treeids"), ids = c.list(kind + "_nodeids"),
             targets = c.list(kind + "_ids");
  LOOM_ASSIGN(const std::vector<double> values, ml_numbers(c, kind + "_weights"));
  if (ids.size() != trees.size() || targets.size() != trees.size() || values.size() != trees.size())
    return c.bad("lists of weights that differ in length");
  std::vector<std::pair<int64_t, Weight>> all;
  for (size_t i = 0; i < trees.size(); ++i) {
    const auto at = indices.find({trees[i], ids[i]});
    if (at == indices.end() || targets[i] < 0 || targets[i] >= e.targets)
      return c.bad(cat("weight ", i, " is of no node or no ", kind));
    all.push_back({at->second, {targets[i], values[i]}});
    e.all_positive = e.all_positive && values[i] >= 0;
  }
  std::ranges::stable_sort(all, {}, [](const auto& w) { return w.first; });
  e.one_class =
      !targets.empty() && std::ranges::all_of(targets, [&](int64_t t) { return t == targets[0]; });
  for (size_t i = 0; i < all.size(); ++i) {
    TreeNode& node = e.nodes[static_cast<size_t>(all[i].first)];
    if (node.last == 0) node.first = static_cast<int64_t>(i);
    node.last = static_cast<int64_t>(i) + 1;
    e.weights.push_back(all[i].second);
  }
  return {};
}

// The form of version 5: nodes and leaves in lists of their own, trees by where they begin, modes
// as numbers, values in the type of the input.
Result<int64_t> place_of(const Call& c, int64_t at, bool leaf, size_t nodes, size_t leaves) {
  if (at < 0 || at >= static_cast<int64_t>(leaf ? leaves : nodes))
    return c.bad(cat(leaf ? "leaf " : "node ", at, " does not exist"));
  return leaf ? at + static_cast<int64_t>(nodes) : at;
}

Result<std::vector<double>> tensor_numbers(const Call& c, std::string_view name) {
  const OnnxAttribute* a = c.node.find(name);
  if (a == nullptr || a->tensors.size() != 1) return std::vector<double>{};
  LOOM_ASSIGN(const Value v, value_of(c.rt.memory, a->tensors[0]));
  LOOM_ASSIGN(const Value wide, cast(c.rt.memory, v, OnnxType::f64));
  return std::vector<double>(wide.data<double>(), wide.data<double>() + wide.count());
}

// Values of memberships, which NaN ends, in the order of the nodes that have them.
Status read_members(const Call& c, Ensemble& e) {
  LOOM_ASSIGN(e.members, tensor_numbers(c, "membership_values"));
  size_t next = 0;
  for (TreeNode& node : e.nodes) {
    if (node.branch != Branch::member) continue;
    node.first = static_cast<int64_t>(next);
    while (next < e.members.size() && e.members[next] == e.members[next]) ++next;
    node.last = static_cast<int64_t>(next);
    if (next >= e.members.size()) return c.bad("fewer lists of members than nodes that ask them");
    ++next;
  }
  return {};
}

Status read_lists(const Call& c, Ensemble& e) {
  constexpr Branch kModes[] = {Branch::le, Branch::lt, Branch::ge,    Branch::gt,
                               Branch::eq, Branch::ne, Branch::member};
  const Dims features = c.list("nodes_featureids"), yes = c.list("nodes_truenodeids"),
             no = c.list("nodes_falsenodeids"), yes_leaf = c.list("nodes_trueleafs"),
             no_leaf = c.list("nodes_falseleafs"), roots = c.list("tree_roots"),
             missing = c.list("nodes_missing_value_tracks_true"), ids = c.list("leaf_targetids");
  LOOM_ASSIGN(const std::vector<double> modes, tensor_numbers(c, "nodes_modes"));
  LOOM_ASSIGN(const std::vector<double> splits, tensor_numbers(c, "nodes_splits"));
  LOOM_ASSIGN(const std::vector<double> weights, tensor_numbers(c, "leaf_weights"));
  const size_t n = features.size();
  const auto fits = [&](const auto& list) { return list.size() == n; };
  if (!fits(yes) || !fits(no) || !fits(yes_leaf) || !fits(no_leaf) || !fits(modes) ||
      !fits(splits) || (!missing.empty() && !fits(missing)) || ids.size() != weights.size())
    return c.bad("lists of nodes or leaves that differ in length");
  for (size_t i = 0; i < n; ++i) {
    TreeNode& node = e.nodes.emplace_back();
    if (!(modes[i] >= 0 && modes[i] < 7) || features[i] < 0)
      return c.bad(cat("node ", i, " has no mode or feature that exists"));
    node.branch = kModes[static_cast<size_t>(modes[i])];
    node.missing = !missing.empty() && missing[i] != 0;
    node.split = splits[i];
    node.feature = features[i];
    e.features = std::max(e.features, node.feature + 1);
    LOOM_ASSIGN(node.yes, place_of(c, yes[i], yes_leaf[i] != 0, n, ids.size()));
    LOOM_ASSIGN(node.no, place_of(c, no[i], no_leaf[i] != 0, n, ids.size()));
  }
  for (const int64_t root : roots) {
    LOOM_ASSIGN(const int64_t at, place_of(c, root, false, n, 0));
    e.roots.push_back(at);
  }
  LOOM_TRY(read_members(c, e));
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= e.targets) return c.bad(cat("leaf ", i, " is of no target"));
    TreeNode& leaf = e.nodes.emplace_back();
    leaf.first = static_cast<int64_t>(i);
    leaf.last = leaf.first + 1;
    e.weights.push_back({ids[i], weights[i]});
  }
  return {};
}

// The aggregate and the post_transform of version 5 are numbers.
Result<std::shared_ptr<const Prepared>> prepare_lists(const Call& c) {
  auto e = std::make_shared<Ensemble>();
  constexpr Aggregate kAggregates[] = {Aggregate::average, Aggregate::sum, Aggregate::least,
                                       Aggregate::most};
  constexpr PostTransform kPost[] = {PostTransform::none, PostTransform::softmax,
                                     PostTransform::logistic, PostTransform::softmax_zero};
  const int64_t how = c.integer("aggregate_function", 1), post = c.integer("post_transform", 0);
  if (how < 0 || how > 3) return c.bad(cat("aggregate_function ", how));
  if (post < 0 || post > 3) return c.not_done(cat("post_transform ", post));
  e->aggregate = kAggregates[how];
  e->post = kPost[post];
  e->targets = c.integer("n_targets", 1);
  if (e->targets < 1 || e->targets > (1 << 20)) return c.bad(cat(e->targets, " targets"));
  LOOM_TRY(read_lists(c, *e));
  LOOM_TRY(acyclic(c, *e));
  return std::shared_ptr<const Prepared>(std::move(e));
}

Result<std::shared_ptr<const Prepared>> prepare_ensemble(const Call& c) {
  if (c.node.op == "TreeEnsemble") return prepare_lists(c);
  auto e = std::make_shared<Ensemble>();
  std::map<Key, int64_t> indices;
  LOOM_ASSIGN(e->post, post_transform(c));
  LOOM_ASSIGN(e->base, ml_numbers(c, "base_values"));
  LOOM_TRY(read_nodes(c, *e, indices));
  const bool classifies = c.node.op == "TreeEnsembleClassifier";
  if (classifies) {
    LOOM_ASSIGN(e->labels, class_labels(c, "classlabels_int64s", "classlabels_strings"));
    e->targets = static_cast<int64_t>(e->labels.size());
  } else {
    e->targets = c.integer("n_targets", 1);
    LOOM_ASSIGN(e->aggregate, aggregate_of(c));
  }
  if (e->targets < 1 || e->targets > (1 << 20)) return c.bad(cat(e->targets, " targets"));
  LOOM_TRY(read_weights(c, classifies ? "class" : "target", *e, indices));
  LOOM_TRY(acyclic(c, *e));
  return std::shared_ptr<const Prepared>(std::move(e));
}

// Scores of a row, base values left out; seen: which of them any leaf names.
void walk(const Ensemble& e, const double* x, std::vector<double>& scores,
          std::vector<uint8_t>& visited) {
  std::ranges::fill(scores, 0.0);
  std::ranges::fill(visited, uint8_t{0});
  for (const int64_t root : e.roots) {
    const TreeNode& leaf = e.nodes[static_cast<size_t>(e.leaf(root, x))];
    for (int64_t i = leaf.first; i < leaf.last; ++i) {
      const Weight& w = e.weights[static_cast<size_t>(i)];
      double& s = scores[static_cast<size_t>(w.target)];
      uint8_t& known = visited[static_cast<size_t>(w.target)];
      if (e.aggregate == Aggregate::least)
        s = known != 0 ? std::min(s, w.value) : w.value;
      else if (e.aggregate == Aggregate::most)
        s = known != 0 ? std::max(s, w.value) : w.value;
      else
        s += w.value;
      known = 1;
    }
  }
  if (e.aggregate != Aggregate::average) return;
  for (double& s : scores) s /= static_cast<double>(e.roots.size());
}

Result<FeatureRows> rows_for(const Call& c, const Ensemble& e) {
  LOOM_ASSIGN(FeatureRows x, feature_rows(c));
  if (x.width < e.features) return c.bad(cat("asks for feature ", e.features - 1, " of ", x.width));
  return x;
}

// As it was prepared, or now, where all inputs are constants.
Result<std::shared_ptr<const Prepared>> ensemble_of(const Call& c) {
  if (c.prepared == nullptr) return prepare_ensemble(c);
  return std::shared_ptr<const Prepared>(std::shared_ptr<const Prepared>(), c.prepared);
}

Status tree_regressor(const Call& c) {
  LOOM_ASSIGN(const auto held, ensemble_of(c));
  const auto& e = static_cast<const Ensemble&>(*held);
  LOOM_ASSIGN(const FeatureRows x, rows_for(c, e));
  if (!e.base.empty() && static_cast<int64_t>(e.base.size()) != e.targets)
    return c.bad(cat(e.base.size(), " base values for ", e.targets, " targets"));
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, {x.count, e.targets}));
  c.parallel(x.count, 20.0 * static_cast<double>(e.roots.size()), [&](int64_t from, int64_t to) {
    std::vector<double> scores(static_cast<size_t>(e.targets));
    std::vector<uint8_t> visited(scores.size());
    for (int64_t r = from; r < to; ++r) {
      walk(e, x.row(r), scores, visited);
      for (size_t k = 0; k < e.base.size(); ++k) scores[k] += e.base[k];
      transform_scores(e.post, scores.data(), e.targets);
      std::ranges::copy(scores, y.data<double>() + r * e.targets);
    }
  });
  const bool own = c.node.op == "TreeEnsemble";  // gives the type of its input
  return c.give_as(y, own ? c.value(0).type : OnnxType::f32);
}

// One score that stands for two classes: which of them it is, and both scores.
size_t two_classes(const Ensemble& e, std::vector<double>& scores) {
  const double s = scores[0];
  const bool second = e.all_positive ? s > 0.5 : s > 0;
  second_score(scores, e.all_positive ? 1 : 2, e.post);
  return second ? 1 : 0;
}

Status tree_classifier(const Call& c) {
  LOOM_ASSIGN(const auto held, ensemble_of(c));
  const auto& e = static_cast<const Ensemble&>(*held);
  LOOM_ASSIGN(const FeatureRows x, rows_for(c, e));
  const bool single = e.targets == 2 && e.one_class;
  if (!e.base.empty() && static_cast<int64_t>(e.base.size()) != e.targets &&
      !(single && e.base.size() == 1))
    return c.bad(cat(e.base.size(), " base values for ", e.targets, " classes"));
  LOOM_ASSIGN(Value labels, c.make(OnnxType::i64, {x.count}));
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, {x.count, e.targets}));
  c.parallel(x.count, 20.0 * static_cast<double>(e.roots.size()), [&](int64_t from, int64_t to) {
    std::vector<double> scores(static_cast<size_t>(e.targets));
    std::vector<uint8_t> visited(scores.size());
    for (int64_t r = from; r < to; ++r) {
      scores.resize(static_cast<size_t>(e.targets));
      walk(e, x.row(r), scores, visited);
      size_t best = 0;
      if (single) {
        double s = scores[0] + scores[1];  // of the one class that has weights
        if (!e.base.empty()) s += e.base.back();
        scores.assign(1, s);
        best = two_classes(e, scores);
      } else {
        for (size_t k = 0; k < e.base.size(); ++k) scores[k] += e.base[k];
        best = best_score(scores);
        transform_scores(e.post, scores.data(), e.targets);
      }
      labels.data<int64_t>()[r] = e.labels[best];
      std::ranges::copy(scores, y.data<double>() + r * e.targets);
    }
  });
  LOOM_TRY(c.give(std::move(labels), 0));
  return c.give_as(y, OnnxType::f32, 1);
}

constexpr Operator kTrees[] = {
    {"ai.onnx.ml", "TreeEnsembleRegressor", tree_regressor,
     "a aggregate_function base_values base_values_as_tensor n_targets nodes_falsenodeids "
     "nodes_featureids nodes_hitrates nodes_hitrates_as_tensor nodes_missing_value_tracks_true "
     "nodes_modes nodes_nodeids nodes_treeids nodes_truenodeids nodes_values "
     "nodes_values_as_tensor post_transform target_ids target_nodeids target_treeids "
     "target_weights target_weights_as_tensor",
     "", Operator::none, prepare_ensemble},
    {"ai.onnx.ml", "TreeEnsembleClassifier", tree_classifier,
     "a base_values base_values_as_tensor class_ids class_nodeids class_treeids class_weights "
     "class_weights_as_tensor classlabels_int64s classlabels_strings nodes_falsenodeids "
     "nodes_featureids nodes_hitrates nodes_hitrates_as_tensor nodes_missing_value_tracks_true "
     "nodes_modes nodes_nodeids nodes_treeids nodes_truenodeids nodes_values "
     "nodes_values_as_tensor post_transform",
     "", Operator::none, prepare_ensemble},
    {"ai.onnx.ml", "TreeEnsemble", tree_regressor,
     "a aggregate_function leaf_targetids leaf_weights membership_values n_targets "
     "nodes_falseleafs nodes_falsenodeids nodes_featureids nodes_hitrates "
     "nodes_missing_value_tracks_true nodes_modes nodes_splits nodes_trueleafs nodes_truenodeids "
     "post_transform tree_roots",
     "", Operator::none, prepare_ensemble},
};

}  // namespace

std::span<const Operator> tree_operators() {
  return kTrees;
}

}  // namespace loom::core::evaluate
