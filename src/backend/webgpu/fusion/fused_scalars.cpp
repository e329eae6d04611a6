// fuse_scalars: one workgroup executes a list of small commands, with barriers between those that
// depend on each other. Results are also kept in workgroup memory for later commands: waiting for
// storage would take longer than everything else.
#include "backend/webgpu/fusion/fused.hpp"
#include "backend/webgpu/kernels/training/loss.hpp"
#include "ops/recording/visit.hpp"

namespace loom::core::webgpu {
namespace {

constexpr std::string_view kAccess = R"(
fn load_bits(at: u32, i: u32) -> u32 {
  let n = (at & 0x3fffffffu) + i;
  switch (at >> 30u) {
    case 0u: { return m0_word(n); }
    case 1u: { return m1_word(n); }
    case 2u: { return m2_word(n); }
    default: { return last_word(n); }
  }
}
fn load(at: u32, i: u32) -> f32 { return bitcast<f32>(load_bits(at, i)); }
fn store(at: u32, i: u32, v: f32) {
  let n = (at & 0x3fffffffu) + i;
  switch (at >> 30u) {
    case 0u: { m0_put(n, bitcast<u32>(v)); }
    case 1u: { m1_put(n, bitcast<u32>(v)); }
    case 2u: { m2_put(n, bitcast<u32>(v)); }
    default: { last_put(n, bitcast<u32>(v)); }
  }
}
)";

constexpr std::string_view kFourth = R"(
fn last_word(n: u32) -> u32 { return m3_word(n); }
fn last_put(n: u32, v: u32) { m3_put(n, v); }
)";
constexpr std::string_view kKept = R"(
var<workgroup> kept: array<u32, 2048>;
fn last_word(n: u32) -> u32 { return kept[n]; }
fn last_put(n: u32, v: u32) { kept[n] = v; }
)";

// The operations of the kernel; its text contains the same numbers.
enum Small : uint32_t {
  kSmallFill,
  kSmallUnary,
  kSmallBinary,
  kSmallReduce,
  kSmallReduceCols,
  kSmallMeanLoss,
  kSmallSoftmaxLoss
};

constexpr uint32_t kWords = 16;       // of a command in the table
constexpr int64_t kMaxCommands = 48;  // of a dispatch
constexpr uint32_t kMaxKept = 2048;   // values in workgroup memory
constexpr uint32_t kIds = 1U << 8, kFence = 1U << 9, kBarrier = 1U << 10;
constexpr int64_t kMaxValues = 256;      // of a tensor: one per invocation
constexpr int64_t kMaxTerms = 2048;      // of a sum
constexpr int64_t kMaxLosses = 1024;     // values of a prediction
constexpr int64_t kMaxLossColumns = 64;  // of a prediction; few invocations walk them

// The table is read once into workgroup memory, except for the words that decide the path of all
// invocations. Those must come from read-only memory, one command ahead.
//
// Words of a command: 0 its operation; 1 its kind plus flags; 2 and 3 rows and columns; 4 a number;
// 5 and 6, 7 and 8, ... its tensors and their strides; 14 and 15 the workgroup memory of its
// results 0 and 2. Flags: 256 a target holds ids; 512 it touches storage that was touched since the
// last barrier; 1024 it reads a kept value that was written since then. Sums are those of
// reduce.cpp: 32 invocations each.
constexpr std::string_view kSteps = R"(
var<workgroup> parts: array<f32, lanes>;
var<workgroup> words: array<u32, 768>;
struct Step { at: u32, what: u32, kind: u32, rows: u32, cols: u32, number: f32, flags: u32 }
const absent: u32 = 0xffffffffu;
fn word(s: Step, i: u32) -> u32 { return words[s.at + i]; }
fn value(s: Step, operand: u32, r: u32, c: u32) -> f32 {
  return load(word(s, 5u + 2u * operand), r * word(s, 6u + 2u * operand) + c);
}
fn put(s: Step, operand: u32, r: u32, c: u32, v: f32) {
  let i = r * word(s, 6u + 2u * operand) + c;
  store(word(s, 5u + 2u * operand), i, v);
  let keep = word(s, 14u + operand / 2u);
  if (keep != absent) { kept[keep + i] = bitcast<u32>(v); }
}

