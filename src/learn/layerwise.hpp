// Optimizers whose step of a parameter takes all of its values together: their norms, the means of
// its rows and columns, or its singular vectors. Each is a row of the ops that there are, recorded
// in place of one `optimize`. Private to the room.
//
// With g the gradient after clipping, t updates from 1, |x| the root of the sum of squares, rms(x)
// = |x| / sqrt(n), wd the decay:
//   lamb       m, v as of adam, bias corrected; r = m / (sqrt(v) + eps) + wd p;
//              p -= lr (|p| / |r|) r, the ratio 1 where one of them is 0
//              (You et al., 2020, "Large Batch Optimization for Deep Learning")
//   adafactor  b = t^-0.8; of a matrix [R, C] rows and columns keep means of squares, each moved by
//              b towards those of g; v = rows cols / mean(rows); of a vector v itself moves to g^2.
//              u = g / sqrt(v); p -= lr wd p; p -= max(eps, rms p) min(lr, 1 / sqrt t) u /
//              max(1, rms u)   (Shazeer and Stern, 2018; the constants are those of PyTorch)
//   muon       of a matrix m = b1 m + (1 - b1) g, u = (1 - b1) g + b1 m; o = five steps x = a x +
//              (b x x' + c (x x')^2) x from u / |u|, which bring singular values near 1;
//              p -= lr (wd p + 0.2 sqrt(max(R, C)) o)   (Jordan et al., 2024, "Muon"; the factor is
//              that of Liu et al., 2025, "Muon is Scalable for LLM Training"). Vectors: adamw.
//   sophia     m = b1 m + (1 - b1) g; p -= lr (wd p + u), u = m / max(gamma v, eps) kept within -1
//              and 1, value by value; v is the curvature of sophia.hpp   (Liu et al., 2023)
#pragma once

#include <optional>

#include "learn/scribe.hpp"
#include "learn/step_builder.hpp"

namespace loom::core {

// What a parameter of that shape keeps between updates; of a matrix of adafactor the means of its
// rows are m, those of its columns v.
struct Moments {
  std::optional<Shape> m, v;
};
Moments moments_of(const OptimizerSpec& spec, const Shape& shape);

// Does the optimizer step a parameter of that shape as described above?
bool is_layerwise(const OptimizerSpec& spec, const Shape& shape);

// One update of p.master, or of `values` where there is none. scale: what g is multiplied by; NaN
// leaves everything as it is. hyper: StepTensors::hyper of HyperNumbers.
Status record_layerwise(Scribe& s, const OptimizerSpec& spec, const Trained& p,
                        const Tensor& values, const Tensor& g, const Tensor& scale,
                        const StepTensors& t);

}  // namespace loom::core
