// Helpers of the fusions that inspect the commands of a list.
#pragma once

#include <span>

#include "ops/recording/visit.hpp"

namespace loom::core::webgpu {

// The arguments of a command of that op.
template <class Args>
const Args& args_of(const Command& command) {
  return *reinterpret_cast<const Args*>(command.args);
}

// The arguments of command `at` of `rest`. May be null: another op, or no such command.
template <class Args>
const Args* args_at(std::span<const Command> rest, size_t at) {
  if (at >= rest.size() || rest[at].op != op_of<Args>()) return nullptr;
  return &args_of<Args>(rest[at]);
}

bool overlap(const Tensor& a, const Tensor& b);
// Whether `t` is dead: a command of `rest` overwrites all of it before any command reads it. Values
// alive at the end of the list may be read by the host.
bool dead(std::span<const Command> rest, const Tensor& t);
// The same for quantized rows, which live at most to the end of their list.
bool dead(std::span<const Command> rest, const Q8Rows& q);

}  // namespace loom::core::webgpu
