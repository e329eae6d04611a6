// SpectralNorm: y = W / s of a matrix W [R, C], s being its largest singular value by power
// iteration (Miyato et al., 2018). Each step of training repeats `iterations` times:
//   u = W v / max(|W v|, eps),  v = W^T u / max(|W^T u|, eps).
// Then s = u . W v. u and v are buffers, like the running statistics of BatchNorm. Outside training
// they are unchanged except for scaling to length 1. They carry no gradient.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"

namespace loom::core {
namespace {

using namespace fields::spectral_norm;
enum { kU, kV };

void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  out.push_back({"u", Shape{c.integer(kRows)}, Init::normal1, false});
  out.push_back({"v", Shape{c.integer(kCols)}, Init::normal1, false});
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  const Shape expected{c.integer(kRows), c.integer(kCols)};
  if (in == expected) return in;
  return invalid(cat("SpectralNorm: input ", in.str(), " must be ", expected.str()));
}

// t / max(|t|, eps), as a column.
Result<Tensor> of_length_one(ForwardCall& call, const Tensor& t) {
  const int64_t n = t.shape.count();
  LOOM_ASSIGN(const Tensor squares, call.tensor(Shape{1}));
  LOOM_ASSIGN(const Tensor length, call.tensor(Shape{1}));
  LOOM_ASSIGN(const Tensor divisor, call.tensor(Shape{1}));
  LOOM_ASSIGN(const Tensor y, call.tensor(Shape{n, 1}));
  LOOM_ASSIGN(const Tensor eps, call.constant(static_cast<float>(call.config().real(kEps))));
  LOOM_TRY(call.ops().reduce({as_matrix(t, 1, n), squares, ReduceKind::sum_squares}));
  LOOM_TRY(call.ops().unary({squares, length, UnaryKind::sqrt}));
  LOOM_TRY(call.ops().binary({length, eps, divisor, BinaryKind::max}));
  LOOM_TRY(call.ops().binary({as_matrix(t, n, 1), divisor, y, BinaryKind::div}));
  return y;
}

// w v, or w^T v.
Result<Tensor> product(ForwardCall& call, const Tensor& w, const Tensor& v, bool transposed) {
  LOOM_ASSIGN(const Tensor y, call.tensor(Shape{transposed ? w.cols() : w.rows(), 1}));
  LOOM_TRY(call.ops().gemm({w, v, y, transposed, false}));
  return y;
}

Result<Tensor> copied(ForwardCall& call, const Tensor& t) {
  LOOM_ASSIGN(const Tensor y, call.like(t));
  LOOM_TRY(call.ops().convert({t, y}));  // carries no gradient
  return y;
}

struct Directions {
  Tensor u, v;
};

// The next values of the buffers; W is constant meanwhile.
Result<Directions> iterated(ForwardCall& call, const Tensor& w) {
  LOOM_ASSIGN(const Tensor still, copied(call, w));
  Directions d{{}, as_matrix(call.param(kV), w.cols(), 1)};
  for (int64_t i = 0; i < call.config().integer(kIterations); ++i) {
    LOOM_ASSIGN(const Tensor wv, product(call, still, d.v, false));
    LOOM_ASSIGN(d.u, of_length_one(call, wv));
    LOOM_ASSIGN(const Tensor wu, product(call, still, d.u, true));
    LOOM_ASSIGN(d.v, of_length_one(call, wu));
  }
  const auto kept = [&](size_t i, const Tensor& t) {
    Tensor row = t;
    row.shape = Shape{t.rows()};
    row.row_stride = t.rows();
    return call.update_buffer(i, row, 1.0f);
  };
  LOOM_TRY(kept(kU, d.u));
  LOOM_TRY(kept(kV, d.v));
  LOOM_ASSIGN(d.u, copied(call, d.u));
  LOOM_ASSIGN(d.v, copied(call, d.v));
  return d;
}

Result<Directions> stored_directions(ForwardCall& call) {
  Directions d;
  LOOM_ASSIGN(d.u, of_length_one(call, call.param(kU)));
  LOOM_ASSIGN(d.v, of_length_one(call, call.param(kV)));
  return d;
}

Result<Tensor> forward(ForwardCall& call) {
  const Tensor w = as_matrix(call.x(), call.x().rows(), call.x().cols());
  LOOM_ASSIGN(const Directions d, call.training() ? iterated(call, w) : stored_directions(call));
  LOOM_ASSIGN(const Tensor wv, product(call, w, d.v, false));
  LOOM_ASSIGN(const Tensor s, call.tensor(Shape{1, 1}));
  LOOM_TRY(call.ops().gemm({d.u, wv, s, true, false}));
  LOOM_ASSIGN(const Tensor y, call.like(w));
  LOOM_TRY(call.ops().binary({w, s, y, BinaryKind::div}));
  return y;
}

LayerExample example() {
  // y = x (W / s)^T, with enough iterations to find the largest singular value.
  return {Shape{5},
          {{LayerKind::graph,
            {{"wires", std::vector<int64_t>{0, 1, 0, 0, 2, -1, 0, 1, 0}},
             {"outputs", std::vector<int64_t>{2, 0}}},
            {{LayerKind::constant, {{"shape", std::vector<int64_t>{3, 5}}}},
             {LayerKind::spectral_norm, {{"rows", 3}, {"cols", 5}, {"iterations", 200}}},
             {LayerKind::matmul, {{"transpose_b", true}}}}}}};
}

}  // namespace

extern const LayerDef kSpectralNorm;
const LayerDef kSpectralNorm = {.kind = LayerKind::spectral_norm,
                                .name = "SpectralNorm",
                                .fields = kFields,
                                .params = params,
                                .infer = infer,
                                .forward = forward,
                                .example = example};

}  // namespace loom::core
