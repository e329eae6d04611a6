// Elementary functions in double precision beyond those of base/numbers/dmath.hpp, of the same
// kind: IEEE operations in a fixed order, no libm but what is exact (floor, fmod, ldexp), so that
// bits are the same on every machine. About 1e-15 of the value.
#pragma once

namespace loom::core::evaluate {

double atan(double x);
double asin(double x);
double acos(double x);
double sinh(double x);
double cosh(double x);
double asinh(double x);
double acosh(double x);
double atanh(double x);
double tan(double x);
double pow(double x, double y);
double log_of(double x);  // log; -inf of 0, NaN below

}  // namespace loom::core::evaluate
