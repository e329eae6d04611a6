// Updates parameters without a list of rows together. Includes their packing if it only moves
// values. A workgroup has 1024 values of one parameter; adjacent invocations have adjacent values.
#include <algorithm>

#include "backend/webgpu/fusion/fused.hpp"
#include "backend/webgpu/kernels/training/optimize.hpp"
#include "base/numbers/checked.hpp"

namespace loom::core::webgpu {
namespace {

// The table holds the words of every parameter, then for every workgroup the parameter it works on.
// Words: 0 its first workgroup, 1 its values, 2 its columns, 3 its packed copy, 4 words of a group
// of that copy; 5 w, 6 g, 7 m, 8 v, and their strides in 9 ... 12.
constexpr Kernel kOptimizeAll{"optimize_all", R"(
const absent: u32 = 0xffffffffu;
fn run(group: vec3<u32>, lane: u32) {
  var scale = 1.0;
  if (p.scale_at != absent) { scale = load(p.scale_at, 0u); }
  if (is_nan(scale)) { return; }
  let rate = load(p.hyper_at, 0u);
  let c1 = load(p.hyper_at, 1u);
  let c2 = load(p.hyper_at, 2u);
  let c3 = load(p.hyper_at, 3u);
  let s = table_word(p.map + group.x) * 16u;
  let n = table_word(s + 1u);
  let cols = table_word(s + 2u);
  let first = (group.x - table_word(s)) * 1024u + lane;
  var w: array<f32, 4>;
  var g: array<f32, 4>;
  var m: array<f32, 4>;
  var v: array<f32, 4>;
  for (var j = 0u; j < 4u; j++) {
    let i = min(first + j * lanes, n - 1u);
    let r = i / cols;
    let c = i % cols;
    w[j] = load(table_word(s + 5u), r * table_word(s + 9u) + c);
    g[j] = load(table_word(s + 6u), r * table_word(s + 10u) + c);
    if (uses_m == 1u) { m[j] = load(table_word(s + 7u), r * table_word(s + 11u) + c); }
    if (uses_v == 1u) { v[j] = load(table_word(s + 8u), r * table_word(s + 12u) + c); }
  }
  for (var j = 0u; j < 4u; j++) {
    let i = first + j * lanes;
    if (i >= n) { return; }
    let r = i / cols;
    let c = i % cols;
    let to = updated(w[j], g[j] * scale, m[j], v[j], rate, c1, c2, c3);
    store(table_word(s + 5u), r * table_word(s + 9u) + c, to.w);
    if (uses_m == 1u) { store(table_word(s + 7u), r * table_word(s + 11u) + c, to.m); }
    if (uses_v == 1u) { store(table_word(s + 8u), r * table_word(s + 12u) + c, to.v); }
    if (table_word(s + 3u) != absent) {
      store(table_word(s + 3u), r / 16u * table_word(s + 4u) + c * 16u + r % 16u, to.w);
    }
  }
}
)"};

constexpr size_t kMaxParameters = 24;
constexpr int64_t kMaxGroups = 16384;
constexpr int64_t kPerGroup = 1024;
constexpr size_t kWords = 16;

// The parameters of one dispatch.
class Updates {
 public:
  explicit Updates(Frame& frame) : frame_(&frame), operands_(frame) {}
  bool add(const OptimizeArgs& args);
  bool add(const PackArgs& args);
  Status run();

 private:
  struct Range {
    const std::byte* begin;
    const std::byte* end;
  };
  // Whether memory to be written is neither memory of another parameter nor read for one.
  bool free(const Tensor& t) const;
  void keep(const Tensor& t) {
    if (!t.empty()) touched_.push_back({t.data, t.end()});
  }

