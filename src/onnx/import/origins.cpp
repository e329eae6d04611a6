// See origins.hpp.
#include "onnx/import/origins.hpp"

#include <algorithm>
#include <cctype>

#include "base/pattern.hpp"
#include "base/text.hpp"
#include "onnx/import/schema.hpp"
#include "onnx/import/values.hpp"

namespace loom::core {
namespace {

template <size_t N>
bool is_one_of(std::string_view op, const std::string_view (&list)[N]) {
  return std::ranges::find(list, op) != std::end(list);
}

// Operators that give the values of their inputs, each once, in another layout or type.
bool keeps_values(std::string_view op) {
  constexpr std::string_view kOps[] = {
      "Identity", "Cast",    "CastLike",  "Transpose",        "Reshape", "Flatten",
      "Squeeze",  "Slice",   "Unsqueeze", "DequantizeLinear", "Split",   "SplitToSequence",
      "Concat",   "Dropout", "Gather",    "SequenceAt"};
  return is_one_of(op, kOps);
}

// Operators whose further inputs say how, not what: shapes, axes, scales of a number type.
bool reads_first_alone(std::string_view op) {
  return op != "Concat";
}

// Names that exporters make up for numbers of a formula: val_12, onnx::Mul_7, /Constant_output_0,
// const_fold__3, scalar_tensor, eps, 17. Parameters have the path of an attribute: block.0.alpha.
bool is_made_up(std::string_view name) {
  const std::string lower = to_lower_ascii(name);
  constexpr std::string_view kParts[] = {"const", "::", "scalar"};
  // At the start of a word: const_fold, and not reconstruct.
  const auto within = [&](std::string_view part) {
    const size_t at = lower.find(part);
    return at != std::string::npos &&
           (at == 0 || std::isalpha(static_cast<unsigned char>(lower[at - 1])) == 0 ||
            part == "::");
  };
  constexpr std::string_view kStarts[] = {"/", "val_", "eps", "one", "zero"};
  const auto begins = [&](std::string_view start) { return lower.rfind(start, 0) == 0; };
  if (std::ranges::any_of(kParts, within) || std::ranges::any_of(kStarts, begins)) return true;
  // Operands of a formula of TensorFlow: its variables are tensors of a ReadVariableOp.
  constexpr std::string_view kOperands[] = {"/x:0", "/y:0", "_recip:0"};
  const auto ends = [&](std::string_view end) { return lower.ends_with(end); };
  if (std::ranges::any_of(kOperands, ends)) return true;
  // A word with a number after it, without a path: c12, t_3; but bias_79 is what it says.
  if (lower.find_first_of("./") != std::string::npos) return false;
  constexpr std::string_view kWeights[] = {"bias", "weight"};
  const auto has = [&](std::string_view part) { return lower.find(part) != std::string::npos; };
  if (std::ranges::any_of(kWeights, has)) return false;
  return !lower.empty() && std::isdigit(static_cast<unsigned char>(lower.back())) != 0;
}

bool matches_any(const std::vector<std::string>& patterns, std::string_view name) {
  return std::ranges::any_of(patterns,
                             [&](const std::string& p) { return matches_pattern(p, name); });
}

// Whether a node gives the biases of recurrences.
bool are_biases(const OnnxGraph& graph, const OnnxNode& n) {
  constexpr std::string_view kRecurrences[] = {"LSTM", "GRU", "RNN"};
  return !n.outputs.empty() && std::ranges::any_of(graph.nodes, [&](const OnnxNode& reader) {
    return is_one_of(reader.op, kRecurrences) && reader.inputs.size() > 3 &&
           reader.inputs[3] == n.outputs[0];
  });
}

}  // namespace

Origins::Origins(const OnnxModel& model, const OnnxImportOptions& options) {
  const std::pair<std::string, std::string> all = {std::string(kOnnxInitializers),
                                                   std::string(kOnnxAllWeights)};
  all_weights_ = std::ranges::find(model.metadata, all) != model.metadata.end();
  constants_are_weights_ = !all_weights_ && constants_are_weights(model);
  read(model.graph, options);
  for (const auto& [tensor, by] : readers_) {
    const bool apart = sharing(tensor) == Sharing::one && by.kinds.size() > 1;
    needs_nodes_ |= sharing(tensor) != Sharing::one;
    parts_weights_ |= apart && of(tensor) == Origin::weight;
  }
}

bool Origins::constants_are_weights(const OnnxModel& model) {
  const auto of_floats = [](const OnnxTensor& t) { return is_float(t.type); };
  return std::ranges::none_of(model.graph.initializers, of_floats);
}

Origin Origins::origin_of(const OnnxTensor& t, const OnnxImportOptions& options) const {
  if (!is_float(t.type)) return Origin::constant;
  if (matches_any(options.frozen, t.name)) return Origin::constant;
  if (all_weights_ || matches_any(options.trainable, t.name)) return Origin::weight;
  return t.count() == 1 && is_made_up(t.name) ? Origin::constant : Origin::weight;
}

Origin Origins::of(std::string_view name) const {
  const auto found = origins_.find(name);
  return found == origins_.end() ? Origin::computed : found->second;
}

void Origins::read(const OnnxGraph& graph, const OnnxImportOptions& options) {
  for (const OnnxTensor& t : graph.initializers) {
    origins_.insert_or_assign(t.name, origin_of(t, options));
    counts_.insert_or_assign(t.name, t.count());
    if (is_float(t.type)) forms_.insert_or_assign(t.name, Form{t.name, false});
  }
  for (const OnnxNode& n : graph.nodes) {
    for (const OnnxAttribute& a : n.attributes) {
      for (const OnnxGraph& inner : a.graphs) read(inner, options);
    }
    read(graph, n, options);
  }
}

// Single numbers are of formulas, whatever their names.
bool Origins::read_constant(const OnnxNode& n, const OnnxImportOptions& options) {
  const OnnxAttribute* value = n.op == "Constant" ? n.find("value") : nullptr;
  if (!constants_are_weights_ || value == nullptr || value->tensors.empty() || n.outputs.empty())
    return false;
  OnnxTensor named = value->tensors[0];
  if (!is_float(named.type) || named.count() < 2) return false;
  named.name = n.outputs[0];
  origins_.insert_or_assign(named.name, origin_of(named, options));
  counts_.insert_or_assign(named.name, named.count());
  forms_.insert_or_assign(named.name, Form{named.name, false});
  return true;
}

Origin Origins::made_by(const OnnxNode& n) const {
  bool weights = false, constants = false;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (n.inputs[i].empty()) continue;
    const Origin from = of(n.inputs[i]);
    if (from == Origin::computed) return Origin::computed;
    if (i > 0 && keeps_values(n.op) && reads_first_alone(n.op)) continue;
    if (from == Origin::derived) return Origin::derived;
    (from == Origin::weight ? weights : constants) = true;
  }
  if (n.op == "DequantizeLinear" && !n.inputs.empty())
    weights = counts_.contains(n.inputs[0]);  // of integers
  if (!weights) return Origin::constant;
  return keeps_values(n.op) && (!constants || n.op == "DequantizeLinear") ? Origin::weight
                                                                          : Origin::derived;
}

