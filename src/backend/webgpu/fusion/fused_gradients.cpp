// fuse_slope, fuse_loss, fuse_channel_sums: pairs that are frequent in the gradients of layers. All
// outputs of the commands are written.
#include "backend/webgpu/fusion/fused.hpp"
#include "backend/webgpu/kernels/elementwise.hpp"
#include "backend/webgpu/kernels/products/matmul_narrow.hpp"
#include "base/numbers/checked.hpp"
#include "ops/recording/visit.hpp"

namespace loom::core::webgpu {
namespace {

bool gapless(const Tensor& t) {
  return t.dtype == DType::f32 && (t.rows() <= 1 || t.row_stride == t.cols());
}
bool apart(const Tensor& a, const Tensor& b) {
  return a.empty() || b.empty() || a.end() <= b.data || b.end() <= a.data;
}

// A product must have read its inputs before the second command writes.
template <class Args>
bool takes(const Args& product, const Tensor& read, const UnaryDxArgs& slope) {
  return !product.accumulate && slope.dy.data == product.dx.data &&
         slope.dy.shape.count() == product.dx.shape.count() && gapless(product.dx) &&
         gapless(slope.dy) && gapless(slope.x) && gapless(slope.dx) && apart(slope.dx, read) &&
         apart(slope.dx, product.w) && apart(slope.dx, product.dx) && apart(slope.x, product.dx) &&
         apart(slope.x, slope.dx);
}

// A workgroup has a channel, and 32 of its invocations a sample. It computes the sums of
// reduce.cpp, then the sums over samples, one after the other.
constexpr Kernel kChannelSums{"channel_sums", R"(
var<workgroup> parts: array<f32, 256>;
fn run(channel: u32, lane: u32) {
  var total = 0.0;
  for (var first = 0u; first < p.samples; first += 8u) {
    let s = first + lane / 32u;
    var v = 0.0;
    if (s < p.samples) {
      let row = (s * p.channels + channel) * p.x_s;
      for (var c = lane % 32u; c < p.cols; c += 256u) {
        var got: array<f32, 8>;
        for (var j = 0u; j < 8u; j++) {
          let x = x_at(row + min(c + 32u * j, p.cols - 1u));
          got[j] = select(0.0, x, c + 32u * j < p.cols);
        }
        for (var j = 0u; j < 8u; j++) { v += got[j]; }
      }
    }
    parts[lane] = v;
    workgroupBarrier();
    for (var half = 16u; half > 0u; half /= 2u) {
      if (lane % 32u < half) { parts[lane] += parts[lane + half]; }
      workgroupBarrier();
    }
    if (lane % 32u == 0u && s < p.samples) { sums_set(s * p.channels + channel, parts[lane]); }
    for (var i = 0u; lane == 0u && i < min(8u, p.samples - first); i++) { total += parts[i * 32u]; }
    workgroupBarrier();
  }
  if (lane == 0u) { y_set(channel, total); }
}
)"};

}  // namespace

Result<int64_t> fuse_slope(Frame& frame, std::span<const Command> rest) {
  if (rest.size() < 2 || rest[1].op != OpId::unary_dx) return int64_t{0};
  const auto slope = args_of<UnaryDxArgs>(rest[1]);
  if (rest[0].op == OpId::matmul_dx) {
    const auto product = args_of<MatmulDxArgs>(rest[0]);
    if (product.w.shape[0] == 0 || !takes(product, product.dy, slope)) return int64_t{0};
    LOOM_TRY(kernels::matmul_dx_slope(frame, product, &slope));
    return int64_t{2};
  }
  if (rest[0].op == OpId::conv_dx) {
    const auto product = args_of<ConvDxArgs>(rest[0]);
    if (!takes(product, product.dy, slope)) return int64_t{0};
    LOOM_TRY(kernels::conv_dx_slope(frame, product, &slope));
    return int64_t{2};
  }
  return int64_t{0};
}

Result<int64_t> fuse_loss(Frame& frame, std::span<const Command> rest) {
  const auto* product = args_at<MatmulArgs>(rest, 0);
  const auto* loss = args_at<LossArgs>(rest, 1);
  if (product == nullptr || loss == nullptr || !is_narrow(*product)) return int64_t{0};
  using enum LossKind;
  const bool by_value =
      loss->kind == mse || loss->kind == mae || loss->kind == huber || loss->kind == bce;
  const Tensor& y = product->y;
  if (!by_value || !loss->row_loss.empty() || loss->pred.data != y.data ||
      loss->pred.row_stride != y.row_stride || loss->pred.rows() != y.rows() ||
      loss->pred.cols() != y.cols() || !apart(loss->dpred, y) || !apart(loss->dpred, product->x) ||
      !apart(loss->dpred, product->w) || !apart(loss->dpred, product->bias) ||
      !apart(y, loss->target) || !apart(y, loss->weight) || y.rows() == 0 || y.cols() == 0) {
    return int64_t{0};
  }
  LOOM_TRY(matmul_narrow(frame, *product, loss));
  return int64_t{2};
}

Result<int64_t> fuse_channel_sums(Frame& frame, std::span<const Command> rest) {
  constexpr int64_t kBlock = 4096, kMax = 32768;  // values of a sum, of a channel
  if (rest.size() < 2 || rest[0].op != OpId::reduce || rest[1].op != OpId::reduce_cols) {
    return int64_t{0};
  }
  const auto inner = args_of<ReduceArgs>(rest[0]);
  const auto outer = args_of<ReduceColsArgs>(rest[1]);
  const int64_t samples = outer.x.rows(), channels = outer.x.cols(), cols = inner.x.cols();
  if (inner.kind != ReduceKind::sum || outer.accumulate || outer.x.data != inner.y.data ||
      inner.x.rows() != samples * channels || !gapless(outer.x) || !gapless(outer.y) || cols == 0 ||
      cols > kBlock || samples * cols > kMax || samples == 0 || !apart(outer.y, inner.x) ||
      !apart(inner.y, inner.x) || !apart(outer.y, inner.y)) {
    return int64_t{0};
  }
  LOOM_TRY(Call(frame, kChannelSums)
               .read("x", inner.x)
               .write("sums", inner.y)
               .write("y", outer.y)
               .value("samples", samples)
               .value("channels", channels)
               .value("cols", cols)
               .lanes(256)
               .beside(1024)
               .rows(channels));
  return int64_t{2};
}

}  // namespace loom::core::webgpu
