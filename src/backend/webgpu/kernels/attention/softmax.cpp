// softmax, softmax_dx: a workgroup per row, or per part of a long row.
#include "backend/webgpu/kernels/kernels.hpp"
#include "backend/webgpu/wgsl/rows.hpp"

namespace loom::core::webgpu::kernels {
namespace {

// A row of only -inf gives zeros; its sum is not used.
constexpr Kernel kSoftmax{"softmax", R"(
fn run(row: u32, lane: u32) {
  let x0 = row * p.x_s;
  var most = -infinity();
  for (var c = lane; c < p.cols; c += lanes) { most = max(most, x_at(x0 + c) * p.scale); }
  let largest = group_max(lane, most);
  var part = 0.0;
  for (var c = lane; c < p.cols; c += lanes) { part += loom_exp(x_at(x0 + c) * p.scale - largest); }
  let sum = group_sum(lane, part);
  let masked = bitcast<u32>(largest) == 0xff800000u;
  for (var c = lane; c < p.cols; c += lanes) {
    let y = loom_exp(x_at(x0 + c) * p.scale - largest) / sum;
    y_set(row * p.y_s + c, select(y, 0.0, masked));
  }
}
)"};

// Part i of a row: its largest value, and the sum of exponentials relative to it.
constexpr Kernel kSoftmaxParts{"softmax_parts", R"(
fn run(i: u32, lane: u32) {
  let x0 = i / p.parts * p.x_s;
  let begin = i % p.parts * p.part_cols;
  let end = min(begin + p.part_cols, p.cols);
  var most = -infinity();
  for (var c = begin + lane; c < end; c += lanes) { most = max(most, x_at(x0 + c) * p.scale); }
  let largest = group_max(lane, most);
  var part = 0.0;
  for (var c = begin + lane; c < end; c += lanes) {
    part += loom_exp(x_at(x0 + c) * p.scale - largest);
  }
  let sum = group_sum(lane, part);
  let masked = bitcast<u32>(largest) == 0xff800000u;
  if (lane == 0u) {
    part_set(2u * i, largest);
    part_set(2u * i + 1u, select(sum, 0.0, masked));
  }
}
)"};

// Every part joins the parts of its row by itself.
constexpr Kernel kSoftmaxJoined{"softmax_joined", R"(
fn run(i: u32, lane: u32) {
  let row = i / p.parts;
  let first = row * p.parts;
  var most = -infinity();
  for (var j = lane; j < p.parts; j += lanes) { most = max(most, part_at(2u * (first + j))); }
  let largest = group_max(lane, most);
  var part = 0.0;
  for (var j = lane; j < p.parts; j += lanes) {
    let at = 2u * (first + j);
    part += part_at(at + 1u) * loom_exp(part_at(at) - largest);
  }
  let sum = group_sum(lane, part);
  let masked = bitcast<u32>(largest) == 0xff800000u;
  let begin = i % p.parts * p.part_cols;
  let end = min(begin + p.part_cols, p.cols);
  for (var c = begin + lane; c < end; c += lanes) {
    let y = loom_exp(x_at(row * p.x_s + c) * p.scale - largest) / sum;
    y_set(row * p.y_s + c, select(y, 0.0, masked));
  }
}
)"};

// dy - sum may cancel, so the sum has the order of rule 4 of docs/numerics.md: 32 lanes and blocks
// of 4096. Gradients have many rows, so 32 invocations are enough for each.
constexpr Kernel kSoftmaxDx{"softmax_dx", R"(
fn run(row: u32, lane: u32) {
  let y0 = row * p.y_s;
  let dy0 = row * p.dy_s;
  var sum = 0.0;
  for (var begin = 0u; begin < p.cols; begin += 4096u) {
    let end = min(begin + 4096u, p.cols);
    var part = 0.0;
    for (var c = begin + lane; c < end; c += lanes) { part += dy_at(dy0 + c) * y_at(y0 + c); }
    sum += group_sum(lane, part);
  }
  for (var c = lane; c < p.cols; c += lanes) {
    dx_set(row * p.dx_s + c, (p.scale * y_at(y0 + c)) * (dy_at(dy0 + c) - sum));
  }
}
)"};

Status long_softmax(Frame& frame, const SoftmaxArgs& args, int64_t parts) {
  const int64_t groups = args.x.rows() * parts;
  LOOM_ASSIGN(const BufferSlice slice, frame.temporary(groups * 8));
  const auto common = [&](Call& call) -> Call& {
    return call.read("x", args.x)
        .value("cols", args.x.cols())
        .value("parts", parts)
        .value("part_cols", kRowPart)
        .value("scale", args.scale)
        .lanes(256);
  };
  Call first(frame, kSoftmaxParts);
  LOOM_TRY(common(first).floats("part", slice, Access::write).rows(groups));
  Call second(frame, kSoftmaxJoined);
  return common(second).floats("part", slice, Access::read).write("y", args.y).rows(groups);
}

}  // namespace

Status softmax(Frame& frame, const SoftmaxArgs& args) {
  const int64_t rows = args.x.cols() > 0 ? args.x.rows() : 0;
  const int64_t parts = row_parts(rows, args.x.cols());
  if (rows > 0 && parts > 1) return long_softmax(frame, args, parts);
  return Call(frame, kSoftmax)
      .read("x", args.x)
      .write("y", args.y)
      .value("cols", args.x.cols())
      .value("scale", args.scale)
      .lanes(row_lanes(rows, args.x.cols()))
      .rows(rows);
}

Status softmax_dx(Frame& frame, const SoftmaxDxArgs& args) {
  const int64_t rows = args.y.cols() > 0 ? args.y.rows() : 0;
  return Call(frame, kSoftmaxDx)
      .read("y", args.y)
      .read("dy", args.dy)
      .write("dx", args.dx)
      .value("cols", args.y.cols())
      .value("scale", args.scale)
      .lanes(32)
      .rows(rows);
}

}  // namespace loom::core::webgpu::kernels
