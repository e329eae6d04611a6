#include "layers/shapes/largest.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "layers/core/forward_call.hpp"

namespace loom::core {
namespace {

Result<Tensor> binary(ForwardCall& call, const Tensor& a, const Tensor& b, BinaryKind kind) {
  LOOM_ASSIGN(const Tensor y, call.tensor(Shape{a.rows(), a.cols()}));
  LOOM_TRY(call.ops().binary({a, b, y, kind}));
  return y;
}

Result<Tensor> unary(ForwardCall& call, const Tensor& x, UnaryKind kind) {
  LOOM_ASSIGN(const Tensor y, call.tensor(Shape{x.rows(), x.cols()}));
  LOOM_TRY(call.ops().unary({x, y, kind}));
  return y;
}

// 0, 1, 2 .. in every row; each step doubles the number of written columns.
Result<Tensor> column_numbers(ForwardCall& call, int64_t rows, int64_t cols) {
  LOOM_ASSIGN(const Tensor numbers, call.tensor(Shape{rows, cols}));
  LOOM_TRY(call.ops().fill({slice_cols(numbers, 0, 1), 0.0f}));
  for (int64_t done = 1; done < cols; done *= 2) {
    const int64_t more = std::min(done, cols - done);
    LOOM_ASSIGN(const Tensor step, call.constant(static_cast<float>(done)));
    LOOM_TRY(call.ops().binary(
        {slice_cols(numbers, 0, more), step, slice_cols(numbers, done, more), BinaryKind::add}));
  }
  return numbers;
}

// 1 in the column whose number is in `place` [R, 1], 0 elsewhere.
Result<Tensor> mark(ForwardCall& call, const Tensor& numbers, const Tensor& threshold) {
  LOOM_ASSIGN(const Tensor apart, binary(call, numbers, threshold, BinaryKind::sub));
  LOOM_ASSIGN(const Tensor distance, unary(call, apart, UnaryKind::abs));
  LOOM_ASSIGN(const Tensor below, unary(call, distance, UnaryKind::neg));
  return unary(call, below, UnaryKind::step);
}

}  // namespace

Result<Tensor> largest(ForwardCall& call, const Tensor& x, int64_t k) {
  const int64_t rows = x.rows(), cols = x.cols();
  if (cols > 1 << 24)
    return invalid(cat("rows of ", cols, " values; at most 2^24 can be chosen from"));
  LOOM_ASSIGN(const Tensor values, call.tensor(Shape{rows, k}));
  LOOM_ASSIGN(const Tensor ids, call.ids(Shape{rows, k}));
  LOOM_TRY(call.ops().topk({x, values, ids}));
  // The ids as numbers of the compute type, by a lookup in columns that hold their own number.
  LOOM_ASSIGN(const Tensor numbers, column_numbers(call, rows, cols));
  LOOM_ASSIGN(const Tensor indices, call.tensor(Shape{rows, k}));
  Tensor all = ids;
  all.shape = Shape{rows * k};
  all.row_stride = rows * k;
  LOOM_TRY(
      call.ops().gather_rows({as_matrix(numbers, cols, 1), all, as_matrix(indices, rows * k, 1)}));
  LOOM_ASSIGN(Tensor mask, mark(call, numbers, slice_cols(indices, 0, 1)));
  for (int64_t i = 1; i < k; ++i) {
    LOOM_ASSIGN(const Tensor one, mark(call, numbers, slice_cols(indices, i, 1)));
    LOOM_ASSIGN(mask, binary(call, mask, one, BinaryKind::add));
  }
  return mask;
}

}  // namespace loom::core
