// The elementary functions in double precision: own series over IEEE operations only, so that
// tables made once and the f64 oracle of gradients have the same bits on every machine. Accurate to
// about 1e-15; not fast. All but sin and cos take every double and answer NaN and infinities as
// libm does.
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