fn each_value(s: Step, lane: u32) {
  for (var i = lane; i < s.rows * s.cols; i += lanes) {
    let r = i / s.cols;
    let c = i % s.cols;
    if (s.what == 0u) {
      put(s, 0u, r, c, s.number);
    } else if (s.what == 1u) {
      put(s, 0u, r, c, unary_value(s.kind, value(s, 1u, r, c)));
    } else {
      let b = load(word(s, 9u), r * word(s, 10u) + c * word(s, 11u));
      put(s, 0u, r, c, binary_value(s.kind, value(s, 1u, r, c), b));
    }
  }
}

fn joined(kind: u32, a: f32, b: f32) -> f32 { return select(a + b, max(a, b), kind == 3u); }

// Rows have 32 invocations each, side by side.
fn reduce_rows(s: Step, lane: u32) {
  for (var first = 0u; first < s.rows; first += lanes / 32u) {
    let r = first + lane / 32u;
    var v = select(0.0, -infinity(), s.kind == 3u);
    if (r < s.rows) {
      for (var c = lane % 32u; c < s.cols; c += 32u) {
        let x = value(s, 1u, r, c);
        v = joined(s.kind, v, select(x, x * x, s.kind == 2u));
      }
    }
    parts[lane] = v;
    workgroupBarrier();
    for (var half = 16u; half > 0u; half /= 2u) {
      if (lane % 32u < half) { parts[lane] = joined(s.kind, parts[lane], parts[lane + half]); }
      workgroupBarrier();
    }
    if (lane % 32u == 0u && r < s.rows) {
      put(s, 0u, 0u, r, select(parts[lane], parts[lane] / f32(s.cols), s.kind == 1u));
    }
    workgroupBarrier();
  }
}

// Eight columns at a time, neighbours in memory side by side.
fn reduce_columns(s: Step, lane: u32) {
  for (var first = 0u; first < s.cols; first += 8u) {
    let c = first + lane % 8u;
    var v = 0.0;
    if (c < s.cols) {
      for (var r = lane / 8u; r < s.rows; r += lanes / 8u) { v += value(s, 1u, r, c); }
    }
    parts[lane] = v;
    workgroupBarrier();
    for (var half = lanes / 2u; half >= 8u; half /= 2u) {
      if (lane < half) { parts[lane] += parts[lane + half]; }
      workgroupBarrier();
    }
    if (lane < 8u && c < s.cols) {
      put(s, 0u, 0u, c, select(parts[lane], value(s, 0u, 0u, c) + parts[lane], s.kind == 1u));
    }
    workgroupBarrier();
  }
}
)";

