// RMSNorm: y = x / sqrt(mean(x^2) + eps) * gamma over the last axis (Zhang and Sennrich, 2019).
#include "base/text.hpp"
#include "layers/layer.hpp"

namespace loom {
namespace {

enum { kWidth, kEps };
constexpr FieldDesc kFields[] = {
    {"width", FieldType::integer, 1, 1, 1 << 24, "", "normalised width"},
    {"eps", FieldType::real, 1e-6, 0, 1, "", "added to the mean square"},
};

void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  out.push_back({"gamma", Shape{c.integer(kWidth)}, Init::ones});
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  if (in.rank() == 0 || in.last() != c.integer(kWidth)) {
    return invalid(cat("RMSNorm: input ", in.str(), " must end in ", c.integer(kWidth)));
  }
  return in;
}

Result<Tensor> forward(ForwardCall& call) {
  LOOM_ASSIGN(Tensor y, call.output(call.x().shape));
  NormArgs n;
  n.x = call.x();
  n.gamma = call.param(0);
  n.y = y;
  n.eps = static_cast<float>(call.config().real(kEps));
  LOOM_TRY(call.ops().norm(n));
  return y;
}

}  // namespace

extern const LayerDef kRmsNorm;
const LayerDef kRmsNorm = {.kind = LayerKind::rms_norm,
                           .name = "RMSNorm",
                           .fields = kFields,
                           .params = params,
                           .infer = infer,
                           .forward = forward};

}  // namespace loom
