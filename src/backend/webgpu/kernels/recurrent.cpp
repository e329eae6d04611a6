// lstm_cell, gru_cell and their gradients: one invocation per unit of a row. Each reads its gates
// before it writes, so results may overwrite their inputs.
#include "backend/webgpu/kernels/kernels.hpp"

namespace loom::core::webgpu::kernels {
namespace {

constexpr Kernel kLstm{"lstm_cell", R"(
fn sum(r: u32, j: u32) -> f32 { return gates_at(r * p.gates_s + j) + more_at(r * p.more_s_ + j); }
fn run(at: u32) {
  let r = at / p.units;
  let j = at % p.units;
  let i = loom_sigmoid(sum(r, j));
  let f = loom_sigmoid(sum(r, p.units + j));
  let g = loom_tanh(sum(r, 2u * p.units + j));
  let o = loom_sigmoid(sum(r, 3u * p.units + j));
  let c = f * before_at(r * p.before_s_ + j) + i * g;
  let a = r * p.acts_s + j;
  acts_set(a, i);
  acts_set(a + p.units, f);
  acts_set(a + 2u * p.units, g);
  acts_set(a + 3u * p.units, o);
  c_set(r * p.c_s + j, c);
  h_set(r * p.h_s + j, o * loom_tanh(c));
}
)"};

constexpr Kernel kLstmDx{"lstm_cell_dx", R"(
fn run(at: u32) {
  let r = at / p.units;
  let j = at % p.units;
  let a = r * p.acts_s + j;
  let i = acts_at(a);
  let f = acts_at(a + p.units);
  let g = acts_at(a + 2u * p.units);
  let o = acts_at(a + 3u * p.units);
  let t = loom_tanh(c_at(r * p.c_s + j));
  let dh = dh_at(r * p.dh_s_ + j);
  let dc = (dh * o) * (1.0 - t * t) + next_at(r * p.next_s_ + j);
  let before = before_at(r * p.before_s_ + j);
  let d = r * p.dgates_s + j;
  dgates_set(d, (dc * g) * (i * (1.0 - i)));
  dgates_set(d + p.units, (dc * before) * (f * (1.0 - f)));
  dgates_set(d + 2u * p.units, (dc * i) * (1.0 - g * g));
  dgates_set(d + 3u * p.units, (dh * t) * (o * (1.0 - o)));
  dbefore_set(r * p.dbefore_s_ + j, dc * f);
}
)"};

constexpr Kernel kGru{"gru_cell", R"(
fn run(at: u32) {
  let row = at / p.units;
  let j = at % p.units;
  let x = row * p.gx_s + j;
  let h = row * p.gh_s + j;
  let r = loom_sigmoid(gx_at(x) + gh_at(h));
  let z = loom_sigmoid(gx_at(x + p.units) + gh_at(h + p.units));
  let n = loom_tanh(gx_at(x + 2u * p.units) + r * gh_at(h + 2u * p.units));
  let before = before_at(row * p.before_s_ + j);
  let a = row * p.acts_s + j;
  acts_set(a, r);
  acts_set(a + p.units, z);
  acts_set(a + 2u * p.units, n);
  h_set(row * p.h_s + j, (1.0 - z) * n + z * before);
}
)"};

constexpr Kernel kGruDx{"gru_cell_dx", R"(
fn run(at: u32) {
  let row = at / p.units;
  let j = at % p.units;
  let a = row * p.acts_s + j;
  let r = acts_at(a);
  let z = acts_at(a + p.units);
  let n = acts_at(a + 2u * p.units);
  let dh = dh_at(row * p.dh_s + j);
  let before = before_at(row * p.before_s_ + j);
  let dn = (dh * (1.0 - z)) * (1.0 - n * n);
  let dr = (dn * gh_at(row * p.gh_s + 2u * p.units + j)) * (r * (1.0 - r));
  let dz = (dh * (before - n)) * (z * (1.0 - z));
  let x = row * p.dgx_s + j;
  let h = row * p.dgh_s + j;
  dgx_set(x, dr);
  dgh_set(h, dr);
  dgx_set(x + p.units, dz);
  dgh_set(h + p.units, dz);
  dgx_set(x + 2u * p.units, dn);
  dgh_set(h + 2u * p.units, dn * r);
  dbefore_set(row * p.dbefore_s_ + j, dh * z);
}
)"};

}  // namespace

// Absent tensors have no stride in a kernel. Tensors that may be absent pass their stride as a
// value, NAME_s_.
Status lstm_cell(Frame& frame, const LstmCellArgs& args) {
  if (!args.w.empty()) return unsupported("lstm_cell: no kernel that multiplies by the weights");
  return Call(frame, kLstm)
      .read("gates", args.gates)
      .read("more", args.more)
      .read("before", args.c_before)
      .write("acts", args.acts)
      .write("c", args.c)
      .write("h", args.h)
      .value("units", args.h.cols())
      .value("more_s_", args.more.row_stride)
      .value("before_s_", args.c_before.row_stride)
      .items(args.h.shape.count());
}

Status lstm_cell_dx(Frame& frame, const LstmCellDxArgs& args) {
  return Call(frame, kLstmDx)
      .read("acts", args.acts)
      .read("before", args.c_before)
      .read("c", args.c)
      .read("dh", args.dh)
      .read("next", args.dc_next)
      .write("dgates", args.dgates)
      .write("dbefore", args.dc_before)
      .value("units", args.c.cols())
      .value("before_s_", args.c_before.row_stride)
      .value("dh_s_", args.dh.row_stride)
      .value("next_s_", args.dc_next.row_stride)
      .value("dbefore_s_", args.dc_before.row_stride)
      .items(args.c.shape.count());
}

Status gru_cell(Frame& frame, const GruCellArgs& args) {
  return Call(frame, kGru)
      .read("gx", args.gx)
      .read("gh", args.gh)
      .read("before", args.h_before)
      .write("acts", args.acts)
      .write("h", args.h)
      .value("units", args.h.cols())
      .value("before_s_", args.h_before.row_stride)
      .items(args.h.shape.count());
}

Status gru_cell_dx(Frame& frame, const GruCellDxArgs& args) {
  return Call(frame, kGruDx)
      .read("acts", args.acts)
      .read("gh", args.gh)
      .read("before", args.h_before)
      .read("dh", args.dh)
      .write("dgx", args.dgx)
      .write("dgh", args.dgh)
      .write("dbefore", args.dh_before)
      .value("units", args.dh.cols())
      .value("before_s_", args.h_before.row_stride)
      .value("dbefore_s_", args.dh_before.row_stride)
      .items(args.dh.shape.count());
}

}  // namespace loom::core::webgpu::kernels
