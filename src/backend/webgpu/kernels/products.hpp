// The two shapes of matmul.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// Few rows of x: bound by the memory that the weights are read from.
constexpr int64_t kFewRows = 8;
Status matmul_few(Frame& frame, const MatmulArgs& args);
// Many: bound by arithmetic.
Status matmul_many(Frame& frame, const MatmulArgs& args);
// In tiles (tiles.hpp), however few outputs there are; not of quantized rows.
Status matmul_tiles(Frame& frame, const MatmulArgs& args);

// finish(sum, n): the bias of output n added, then the activation; finished(sum, bias) where it was
// read before. Needs an operand "bias" and a value "activation".
extern const std::string_view kFinish;

// One dispatch of products of many rows over the same x: y = activation(x . w^T + bias) of every
// part, then
//   other not empty   (one part) result = other + y
//   gated             (two parts of one width, no activation of their own) result =
//                     activation(y of part 0) * y of part 1, and with codes its quantized copy;
//                     a multiple of 32 columns then
struct Products {
  struct Part {
    Tensor w, bias, y;
  };
  Tensor x;
  Q8Rows q8;
  bool use_q8 = false;
  Part parts[3];
  int count = 1;
  Activation activation = Activation::linear;
  bool gated = false;
  Tensor other, result;
  const Q8Rows* codes = nullptr;
};
Status run_products(Frame& frame, const Products& products);
// Whether two matrices can be parts of the same dispatch.
bool mergeable(const Frame& frame, const Tensor& a, const Tensor& b);
// Whether this many outputs, of float products, are better made in small tiles.
bool small_product(int64_t rows, int64_t cols);

}  // namespace loom::core::webgpu
