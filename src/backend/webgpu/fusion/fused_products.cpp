// The products of one row as commands: norm, quantize_rows, up to three matmul over the same x,
// then a gated unit or an addition. row_products.hpp runs them.
#include "backend/webgpu/fusion/fuse.hpp"
#include "backend/webgpu/kernels/products/matmul_narrow.hpp"
#include "backend/webgpu/kernels/products/row_products.hpp"

namespace loom::core::webgpu {
namespace {

// One row, or any number of rows if each has the bits that it has alone. The first command of a run
// sets the number.
bool takes_rows(const Frame& frame, const RowProducts& p, const Tensor& t) {
  if (t.dtype != DType::f32) return false;
  if (p.rows > 0) return t.rows() == p.rows;
  return t.rows() == 1 || (frame.rows_alone() && t.rows() > 0 && p.joined == nullptr);
}

// The matrices have one type and depth, multiply one row, and are in one buffer of the device.
bool take_matrices(Frame& frame, std::span<const Command> rest, RowProducts& p) {
  const Tensor* x = p.joined != nullptr ? &p.joined->y : nullptr;
  if (p.quantize != nullptr) x = &p.quantize->x;
  if (p.norm != nullptr) x = &p.norm->y;
  while (p.count < RowProducts::kMax) {
    const auto* m = args_at<MatmulArgs>(rest, static_cast<size_t>(p.commands));
    if (m == nullptr || !takes_rows(frame, p, m->x)) break;
    if (m->use_q8 != (p.quantize != nullptr)) break;
    if (m->use_q8 && m->q8.codes != p.quantize->q.codes) break;
    if (x != nullptr && m->x.data != x->data) break;
    if (p.count > 0) {
      const MatmulArgs& first = *p.matrix[0];
      if (m->w.dtype != first.w.dtype || m->w.shape[1] != p.depth() ||
          m->activation != Activation::linear || first.activation != Activation::linear ||
          frame.slice_of(m->w.data).buffer != frame.slice_of(first.w.data).buffer) {
        break;
      }
    }
    x = &m->x;
    p.rows = m->x.rows();
    p.matrix[p.count++] = m;
    ++p.commands;
  }
  return p.count > 0;
}

void take_end(const Frame& frame, std::span<const Command> rest, RowProducts& p) {
  const auto at = static_cast<size_t>(p.commands);
  const auto* gated = args_at<GatedArgs>(rest, at);
  if (p.count == 2 && gated != nullptr && gated->gate.data == p.matrix[0]->y.data &&
      gated->up.data == p.matrix[1]->y.data && takes_rows(frame, p, gated->y) &&
      gated->y.cols() == p.matrix[0]->y.cols()) {
    p.gated = gated;
    ++p.commands;
  }
  const auto* sum = args_at<BinaryArgs>(rest, at);
  if (p.count == 1 && sum != nullptr && sum->kind == BinaryKind::add &&
      takes_rows(frame, p, sum->y) && sum->a.cols() == sum->b.cols() &&
      sum->a.rows() == sum->b.rows()) {
    const Tensor& y = p.matrix[0]->y;
    if (sum->a.data != y.data && sum->b.data != y.data) return;
    p.addition = sum;
    p.other = sum->a.data == y.data ? sum->b : sum->a;
    ++p.commands;
  }
}

bool take(Frame& frame, std::span<const Command> rest, RowProducts& p) {
  const auto* norm = args_at<NormArgs>(rest, 0);
  if (norm != nullptr) {
    if (norm->kind != NormKind::rms || norm->segments != 1) return false;
    if (p.joined != nullptr || !takes_rows(frame, p, norm->x)) return false;
    p.norm = norm;
    p.rows = norm->x.rows();
    ++p.commands;
  }
  const auto* quantize = args_at<QuantizeRowsArgs>(rest, static_cast<size_t>(p.commands));
  if (quantize != nullptr && takes_rows(frame, p, quantize->x)) {
    if (norm != nullptr && quantize->x.data != norm->y.data) return false;
    if (p.joined != nullptr && quantize->x.data != p.joined->y.data) return false;
    p.quantize = quantize;
    p.rows = quantize->x.rows();
    ++p.commands;
  }
  if (!take_matrices(frame, rest, p)) return false;
  take_end(frame, rest, p);
  // A single product, unless it has few outputs: the lanes of a workgroup are too few for it.
  const bool single = p.commands == 1 && p.joined == nullptr && !frame.rows_alone();
  return !(single && is_narrow(*p.matrix[0])) && row_fits(p);
}

// Whether a workgroup may write `w` while others still read.
bool writes_apart(const RowProducts& p, const Tensor& w, bool last) {
  if (p.joined == nullptr && overlap(w, p.x())) return false;
  // A lane reads the value that it replaces.
  if (overlap(w, p.other) && !(last && w.data == p.other.data)) return false;
  for (int64_t i = 0; i < p.count; ++i) {
    if (overlap(w, p.matrix[i]->bias)) return false;
  }
  return p.norm == nullptr || !overlap(w, p.norm->gamma);
}

// The values to write. Dead values are left out, unless rows are alone: the memory that a later
// command writes depends on the number of rows. False: the commands do not fit one dispatch.
bool outputs_of(const Frame& frame, const RowProducts& p, std::span<const Command> after,
                RowOutputs& o) {
  const bool ends = p.gated != nullptr || p.addition != nullptr;
  if (p.gated != nullptr) o.out = p.gated->y;
  if (p.addition != nullptr) o.out = p.addition->y;
  // The last command may overwrite results of the commands before it.
  const auto gone = [&](const Tensor& t) {
    if (frame.rows_alone()) return false;
    const bool covered = ends && o.out.data <= t.data && o.out.end() >= t.end();
    return covered || dead(after, t);
  };
  if (p.norm != nullptr && !gone(p.norm->y)) o.kept = p.norm->y;
  for (int64_t i = 0; i < p.count; ++i) {
    if (!ends || !gone(p.matrix[i]->y)) o.y[i] = p.matrix[i]->y;
  }
  if (p.quantize != nullptr && !dead(after, p.quantize->q)) return false;
  if (p.joined != nullptr && !gone(p.joined->y)) return false;
  const Tensor* written[] = {&o.kept, &o.y[0], &o.y[1], &o.y[2], &o.out};
  for (const Tensor* w : written) {
    if (!writes_apart(p, *w, w == &o.out)) return false;
    for (const Tensor* v : written) {
      if (v != w && overlap(*w, *v)) return false;
    }
  }
  return true;
}

}  // namespace

Result<int64_t> fuse_products(Frame& frame, std::span<const Command> rest,
                              const JoinedRow* joined) {
  RowProducts p;
  p.joined = joined;
  if (!take(frame, rest, p)) return 0;
  RowOutputs out;
  if (!outputs_of(frame, p, rest.subspan(static_cast<size_t>(p.commands)), out)) return 0;
  LOOM_TRY(run_row_products(frame, p, out));
  return p.commands;
}

}  // namespace loom::core::webgpu
