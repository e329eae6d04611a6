// The two shapes of matmul.
#pragma once

#include "backend/webgpu/wgsl/frame.hpp"

namespace loom::core::webgpu {

// Few rows of x: bound by the memory bandwidth of the weights.
constexpr int64_t kSmallRows = 8;
Status matmul_few(Frame& frame, const MatmulArgs& args);
// Many rows: bound by arithmetic.
Status matmul_many(Frame& frame, const MatmulArgs& args);
// In tiles (tiles.hpp), even for few outputs. Not for quantized rows.
Status matmul_tiles(Frame& frame, const MatmulArgs& args);

// finish(sum, n): adds the bias of output n, then applies the activation. finished(sum, bias): the
// same with a bias that is already loaded. Needs an operand "bias" and a value "activation".
extern const std::string_view kFinish;

// One dispatch of products of many rows over the same x. Every part computes y = activation(x . w^T
// + bias). Then:
//   other not empty   (one part) result = other + y.
//   gated             (two parts of one width, without activations) result =
//                     activation(y of part 0) * y of part 1, and with codes its quantized copy;
//                     then a multiple of 32 columns.
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
// Whether small tiles are better for this number of outputs of float products.
bool small_product(int64_t rows, int64_t cols);

}  // namespace loom::core::webgpu
