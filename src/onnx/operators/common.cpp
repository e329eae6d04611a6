// The table of the operators that every build has. See operator.hpp.
#include "onnx/operators/operator.hpp"

#include <algorithm>

namespace loom::core::evaluate {

bool Operator::knows_attribute(std::string_view attribute) const {
  std::string_view rest = attributes;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == attribute) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
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

}  // namespace loom::core::evaluate