// Operands: 0 row_loss, 1 pred, 2 dpred, 3 weight, 4 target, which has no stride of its own if it
// holds ids. The invocations are divided evenly among the rows, at most 32 each.
constexpr std::string_view kLosses = R"(
fn share_of_row(s: Step) -> u32 {
  var share = 32u;
  while (share > 1u && share * s.rows > lanes) { share /= 2u; }
  return share;
}
// Joins what the invocations of a row have; all of them get it.
fn row_joined(kind: u32, lane: u32, share: u32, v: f32) -> f32 {
  parts[lane] = v;
  workgroupBarrier();
  for (var half = share / 2u; half > 0u; half /= 2u) {
    if (lane % share < half) { parts[lane] = joined(kind, parts[lane], parts[lane + half]); }
    workgroupBarrier();
  }
  let all = parts[lane / share * share];
  workgroupBarrier();
  return all;
}
fn holds_ids(s: Step) -> bool { return (s.flags & 256u) != 0u; }
fn row_weight(s: Step, r: u32, id: i32) -> f32 {
  if (holds_ids(s) && (id < 0 || id >= i32(s.cols))) { return 0.0; }
  if (word(s, 11u) == absent) { return 1.0; }
  return value(s, 3u, 0u, r);
}
fn row_id(s: Step, r: u32) -> i32 {
  if (!holds_ids(s)) { return 0; }
  return bitcast<i32>(load_bits(word(s, 13u), r));
}
fn target_value(s: Step, r: u32, c: u32) -> f32 {
  if (holds_ids(s)) { return select(0.0, 1.0, i32(c) == row_id(s, r)); }
  return load(word(s, 13u), r * s.cols + c);
}
fn weighted(s: Step, r: u32, v: f32) -> f32 {
  let weight = row_weight(s, r, row_id(s, r));
  return select(weight * v, 0.0, weight == 0.0);
}
fn mean_losses(s: Step, lane: u32, share: u32, r: u32) {
  var sum = 0.0;
  for (var c = lane % share; r < s.rows && c < s.cols; c += share) {
    let x = value(s, 1u, r, c);
    let t = target_value(s, r, c);
    sum += loss_value(s.kind, s.number, x, t);
    if (word(s, 9u) != absent) {
      put(s, 2u, r, c, weighted(s, r, loss_slope(s.kind, s.number, x, t) / f32(s.cols)));
    }
  }
  sum = row_joined(0u, lane, share, sum);
  if (lane % share == 0u && r < s.rows && word(s, 5u) != absent) {
    put(s, 0u, 0u, r, weighted(s, r, sum / f32(s.cols)));
  }
}
fn softmax_losses(s: Step, lane: u32, share: u32, r: u32) {
  let keep = 1.0 - s.number;
  let floor_part = s.number / f32(s.cols);
  let end = select(0u, s.cols, r < s.rows);
  var largest = -infinity();
  var targets = 0.0;
  for (var c = lane % share; c < end; c += share) {
    largest = max(largest, value(s, 1u, r, c));
    targets += target_value(s, r, c);
  }
  largest = row_joined(3u, lane, share, largest);
  targets = row_joined(0u, lane, share, targets);
  let total = select(keep * targets + s.number, 1.0, holds_ids(s));
  var sum = 0.0;
  for (var c = lane % share; c < end; c += share) {
    sum += loom_exp(value(s, 1u, r, c) - largest);
  }
  sum = row_joined(0u, lane, share, sum);
  let log_sum = loom_log(sum);
  var terms = 0.0;
  for (var c = lane % share; c < end; c += share) {
    let away = value(s, 1u, r, c) - largest;
    let t = keep * target_value(s, r, c) + floor_part;
    if (t != 0.0) { terms += t * (away - log_sum); }
    if (word(s, 9u) != absent) {
      put(s, 2u, r, c, weighted(s, r, loom_exp(away) / sum * total - t));
    }
  }
  terms = row_joined(0u, lane, share, terms);
  if (lane % share == 0u && r < s.rows && word(s, 5u) != absent) {
    put(s, 0u, 0u, r, weighted(s, r, 0.0 - terms));
  }
}
fn losses(s: Step, lane: u32) {
  let share = share_of_row(s);
  for (var first = 0u; first < s.rows; first += lanes / share) {
    if (s.what == 5u) {
      mean_losses(s, lane, share, first + lane / share);
    } else {
      softmax_losses(s, lane, share, first + lane / share);
    }
  }
}
)";

constexpr Kernel kSmall{"scalars", R"(
fn step_at(n: u32) -> Step {
  let at = min(n, p.count - 1u) * 16u;
  let flags = table_word(at + 1u);
  return Step(at, table_word(at), flags % 256u, table_word(at + 2u), table_word(at + 3u),
              bitcast<f32>(table_word(at + 4u)), flags);
}
fn run(group: vec3<u32>, lane: u32) {
  for (var i = lane; i < p.count * 16u; i += lanes) { words[i] = table_word(i); }
  var next = step_at(0u);
  workgroupBarrier();
  for (var n = 0u; n < p.count; n++) {
    let s = next;
    next = step_at(n + 1u);
    if ((s.flags & 512u) != 0u) { storageBarrier(); }
    if ((s.flags & 1024u) != 0u) { workgroupBarrier(); }
    if (s.what < 3u) {
      each_value(s, lane);
    } else if (s.what == 3u) {
      reduce_rows(s, lane);
    } else if (s.what == 4u) {
      reduce_columns(s, lane);
    } else {
      losses(s, lane);
    }
  }
}
)"};

// The table of one dispatch. add() returns false for commands without a step; nothing is added
// then.
class Steps {
 public:
  explicit Steps(Frame& frame) : operands_(frame, 3) {}
  bool add(const Command& command);
  std::span<const uint32_t> words() const { return words_; }
  const Operands& operands() const { return operands_; }

 private:
  // Memory of the tensors of commands so far. kept: the location of the values in workgroup memory.
  struct Touch {
    const std::byte* begin;
    const std::byte* end;
    bool write;
    uint32_t kept;
    bool fenced;  // there was a fence since
    bool met;     // there was a barrier since
  };

