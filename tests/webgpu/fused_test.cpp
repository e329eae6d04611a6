// Commands that share a dispatch, beside the reference: lists of small ones, updates of several
// parameters with their packing, pairs of gradients. And that they do share it.
#include "backend/reference/reference.hpp"
#include "base/text.hpp"
#include "conformance/support.hpp"
#include "ops/recorder.hpp"
#include "webgpu/gpu.hpp"

namespace loom::test {
namespace {

// Memory for the tensors of a list, filled alike each time.
class Sheet {
 public:
  explicit Sheet(const Ops& ops) : recorder_(ops, pool()), memory_(8192) {
    for (size_t i = 0; i < memory_.size(); ++i) {
      memory_[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) * 0.02f;
    }
    const MemoryRange range{reinterpret_cast<const std::byte*>(memory_.data()), bytes()};
    auto attached = Attached::attach(ops.device, {&range, 1}, MemoryUse::scratch, true);
    EXPECT_TRUE(attached.ok());
    attached_ = std::move(*attached);
  }
  Recorder& ops() { return recorder_; }
  Tensor matrix(int64_t rows, int64_t cols) {
    const Tensor t = f32_matrix(memory_.data() + next_, rows, cols);
    next_ += rows * cols;
    return t;
  }
  Tensor ids(int64_t n, int64_t classes) {
    Tensor t = matrix(1, n);
    t.dtype = DType::i32;
    t.shape = Shape{n};
    for (int64_t i = 0; i < n; ++i) t.i32()[i] = static_cast<int32_t>(i * 5 % classes);
    return t;
  }
  Tensor packed(int64_t rows, int64_t cols) {
    const R16 g = r16_geometry(DType::f32, rows, cols);
    next_ = (next_ + 15) / 16 * 16;
    const Tensor t = r16_tensor(g, reinterpret_cast<std::byte*>(memory_.data() + next_));
    next_ += g.bytes() / 4;
    std::fill_n(reinterpret_cast<float*>(t.data), g.bytes() / 4, 0.0f);
    return t;
  }
  // Runs the list; what is in memory then.
  std::vector<float> run() {
    Device* device = recorder_.ops().device;
    const MemoryRange range{reinterpret_cast<const std::byte*>(memory_.data()), bytes()};
    if (device != nullptr) {
      EXPECT_TRUE(device->upload(range.begin, range.bytes).ok());
    }
    const Status status = recorder_.run();
    EXPECT_TRUE(status.ok()) << status.error().str();
    if (device != nullptr) {
      EXPECT_TRUE(device->download({&range, 1}).ok());
    }
    return memory_;
  }

 private:
  static ThreadPool& pool() {
    static ThreadPool one(1);
    return one;
  }
  int64_t bytes() const { return static_cast<int64_t>(memory_.size()) * 4; }
  Recorder recorder_;
  std::vector<float> memory_;
  Attached attached_;
  int64_t next_ = 0;
};

// Records with `list` for both, and compares all memory; `dispatches` are expected.
template <class List>
void check(const std::string& what, int64_t dispatches, List list) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  Sheet expected(reference_ops()), got(gpu()->ops());
  ASSERT_TRUE(list(expected).ok()) << what;
  ASSERT_TRUE(list(got).ok()) << what;
  const std::vector<float> a = expected.run();
  const int64_t before = gpu()->counts().dispatches;
  const std::vector<float> b = got.run();
  EXPECT_EQ(gpu()->counts().dispatches - before, dispatches) << what;
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], 2e-6 * std::max(1.0f, std::abs(a[i]))) << what << ", value " << i;
  }
}

TEST(GpuFused, SmallCommandsShareADispatch) {
  check("chain", 1, [](Sheet& s) -> Status {
    const Tensor x = s.matrix(7, 20), sums = s.matrix(1, 7), one = s.matrix(1, 1);
    const Tensor columns = s.matrix(1, 20), wide = s.matrix(7, 20), y = s.matrix(1, 1);
    Tensor rows = sums;
    rows.shape = Shape{7};
    LOOM_TRY(s.ops().fill({one, 2.5f}));
    LOOM_TRY(s.ops().reduce({x, rows, ReduceKind::sum_squares}));
    LOOM_TRY(s.ops().reduce({sums, y, ReduceKind::max}));
    LOOM_TRY(s.ops().unary({y, y, UnaryKind::sqrt}));
    LOOM_TRY(s.ops().binary({y, one, one, BinaryKind::div}));
    LOOM_TRY(s.ops().reduce_cols({x, columns, true}));
    LOOM_TRY(s.ops().binary({x, columns, wide, BinaryKind::sub}));
    LOOM_TRY(s.ops().binary({wide, one, x, BinaryKind::mul}));
    LOOM_TRY(s.ops().unary({x, wide, UnaryKind::gelu_erf}));
    return s.ops().reduce({wide, rows, ReduceKind::mean});
  });
}

