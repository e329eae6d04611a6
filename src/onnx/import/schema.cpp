// Compares a node with the signature of its operator (onnx/operators). See schema.hpp.
#include "onnx/import/schema.hpp"

#include <algorithm>
#include <optional>

#include "base/text.hpp"

namespace loom::core {
namespace {

using evaluate::AttributeRule;
using evaluate::Version;

bool is_signed(OnnxType t) {
  return is_float(t) || t == OnnxType::i8 || t == OnnxType::i16 || t == OnnxType::i32 ||
         t == OnnxType::i64;
}

// The types that a letter of a signature stands for.
bool allows(char letter, OnnxType t) {
  switch (letter) {
    case 'l': return t == OnnxType::i64;
    case 'm': return t == OnnxType::i32;
    case 'i':
    case 'I': return t == OnnxType::i32 || t == OnnxType::i64;
    case 'b':
    case 'B': return t == OnnxType::boolean;
    case 'f':
    case 'F':
    case 'U':
    case 'V':
    case 'W': return is_float(t);
    case 'n':
    case 'N': return is_float(t) || is_integer(t);
    case 'S': return is_signed(t);
    case 'P': return is_float(t) || t == OnnxType::i32 || t == OnnxType::i64;
    case 'R': return is_signed(t) && t != OnnxType::i8 && t != OnnxType::f16 && t != OnnxType::bf16;
    case 'G': return is_float(t) || onnx_type_bytes(t) >= 4;
    default: return t != OnnxType::undefined;
  }
}

bool shared_type(char letter) {
  return letter >= 'A' && letter <= 'Z';
}

OnnxAttributeType attribute_type(char letter) {
  switch (letter) {
    case 'f': return OnnxAttributeType::real;
    case 'g':
    case 'i': return OnnxAttributeType::integer;
    case 's': return OnnxAttributeType::text;
    case 't': return OnnxAttributeType::tensor;
    case 'F': return OnnxAttributeType::reals;
    case 'I': return OnnxAttributeType::integers;
    default: return OnnxAttributeType::texts;
  }
}

std::string_view attribute_kind(char letter) {
  switch (letter) {
    case 'f': return "a number";
    case 'g': return "0 or 1";
    case 'i': return "an integer";
    case 's': return "text";
    case 't': return "a tensor";
    case 'F': return "a list of numbers";
    case 'I': return "a list of integers";
    default: return "a list of texts";
  }
}

// The rule of an attribute that importers read; nothing if they do not.
std::optional<AttributeRule> rule_of(std::string_view attributes, std::string_view name) {
  while (const std::optional<AttributeRule> rule = evaluate::next_attribute(attributes)) {
    if (rule->name == name && rule->kind != 0) return rule;
  }
  return {};
}

Status check_attributes(const OnnxNode& node, const Version& version, int64_t opset) {
  for (const OnnxAttribute& given : node.attributes) {
    const std::optional<AttributeRule> known = rule_of(version.attributes, given.name);
    if (!known)
      return unsupported(cat("has no attribute '", printable(given.name), "' in opset ", opset));
    // Other numbers are true to some runtimes and false to others.
    const bool flag = known->kind != 'g' || given.integer == 0 || given.integer == 1;
    if (attribute_type(known->kind) != given.type || !flag)
      return unsupported(
          cat("its attribute '", known->name, "' must be ", attribute_kind(known->kind)));
  }
  std::string_view rest = version.attributes;
  while (const std::optional<AttributeRule> known = evaluate::next_attribute(rest)) {
    if (known->required && node.find(known->name) == nullptr)
      return unsupported(cat("its attribute '", known->name, "' is absent"));
  }
  return {};
}

Status check_inputs(const Version& v, const std::vector<OnnxType>& inputs) {
  if (!v.repeats && inputs.size() > v.inputs)
    return unsupported(cat("has ", inputs.size(), " inputs, takes ", v.inputs));
  for (size_t i = 0; i < std::max(v.min_inputs, inputs.size()); ++i) {
    const OnnxType type = i < inputs.size() ? inputs[i] : OnnxType::undefined;
    if (type == OnnxType::undefined) {
      if (i < v.min_inputs || v.repeats) return unsupported(cat("input ", i, " is absent"));
      continue;
    }
    const char letter = v.letter(i);
    if (!allows(letter, type))
      return unsupported(
          cat("input ", i, " holds ", onnx_type_name(type), " values, which it does not take"));
    for (size_t k = 0; k < i && shared_type(letter); ++k) {
      if (v.letter(k) == letter && inputs[k] != OnnxType::undefined && inputs[k] != type)
        return unsupported(cat("inputs ", k, " and ", i, " hold ", onnx_type_name(inputs[k]),
                               " and ", onnx_type_name(type), " values, must hold the same"));
    }
  }
  return {};
}

OnnxType result_of(const OnnxNode& node, const Version& v, const std::vector<OnnxType>& inputs) {
  if (v.result == 'b') return OnnxType::boolean;
  if (v.result == 'l') return OnnxType::i64;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (v.letter(i) == v.result) return inputs[i];
  }
  if (const OnnxAttribute* to = node.find("to")) return static_cast<OnnxType>(to->integer);
  if (const OnnxAttribute* value = node.find("value")) return value->tensors[0].type;
  if (node.find("value_int") != nullptr || node.find("value_ints") != nullptr) return OnnxType::i64;
  return OnnxType::f32;
}

}  // namespace

bool is_float(OnnxType t) {
  return t == OnnxType::f16 || t == OnnxType::f32 || t == OnnxType::f64 || t == OnnxType::bf16;
}

bool is_integer(OnnxType t) {
  return t != OnnxType::boolean && onnx_type_bytes(t) > 0 && !is_float(t);
}

bool knows_operator(std::string_view op) {
  const evaluate::Operator* row = evaluate::find_described(op);
  std::string_view rest = row != nullptr ? row->signature : std::string_view();
  while (const std::optional<Version> v = evaluate::next_version(rest)) {
    if (v->result != 0) return true;
  }
  return false;
}

Result<OnnxType> check_node(const OnnxNode& node, int64_t opset,
                            const std::vector<OnnxType>& inputs) {
  const evaluate::Operator* row = evaluate::find_described(node.op);
  const std::optional<Version> v =
      row != nullptr ? evaluate::version_at(row->signature, opset) : std::nullopt;
  if (!v)
    return unsupported(cat("opset ", opset, ", which the model imports, has no such operator"));
  LOOM_TRY(check_inputs(*v, inputs));
  if (node.outputs.empty() || node.outputs.size() > v->outputs)
    return unsupported(cat("has ", node.outputs.size(), " outputs, must have 1 to ", v->outputs));
  LOOM_TRY(check_attributes(node, *v, opset));
  return result_of(node, *v, inputs);
}

bool reads(std::string_view key, const evaluate::Operator& row) {
  const std::string_view kind = row.layer.substr(0, row.layer.find(' '));
  return key == row.name || (!kind.empty() && (key == kind || key == row.layer));
}

void add_names(std::string_view key, std::vector<std::string>& names) {
  const auto add = [&](std::span<const evaluate::Operator> rows) {
    for (const evaluate::Operator& row : rows) {
      if (key != row.name && reads(key, row)) names.emplace_back(row.name);
    }
  };
  const bool is_name = key[0] >= 'A' && key[0] <= 'Z';
  if (is_name) names.emplace_back(key);
  for (const std::span<const evaluate::Operator> family : evaluate::common_families()) add(family);
  add(evaluate::declared_operators());
}

}  // namespace loom::core
