// The table of the operators that every build has. See operator.hpp.
#include "onnx/operators/operator.hpp"

#include <algorithm>

namespace loom::core::evaluate {

static std::string_view signature_of(const Operator& o) {
  return o.signature.empty() ? find_described(o.name)->signature : o.signature;
}

InputCount Operator::inputs() const {
  return input_count(signature_of(*this));
}

bool Operator::knows_attribute(std::string_view attribute) const {
  std::string_view rest = signature_of(*this);
  while (std::optional<Version> v = next_version(rest)) {
    while (const std::optional<AttributeRule> rule = next_attribute(v->attributes)) {
      if (rule->name == attribute) return true;
    }
  }
  return false;
}

std::span<const std::span<const Operator>> common_families() {
  static const std::span<const Operator> kFamilies[] = {
      unary_operators(),  pair_operators(),   cast_operators(),   shape_operators(),
      layout_operators(), gather_operators(), reduce_operators(),
  };
  return kFamilies;
}

const Operator* find_common_operator(std::string_view domain, std::string_view name) {
  for (const std::span<const Operator> family : common_families()) {
    for (const Operator& o : family) {
      if (o.name == name && o.domain == domain) return &o;
    }
  }
  return nullptr;
}

const Operator* find_described(std::string_view name) {
  if (const Operator* common = find_common_operator("", name)) return common;
  for (const Operator& o : declared_operators()) {
    if (o.name == name) return &o;
  }
  return nullptr;
}

LayerName layer_of(std::string_view name) {
  const Operator* row = find_described(name);
  if (row == nullptr) return {};
  const size_t space = std::min(row->layer.find(' '), row->layer.size());
  const size_t rest = std::min(space + 1, row->layer.size());
  return {row->layer.substr(0, space), row->layer.substr(rest)};
}

}  // namespace loom::core::evaluate
