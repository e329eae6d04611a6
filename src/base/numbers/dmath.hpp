// The elementary functions in double precision: own series of IEEE operations only. So precomputed
// tables and the f64 oracle of gradients have the same bits on every machine. Accurate to about
// 1e-15; not fast. All but sin and cos accept every double; NaN and infinities give the same
// results as in libm.
#pragma once

namespace loom::core::dmath {

double exp(double x);
double expm1(double x);  // e^x - 1, precise near 0
double log(double x);
double log1p(double x);  // log(1 + x), precise near 0
double tanh(double x);
double erf(double x);
double exp_half_square(double x);  // e^(-x^2 / 2)
double normal_cdf(double x);       // (1 + erf(x / sqrt(2))) / 2, precise in its lower tail
double sin(double x);              // |x| < 2^30
double cos(double x);

}  // namespace loom::core::dmath
