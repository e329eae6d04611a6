// Layers that read the same tensors of the file, as a tower that is called twice: one of them has
// the weights, and the others share them. See general.hpp.
#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "onnx/import/general/general.hpp"

namespace loom::core {
namespace {

// Exporters make one tensor of all that have the same values. If every value is the same number, as
// in untrained norms, equal values do not show which weights are shared.
bool all_the_same(std::span<const std::byte> values, size_t each) {
  for (size_t at = each; each > 0 && at + each <= values.size(); at += each) {
    if (!std::ranges::equal(values.subspan(at, each), values.first(each))) return false;
  }
  return true;
}

std::span<const std::byte> bytes_of(const ItemParam& p) {
  return std::as_bytes(std::span(*p.values));
}

bool same_weights(const std::vector<ItemParam>& a, const std::vector<ItemParam>& b) {
  const auto same = [](const ItemParam& p, const ItemParam& q) {
    return p.path == q.path && p.shape == q.shape &&
           (p.values == q.values || std::ranges::equal(bytes_of(p), bytes_of(q)));
  };
  return std::ranges::equal(a, b, same);
}

bool log_something(const std::vector<ItemParam>& params) {
  return std::ranges::any_of(
      params, [](const ItemParam& p) { return !all_the_same(bytes_of(p), sizeof(float)); });
}

// Statistics that training keeps, and numbers of formulas, stay with each layer.
bool all_trained(const LayerConfig& layer) {
  std::vector<ParamSpec> specs;
  if (layer.def->params != nullptr) layer.def->params(layer, specs);
  const auto trained = [](const ParamSpec& s) { return s.trained; };
  return !specs.empty() && std::ranges::all_of(specs, trained);
}

}  // namespace

// A number for what becomes of the tensors of floats that a node reads: the same for the same; 0
// where it reads none.
int64_t GraphImport::source_of(const OnnxNode& n, std::string_view becomes) {
  std::string all;
  for (const std::string& name : n.inputs) {
    const auto found = values_.find(name);
    // Constants are compared by their values, where layers share.
    if (options_.for_training && origins_.of(name) == Origin::constant) continue;
    if (found != values_.end() && found->second.source > 0 && is_float(found->second.type))
      all += cat(" ", found->second.source);
  }
  if (all.empty()) return 0;
  const auto [found, added] = made_of_others_.emplace(cat(becomes, all), sources_ + 1);
  sources_ += added;
  return found->second;
}

bool GraphImport::shares_rows(const OnnxNode& n, size_t i) const {
  return options_.for_training && origins_.sharing(n.inputs[i]) == Origins::Sharing::rows;
}

// The same number for the table and the products that have its rows.
int64_t GraphImport::source_of_rows(const OnnxNode& n, size_t i) {
  const auto [found, added] =
      made_of_others_.emplace(cat("rows ", origins_.tensor(n.inputs[i])), sources_ + 1);
  sources_ += added;
  return found->second;
}

// The node before number `i` whose weights it shares; -1 if they are its own. `first` has, for each
// source, the first node that has its own; -1 if none yet.
int64_t GraphImport::owner_of(size_t i, std::vector<int64_t>& first) const {
  const GraphNode& made = nodes_[i];
  if (made.source == 0 || !all_trained(made.layer)) return -1;
  if (!origins_.all_weights() && !log_something(made.params)) return -1;
  int64_t& before = first[static_cast<size_t>(made.source)];
  if (before >= 0)
    return same_weights(nodes_[static_cast<size_t>(before)].params, made.params) ? before : -1;
  before = static_cast<int64_t>(i);
  return -1;
}

bool GraphImport::shares_weights(const OnnxModel& model) {
  constexpr std::string_view kReaders[] = {"conv", "dense", "matmul", "recurrent", "gather"};
  constexpr std::string_view kForms[] = {"transpose", "Identity", "cast"};
  const auto reads_one_of = [](std::span<const std::string_view> keys, std::string_view op) {
    const evaluate::Operator* row = evaluate::find_described(op);
    return row != nullptr &&
           std::ranges::any_of(keys, [&](std::string_view key) { return reads(key, *row); });
  };
  std::map<std::string, std::string> tensors;  // the name of a value: the tensor
  for (const OnnxTensor& t : model.graph.initializers) {
    if (is_float(t.type) && t.count() > 1 && !all_the_same(t.data(), onnx_type_bytes(t.type)))
      tensors.emplace(t.name, t.name);
  }
  std::set<std::string> seen;  // operators with their tensors
  for (const OnnxNode& n : model.graph.nodes) {
    const bool form = reads_one_of(kForms, n.op);
    if (!form && !reads_one_of(kReaders, n.op)) continue;
    for (const std::string& name : n.inputs) {
      const auto found = tensors.find(name);
      if (found == tensors.end()) continue;
      if (form && !n.outputs.empty()) {
        tensors.emplace(n.outputs[0], found->second);
      } else if (!seen.insert(cat(n.op, " ", found->second)).second) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace loom::core
