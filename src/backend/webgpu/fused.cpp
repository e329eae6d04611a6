#include "backend/webgpu/fused.hpp"

namespace loom::webgpu {

bool overlap(const Tensor& a, const Tensor& b) {
  if (a.empty() || b.empty()) return false;
  return a.data < b.end() && b.data < a.end();
}

bool dead(std::span<const Command> rest, const Tensor& t) {
  for (const Command& original : rest) {
    Command command;
    command.op = original.op;
    std::memcpy(command.args, original.args, sizeof(command.args));
    bool read = false, written = false;
    visit_command(command, [&](Tensor& other, Access access) {
      if (other.empty() || !overlap(other, t)) return;
      const bool whole = other.data <= t.data && other.end() >= t.end() &&
                         (other.rows() <= 1 || other.row_stride == other.cols());
      if (access != Access::write) read = true;
      if (access == Access::write && whole) written = true;
    });
    // quantise_rows and matmul with quantised rows: visit() leaves out x where it reads the copy.
    if (read) return false;
    if (written) return true;
  }
  return false;
}

bool dead(std::span<const Command> rest, const Q8Rows& q) {
  for (size_t i = 0; i < rest.size(); ++i) {
    if (const auto* product = args_of<MatmulArgs>(rest, i)) {
      if (product->use_q8 && product->q8.codes == q.codes) return false;
    }
    if (const auto* quantise = args_of<QuantiseRowsArgs>(rest, i)) {
      if (quantise->q.codes == q.codes) return true;
    }
  }
  return true;
}

Result<int64_t> fuse(Frame& frame, std::span<const Command> rest) {
  LOOM_ASSIGN(const int64_t products, fuse_products(frame, rest));
  if (products > 0) return products;
  return fuse_rope(frame, rest);
}

}  // namespace loom::webgpu
