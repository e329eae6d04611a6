// Looking at the commands of a list: what the fusions share.
#pragma once

#include <span>

#include "ops/visit.hpp"

namespace loom::core::webgpu {

// The arguments of a command of that op.
template <class Args>
const Args& args_of(const Command& command) {
  return *reinterpret_cast<const Args*>(command.args);
}

// Those of command `at` of `rest`; null: another op, or no such command.
template <class Args>
const Args* args_at(std::span<const Command> rest, size_t at) {
  if (at >= rest.size() || rest[at].op != op_of<Args>()) return nullptr;
  return &args_of<Args>(rest[at]);
}

bool overlap(const Tensor& a, const Tensor& b);
// Whether nobody reads `t` any more: a command of `rest` writes all of it before one reads it. What
// the end of the list leaves may be read by the host.
bool dead(std::span<const Command> rest, const Tensor& t);
// The same for quantized rows, which end with their list.
bool dead(std::span<const Command> rest, const Q8Rows& q);

}  // namespace loom::core::webgpu