TEST(GpuFused, LossesShareADispatchWithTheirSums) {
  for (const LossKind kind :
       {LossKind::mse, LossKind::mae, LossKind::huber, LossKind::bce, LossKind::softmax_ce}) {
    for (const bool by_ids : {false, true}) {
      if (by_ids && kind != LossKind::softmax_ce) continue;
      for (const float smoothing : {0.0f, 0.1f}) {
        check(cat("loss ", static_cast<int>(kind), by_ids ? " ids" : ""), 1,
              [&](Sheet& s) -> Status {
                LossArgs a;
                a.pred = s.matrix(37, 9);
                a.target = by_ids ? s.ids(37, 9) : s.matrix(37, 9);
                if (!by_ids && kind == LossKind::softmax_ce) {
                  for (int i = 0; i < 37 * 9; ++i) a.target.f32()[i] = i % 3 == 0 ? 0.3f : 0.0f;
                }
                a.weight = s.matrix(1, 37);
                a.weight.shape = Shape{37};
                a.row_loss = s.matrix(1, 37);
                a.row_loss.shape = Shape{37};
                a.dpred = s.matrix(37, 9);
                a.kind = kind;
                a.delta = 0.4f;
                a.smoothing = smoothing;
                const Tensor sum = s.matrix(1, 1);
                LOOM_TRY(s.ops().loss(a));
                Tensor row = a.row_loss;
                row.shape = Shape{1, 37};
                row.row_stride = 37;
                return s.ops().reduce({row, sum, ReduceKind::sum});
              });
      }
    }
  }
}

TEST(GpuFused, UpdatesShareADispatchWithTheirPacking) {
  using enum OptimizerKind;
  for (const OptimizerKind kind : {sgd, momentum, nesterov, rmsprop, adam, adamw, lion}) {
    check(cat("optimiser ", static_cast<int>(kind)), 1, [&](Sheet& s) -> Status {
      const Tensor hyper = s.matrix(1, 4), scale = s.matrix(1, 1);
      const float numbers[] = {0.1f, 0.2f, 0.3f, 0.0f};
      std::copy_n(numbers, 4, hyper.f32());
      scale.f32()[0] = 0.5f;
      std::vector<PackArgs> packs;
      for (const Shape& shape : {Shape{33, 19}, Shape{5}, Shape{18, 7}}) {
        OptimiseArgs a;
        a.p = s.matrix(shape.rows(), shape.last());
        a.g = s.matrix(shape.rows(), shape.last());
        a.m = s.matrix(shape.rows(), shape.last());
        a.v = s.matrix(shape.rows(), shape.last());
        for (int64_t i = 0; i < shape.count(); ++i) a.v.f32()[i] = 0.5f + 0.001f * float(i % 50);
        a.hyper = hyper;
        a.hyper.shape = Shape{4};
        a.scale = scale;
        a.kind = kind;
        a.decay = 0.01f;
        LOOM_TRY(s.ops().optimise(a));
        if (shape.rank() == 2) packs.push_back({a.p, s.packed(shape[0], shape[1])});
      }
      for (const PackArgs& pack : packs) LOOM_TRY(s.ops().pack(pack));
      return Status{};
    });
  }
}

TEST(GpuFused, ChannelSumsAndSlopesShareADispatch) {
  check("channels", 1, [](Sheet& s) -> Status {
    const Tensor x = s.matrix(11 * 6, 45), sums = s.matrix(11, 6), y = s.matrix(1, 6);
    Tensor flat = sums, out = y;
    flat.shape = Shape{66};
    out.shape = Shape{6};
    LOOM_TRY(s.ops().reduce({x, flat, ReduceKind::sum}));
    return s.ops().reduce_cols({sums, out});
  });
  check("slope", 1, [](Sheet& s) -> Status {
    const Tensor w = s.packed(20, 30);
    for (int64_t i = 0; i < 30 * 32; ++i) {
      reinterpret_cast<float*>(w.data)[i] = 0.01f * static_cast<float>(i % 17);
    }
    const Tensor dy = s.matrix(20, 20), dx = s.matrix(20, 30), x = s.matrix(20, 30);
    const Tensor dz = s.matrix(20, 30);
    LOOM_TRY(s.ops().matmul_dx({dy, w, dx}));
    return s.ops().unary_dx({x, dx, dz, UnaryKind::relu, true});
  });
}

}  // namespace
}  // namespace loom::test
