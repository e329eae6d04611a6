// The steps of a decoder layer of SmolLM2-135M's shape, each as a list of many equal ones. So a
// time includes the dispatches of a step and their waits. Runs if LOOM_GPU_LAYER is set to a number
// of tokens.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "gtest/gtest.h"
#include "ops/ops.hpp"
#include "webgpu/gpu.hpp"

namespace loom::core::test {
namespace {

constexpr int64_t kWidth = 576, kKv = 192, kInner = 1536, kHeads = 9, kKvHeads = 3, kHeadDim = 64,
                  kVocab = 49152;

double now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

using Commands = std::vector<Command>;

template <class Args>
void add(Commands& list, const Args& args) {
  Command& command = list.emplace_back();
  command.op = op_of<Args>();
  std::memcpy(command.args, &args, sizeof(args));
}

// One range of memory for everything.
class Layer {
 public:
  static Result<Layer> create(const Ops& ops, int64_t rows, DType dtype, bool use_q8) {
    Layer l;
    l.rows_ = rows;
    l.dtype_ = dtype;
    l.q8_ = use_q8;
    l.lay_out();
    LOOM_ASSIGN(l.memory_, allocate_for(ops, l.used_));
    const MemoryRange range = range_of(l.memory_);
    LOOM_ASSIGN(l.attached_, Attached::attach(ops.device, {&range, 1}, MemoryUse::scratch, false));
    l.used_ = 0;
    l.lay_out();
    return l;
  }

  std::vector<std::pair<std::string, Commands>> steps() const {
    std::vector<std::pair<std::string, Commands>> all;
    Commands fill, whole;
    add(fill, FillArgs{f32_matrix(x_.f32(), 1, 64), 0.0f});
    all.emplace_back("fill of 64 values", fill);
    const auto step = [&](const char* name, const Commands& list) {
      all.emplace_back(name, list);
      whole.insert(whole.end(), list.begin(), list.end());
    };
    step("norm", norm(x_, n_));
    step("q, k, v", products({{q_, 0}, {k_, 1}, {v_, 2}}, n_));
    step("rope, kv_write", rope());
    step("attention", attention());
    Commands o = quantize(mixed_);
    append(o, products({{o_, 3}}, mixed_));
    add(o, BinaryArgs{x_, o_, r_, BinaryKind::add});
    step("o, add", o);
    step("norm", norm(r_, n_));
    Commands up = products({{gate_, 4}, {up_, 5}}, n_);
    add(up, GatedArgs{gate_, up_, inner_, Activation::silu});
    append(up, quantize(inner_));
    step("gate, up, gated", up);
    Commands down = products({{o_, 6}}, inner_);
    add(down, BinaryArgs{r_, o_, x_, BinaryKind::add});
    step("down, add", down);
    all.emplace_back("the layer", whole);
    all.emplace_back("q alone", products({{q_, 0}}, n_));
    MatmulArgs head;
    head.x = f32_matrix(x_.f32(), 1, kWidth);
    head.y = f32_matrix(logits_.f32(), 1, kVocab);
    head.w = weights_[7];
    head.use_q8 = q8_;
    head.q8 = rows_of(n_);
    head.q8.rows = 1;
    Commands last;
    add(last, head);
    all.emplace_back("head, one row", last);
    return all;
  }