  bool step(const FillArgs& a) {
    return appended(a.y) && begin(kSmallFill, static_cast<uint32_t>(0), a.y, bits(a.value)) &&
           result(a.y);
  }
  bool step(const UnaryArgs& a) {
    return appended(a.y) && begin(kSmallUnary, static_cast<uint32_t>(a.kind), a.y, 0) &&
           result(a.y) && input(a.x);
  }
  bool step(const BinaryArgs& a);
  bool step(const ReduceArgs& a) {
    return a.x.shape.count() <= kMaxTerms &&
           begin(kSmallReduce, static_cast<uint32_t>(a.kind), a.x, 0) && result(a.y) && input(a.x);
  }
  bool step(const ReduceColsArgs& a) {
    return a.x.shape.count() <= kMaxTerms &&
           begin(kSmallReduceCols, a.accumulate ? 1 : 0, a.x, 0) && result(a.y) && input(a.x);
  }
  bool step(const LossArgs& a);

  static bool appended(const Tensor& t) { return t.shape.count() <= kMaxValues; }
  static uint32_t bits(float v) {
    uint32_t word = 0;
    std::memcpy(&word, &v, sizeof(v));
    return word;
  }
  uint32_t& word(size_t i) { return words_[words_.size() - kWords + i]; }
  bool begin(Small what, uint32_t kind, const Tensor& shape, uint32_t number);
  void operand(uint32_t slot, uint32_t stride) {
    word(5 + 2 * operand_) = slot;
    word(6 + 2 * operand_) = stride;
    ++operand_;
  }
  bool input(const Tensor& t);
  bool result(const Tensor& t);
  // The location from which a tensor is read.
  bool place_of(const Tensor& t, uint32_t& slot);

  Operands operands_;
  std::vector<uint32_t> words_;
  size_t operand_ = 0;
  std::vector<Touch> touches_;
  size_t earlier_ = 0;  // number of touches by earlier commands
  uint32_t kept_ = 0;
};

bool Steps::begin(Small what, uint32_t kind, const Tensor& shape, uint32_t number) {
  if (shape.shape.count() == 0) return false;
  words_.insert(words_.end(),
                {static_cast<uint32_t>(what), kind, static_cast<uint32_t>(shape.rows()),
                 static_cast<uint32_t>(shape.cols()), number});
  words_.resize(words_.size() + kWords - 5, Operands::kAbsent);
  operand_ = 0;
  earlier_ = touches_.size();
  return true;
}

bool Steps::place_of(const Tensor& t, uint32_t& slot) {
  if (!operands_.number(t, slot)) return false;
  for (size_t i = earlier_; i-- > 0;) {
    const Touch& touch = touches_[i];
    if (!touch.write || touch.end <= t.data || t.end() <= touch.begin) continue;
    if (touch.kept != Operands::kAbsent && touch.begin <= t.data && t.end() <= touch.end) {
      if (!touch.met) word(1) |= kBarrier;
      slot = (3U << 30) | (touch.kept + static_cast<uint32_t>(t.data - touch.begin) / 4);
      return true;
    }
    if (!touch.fenced) word(1) |= kFence;
    break;
  }
  touches_.push_back({t.data, t.end(), false, Operands::kAbsent, false, false});
  return true;
}

bool Steps::input(const Tensor& t) {
  uint32_t slot = Operands::kAbsent;
  if (!t.empty() && !place_of(t, slot)) return false;
  operand(slot, static_cast<uint32_t>(t.row_stride));
  return true;
}

// If a command adds to its former values, they are read from storage.
bool Steps::result(const Tensor& t) {
  uint32_t slot = Operands::kAbsent;
  if (!t.empty()) {
    if (!operands_.number(t, slot)) return false;
    for (size_t i = 0; i < earlier_; ++i) {
      const bool overlaps = touches_[i].begin < t.end() && t.data < touches_[i].end;
      if (overlaps && !touches_[i].fenced) word(1) |= kFence;
    }
    const auto span = static_cast<uint32_t>((t.end() - t.data) / 4);
    const bool keep = kept_ + span <= kMaxKept;
    if (keep) word(14 + operand_ / 2) = kept_;
    touches_.push_back({t.data, t.end(), true, keep ? kept_ : Operands::kAbsent, false, false});
    if (keep) kept_ += span;
  }
  operand(slot, static_cast<uint32_t>(t.row_stride));
  return true;
}

