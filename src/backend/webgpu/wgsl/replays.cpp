#include "backend/webgpu/wgsl/replays.hpp"

#include <algorithm>
#include <cstring>

namespace loom::core::webgpu {
namespace {

constexpr size_t kSizes[] = {
#define LOOM_OP(name, Args) sizeof(Args),
#include "ops/ops.def"
#undef LOOM_OP
};

bool same(std::span<const Command> a, std::span<const Command> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Command& x, const Command& y) {
    return x.op == y.op && std::memcmp(x.args, y.args, kSizes[static_cast<int>(x.op)]) == 0;
  });
}

}  // namespace

Replays::Plan Replays::plan(std::span<const Command> commands, bool varies) {
  current_ = nullptr;
  if (commands.empty()) return Plan::describe;
  if (known_.size() >= kMax && known_.count(commands.data()) == 0) known_.clear();
  const auto [at, fresh] = known_.try_emplace(commands.data());
  Known& known = at->second;
  if (fresh) known.commands.assign(commands.begin(), commands.end());
  if (fresh || known.changes) return Plan::describe;
  if (!same(known.commands, commands)) {
    known = {};
    known.changes = !varies;
    if (varies) known.commands.assign(commands.begin(), commands.end());
    return Plan::describe;
  }
  current_ = &known;
  const bool valid = known.recording != nullptr && known.generation == frame_->generation();
  return valid ? Plan::replay : Plan::record;
}

void Replays::keep() {
  if (current_ == nullptr) return;
  current_->recording = frame_->recorded();
  current_->generation = frame_->generation();
}

}  // namespace loom::core::webgpu
