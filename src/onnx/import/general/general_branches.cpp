// If: the branch that a known condition chooses, node by node, as if it were in the graph itself.
// Exporters leave such an If where the rank of a value decides, which is known here. If each sample
// has a condition, both branches are computed, and then chosen from.
#include "base/text.hpp"
#include "onnx/import/general/general.hpp"

namespace loom::core {

// The number of reads of a name, also in inner graphs. A name that is read in a branch not taken
// keeps its layer unchanged, which costs speed and changes no value.
void GraphImport::count_uses(const OnnxGraph& graph) {
  for (const OnnxNode& n : graph.nodes) {
    for (const std::string& name : n.inputs) ++uses_[name];
    for (const OnnxAttribute& a : n.attributes) {
      for (const OnnxGraph& inner : a.graphs) count_uses(inner);
    }
  }
  for (const OnnxValue& v : graph.outputs) ++uses_[v.name];
}

Status GraphImport::read_constants(const OnnxGraph& graph) {
  for (const OnnxTensor& t : graph.initializers) {
    left_ += kCopiesOfEach * t.count();
    Value v;
    v.tensor = &t;
    v.type = t.type;
    v.source = ++sources_;
    if (t.name.empty() || !values_.emplace(t.name, std::move(v)).second)
      return bad_file(cat("initializer '", printable(t.name), "' has no name, or occurs twice"),
                      where_);
  }
  for (const OnnxNode& n : graph.nodes) {  // where some exporters have all weights
    const OnnxAttribute* value = layer_of(n.op).kind == "constant" ? n.find("value") : nullptr;
    if (value != nullptr && !value->tensors.empty())
      left_ += kCopiesOfEach * value->tensors[0].count();
  }
  return {};
}

// The results of a branch, computed by nodes of the graph around it.
Result<std::vector<GraphImport::Value>> GraphImport::taken(const OnnxNode& n,
                                                           std::string_view which) {
  const OnnxAttribute* held = n.find(which);
  if (held == nullptr || held->graphs.size() != 1) return refuse(n, cat("it has no ", which));
  const OnnxGraph& branch = held->graphs[0];
  if (branch.outputs.size() < n.outputs.size())
    return refuse(
        n, cat("its ", which, " gives ", branch.outputs.size(), " values, it ", n.outputs.size()));
  LOOM_TRY(read_constants(branch));
  for (const OnnxNode& inner : branch.nodes) LOOM_TRY(node(inner));
  std::vector<Value> given;
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    const auto found = values_.find(branch.outputs[i].name);
    if (found == values_.end())
      return refuse(n, cat("nothing computes '", printable(branch.outputs[i].name), "'"));
    given.push_back(found->second);
  }
  // Another branch may use the same names inside.
  for (const OnnxTensor& t : branch.initializers) values_.erase(t.name);
  for (const OnnxNode& inner : branch.nodes) {
    for (const std::string& name : inner.outputs) values_.erase(name);
  }
  return given;
}

// A condition that each sample has its own of, in a file for one sample at a time: both branches
// are computed, and each sample takes its own.
Status GraphImport::chosen_by_sample(const OnnxNode& n, const Value& condition) {
  if (condition.shape.rank() < 1 || condition.shape[0] != batch_ ||
      condition.shape.count() != batch_)
    return refuse(n, "its condition depends on an input");
  LOOM_ASSIGN(const std::vector<Value> then, taken(n, "then_branch"));
  LOOM_ASSIGN(const std::vector<Value> otherwise, taken(n, "else_branch"));
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    if (n.outputs[i].empty()) continue;
    const std::string a = cat(n.outputs[i], " then"), b = cat(n.outputs[i], " else");
    const int rank = condition.shape.rank();
    const Shape& shape = then[i].is_constant() ? otherwise[i].shape : then[i].shape;
    if (rank > 1 && shape.rank() != rank)
      return refuse(n,
                    "its condition depends on an input, and has other axes than what it chooses");
    const bool both = values_.emplace(a, then[i]).second && values_.emplace(b, otherwise[i]).second;
    if (!both) return refuse(n, cat("its output '", printable(n.outputs[i]), "' occurs twice"));
    OnnxNode where;
    where.op = "Where";
    where.name = n.name;
    where.inputs = {n.inputs[0], a, b};
    where.outputs = {n.outputs[i]};
    LOOM_TRY(node(where));
  }
  return {};
}

Status GraphImport::if_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value* asked, value(n, 0));
  if (!asked->is_constant()) return chosen_by_sample(n, Value(*asked));
  LOOM_ASSIGN(const ConstantRef condition, constant(n, 0));
  if (condition->values.empty() || condition->count() != 1)
    return refuse(n, "its condition is not a single value");
  LOOM_ASSIGN(const std::vector<Value> given,
              taken(n, condition->at(0) != 0 ? "then_branch" : "else_branch"));
  for (size_t i = 0; i < given.size(); ++i) {
    result_ = given[i].type;
    LOOM_TRY(define(n, given[i], i));
  }
  return {};
}

}  // namespace loom::core
