#include "ops/recorder.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/checked.hpp"
#include "ops/checks.hpp"

namespace loom {
namespace {

// Elementwise work below this many values is not worth a barrier.
constexpr int64_t kSerialValues = 8192;
// Matmuls below this many multiplications neither.
constexpr int64_t kSerialProducts = 16384;
// Accesses remembered since the last barrier; where more would be, a barrier costs less than the
// search.
constexpr size_t kMaxAccesses = 256;

bool overlap(const std::byte* a, const std::byte* a_end, const std::byte* b,
             const std::byte* b_end) {
  return a < b_end && b < a_end;
}

template <class T>
const std::byte* byte_end(const T* data, int64_t count) {
  return reinterpret_cast<const std::byte*>(data + count);
}

int64_t q8_bytes(int64_t rows, int64_t cols) {
  const int64_t blocks = ceil_div(cols, 32);
  return rows * blocks * (32 + 3 * 4) + 4 * 64;
}

}  // namespace

Recorder::Recorder(const Ops& ops, ThreadPool& pool, ActivationMode mode)
    : ops_(&ops), pool_(&pool), mode_(mode) {}

Status Recorder::reserve(int64_t commands, int64_t rows, int64_t cols, int64_t positions) {
  commands_.reserve(static_cast<size_t>(commands));
  since_barrier_.reserve(kMaxAccesses);
  pending_.reserve(16);
  for (Q8Slot& slot : q8_) LOOM_TRY(grow_slot(slot, rows, cols));
  return reserve_scratch(attention_scratch(positions));
}

Status Recorder::reserve_scratch(int64_t bytes) {
  bytes = std::max(bytes, kMatmulScratch);
  if (bytes <= scratch_bytes_) return {};
  LOOM_TRY(flush());
  std::vector<Buffer> buffers;
  for (int lane = 0; lane < pool_->lanes(); ++lane) {
    LOOM_ASSIGN(Buffer buffer, Buffer::allocate(bytes));
    buffers.push_back(std::move(buffer));
  }
  scratch_ = std::move(buffers);
  scratch_bytes_ = bytes;
  return {};
}

int64_t Recorder::workspace_bytes() const {
  int64_t bytes = scratch_bytes_ * pool_->lanes() +
                  static_cast<int64_t>(commands_.capacity() * sizeof(Command));
  for (const Q8Slot& slot : q8_) bytes += slot.memory.size();
  return bytes;
}

void Recorder::touch(const std::byte* begin, const std::byte* end, bool write) {
  if (begin < end) pending_.push_back({begin, end, write, false});
}

void Recorder::writes(const Tensor& t) {
  touch(t.data, t.end(), true);
  for (Q8Slot& slot : q8_) {
    if (overlap(t.data, t.end(), slot.begin, slot.end)) slot.begin = slot.end = nullptr;
  }
}

template <class Args>
void Recorder::append(OpId op, const Args& args, bool serial) {
  Command& command = commands_.emplace_back();
  command.op = op;
  command.serial = serial;
  std::memcpy(command.args, &args, sizeof(Args));
  for (const Access& mine : pending_) {
    for (const Access& other : since_barrier_) {
      const bool ordered = serial && other.serial;  // lane 0 runs both, in order
      if (!ordered && (mine.write || other.write) &&
          overlap(mine.begin, mine.end, other.begin, other.end)) {
        command.barrier = true;
      }
    }
  }
  if (since_barrier_.size() + pending_.size() > kMaxAccesses) command.barrier = true;
  if (command.barrier) since_barrier_.clear();
  for (Access mine : pending_) {
    mine.serial = serial;
    since_barrier_.push_back(mine);
  }
  pending_.clear();
}

Status Recorder::grow_slot(Q8Slot& slot, int64_t rows, int64_t cols) {
  const int64_t bytes = q8_bytes(rows, cols);
  if (bytes <= slot.memory.size()) return {};
  LOOM_TRY(flush());
  LOOM_ASSIGN(slot.memory, Buffer::allocate(bytes));
  slot.begin = slot.end = nullptr;
  return {};
}

// The q8 copy of x, recorded now unless a valid one exists.
Result<Q8Rows> Recorder::quantised(const Tensor& x) {
  for (Q8Slot& slot : q8_) {
    if (slot.begin == x.data && slot.end == x.end() && slot.shape == x.shape) return slot.q;
  }
  Q8Slot& slot = q8_[next_slot_];
  next_slot_ = (next_slot_ + 1) % kQ8Slots;
  const int64_t rows = x.rows();
  const int64_t blocks = ceil_div(x.cols(), 32);
  LOOM_TRY(grow_slot(slot, rows, x.cols()));
  Q8Rows q;
  q.rows = rows;
  q.cols = x.cols();
  q.blocks = blocks;
  std::byte* p = slot.memory.data();
  q.codes = reinterpret_cast<int8_t*>(p);
  p += round_up(rows * blocks * 32, 64);
  q.scales = reinterpret_cast<float*>(p);
  p += round_up(rows * blocks * 4, 64);
  q.sums = reinterpret_cast<int32_t*>(p);
  p += round_up(rows * blocks * 4, 64);
  q.half_sums = reinterpret_cast<int32_t*>(p);
  LOOM_TRY(quantise_rows(QuantiseRowsArgs{x, q}));
  slot.begin = x.data;
  slot.end = x.end();
  slot.shape = x.shape;
  slot.q = q;
  return q;
}

Status Recorder::matmul(MatmulArgs args) {
  LOOM_TRY(check(args));
  const DTypeInfo& info = dtype_info(args.w.dtype);
  args.use_q8 = false;
  if (mode_ == ActivationMode::q8 && info.integer_path()) {
    LOOM_ASSIGN(args.q8, quantised(args.x));
    args.use_q8 = true;
    touch(reinterpret_cast<const std::byte*>(args.q8.codes),
          byte_end(args.q8.half_sums, args.q8.rows * args.q8.blocks), false);
  } else {
    reads(args.x);
  }
  if (!args.bias.empty()) reads(args.bias);
  reads(args.w);
  writes(args.y);
  append(OpId::matmul, args, args.y.rows() * args.y.cols() * args.x.cols() < kSerialProducts);
  return {};
}

Status Recorder::quantise_rows(QuantiseRowsArgs args) {
  LOOM_TRY(check(args));
  reads(args.x);
  touch(reinterpret_cast<const std::byte*>(args.q.codes),
        byte_end(args.q.half_sums, args.q.rows * args.q.blocks), true);
  append(OpId::quantise_rows, args, args.x.shape.count() < kSerialValues);
  return {};
}

Status Recorder::pack(PackArgs args) {
  LOOM_TRY(check(args));
  reads(args.src);
  writes(args.w);
  append(OpId::pack, args, false);
  return {};
}

Status Recorder::gather_rows(GatherRowsArgs args) {
  LOOM_TRY(check(args));
  reads(args.table);
  reads(args.ids);
  writes(args.y);
  append(OpId::gather_rows, args, args.y.shape.count() < kSerialValues);
  return {};
}

Status Recorder::norm(NormArgs args) {
  LOOM_TRY(check(args));
  reads(args.x);
  if (!args.gamma.empty()) reads(args.gamma);
  if (!args.beta.empty()) reads(args.beta);
  writes(args.y);
  append(OpId::norm, args, args.x.shape.count() < kSerialValues);
  return {};
}

Status Recorder::rope(RopeArgs args) {
  LOOM_TRY(check(args));
  writes(args.x);
  append(OpId::rope, args, args.x.shape.count() < kSerialValues);
  return {};
}

Status Recorder::kv_write(KvWriteArgs args) {
  LOOM_TRY(check(args));
  reads(args.k);
  reads(args.v);
  touch(reinterpret_cast<const std::byte*>(args.cache.keys),
        byte_end(args.cache.keys, args.cache.key_floats()), true);
  touch(reinterpret_cast<const std::byte*>(args.cache.values),
        byte_end(args.cache.values, args.cache.key_floats()), true);
  append(OpId::kv_write, args, args.k.shape.count() < kSerialValues);
  return {};
}

Status Recorder::attention(AttentionArgs args) {
  LOOM_TRY(check(args));
  LOOM_TRY(reserve_scratch(attention_scratch(args.length)));
  reads(args.q);
  touch(reinterpret_cast<const std::byte*>(args.cache.keys),
        byte_end(args.cache.keys, args.cache.key_floats()), false);
  touch(reinterpret_cast<const std::byte*>(args.cache.values),
        byte_end(args.cache.values, args.cache.key_floats()), false);
  writes(args.y);
  append(OpId::attention, args, args.q.shape.count() * args.length < kSerialValues);
  return {};
}

Status Recorder::unary(UnaryArgs args) {
  LOOM_TRY(check(args));
  reads(args.x);
  writes(args.y);
  append(OpId::unary, args, args.x.shape.count() < kSerialValues);
  return {};
}

Status Recorder::binary(BinaryArgs args) {
  LOOM_TRY(check(args));
  reads(args.a);
  reads(args.b);
  writes(args.y);
  append(OpId::binary, args, args.y.shape.count() < kSerialValues);
  return {};
}

Status Recorder::gated(GatedArgs args) {
  LOOM_TRY(check(args));
  reads(args.gate);
  reads(args.up);
  writes(args.y);
  append(OpId::gated, args, args.y.shape.count() < kSerialValues);
  return {};
}

Status Recorder::softmax(SoftmaxArgs args) {
  LOOM_TRY(check(args));
  reads(args.x);
  writes(args.y);
  append(OpId::softmax, args, args.x.shape.count() < kSerialValues);
  return {};
}

Status Recorder::reduce(ReduceArgs args) {
  LOOM_TRY(check(args));
  reads(args.x);
  writes(args.y);
  append(OpId::reduce, args, args.x.shape.count() < kSerialValues);
  return {};
}

Status Recorder::argmax(ArgmaxArgs args) {
  LOOM_TRY(check(args));
  reads(args.x);
  writes(args.ids);
  append(OpId::argmax, args, args.x.shape.count() < kSerialValues);
  return {};
}

Status Recorder::topk(TopkArgs args) {
  LOOM_TRY(check(args));
  reads(args.x);
  writes(args.values);
  writes(args.ids);
  append(OpId::topk, args, args.x.shape.count() < kSerialValues);
  return {};
}

Status Recorder::convert(ConvertArgs args) {
  LOOM_TRY(check(args));
  reads(args.x);
  writes(args.y);
  append(OpId::convert, args, args.y.shape.count() < kSerialValues);
  return {};
}

Status Recorder::fill(FillArgs args) {
  LOOM_TRY(check(args));
  writes(args.y);
  append(OpId::fill, args, args.y.shape.count() < kSerialValues);
  return {};
}

void Recorder::run_lane(int lane) {
  using Clock = std::chrono::steady_clock;
  const Lane shared{lane, pool_->lanes(), scratch_[static_cast<size_t>(lane)].data(),
                    scratch_bytes_};
  const Lane alone{0, 1, shared.scratch, scratch_bytes_};
  Clock::time_point last = Clock::now();
  for (const Command& command : commands_) {
    if (command.barrier) pool_->barrier();
    if (!command.serial || lane == 0) run_command(*ops_, command, command.serial ? alone : shared);
    if (profile_ != nullptr && lane == 0) {
      const Clock::time_point now = Clock::now();
      profile_->nanoseconds[static_cast<int>(command.op)] += (now - last).count();
      profile_->calls[static_cast<int>(command.op)] += 1;
      last = now;
    }
  }
}

Status Recorder::flush() {
  if (commands_.empty()) return {};
  Status status;
  if (ops_->execute != nullptr) {
    status = ops_->execute(ops_->device, commands_);
  } else {
    if (scratch_.empty()) {
      std::vector<Command> recorded = std::move(commands_);
      commands_.clear();
      LOOM_TRY(reserve_scratch(kMatmulScratch));
      commands_ = std::move(recorded);
    }
    pool_->run([this](int lane) { run_lane(lane); });
  }
  commands_.clear();
  since_barrier_.clear();
  for (Q8Slot& slot : q8_) slot.begin = slot.end = nullptr;
  return status;
}

}  // namespace loom
