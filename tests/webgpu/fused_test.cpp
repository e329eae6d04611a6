// Commands that share a dispatch, against the reference: lists of small ones, updates of several
// parameters with their packing, pairs of gradients. Checks that they do share it.
#include "base/text.hpp"
#include "webgpu/sheet.hpp"

namespace loom::core::test {
namespace {

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
  using enum UpdateKind;
  for (const UpdateKind kind : {sgd, momentum, nesterov, rmsprop, adam, adamw, lion}) {
    check(cat("optimizer ", static_cast<int>(kind)), 1, [&](Sheet& s) -> Status {
      const Tensor hyper = s.matrix(1, 4), scale = s.matrix(1, 1);
      const float numbers[] = {0.1f, 0.2f, 0.3f, 0.0f};
      std::copy_n(numbers, 4, hyper.f32());
      scale.f32()[0] = 0.5f;
      std::vector<PackArgs> packs;
      for (const Shape& shape : {Shape{33, 19}, Shape{5}, Shape{18, 7}}) {
        OptimizeArgs a;
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
        LOOM_TRY(s.ops().optimize(a));
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

TEST(GpuFused, AProductOfFewOutputsMakesTheGradientOfItsLoss) {
  struct Size {
    int64_t rows, cols, depth, dispatches;
  };
  // Rows one by one, four at a time, and sums in parts.
  for (const Size& n :
       {Size{7, 3, 300, 1}, Size{30, 16, 513, 1}, Size{301, 5, 1900, 1}, Size{2, 8, 26000, 2}}) {
    for (const LossKind kind : {LossKind::mse, LossKind::mae, LossKind::huber, LossKind::bce}) {
      for (const bool weighted : {false, true}) {
        const std::string name = cat(n.rows, " x ", n.cols, ", kind ", static_cast<int>(kind));
        const auto values = static_cast<size_t>(n.depth * (n.rows + 16) + 8 * n.rows * n.cols);
        check(
            name, n.dispatches,
            [&](Sheet& s) -> Status {
              const Tensor w = s.packed(n.cols, n.depth), x = s.matrix(n.rows, n.depth);
              for (int64_t i = 0; i < n.depth * 16; ++i) {
                reinterpret_cast<float*>(w.data)[i] =
                    i % 16 < n.cols ? 1e-3f * float(i % 19 - 9) : 0;
              }
              Tensor bias = s.matrix(1, n.cols), weight = s.matrix(1, n.rows);
              bias.shape = Shape{n.cols};
              weight.shape = Shape{n.rows};
              weight.f32()[1] = 0.0f;
              LossArgs loss;
              loss.pred = s.matrix(n.rows, n.cols);
              loss.target = s.matrix(n.rows, n.cols);
              loss.dpred = s.matrix(n.rows, n.cols);
              if (weighted) loss.weight = weight;
              loss.kind = kind;
              loss.delta = 0.3f;
              LOOM_TRY(s.ops().matmul({x, w, bias, loss.pred}));
              return s.ops().loss(loss);
            },
            values);
      }
    }
  }
}

}  // namespace
}  // namespace loom::core::test
