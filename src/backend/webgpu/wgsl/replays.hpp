// Replays: lists of commands that come again as they were, such as training steps. What they became
// is kept, so that they are described once.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

class Replays {
 public:
  explicit Replays(Frame& frame) : frame_(&frame) {}

  // What to do with a list: describe it; the same between record() and keep(); or replay().
  // `varies`: lists come from there as they were, for some time, and then others do.
  enum class Plan : uint8_t { describe, record, replay };
  Plan plan(std::span<const Command> commands, bool varies);
  // After Frame::record() and the description of the list that plan() saw last.
  void keep();
  // Of the list that plan() saw last.
  const Frame::Recording& recording() const { return *current_->recording; }
  // Memory was attached or detached.
  void forget() {
    known_.clear();
    current_ = nullptr;
  }

 private:
  struct Known {
    std::vector<Command> commands;
    std::unique_ptr<Frame::Recording> recording;
    int64_t generation = 0;
    bool changes = false;  // it came again with other arguments: not worth another look
  };
  static constexpr size_t kMost = 64;

  Frame* frame_;
  std::map<const Command*, Known> known_;
  Known* current_ = nullptr;
};

}  // namespace loom::core::webgpu
