#include "ops/recording/uses.hpp"

#include <algorithm>

#include "ops/recording/visit.hpp"

namespace loom::core {

void add_uses(const Command& command, std::vector<Use>& uses) {
  with_args(command, [&](const auto& args) {
    visit(args, [&](const Tensor& t, Access access) {
      if (!t.empty()) uses.push_back({t.data, t.end(), access != Access::read});
    });
    visit_memory(args, [&](const std::byte* begin, int64_t bytes, Access access) {
      uses.push_back({begin, begin + bytes, access != Access::read});
    });
  });
}

bool apart(std::span<const Use> a, std::span<const Use> b) {
  return std::none_of(a.begin(), a.end(), [&](const Use& x) {
    return std::any_of(b.begin(), b.end(), [&](const Use& y) {
      return (x.write || y.write) && x.begin < y.end && y.begin < x.end;
    });
  });
}

}  // namespace loom::core
