// Nodes of ONNX, and the few that every operator needs. See lower.hpp.
#include <algorithm>

#include "base/text.hpp"
#include "formats/tflite/lower.hpp"

namespace loom::core {
namespace {

constexpr size_t kMaxPlaces = 4096;  // of a list that a Gather takes

enum Fused : int64_t {
  kNoFunction = 0,
  kFusedRelu = 1,
  kFusedN1To1 = 2,
  kFused6 = 3,
  kFusedTanh = 4
};

}  // namespace

TfliteGraph::Name TfliteGraph::keep(OnnxTensor tensor) {
  const Name name = next_++;
  tensor.name = spelled(name);
  constants_.emplace(name, std::move(tensor));
  return name;
}

TfliteGraph::Name TfliteGraph::number(float value) {
  return keep(onnx_tensor("", {}, std::span<const float>(&value, 1)));
}

TfliteGraph::Name TfliteGraph::list(std::span<const int64_t> values) {
  return keep(onnx_tensor("", {static_cast<int64_t>(values.size())}, values));
}

TfliteGraph::Name TfliteGraph::list(std::initializer_list<int64_t> values) {
  return list(std::span(values.begin(), values.size()));
}

// The name in the graph. An input of the model may have any name. So our names start with a space,
// and unique() separates theirs.
std::string TfliteGraph::spelled(Name name) const {
  if (name == kNone) return {};
  const auto input = inputs_.find(name);
  return input != inputs_.end() ? input->second : cat(" ", name);
}

// Computes nodes that have only constant inputs, since shapes and indices must be known.
TfliteGraph::Names TfliteGraph::folded(const OnnxNode& node, std::span<const Name> inputs) {
  std::vector<const OnnxTensor*> tensors;
  for (const Name name : inputs) tensors.push_back(known(name));
  Result<std::vector<OnnxTensor>> made = options_.folder(node, kTfliteOpset, tensors);
  Names out(node.outputs.size(), kNone);
  if (!made.ok()) {
    refuse(made.error().message);
    return out;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    left_ -= (*made)[i].count();
    if (left_ < 0) refuse("the model makes far more values than it holds");
    out[i] = keep(std::move((*made)[i]));
  }
  return out;
}

OnnxAttribute TfliteGraph::attribute_of(const Given& given) {
  OnnxAttribute a;
  a.name = given.name;
  if (given.list != nullptr) {
    a.type = OnnxAttributeType::integers;
    a.integers = *given.list;
  } else if (!given.text.empty()) {
    a.type = OnnxAttributeType::text;
    a.text = given.text;
  } else if (given.is_real) {
    a.type = OnnxAttributeType::real;
    a.real = given.real;
  } else {
    a.integer = given.whole;
  }
  return a;
}

TfliteGraph::Names TfliteGraph::add_many(std::string_view kind, std::span<const Name> inputs,
                                         Attributes attributes, size_t outputs) {
  if (failed()) return Names(outputs, kNone);
  OnnxNode node;
  node.name = place_;
  node.op = kind;
  bool all_known = static_cast<bool>(options_.folder);
  for (const Name name : inputs) {
    node.inputs.push_back(spelled(name));
    all_known = all_known && (name == kNone || known(name) != nullptr);
  }
  for (const Given& given : attributes) node.attributes.push_back(attribute_of(given));
  Names out;
  for (size_t i = 0; i < outputs; ++i) {
    out.push_back(next_++);
    node.outputs.push_back(spelled(out.back()));
  }
  if (all_known) return folded(node, inputs);
  out_.model.graph.nodes.push_back(std::move(node));
  return out;
}

TfliteGraph::Name TfliteGraph::add(std::string_view kind, Inputs inputs, Attributes attributes) {
  return add_many(kind, std::span(inputs.begin(), inputs.size()), attributes, 1)[0];
}

TfliteGraph::Name TfliteGraph::add(std::string_view kind, const Names& inputs,
                                   Attributes attributes) {
  return add_many(kind, inputs, attributes, 1)[0];
}

TfliteGraph::Name TfliteGraph::moved(Name x, const List& order) {
  if (std::ranges::is_sorted(order)) return x;
  return add("Transpose", {x}, {list_of("perm", order)});
}

TfliteGraph::Name TfliteGraph::shaped(Name x, const List& dims) {
  return add("Reshape", {x, list(dims)});
}

TfliteGraph::Name TfliteGraph::clipped(Name x, float low, float high) {
  return add("Clip", {x, number(low), number(high)});
}

TfliteGraph::Name TfliteGraph::activated(Name x, int64_t function) {
  switch (function) {
    case kNoFunction: return x;
    case kFusedRelu: return add("Relu", {x});
    case kFusedN1To1: return clipped(x, -1, 1);
    case kFused6: return clipped(x, 0, 6);
    case kFusedTanh:
      refuse("a fused tanh, which the interpreter ignores; add a TANH operator after it");
      return kNone;
    default: refuse(cat("fused activation number ", function, " is not read")); return kNone;
  }
}

TfliteGraph::Name TfliteGraph::gather_at(Name x, const List& indices, int64_t axis) {
  if (indices.size() > kMaxPlaces) refuse(cat(indices.size(), " places of one axis"));
  return add("Gather", {x, list(indices)}, {{"axis", axis}});
}

}  // namespace loom::core
