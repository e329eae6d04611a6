// BatchNorm over the channels of x [B, C, ...] (Ioffe and Szegedy, 2015), like PyTorch's
// BatchNorm1d to 3d. Training covers all n values of a channel in the present samples:
//   mean = sum(x) / n,  var = sum((x - mean)^2) / n;
//   y = (x - mean) * (gamma / sqrt(var + eps)) + beta;
//   running_mean += momentum (mean - running_mean);
//   running_var += momentum (sum((x - mean)^2) / (n - 1) - running_var).
// Sums run over the values of a sample first, then over samples. Outside training, in f32, each
// operation is rounded:
//   a = gamma / sqrt(running_var + eps),  b = beta - running_mean * a,  y = x * a + b
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/spatial/channels.hpp"

namespace loom::core {
namespace {

using namespace fields::batch_norm;

void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  const Shape shape{c.integer(kChannels)};
  if (c.flag(kAffine)) {
    out.push_back({"gamma", shape, Init::ones});
    out.push_back({"beta", shape, Init::zeros});
  }
  out.push_back({"running_mean", shape, Init::zeros, false});
  out.push_back({"running_var", shape, Init::ones, false});
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  LOOM_TRY(check_channels(c, in, c.integer(kChannels), 0));
  return in;
}

// gamma / sqrt(var + eps), or only the reciprocal root.
Result<Tensor> scale_of(ForwardCall& call, const Tensor& var) {
  const LayerConfig& c = call.config();
  LOOM_ASSIGN(const Tensor eps, call.constant(static_cast<float>(c.real(kEps))));
  LOOM_ASSIGN(const Tensor sum, combined(call, var, eps, BinaryKind::add));
  LOOM_ASSIGN(const Tensor root, call.like(var));
  LOOM_TRY(call.ops().unary({sum, root, UnaryKind::sqrt}));
  if (c.flag(kAffine)) return combined(call, call.param(0), root, BinaryKind::div);
  LOOM_ASSIGN(const Tensor scale, call.like(var));
  LOOM_TRY(call.ops().unary({root, scale, UnaryKind::reciprocal}));
  return scale;
}

Result<Tensor> forward_running(ForwardCall& call) {
  const bool affine = call.config().flag(kAffine);
  const size_t first = affine ? 2 : 0;
  const Channels c = channels_of(call.x());
  LOOM_ASSIGN(const Tensor a, scale_of(call, call.param(first + 1)));
  LOOM_ASSIGN(const Tensor moved, combined(call, call.param(first), a, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor b, call.like(moved));
  if (affine) {
    LOOM_TRY(call.ops().binary({call.param(1), moved, b, BinaryKind::sub}));
  } else {
    LOOM_TRY(call.ops().unary({moved, b, UnaryKind::neg}));
  }
  LOOM_ASSIGN(const Tensor y, scale_and_shift(call, c, c.x, a, b));
  return as_input(y, call.x());
}

// Statistics of one batch.
class Batch {
 public:
  Batch(ForwardCall& call, const Channels& c, const Tensor& present)
      : call_(call), c_(c), present_(present) {}

  // The number of values per channel, as a tensor of one value.
  Result<Tensor> count() {
    if (present_.empty()) return call_.constant(static_cast<float>(c_.samples * c_.spots));
    LOOM_ASSIGN(const Tensor samples, call_.tensor(Shape{1}));
    LOOM_TRY(call_.ops().reduce({as_matrix(present_, 1, c_.samples), samples}));
    LOOM_ASSIGN(const Tensor each, call_.constant(static_cast<float>(c_.spots)));
    return combined(call_, samples, each, BinaryKind::mul);
  }

  // Over the present samples: the sum of t, or of its squares, per channel.
  Result<Tensor> sum(const Tensor& t, bool squares) {
    Tensor parts = t;  // [B, C]
    if (!c_.flat()) {
      LOOM_ASSIGN(const Tensor rows, call_.tensor(Shape{c_.samples * c_.channels}));
      const ReduceKind kind = squares ? ReduceKind::sum_squares : ReduceKind::sum;
      LOOM_TRY(call_.ops().reduce({t, rows, kind}));
      parts = as_matrix(rows, c_.samples, c_.channels);
    } else if (squares) {
      LOOM_ASSIGN(parts, call_.like(t));
      LOOM_TRY(call_.ops().unary({t, parts, UnaryKind::square}));
    }
    if (!present_.empty()) {
      LOOM_ASSIGN(parts, combined(call_, parts, present_, BinaryKind::mul));
    }
    LOOM_ASSIGN(const Tensor sums, call_.tensor(Shape{c_.channels}));
    LOOM_TRY(call_.ops().reduce_cols({parts, sums}));
    return sums;
  }

 private:
  ForwardCall& call_;
  const Channels& c_;
  Tensor present_;
};

Result<Tensor> forward_batch(ForwardCall& call) {
  const LayerConfig& config = call.config();
  const bool affine = config.flag(kAffine);
  const size_t first = affine ? 2 : 0;
  const Channels c = channels_of(call.x());
  LOOM_ASSIGN(const Tensor present, call.sample_mask(c.flat() ? 2 : 1));
  // With `present` each batch decides. Only evaluation may pass samples one by one.
  if (present.empty() && c.samples * c.spots < 2) {
    return invalid(cat("BatchNorm: training needs more than one value per channel, the input ",
                       call.x().shape.str(), " has one; take a larger batch"));
  }
  if (!present.empty() && present.rows() != c.samples) {
    return invalid(cat("BatchNorm: the input ", call.x().shape.str(), " must begin with the ",
                       present.rows(), " samples of the batch"));
  }
  Batch batch(call, c, present);
  LOOM_ASSIGN(const Tensor n, batch.count());
  LOOM_ASSIGN(const Tensor sums, batch.sum(c.x, false));
  LOOM_ASSIGN(const Tensor mean, combined(call, sums, n, BinaryKind::div));
  LOOM_ASSIGN(const Tensor centered, with_channels(call, c, c.x, mean, BinaryKind::sub));
  LOOM_ASSIGN(const Tensor squares, batch.sum(centered, true));
  LOOM_ASSIGN(const Tensor var, combined(call, squares, n, BinaryKind::div));

  LOOM_ASSIGN(const Tensor one, call.constant(1.0f));
  LOOM_ASSIGN(const Tensor fewer, combined(call, n, one, BinaryKind::sub));
  LOOM_ASSIGN(const Tensor unbiased, combined(call, squares, fewer, BinaryKind::div));
  const auto momentum = static_cast<float>(config.real(kMomentum));
  LOOM_TRY(call.update_buffer(first, mean, momentum));
  LOOM_TRY(call.update_buffer(first + 1, unbiased, momentum));

  LOOM_ASSIGN(const Tensor a, scale_of(call, var));
  LOOM_ASSIGN(Tensor y, with_channels(call, c, centered, a, BinaryKind::mul));
  if (affine) {
    LOOM_ASSIGN(y, with_channels(call, c, y, call.param(1), BinaryKind::add));
  }
  return as_input(y, call.x());
}

Result<Tensor> forward(ForwardCall& call) {
  return call.training() ? forward_batch(call) : forward_running(call);
}

LayerExample example() {
  return {Shape{3, 5},
          {{LayerKind::cnn1, {{"channels", 3}, {"filters", 5}, {"padding", 1}, {"bias", false}}},
           {LayerKind::batch_norm, {{"channels", 5}}},
           sketch_dense(25, 3)}};
}

}  // namespace

extern const LayerDef kBatchNorm;
const LayerDef kBatchNorm = {.kind = LayerKind::batch_norm,
                             .name = "BatchNorm",
                             .fields = kFields,
                             .params = params,
                             .infer = infer,
                             .forward = forward,
                             .example = example};

}  // namespace loom::core
