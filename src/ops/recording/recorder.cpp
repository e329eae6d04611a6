#include "ops/recording/recorder.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "ops/checks.hpp"
#include "ops/gradients/gradient_support.hpp"
#include "ops/recording/trace.hpp"
#include "ops/recording/visit.hpp"

namespace loom::core {
namespace {

// Work below this is not worth a barrier (work_of in ops/recording/visit.hpp).
constexpr int64_t kSerialWork = 8192;
// A list with less work than this ends before a sleeping thread wakes on a busy machine.
constexpr int64_t kWakingWork = int64_t{1} << 20;
// The costs of a region of several lanes, of each of its barriers, and of each lane at a barrier.
// The unit is the work of one lane in the same time; they are about 2, 0.8 and 0.1 us.
constexpr double kRegionCost = 32e3, kBarrierCost = 12.8e3, kArrivalCost = 1.6e3;
// The limit of accesses that are tracked since the last barrier. Beyond it, a barrier costs less
// than the search.
constexpr size_t kMaxTouches = 256;

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
  since_barrier_.reserve(kMaxTouches);
  pending_.reserve(16);
  for (Q8Slot& slot : q8_) LOOM_TRY(grow_slot(slot, rows, cols));
  return reserve_scratch(attention_scratch(positions));
}

Status Recorder::reserve_scratch(int64_t bytes) {
  bytes = std::max(bytes, kMatmulScratch);
  if (bytes <= scratch_bytes_ || ops_->device != nullptr) return {};
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
void Recorder::append(const Args& args, int64_t work) {
  const bool serial = work < kSerialWork;
  Command& command = commands_.emplace_back();
  command.op = op_of<Args>();
  command.serial = serial;
  command.work = work;
  std::memcpy(command.args, &args, sizeof(Args));
  for (const Touch& mine : pending_) {
    for (const Touch& other : since_barrier_) {
      const bool ordered = serial && other.serial;  // lane 0 runs both, in order
      if (!ordered && (mine.write || other.write) &&
          overlap(mine.begin, mine.end, other.begin, other.end)) {
        command.barrier = true;
      }
    }
  }
  if (since_barrier_.size() + pending_.size() > kMaxTouches) command.barrier = true;
  if (command.barrier) since_barrier_.clear();
  for (Touch mine : pending_) {
    mine.serial = serial;
    since_barrier_.push_back(mine);
  }
  pending_.clear();
}

Status Recorder::grow_slot(Q8Slot& slot, int64_t rows, int64_t cols) {
  const int64_t bytes = q8_bytes(rows, cols);
  if (bytes <= slot.memory.size()) return {};
  LOOM_TRY(flush());
  slot.attached = {};
  LOOM_ASSIGN(slot.memory, allocate_for(*ops_, bytes));
  const MemoryRange range = range_of(slot.memory);
  LOOM_ASSIGN(slot.attached,
              Attached::attach(ops_->device, {&range, 1}, MemoryUse::scratch, false));
  slot.begin = slot.end = nullptr;
  return {};
}

// The q8 copy of x, recorded now unless a valid one exists.
Result<Q8Rows> Recorder::quantized(const Tensor& x) {
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
  LOOM_TRY(quantize_rows(QuantizeRowsArgs{x, q}));
  slot.begin = x.data;
  slot.end = x.end();
  slot.shape = x.shape;
  slot.q = q;
  return q;
}

void Recorder::touch(const Q8Rows& q, bool write) {
  touch(reinterpret_cast<const std::byte*>(q.codes), byte_end(q.half_sums, q.rows * q.blocks),
        write);
}

void Recorder::touch(const KvCache& cache, bool write) {
  touch(cache.keys, cache.keys + cache.bytes(), write);
  touch(cache.values, cache.values + cache.bytes(), write);
}

template <class Args>
Status Recorder::prepare_product(Args& args) {
  const DTypeInfo& info = dtype_info(args.w.dtype);
  args.use_q8 = mode_ == ActivationMode::q8 && info.integer_path();
  if (!args.use_q8) return {};
  LOOM_ASSIGN(args.q8, quantized(args.x));
  return {};
}

// Traces for gradients use the ops that have rules. Otherwise `acts` has room for the products.
Result<bool> Recorder::decompose(const LstmCellArgs& args) {
  if (args.w.empty()) return false;
  LstmCellArgs cell = args;
  cell.w = cell.h_before = Tensor{};
  if (trace_ != nullptr) {
    if (!trace_->differentiable()) return false;
    const Tensor products = trace_->fresh(args.gates.shape);
    cell.gates = trace_->fresh(args.gates.shape);
    LOOM_TRY(matmul({args.h_before, args.w, {}, products}));
    LOOM_TRY(binary({args.gates, products, cell.gates, BinaryKind::add}));
    LOOM_TRY(lstm_cell(cell));
    return true;
  }
  const DTypeInfo& info = dtype_info(args.w.dtype);
  const bool integers = mode_ == ActivationMode::q8 && info.integer_path();
  const bool floats = info.compute == ComputeType::f32 && !integers;
  if (ops_->lstm_products && floats && args.h.cols() % 16 == 0) return false;
  LOOM_TRY(matmul({args.h_before, args.w, {}, args.acts}));
  cell.more = args.acts;
  LOOM_TRY(lstm_cell(cell));
  return true;
}

// Outputs of an op have the backend's compute type. Ids, and ops with kOwnTypes, declare their own
// types.
template <class Args>
Status Recorder::check_compute(const Args& args) const {
  if constexpr (own_types<Args>()) return {};
  const DType other = ops_->compute == DType::f32 ? DType::f64 : DType::f32;
  bool fits = true;
  visit(args, [&](const Tensor& t, Access access) {
    const bool written = access != Access::read && t.layout == Layout::plain;
    fits = fits && (t.empty() || !written || t.dtype != other);
  });
  if (fits) return {};
  return invalid(cat(op_name(op_of<Args>()), ": backend ", ops_->name, " computes in ",
                     dtype_name(ops_->compute), ", the tensors are ", dtype_name(other)));
}

template <class Args>
Status Recorder::record(const Args& recorded) {
  LOOM_TRY(check(recorded));
  LOOM_ASSIGN(const bool done, decompose(recorded));
  if (done) return {};
  if (trace_ != nullptr) return trace(recorded);
  if (!has_body(*ops_, op_of<Args>())) {
    return make_error(Code::unsupported, cat(op_name(op_of<Args>()), ": backend ", ops_->name,
                                             " has no such op; use another backend"));
  }
  Args args = recorded;
  LOOM_TRY(check_compute(args));
  LOOM_TRY(prepare(args));
  if constexpr (requires { args.scratch(); }) LOOM_TRY(reserve_scratch(args.scratch()));
  visit_parts(args, [&](const auto& part, Access access) { touch(part, access != Access::read); });
  visit(std::as_const(args), [&](const Tensor& t, Access access) {
    if (t.empty()) return;
    if (access == Access::read) {
      touch(t.data, t.end(), false);
    } else {
      writes(t);
    }
  });
  append(args, work_of(args));
  return {};
}

namespace {

template <class Args>
Tensor* output_of(Args& args) {
  if constexpr (requires { args.y; }) {
    return &args.y;
  } else {
    return &args.dx;
  }
}

}  // namespace

template <class Args>
Status Recorder::trace(Args args) {
  if constexpr (requires { args.activation, args.bias; }) {
    if (trace_->differentiable() && !result_tells(static_cast<UnaryKind>(args.activation))) {
      Tensor* y = output_of(args);
      const UnaryArgs act{trace_->fresh(y->shape), *y, static_cast<UnaryKind>(args.activation)};
      *y = act.x;
      args.activation = Activation::linear;
      LOOM_TRY(trace(args));
      return trace(act);
    }
  }
  Command& command = trace_->commands().emplace_back();
  command.op = op_of<Args>();
  std::memcpy(command.args, &args, sizeof(Args));
  return {};
}

#define LOOM_OP(name, Args) template Status Recorder::record(const Args&);
#include "ops/ops.def"
#undef LOOM_OP

void Recorder::run_lane(int lane, int lanes, std::span<const Command> commands) {
  using Clock = std::chrono::steady_clock;
  const Lane shared{lane, lanes, scratch_[static_cast<size_t>(lane)].data(), scratch_bytes_};
  const Lane alone{0, 1, shared.scratch, scratch_bytes_};
  Clock::time_point last = Clock::now();
  for (const Command& command : commands) {
    if (command.barrier) pool_->barrier(lane);
    if (!command.serial || lane == 0) run_command(*ops_, command, command.serial ? alone : shared);
    if (profile_ != nullptr && lane == 0) {
      const Clock::time_point now = Clock::now();
      profile_->nanoseconds[static_cast<int>(command.op)] += (now - last).count();
      profile_->calls[static_cast<int>(command.op)] += 1;
      last = now;
    }
  }
}

// Chooses the number of lanes that makes the list fastest, from its work and its barriers.
Region Recorder::region_of(std::span<const Command> commands) const {
  double serial = 0, shared = 0, barriers = 0;
  for (const Command& command : commands) {
    (command.serial ? serial : shared) += static_cast<double>(command.work);
    barriers += command.barrier ? 1 : 0;
  }
  Region region;
  region.max_lanes = 1;
  double least = serial + shared;
  region.worth_waking = least > static_cast<double>(kWakingWork);
  for (int lanes = 2; lanes <= pool_->lanes(); ++lanes) {
    const double barrier = kBarrierCost + kArrivalCost * lanes;
    const double time = serial + shared / lanes + kRegionCost + barrier * barriers;
    if (time < least) {
      least = time;
      region.max_lanes = lanes;
    }
  }
  return region;
}

Status Recorder::run() {
  return run(0, commands());
}

Status Recorder::run(int64_t begin, int64_t end) {
  return run(std::span<const Command>(commands_).subspan(static_cast<size_t>(begin),
                                                         static_cast<size_t>(end - begin)));
}

Status Recorder::run(std::span<const Command> list) {
  if (list.empty()) return {};
  if (ops_->device != nullptr) {
    return rows_alone_ ? ops_->device->execute_rows_alone(list) : ops_->device->execute(list);
  }
  LOOM_TRY(reserve_scratch(kMatmulScratch));
  pool_->run([&](int lane, int lanes) { run_lane(lane, lanes, list); }, region_of(list));
  return {};
}

Status Recorder::flush() {
  Status status = run();
  discard();
  return status;
}

void Recorder::take(std::vector<Command>& list) {
  commands_.swap(list);
  discard();
}

void Recorder::discard() {
  commands_.clear();
  since_barrier_.clear();
  for (Q8Slot& slot : q8_) slot.begin = slot.end = nullptr;
}

}  // namespace loom::core
