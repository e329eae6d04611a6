// exp, log, sin and cos in double precision for tables made once: own series over IEEE operations
// only, so tables have the same bits on every machine. Accurate to about 1e-15; not fast.
#pragma once

namespace loom::dmath {

double exp(double x);  // |x| < 700
double log(double x);  // x > 0
double sin(double x);  // |x| < 2^30
double cos(double x);

}  // namespace loom::dmath