Origins::Sharing Origins::sharing(std::string_view name) const {
  const auto form = forms_.find(name);
  if (form == forms_.end()) return Sharing::one;
  const auto found = readers_.find(form->second.tensor);
  if (found == readers_.end() || found->second.kinds.size() < 2) return Sharing::one;
  const Readers& by = found->second;
  if (!by.products) return Sharing::one;  // of convolutions and recurrences each has a copy
  if (!by.table) return Sharing::multiple;
  return by.as_it_is ? Sharing::rows : Sharing::one;
}

// Which initializer the output is, where the node gives one in another layout or type.
void Origins::follow(const OnnxNode& n) {
  constexpr std::string_view kSame[] = {"Identity", "Cast", "CastLike"};
  if (n.inputs.empty() || n.outputs.empty()) return;
  const auto from = forms_.find(n.inputs[0]);
  if (from == forms_.end()) return;
  Form form = from->second;
  if (n.op == "Transpose") {
    const OnnxAttribute* perm = n.find("perm");
    const std::vector<int64_t> swap = {1, 0};
    if (perm != nullptr && perm->integers != swap) return;
    form.transposed = !form.transposed;
  } else if (!is_one_of(n.op, kSame)) {
    return;
  }
  forms_.insert_or_assign(n.outputs[0], form);
}

