#include "ops/schedule.hpp"

#include <algorithm>

#include "ops/uses.hpp"
#include "ops/visit.hpp"

namespace loom {
namespace {

// As far as a command is moved: what is further away has other neighbours by then.
constexpr size_t kWindow = 64;
constexpr int64_t kFewValues = 256, kFewTerms = 2048;

bool small(Command& command) {
  bool few = false;
  with_args(command, [&](auto& args) {
    using Args = std::decay_t<decltype(args)>;
    if constexpr (std::is_same_v<Args, FillArgs> || std::is_same_v<Args, UnaryArgs> ||
                  std::is_same_v<Args, BinaryArgs>) {
      few = args.y.shape.count() <= kFewValues;
    } else if constexpr (std::is_same_v<Args, ReduceArgs> || std::is_same_v<Args, ReduceColsArgs>) {
      few = args.x.shape.count() <= kFewTerms;
    } else if constexpr (std::is_same_v<Args, LossArgs>) {
      few = args.pred.shape.count() <= kFewTerms;
    }
  });
  return few;
}

// What `command` takes the derivative of an activation of; null: it is no such command.
const std::byte* slope_of(Command& command) {
  const std::byte* dy = nullptr;
  with_args(command, [&](auto& args) {
    if constexpr (std::is_same_v<std::decay_t<decltype(args)>, UnaryDxArgs>) dy = args.dy.data;
  });
  return dy;
}

const std::byte* result_of_product(Command& command) {
  const std::byte* dx = nullptr;
  with_args(command, [&](auto& args) {
    using Args = std::decay_t<decltype(args)>;
    if constexpr (std::is_same_v<Args, MatmulDxArgs> || std::is_same_v<Args, ConvDxArgs>) {
      dx = args.dx.data;
    }
  });
  return dx;
}

}  // namespace

void schedule(std::vector<Command>& commands) {
  std::vector<std::vector<Use>> uses(commands.size());
  for (size_t i = 0; i < commands.size(); ++i) add_uses(commands[i], uses[i]);
  for (size_t j = 1; j < commands.size(); ++j) {
    const std::byte* slope = slope_of(commands[j]);
    const bool few = slope == nullptr && small(commands[j]);
    if (slope == nullptr && !few) continue;
    for (size_t i = j; i-- > 0 && j - i <= kWindow;) {
      if (few ? small(commands[i]) : result_of_product(commands[i]) == slope) {
        const auto move = [&](auto& list) {
          const auto at = [&](size_t n) { return list.begin() + static_cast<ptrdiff_t>(n); };
          std::rotate(at(i + 1), at(j), at(j + 1));
        };
        move(commands);
        move(uses);
        break;
      }
      if (!apart(uses[i], uses[j])) break;
    }
  }
}

}  // namespace loom
