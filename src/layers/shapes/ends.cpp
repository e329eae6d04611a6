#include "layers/shapes/ends.hpp"

#include "base/text.hpp"
#include "layers/core/forward_call.hpp"

namespace loom::core {

Result<bool> has_lengths(ForwardCall& call, int64_t steps) {
  const Tensor mask = call.mask();
  if (mask.empty()) return false;
  if (mask.cols() == steps) return true;
  return invalid(cat(call.config().def->name, ": it sees ", steps,
                     " steps, but the samples have lengths of up to ", mask.cols(),
                     "; a layer that changes the number of steps cannot precede it"));
}

namespace {

Result<Tensor> gathered(ForwardCall& call, const Tensor& t, const Tensor& ids) {
  LOOM_ASSIGN(const Tensor y, call.tensor(Shape{ids.shape.count(), t.cols()}));
  LOOM_TRY(call.ops().gather_rows({t, ids, y}));
  return y;
}

}  // namespace

Result<Tensor> last_rows(ForwardCall& call, const Tensor& t) {
  return gathered(call, t, call.ends().last);
}

Result<Tensor> reversed_rows(ForwardCall& call, const Tensor& t) {
  return gathered(call, t, call.ends().reversed);
}

Result<Tensor> cleared_rows(ForwardCall& call, const Tensor& t) {
  LOOM_ASSIGN(const Tensor y, call.like(t));
  LOOM_TRY(call.ops().binary({t, as_matrix(call.mask(), t.rows(), 1), y, BinaryKind::mul}));
  return y;
}

}  // namespace loom::core