  Frame* frame_;
  Operands operands_;
  OptimizeArgs first_;
  uint32_t hyper_ = 0, scale_ = Operands::kAbsent;
  std::vector<std::byte*> masters_;
  std::vector<uint32_t> words_;
  std::vector<Range> touched_;
  int64_t groups_ = 0;
};

bool Updates::free(const Tensor& t) const {
  return std::none_of(touched_.begin(), touched_.end(), [&](const Range& range) {
    return t.data < range.end && range.begin < t.end();
  });
}

bool Updates::add(const OptimizeArgs& args) {
  const int64_t n = args.g.shape.count(), groups = ceil_div(n, kPerGroup);
  const bool has_m = keeps_m(args.kind), has_v = keeps_v(args.kind);
  if (n == 0 || !args.rows.empty() || masters_.size() == kMaxParameters ||
      groups_ + groups > kMaxGroups) {
    return false;
  }
  uint32_t w = 0, g = 0, m = 0, v = 0;
  if (!operands_.number(args.p, w) || !operands_.number(args.g, g) ||
      (has_m && !operands_.number(args.m, m)) || (has_v && !operands_.number(args.v, v))) {
    return false;
  }
  if (masters_.empty()) {
    first_ = args;
    if (!operands_.number(args.hyper, hyper_)) return false;
    if (!args.scale.empty() && !operands_.number(args.scale, scale_)) return false;
    keep(args.hyper);
    keep(args.scale);
  } else if (args.hyper.data != first_.hyper.data || args.scale.data != first_.scale.data ||
             args.kind != first_.kind || args.beta1 != first_.beta1 || args.beta2 != first_.beta2 ||
             args.eps != first_.eps || args.decay != first_.decay) {
    return false;
  }
  if (!free(args.p) || !free(args.g) || (has_m && !free(args.m)) || (has_v && !free(args.v))) {
    return false;
  }
  keep(args.p);
  keep(args.g);
  if (has_m) keep(args.m);
  if (has_v) keep(args.v);
  const auto stride = [](const Tensor& t) { return static_cast<uint32_t>(t.row_stride); };
  words_.insert(words_.end(), {static_cast<uint32_t>(groups_), static_cast<uint32_t>(n),
                               static_cast<uint32_t>(args.p.cols()), Operands::kAbsent, 0, w, g, m,
                               v, stride(args.p), stride(args.g), stride(args.m), stride(args.v)});
  masters_.push_back(args.p.data);
  words_.resize(masters_.size() * kWords);
  groups_ += groups;
  return true;
}

bool Updates::add(const PackArgs& args) {
  const auto owner = std::find(masters_.begin(), masters_.end(), args.src.data);
  if (owner == masters_.end() || args.w.dtype != DType::f32 || args.stochastic ||
      !args.rows.empty() || !args.ranges.empty()) {
    return false;
  }
  uint32_t* words = words_.data() + static_cast<size_t>(owner - masters_.begin()) * kWords;
  const R16 g = r16_geometry(args.w.dtype, args.w.shape[0], args.w.shape[1]);
  Tensor codes = args.w;
  codes.layout = Layout::plain;
  codes.data += g.codes;
  if (words[3] != Operands::kAbsent || words[1] != static_cast<uint32_t>(g.rows * g.cols) ||
      words[2] != static_cast<uint32_t>(g.cols) || !free(args.w) ||
      !operands_.number(codes, words[3])) {
    return false;
  }
  words[4] = static_cast<uint32_t>(g.group_bytes / 4);
  keep(args.w);
  return true;
}

Status Updates::run() {
  std::vector<uint32_t> table = words_;
  for (size_t i = 0; i < masters_.size(); ++i) {
    const bool last = i + 1 == masters_.size();
    const int64_t end = last ? groups_ : int64_t{words_[(i + 1) * kWords]};
    table.insert(table.end(), static_cast<size_t>(end - int64_t{words_[i * kWords]}),
                 static_cast<uint32_t>(i));
  }
  LOOM_ASSIGN(const BufferSlice slice, frame_->table(table));
  Call call(*frame_, kOptimizeAll);
  operands_.bind(call);
  return optimizer_numbers(call, first_)
      .words("table", slice, Access::read)
      .value("map", static_cast<int64_t>(words_.size()))
      .value("hyper_at", int64_t{hyper_})
      .value("scale_at", int64_t{scale_})
      .constant("uses_m", keeps_m(first_.kind) ? 1 : 0)
      .constant("uses_v", keeps_v(first_.kind) ? 1 : 0)
      .lanes(256)
      .beside()
      .groups(groups_);
}

}  // namespace

Result<int64_t> fuse_optimize(Frame& frame, std::span<const Command> rest) {
  if (rest.size() < 2 || rest[0].op != OpId::optimize) return int64_t{0};
  Updates updates(frame);
  size_t count = 0;
  while (count < rest.size()) {
    const Command& command = rest[count];
    bool taken = false;
    if (command.op == OpId::optimize) taken = updates.add(args_of<OptimizeArgs>(command));
    if (command.op == OpId::pack) taken = updates.add(args_of<PackArgs>(command));
    if (!taken) break;
    ++count;
  }
  if (count < 2) return int64_t{0};
  LOOM_TRY(updates.run());
  return static_cast<int64_t>(count);
}

}  // namespace loom::core::webgpu
