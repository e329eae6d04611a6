#include "ops/recording/schedule.hpp"

#include <algorithm>

#include "ops/recording/uses.hpp"
#include "ops/recording/visit.hpp"

namespace loom::core {
namespace {

// The maximum distance that a command moves. Commands further away have other neighbours by then.
constexpr size_t kWindow = 64;
constexpr int64_t kSmallValues = 256, kSmallTerms = 2048;
// Large commands that small ones let pass: the two or three at the start of a layer's gradients.
constexpr int64_t kPassing = 3;

bool small(const Command& command) {
  bool is_small = false;
  with_args(command, [&](const auto& args) {
    using Args = std::decay_t<decltype(args)>;
    if constexpr (std::is_same_v<Args, FillArgs> || std::is_same_v<Args, UnaryArgs> ||
                  std::is_same_v<Args, BinaryArgs>) {
      is_small = args.y.shape.count() <= kSmallValues;
    } else if constexpr (std::is_same_v<Args, ReduceArgs> || std::is_same_v<Args, ReduceColsArgs>) {
      is_small = args.x.shape.count() <= kSmallTerms;
    } else if constexpr (std::is_same_v<Args, LossArgs>) {
      is_small = args.pred.shape.count() <= kSmallTerms;
    }
  });
  return is_small;
}

// The input of the activation whose derivative `command` takes; may be null: another command.
const std::byte* slope_of(const Command& command) {
  const std::byte* dy = nullptr;
  with_args(command, [&](const auto& args) {
    if constexpr (std::is_same_v<std::decay_t<decltype(args)>, UnaryDxArgs>) dy = args.dy.data;
  });
  return dy;
}

const std::byte* result_of_product(const Command& command) {
  const std::byte* dx = nullptr;
  with_args(command, [&](const auto& args) {
    using Args = std::decay_t<decltype(args)>;
    if constexpr (std::is_same_v<Args, MatmulDxArgs> || std::is_same_v<Args, ConvDxArgs>) {
      dx = args.dx.data;
    }
  });
  return dx;
}

using AllUses = std::vector<std::vector<Use>>;

// Moves command `from` to index `to`; the commands between shift by one.
void move(std::vector<Command>& commands, AllUses& uses, size_t from, size_t to) {
  const auto in = [&](auto& list) {
    const auto at = [&](size_t n) { return list.begin() + static_cast<ptrdiff_t>(n); };
    if (from > to) std::rotate(at(to), at(from), at(from + 1));
    if (from < to) std::rotate(at(from), at(from + 1), at(to + 1));
  };
  in(commands);
  in(uses);
}

// Moves commands toward the front, to their group.
void gather(std::vector<Command>& commands, AllUses& uses) {
  for (size_t j = 1; j < commands.size(); ++j) {
    const std::byte* slope = slope_of(commands[j]);
    const bool is_small = slope == nullptr && small(commands[j]);
    if (slope == nullptr && !is_small) continue;
    for (size_t i = j; i-- > 0 && j - i <= kWindow;) {
      if (is_small ? small(commands[i]) : result_of_product(commands[i]) == slope) {
        move(commands, uses, j, i + 1);
        break;
      }
      if (!apart(uses[i], uses[j])) break;
    }
  }
}

// Moves small commands without waiting readers after the next large ones. The large ones then need
// not wait for them, and they run concurrently. A command stays if the large one that it reads from
// precedes it.
void let_pass(std::vector<Command>& commands, AllUses& uses) {
  for (size_t i = commands.size(); i-- > 0;) {
    if (!small(commands[i])) continue;
    if (i > 0 && !small(commands[i - 1]) && !apart(uses[i - 1], uses[i])) continue;
    size_t last = i;
    int64_t passed = 0;
    for (size_t j = i + 1; j < commands.size() && passed < kPassing; ++j) {
      if (!apart(uses[i], uses[j])) break;
      if (small(commands[j])) continue;
      ++passed;
      last = j;
    }
    if (passed == kPassing) move(commands, uses, i, last);
  }
}

}  // namespace

void schedule(std::vector<Command>& commands) {
  AllUses uses(commands.size());
  for (size_t i = 0; i < commands.size(); ++i) add_uses(commands[i], uses[i]);
  gather(commands, uses);
  let_pass(commands, uses);
}

}  // namespace loom::core
