// Commands that run together in one dispatch, because a dispatch costs some microseconds whatever
// it does. A table of words (Frame::table) lists the work. Tensors are words of it too, because
// there are more of them than bindings.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "backend/webgpu/fusion/commands.hpp"
#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// These functions look at the front of `rest` and describe one dispatch for as many commands as it
// can hold. They return the number of commands, or 0 if fusing is not worth it.
//
// Commands of a few values each (losses, clipping, counters), one after the other.
Result<int64_t> fuse_scalars(Frame& frame, std::span<const Command> rest);
// Updates of parameters that do not overlap, and the packing of f32 weights that follows.
Result<int64_t> fuse_optimize(Frame& frame, std::span<const Command> rest);
// matmul_dx or conv_dx, and the derivative of an activation times its result.
Result<int64_t> fuse_slope(Frame& frame, std::span<const Command> rest);
// Steps of an RNN, an LSTM or a GRU, one after the other: the product with the state, and the cell.
Result<int64_t> fuse_recurrence(Frame& frame, std::span<const Command> rest);
// A product with few outputs, and the gradient of a loss of them.
Result<int64_t> fuse_loss(Frame& frame, std::span<const Command> rest);
// Sums over positions and then over samples: the gradient of a bias per channel.
Result<int64_t> fuse_channel_sums(Frame& frame, std::span<const Command> rest);

// Tensors as numbers: the upper two bits of a word select one of four buffers, the rest is the
// index of a value. The kernel sees load(word, i) -> f32, load_bits(word, i) -> u32 and store(word,
// i, v).
class Operands {
 public:
  static constexpr uint32_t kAbsent = 0xffffffff;
  // With 3 buffers, numbers that begin with 3 mean workgroup memory.
  explicit Operands(const Frame& frame, int buffers = kBuffers) : frame_(&frame), most_(buffers) {}

  // False if a tensor has no number: it is on no device, in a fifth buffer, or too far into its
  // buffer.
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
