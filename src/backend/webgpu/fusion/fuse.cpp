#include "backend/webgpu/fusion/fuse.hpp"

#include "backend/webgpu/fusion/fused.hpp"
#include "backend/webgpu/fusion/fused_many.hpp"

namespace loom::core::webgpu {

bool overlap(const Tensor& a, const Tensor& b) {
  if (a.empty() || b.empty()) return false;
  return a.data < b.end() && b.data < a.end();
}

namespace {

// Read-only visit() of a command: `f` may only read its tensors.
template <class F>
void look_at(const Command& command, F&& f) {
  switch (command.op) {
#define LOOM_OP(name, Args)           \
  case OpId::name:                    \
    visit(args_of<Args>(command), f); \
    break;
#include "ops/ops.def"
#undef LOOM_OP
  }
}

}  // namespace

bool dead(std::span<const Command> rest, const Tensor& t) {
  for (const Command& command : rest) {
    bool read = false, written = false;
    look_at(command, [&](const Tensor& other, Access access) {
      if (!overlap(other, t)) return;
      const bool whole = other.data <= t.data && other.end() >= t.end() &&
                         (other.rows() <= 1 || other.row_stride == other.cols());
      if (access != Access::write) read = true;
      if (access == Access::write && whole) written = true;
    });
    if (read) return false;
    if (written) return true;
  }
  return false;
}

bool dead(std::span<const Command> rest, const Q8Rows& q) {
  for (size_t i = 0; i < rest.size(); ++i) {
    if (const auto* product = args_at<MatmulArgs>(rest, i)) {
      if (product->use_q8 && product->q8.codes == q.codes) return false;
    }
    if (const auto* quantize = args_at<QuantizeRowsArgs>(rest, i)) {
      if (quantize->q.codes == q.codes) return true;
    }
  }
  return true;
}

Result<int64_t> fuse(Frame& frame, std::span<const Command> rest) {
  const auto products = [](Frame& f, std::span<const Command> r) { return fuse_products(f, r); };
  if (frame.rows_alone()) {
    LOOM_ASSIGN(const int64_t taken, products(frame, rest));
    return taken > 0 ? taken : fuse_rope(frame, rest);
  }
  using Part = Result<int64_t> (*)(Frame&, std::span<const Command>);
  for (const Part part :
       {Part{fuse_recurrence}, Part{products}, fuse_attention, fuse_rope, fuse_many, fuse_loss,
        fuse_scalars, fuse_slope, fuse_channel_sums, fuse_optimize}) {
    const Result<int64_t> taken = part(frame, rest);
    if (!taken.ok() || *taken > 0) return taken;
  }
  return 0;
}

}  // namespace loom::core::webgpu
