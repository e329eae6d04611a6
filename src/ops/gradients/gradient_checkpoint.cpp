// Gradient checkpointing: the second recording of a segment of the forward pass.
#include <algorithm>

#include "ops/gradients/gradient.hpp"
#include "ops/recording/visit.hpp"

namespace loom::core {
namespace {

// The tensors of the trace that only commands [begin, end) make and read. They are made again;
// tensors with other readers are kept.
class Segment {
 public:
  Segment(const Trace& trace, const std::vector<Command>& commands, int64_t tensors, int64_t begin,
          int64_t end)
      : trace_(trace), again_(static_cast<size_t>(tensors), false) {
    std::vector<bool> outside(again_.size(), false);
    for (int64_t i = 0; i < static_cast<int64_t>(commands.size()); ++i) {
      const bool inside = i >= begin && i < end;
      each(commands[static_cast<size_t>(i)], [&](size_t t, Access access) {
        if (!inside) outside[t] = true;
        if (inside && access != Access::read) again_[t] = true;
      });
    }
    for (size_t t = 0; t < again_.size(); ++t) again_[t] = again_[t] && !outside[t];
    while (spread(commands, begin, end)) {
    }
  }

  bool again(int64_t tensor) const { return again_[static_cast<size_t>(tensor)]; }
  // Commands without new results need not run twice.
  bool repeats(const Command& command) const {
    bool writes = false;
    each(command, [&](size_t t, Access access) {
      writes = writes || (access != Access::read && again_[t]);
    });
    return writes;
  }

 private:
  template <class F>
  void each(const Command& command, F&& f) const {
    visit_command(command, [&](const Tensor& t, Access access) {
      const int64_t id = t.empty() ? -1 : trace_.find(t.data);
      if (id >= 0 && id < static_cast<int64_t>(again_.size())) f(static_cast<size_t>(id), access);
    });
  }

  // A command that runs again writes all of its results again. Then all other writers of these must
  // run again too. Returns true if something was added.
  bool spread(const std::vector<Command>& commands, int64_t begin, int64_t end) {
    bool grew = false;
    for (int64_t i = begin; i < end; ++i) {
      const Command& command = commands[static_cast<size_t>(i)];
      if (!repeats(command)) continue;
      each(command, [&](size_t t, Access access) {
        if (access == Access::read || again_[t]) return;
        again_[t] = grew = true;
      });
    }
    return grew;
  }

  const Trace& trace_;
  std::vector<bool> again_;
};

}  // namespace

void Differentiator::repeat(int64_t begin, int64_t end) {
  const Segment segment(trace_, forward_, trace_slots_, begin, end);
  const auto copy_of = [&](int64_t id) {
    int64_t& copy = copies_[static_cast<size_t>(id)];
    if (copy < 0) {
      const Tensor original = trace_.tensor(id);
      copy = trace_.tensors();
      trace_.fresh(original.shape, original.dtype);
      copied_.resize(static_cast<size_t>(copy - trace_slots_) + 1, -1);
      copied_.back() = id;
    }
    return trace_.tensor(copy).data;
  };
  for (int64_t i = begin; i < end; ++i) {
    Command& command = forward_[static_cast<size_t>(i)];
    const bool again = segment.repeats(command);
    visit_command(command, [&](Tensor& t, Access) {
      const int64_t id = t.empty() ? -1 : trace_.find(t.data);
      if (id < 0 || id >= trace_slots_ || !segment.again(id)) return;
      t.data = copy_of(id) + (t.data - trace_.tensor(id).data);
    });
    if (again) trace_.commands().push_back(command);
  }
}

}  // namespace loom::core
