// GroupNorm (Wu and He, 2018): splits the channels of x [B, C, ...] into equal groups, and
// normalizes each group of each sample to mean 0 and variance 1. InstanceNorm (Ulyanov, Vedaldi and
// Lempitsky, 2016): a group is one channel. Like PyTorch's, without running statistics:
//   y = (x - mean) / sqrt(var + eps), then, if affine, * gamma + beta per channel
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/spatial/channels.hpp"

namespace loom::core {
namespace {

using namespace fields::group_norm;  // those of InstanceNorm, and one more
static_assert(fields::instance_norm::kAffine == kAffine);

bool is_instance(const LayerConfig& c) {
  return c.def->fields.size() <= kGroups;
}

void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  if (!c.flag(kAffine)) return;
  out.push_back({"gamma", Shape{c.integer(kChannels)}, Init::ones});
  out.push_back({"beta", Shape{c.integer(kChannels)}, Init::zeros});
}

Result<Shape> infer_group(const LayerConfig& c, const Shape& in) {
  LOOM_TRY(check_channels(c, in, c.integer(kChannels), 0));
  if (c.integer(kChannels) % c.integer(kGroups) == 0) return in;
  return invalid(cat("GroupNorm: groups ", c.integer(kGroups), " must divide channels ",
                     c.integer(kChannels)));
}

Result<Shape> infer_instance(const LayerConfig& c, const Shape& in) {
  LOOM_TRY(check_channels(c, in, c.integer(kChannels), 1));
  if (in.count() > in[0] * in[1]) return in;
  return invalid(cat("InstanceNorm: input ", in.str(),
                     " has one value per channel, which leaves nothing when its mean is taken off; "
                     "it must have more"));
}

Result<Tensor> forward(ForwardCall& call) {
  const LayerConfig& config = call.config();
  const Channels c = channels_of(call.x());
  const int64_t groups = is_instance(config) ? c.channels : config.integer(kGroups);
  LOOM_ASSIGN(const Tensor normal, like(call, c));
  NormArgs n;
  const int64_t rows = c.samples * groups, cols = c.channels / groups * c.spots;
  n.x = as_matrix(c.x, rows, cols);
  n.y = as_matrix(normal, rows, cols);
  n.eps = static_cast<float>(config.real(kEps));
  n.kind = NormKind::layer;
  LOOM_TRY(call.ops().norm(n));
  Tensor y = normal;
  if (config.flag(kAffine)) {
    LOOM_ASSIGN(y, scale_and_shift(call, c, normal, call.param(0), call.param(1)));
  }
  return as_input(y, call.x());
}

LayerExample example_group() {
  return {Shape{3, 5},
          {{LayerKind::cnn1, {{"channels", 3}, {"filters", 6}, {"padding", 1}}},
           {LayerKind::group_norm, {{"channels", 6}, {"groups", 2}}},
           sketch_dense(30, 3)}};
}

LayerExample example_instance() {
  return {Shape{3, 5},
          {{LayerKind::cnn1, {{"channels", 3}, {"filters", 5}, {"padding", 1}, {"bias", false}}},
           {LayerKind::instance_norm, {{"channels", 5}, {"affine", true}}},
           sketch_dense(25, 3)}};
}

}  // namespace

extern const LayerDef kGroupNorm;
const LayerDef kGroupNorm = {.kind = LayerKind::group_norm,
                             .name = "GroupNorm",
                             .fields = kFields,
                             .params = params,
                             .infer = infer_group,
                             .forward = forward,
                             .example = example_group};

extern const LayerDef kInstanceNorm;
const LayerDef kInstanceNorm = {.kind = LayerKind::instance_norm,
                                .name = "InstanceNorm",
                                .fields = fields::instance_norm::kFields,
                                .params = params,
                                .infer = infer_instance,
                                .forward = forward,
                                .example = example_instance};

}  // namespace loom::core
