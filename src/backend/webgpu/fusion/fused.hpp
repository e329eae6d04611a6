// Commands that run together in one dispatch: a dispatch costs some microseconds whatever it does.
// A table of words (Frame::table) says what to do; tensors are words of it too, for there are more
// of them than bindings.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "backend/webgpu/fusion/commands.hpp"
#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// Both look at the front of `rest` and describe one dispatch for as many commands as it can hold;
// they return how many, 0 when it is not worth it.
//
// Commands of a few values each (losses, clipping, counters), one after the other.
Result<int64_t> fuse_scalars(Frame& frame, std::span<const Command> rest);
// Updates of parameters that do not touch each other, with the packing of f32 weights behind them.
Result<int64_t> fuse_optimize(Frame& frame, std::span<const Command> rest);
// matmul_dx or conv_dx, and the derivative of an activation times what it makes.
Result<int64_t> fuse_slope(Frame& frame, std::span<const Command> rest);
// Steps of an RNN, an LSTM or a GRU, one after the other: the product with the state, and the cell.
Result<int64_t> fuse_recurrence(Frame& frame, std::span<const Command> rest);
// A product of few outputs, and the gradient of a loss by them.
Result<int64_t> fuse_loss(Frame& frame, std::span<const Command> rest);
// Sums over positions and then over samples: the gradient of a bias per channel.
Result<int64_t> fuse_channel_sums(Frame& frame, std::span<const Command> rest);

// Tensors by number: the two upper bits of a word say which of four buffers, the rest which value.
// The kernel sees load(word, i) -> f32, load_bits(word, i) -> u32 and store(word, i, v).
class Operands {
 public:
  static constexpr uint32_t kAbsent = 0xffffffff;
  // 3 buffers: numbers that begin with 3 mean workgroup memory.
  explicit Operands(const Frame& frame, int buffers = kBuffers) : frame_(&frame), most_(buffers) {}

  // False where a tensor has no number: on no device, in a fifth buffer, too far behind.
  bool number(const Tensor& t, uint32_t& word);
  void bind(Call& call) const;

 private:
  static constexpr int kBuffers = 4;
  const Frame* frame_;
  int most_;
  BufferSlice buffers_[kBuffers];
  int count_ = 0;
};

}  // namespace loom::core::webgpu
