// The elementary functions in double precision: own series over IEEE operations only, so that
// tables made once and the f64 oracle of gradients have the same bits on every machine. Accurate to
// about 1e-15; not fast. exp, log, tanh and erf take every double and answer NaN and infinities as
// libm does.
#pragma once

namespace loom::dmath {

double exp(double x);
double log(double x);
double tanh(double x);
double erf(double x);
double sin(double x);  // |x| < 2^30
double cos(double x);

}  // namespace loom::dmath
