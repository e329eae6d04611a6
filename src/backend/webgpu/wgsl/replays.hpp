// Replays: command lists that repeat unchanged, such as training steps. Their recordings are kept,
// so they are described once.
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

  // The plan for a list: describe it; describe it between record() and keep(); or replay().
  // `varies`: lists of this source repeat for some time, and then change.
  enum class Plan : uint8_t { describe, record, replay };
  Plan plan(std::span<const Command> commands, bool varies);
  // After Frame::record() and the description of the list that plan() saw last.
  void keep();
  // The recording of the list that plan() saw last.
  const Frame::Recording& recording() const { return *current_->recording; }
  // Call after memory was attached or detached.
  void forget() {
    known_.clear();
    current_ = nullptr;
  }

 private:
  struct Known {
    std::vector<Command> commands;
    std::unique_ptr<Frame::Recording> recording;
    int64_t generation = 0;
    bool changes = false;  // it repeated with other arguments: recording is not worth it
  };
  static constexpr size_t kMax = 64;

  Frame* frame_;
  std::map<const Command*, Known> known_;
  Known* current_ = nullptr;
};

}  // namespace loom::core::webgpu
