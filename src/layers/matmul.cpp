// MatMul: y = a b of two inputs over their last two axes, [.., M, K] [.., K, N] -> [.., M, N]. The
// axes before them broadcast as in NumPy. Dense is the faster form for weights.
#include <algorithm>

#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "layers/shapes/broadcast.hpp"
#include "layers/spatial/axes.hpp"

namespace loom::core {
namespace {

using namespace fields::matmul;

// The operands of one product, and the number of products.
struct Products {
  Shape out;
  int64_t m = 0, n = 0, k = 0;
  std::vector<int64_t> batch, a_batch, b_batch;  // extents before the last two, aligned
};

std::vector<int64_t> batch_of(const Shape& shape, int rank) {
  std::vector<int64_t> out(static_cast<size_t>(rank), 1);
  for (int i = 0; i + 2 < shape.rank(); ++i)
    out[static_cast<size_t>(rank - (shape.rank() - 2) + i)] = shape[i];
  return out;
}

Result<Products> products_of(const LayerConfig& c, const Shape& a, const Shape& b) {
  if (a.rank() < 2 || b.rank() < 2) {
    return invalid(
        cat("MatMul: ", a.str(), " times ", b.str(), ": both must have two axes or more"));
  }
  Products p;
  p.m = a[a.rank() - (c.flag(kTransposeA) ? 1 : 2)];
  p.k = a[a.rank() - (c.flag(kTransposeA) ? 2 : 1)];
  p.n = b[b.rank() - (c.flag(kTransposeB) ? 2 : 1)];
  const int64_t k = b[b.rank() - (c.flag(kTransposeB) ? 1 : 2)];
  if (k != p.k) {
    return invalid(cat("MatMul: ", a.str(), " times ", b.str(), ": sums of ", p.k, " and of ", k,
                       " values do not fit"));
  }
  const int rank = std::max(a.rank(), b.rank()) - 2;
  p.a_batch = batch_of(a, rank);
  p.b_batch = batch_of(b, rank);
  for (int i = 0; i < rank; ++i) {
    const auto axis = static_cast<size_t>(i);
    const int64_t x = p.a_batch[axis], y = p.b_batch[axis];
    if (x != y && x != 1 && y != 1) {
      return invalid(cat("MatMul: ", a.str(), " times ", b.str(), ": axes of ", x, " and ", y,
                         " cannot be broadcast"));
    }
    p.batch.push_back(std::max(x, y));
  }
  std::vector<int64_t> out = p.batch;
  out.insert(out.end(), {p.m, p.n});
  p.out = shape_of(out);
  return p;
}

Result<std::vector<Shape>> infer(const LayerConfig& c, std::span<const Shape> in) {
  LOOM_ASSIGN(const Products p, products_of(c, in[0], in[1]));
  return std::vector<Shape>{p.out};
}

// Matrix number `index` in the order of `batch`, in a tensor that has `own` matrices.
Tensor matrix_at(const Tensor& t, int64_t index, const std::vector<int64_t>& batch,
                 const std::vector<int64_t>& own, int64_t rows, int64_t cols) {
  int64_t slice_index = 0, below = 1;
  for (size_t axis = batch.size(); axis-- > 0;) {
    const int64_t at = index % batch[axis];
    index /= batch[axis];
    if (own[axis] > 1) slice_index += at * below;
    below *= own[axis];
  }
  Tensor all = as_matrix(t, below * rows, cols);
  return all.slice_rows(slice_index * rows, rows);
}

bool shared(const Products& p) {
  return p.a_batch == p.batch &&
         std::all_of(p.b_batch.begin(), p.b_batch.end(), [](int64_t n) { return n == 1; });
}

Result<Tensor> forward(ForwardCall& call) {
  const LayerConfig& c = call.config();
  const Tensor &a = call.inputs()[0], &b = call.inputs()[1];
  LOOM_ASSIGN(const Products p, products_of(c, a.shape, b.shape));
  const bool ta = c.flag(kTransposeA), tb = c.flag(kTransposeB);
  LOOM_ASSIGN(const Tensor y, call.tensor(p.out));
  // One matrix for all: their rows form one product.
  if (!ta && shared(p)) {
    const int64_t rows = p.out.count() / p.n;
    const Tensor all = as_matrix(b, tb ? p.n : p.k, tb ? p.k : p.n);
    LOOM_TRY(call.ops().gemm({as_matrix(a, rows, p.k), all, as_matrix(y, rows, p.n), ta, tb}));
    return y;
  }
  const int64_t count = p.out.count() / (p.m * p.n);
  for (int64_t i = 0; i < count; ++i) {
    LOOM_TRY(call.ops().gemm({matrix_at(a, i, p.batch, p.a_batch, ta ? p.k : p.m, ta ? p.m : p.k),
                              matrix_at(b, i, p.batch, p.b_batch, tb ? p.n : p.k, tb ? p.k : p.n),
                              matrix_at(y, i, p.batch, p.batch, p.m, p.n), ta, tb}));
  }
  return y;
}

LayerExample example() {
  return {Shape{3, 5},
          {{LayerKind::graph,
            {{"wires", std::vector<int64_t>{1, -1, 0, 1, -1, 0, 2, 0, 0, 1, 0}},
             {"outputs", std::vector<int64_t>{2, 0}}},
            {sketch_dense(5, 7),
             sketch_dense(5, 7, "tanh"),
             {LayerKind::matmul, {{"transpose_b", true}}}}}},
          3};
}

}  // namespace

extern const LayerDef kMatMul;
const LayerDef kMatMul = {.kind = LayerKind::matmul,
                          .name = "MatMul",
                          .fields = kFields,
                          .infer = infer,
                          .forward = forward,
                          .min_inputs = 2,
                          .max_inputs = 2,
                          .example = example};

}  // namespace loom::core