 private:
  std::byte* take(int64_t bytes) {
    std::byte* at = memory_.data() == nullptr ? nullptr : memory_.data() + used_;
    used_ += (bytes + 255) / 256 * 256;
    return at;
  }
  Tensor plain(int64_t rows, int64_t cols) {
    return f32_matrix(reinterpret_cast<float*>(take(rows * cols * 4)), rows, cols);
  }
  void lay_out() {
    const int64_t shapes[][2] = {{kWidth, kWidth}, {kKv, kWidth},    {kKv, kWidth},
                                 {kWidth, kWidth}, {kInner, kWidth}, {kInner, kWidth},
                                 {kWidth, kInner}, {kVocab, kWidth}};
    for (int i = 0; i < 8; ++i) {
      const R16 g = r16_geometry(dtype_, shapes[i][0], shapes[i][1]);
      weights_[i] = r16_tensor(g, take(g.bytes()));
    }
    for (Tensor* t : {&x_, &n_, &r_, &mixed_, &o_, &q_, &rotated_}) *t = plain(rows_, kWidth);
    for (Tensor* t : {&k_, &v_, &rotated_k_}) *t = plain(rows_, kKv);
    for (Tensor* t : {&gate_, &up_, &inner_}) *t = plain(rows_, kInner);
    gamma_ = plain(1, kWidth);
    cos_ = plain(rows_, kHeadDim / 2);
    sin_ = plain(rows_, kHeadDim / 2);
    logits_ = plain(1, kVocab);
    cache_.kv_heads = kKvHeads;
    cache_.head_dim = kHeadDim;
    cache_.capacity = (rows_ + 15) / 16 * 16;
    cache_.keys = plain(1, cache_.sequence_numbers()).data;
    cache_.values = plain(1, cache_.sequence_numbers()).data;
    for (Q8Rows* q : {&narrow_, &inner_rows_}) {
      q->rows = rows_;
      q->cols = q == &narrow_ ? kWidth : kInner;
      q->blocks = q->cols / 32;
      q->codes = reinterpret_cast<int8_t*>(take(rows_ * q->cols));
      q->scales = plain(rows_, q->blocks).f32();
      q->sums = plain(rows_, q->blocks).i32();
      q->half_sums = plain(rows_, q->blocks).i32();
    }
  }
  const Q8Rows& rows_of(const Tensor& t) const {
    return t.cols() == kWidth ? narrow_ : inner_rows_;
  }
  Commands quantize(const Tensor& t) const {
    Commands list;
    if (q8_) add(list, QuantizeRowsArgs{t, rows_of(t)});
    return list;
  }
  static void append(Commands& to, const Commands& list) {
    to.insert(to.end(), list.begin(), list.end());
  }
  Commands norm(const Tensor& x, const Tensor& y) const {
    Commands list;
    NormArgs args;
    args.x = x;
    args.y = y;
    args.gamma = gamma_;
    add(list, args);
    append(list, quantize(y));
    return list;
  }
  Commands products(const std::vector<std::pair<Tensor, int>>& parts, const Tensor& x) const {
    Commands list;
    for (const auto& [y, w] : parts) {
      MatmulArgs args;
      args.x = x;
      args.y = y;
      args.w = weights_[w];
      args.use_q8 = q8_;
      if (q8_) args.q8 = rows_of(x);
      add(list, args);
    }
    return list;
  }
  Commands rope() const {
    Commands list;
    RopeArgs args;
    args.cos = cos_;
    args.sin = sin_;
    args.x = q_;
    args.y = rotated_;
    args.heads = kHeads;
    add(list, args);
    args.x = k_;
    args.y = rotated_k_;
    args.heads = kKvHeads;
    add(list, args);
    add(list, KvWriteArgs{rotated_k_, v_, cache_, 0});
    return list;
  }
  Commands attention() const {
    Commands list;
    AttentionArgs args;
    args.q = rotated_;
    args.y = mixed_;
    args.cache = cache_;
    args.heads = kHeads;
    args.length = rows_;
    args.scale = 0.125f;
    add(list, args);
    return list;
  }

  int64_t rows_ = 0, used_ = 0;
  DType dtype_ = DType::q4_0;
  bool q8_ = false;
  Buffer memory_;
  Attached attached_;
  Tensor weights_[8];
  Tensor x_, n_, r_, q_, k_, v_, rotated_, rotated_k_, mixed_, o_, gate_, up_, inner_, gamma_, cos_,
      sin_, logits_;
  KvCache cache_;
  Q8Rows narrow_, inner_rows_;
};

// Seconds of one list: the minimum over several runs with many copies of it.
Result<double> seconds_of(const Ops& ops, const Commands& list, double seconds) {
  const auto run = [&](int64_t count) -> Result<double> {
    Commands large;
    for (int64_t i = 0; i < count; ++i) large.insert(large.end(), list.begin(), list.end());
    const double start = now();
    LOOM_TRY(ops.device->execute(large));
    LOOM_TRY(ops.device->wait());
    return (now() - start) / static_cast<double>(count);
  };
  LOOM_ASSIGN(double once, run(1));
  LOOM_ASSIGN(once, run(4));
  const auto count = static_cast<int64_t>(std::clamp(seconds / 5 / once, 2.0, 500.0));
  double least = 1e30;
  for (int i = 0; i < 5; ++i) {
    LOOM_ASSIGN(const double time, run(count));
    least = std::min(least, time);
  }
  return least;
}

Status measure(int64_t rows, DType dtype, bool use_q8) {
  const Ops& ops = gpu()->ops();
  LOOM_ASSIGN(const Layer layer, Layer::create(ops, rows, dtype, use_q8));
  std::printf("%d rows, %s, %s activations\n", static_cast<int>(rows),
              std::string(dtype_name(dtype)).c_str(), use_q8 ? "q8" : "f32");
  for (const auto& [name, list] : layer.steps()) {
    LOOM_TRY(ops.device->wait());
    const int64_t before = gpu()->counts().dispatches;
    LOOM_TRY(ops.device->execute(list));
    LOOM_TRY(ops.device->wait());
    const int64_t dispatches = gpu()->counts().dispatches - before;
    LOOM_ASSIGN(const double time, seconds_of(ops, list, 0.2));
    std::printf("  %-20s %10.1f us %4d dispatches\n", name.c_str(), time * 1e6,
                static_cast<int>(dispatches));
    std::fflush(stdout);
  }
  return {};
}

TEST(GpuLayerBench, Steps) {
  const char* rows = std::getenv("LOOM_GPU_LAYER");
  if (rows == nullptr) GTEST_SKIP() << "LOOM_GPU_LAYER is not set";
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  for (const auto& [dtype, use_q8] : {std::pair{DType::q4_0, true},
                                      {DType::q4_0, false},
                                      {DType::f16, false},
                                      {DType::f32, false}}) {
    const Status status = measure(std::atoll(rows), dtype, use_q8);
    ASSERT_TRUE(status.ok()) << status.error().str();
  }
}

}  // namespace
}  // namespace loom::core::test