// Input i of a node that computes is an initializer in some layout.
void Origins::read_weight(const OnnxNode& n, size_t i) {
  const auto found = forms_.find(n.inputs[i]);
  const bool product = (n.op == "MatMul" || n.op == "Gemm") && i == 1;
  constexpr std::string_view kOthers[] = {"Conv", "ConvTranspose", "LSTM", "GRU", "RNN"};
  if (found == forms_.end() || !(product || n.op == "Gather" || is_one_of(n.op, kOthers))) return;
  Readers& by = readers_[found->second.tensor];
  // A layer has the matrix as [outputs, inputs], MatMul the other way round.
  const bool is_transposed = found->second.transposed != (attribute(n, "transB", 0) != 0);
  std::string kind = cat(n.op, " ", i, is_transposed ? " t" : "");
  for (size_t k = 0; k < n.inputs.size(); ++k) {
    if (k != i) kind += cat(" ", tensor(n.inputs[k]));
  }
  by.kinds.insert(std::move(kind));
  if (n.op == "Gather") {
    by.table = true;
    by.as_it_is &= !found->second.transposed;
  } else {
    by.products &= product;
    by.as_it_is &= is_transposed;
  }
}

// Whether input i is a weight of one number in a product or power, which a pattern would take for a
// number of a function: a swish whose slope is 1 before it is trained.
bool Origins::is_factor(const OnnxNode& n, size_t i) const {
  constexpr std::string_view kOps[] = {"Mul", "Div", "Pow"};
  const auto count = counts_.find(n.inputs[i]);
  return is_one_of(n.op, kOps) && of(n.inputs[i]) == Origin::weight && count != counts_.end() &&
         count->second == 1;
}

void Origins::read(const OnnxGraph& graph, const OnnxNode& n, const OnnxImportOptions& options) {
  if (read_constant(n, options)) return;
  // Shapes of weights are not weights.
  const bool measures = (n.op == "Shape" || n.op == "Size") && !n.inputs.empty();
  const bool known = measures ? of(n.inputs[0]) != Origin::computed : true;
  Origin made = measures ? (known ? Origin::constant : Origin::computed) : made_by(n);
  const bool beside = attribute(n, "axis", 0) == 1 || attribute(n, "axis", 0) == -1;
  if (n.op == "Concat" && beside && n.inputs.size() == 2 && are_biases(graph, n)) {
    const bool first = of(n.inputs[0]) == Origin::weight,
               second = of(n.inputs[1]) == Origin::weight;
    if (first != second && of(n.inputs[first ? 1 : 0]) == Origin::constant) {
      made = Origin::weight;
      trained_halves_.insert_or_assign(n.outputs[0], first ? 0 : 1);
    }
  }
  if (n.op == "If" || n.op == "Loop" || n.op == "Scan") made = Origin::computed;
  for (const std::string& name : n.outputs) {
    if (!name.empty()) origins_.insert_or_assign(name, made);
  }
  if (made != Origin::computed) return follow(n);
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    const Origin from = of(n.inputs[i]);
    needs_nodes_ |= from == Origin::derived || is_factor(n, i);
    read_weight(n, i);
  }
}

}  // namespace loom::core