bool Steps::step(const BinaryArgs& a) {
  const bool one_row = a.b.rows() == 1, one_col = a.b.cols() == 1;
  if (!appended(a.y) || !begin(kSmallBinary, static_cast<uint32_t>(a.kind), a.y, 0)) return false;
  uint32_t b = 0;
  if (!result(a.y) || !input(a.a) || !place_of(a.b, b)) return false;
  word(9) = b;
  word(10) = one_row ? 0 : static_cast<uint32_t>(a.b.row_stride);
  word(11) = one_col ? 0 : 1;
  return true;
}

bool Steps::step(const LossArgs& a) {
  const bool softmax = a.kind == LossKind::softmax_ce;
  const bool ids = a.target.dtype == DType::i32;
  if (!softmax && (!is_mean(a.kind) || a.kind == LossKind::focal)) return false;
  if (a.pred.shape.count() > kMaxLosses || a.pred.cols() > kMaxLossColumns ||
      a.pred.rows() > kMaxValues || (!ids && a.target.row_stride != a.target.cols())) {
    return false;
  }
  const uint32_t number = bits(softmax ? a.smoothing : a.delta);
  const uint32_t kind = static_cast<uint32_t>(a.kind) | (ids ? kIds : 0);
  uint32_t target = 0;
  if (!begin(softmax ? kSmallSoftmaxLoss : kSmallMeanLoss, kind, a.pred, number) ||
      !result(a.row_loss) || !input(a.pred) || !result(a.dpred) || !input(a.weight) ||
      !place_of(a.target, target)) {
    return false;
  }
  word(13) = target;
  return true;
}

bool Steps::add(const Command& command) {
  const size_t words = words_.size(), touches = touches_.size();
  const uint32_t kept = kept_;
  bool done = false;
  switch (command.op) {
    case OpId::fill: done = step(args_of<FillArgs>(command)); break;
    case OpId::unary: done = step(args_of<UnaryArgs>(command)); break;
    case OpId::binary: done = step(args_of<BinaryArgs>(command)); break;
    case OpId::reduce: done = step(args_of<ReduceArgs>(command)); break;
    case OpId::reduce_cols: done = step(args_of<ReduceColsArgs>(command)); break;
    case OpId::loss: done = step(args_of<LossArgs>(command)); break;
    default: break;
  }
  if (!done) {
    words_.resize(words);
    touches_.resize(touches);
    kept_ = kept;
    return false;
  }
  const bool fence = (word(1) & kFence) != 0, barrier = fence || (word(1) & kBarrier) != 0;
  for (size_t i = 0; barrier && i < touches; ++i) {
    touches_[i].met = true;
    if (fence) touches_[i].fenced = true;
  }
  return true;
}

}  // namespace

bool Operands::number(const Tensor& t, uint32_t& word) {
  const BufferSlice slot = frame_->place_of(t);
  if (slot.buffer == nullptr || t.layout != Layout::plain ||
      (t.dtype != DType::f32 && t.dtype != DType::i32) || slot.offset / 4 >= int64_t{1} << 30) {
    return false;
  }
  int which = 0;
  while (which < count_ && buffers_[which].buffer != slot.buffer) ++which;
  if (which == most_) return false;
  if (which == count_) buffers_[count_++] = {slot.buffer, slot.buffer_bytes, 0, 0};
  word = (static_cast<uint32_t>(which) << 30) | static_cast<uint32_t>(slot.offset / 4);
  return true;
}

void Operands::bind(Call& call) const {
  static constexpr std::string_view kNames[kBuffers] = {"m0", "m1", "m2", "m3"};
  for (int i = 0; i < kBuffers; ++i) {
    if (i < count_) {
      call.words(kNames[i], buffers_[i], Access::update);
    } else {
      call.words(kNames[i], nullptr);
    }
  }
  call.text(most_ == kBuffers ? kFourth : kKept).text(kAccess);
}

Result<int64_t> fuse_scalars(Frame& frame, std::span<const Command> rest) {
  Steps steps(frame);
  int64_t count = 0;
  for (const Command& command : rest) {
    if (count == kMaxCommands || !steps.add(command)) break;
    ++count;
  }
  if (count < 2) return int64_t{0};
  LOOM_ASSIGN(const BufferSlice table, frame.table(steps.words()));
  Call call(frame, kSmall);
  steps.operands().bind(call);
  LOOM_TRY(call.words("table", table, Access::read)
               .value("count", count)
               .text(kLossTerms)
               .text(kSteps)
               .text(kLosses)
               .lanes(256)
               .beside((kMaxKept + kMaxCommands * kWords + 256) * 4, true)
               .groups(1));
  return count;
}

}  // namespace loom::core::webgpu
