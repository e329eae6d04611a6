// The elementary functions for both compute types: ops/fmath.hpp for float, which is their
// definition, and base/dmath.hpp for double, which is as exact as the type.
#pragma once

#include "base/dmath.hpp"
#include "ops/fmath.hpp"

namespace loom::reference {

template <class T>
struct Math;

template <>
struct Math<float> {
  static float exp(float x) { return fmath::exp<float>(x); }
  static float log(float x) { return fmath::log<float>(x); }
  static float tanh(float x) { return fmath::tanh<float>(x); }
  static float sigmoid(float x) { return fmath::sigmoid<float>(x); }
  static float erf(float x) { return fmath::erf<float>(x); }
  static float softplus(float x) { return fmath::softplus<float>(x); }
  static float sqrt(float x) { return __builtin_sqrtf(x); }
  static float abs(float x) { return fmath::abs<float>(x); }
  static float max(float a, float b) { return fmath::max<float>(a, b); }
  static float min(float a, float b) { return fmath::min<float>(a, b); }
};

template <>
struct Math<double> {
  static double exp(double x) { return dmath::exp(x); }
  static double log(double x) { return dmath::log(x); }
  static double tanh(double x) { return dmath::tanh(x); }
  static double sigmoid(double x) { return dmath::sigmoid(x); }
  static double erf(double x) { return dmath::erf(x); }
  static double softplus(double x) { return dmath::softplus(x); }
  static double sqrt(double x) { return __builtin_sqrt(x); }
  static double abs(double x) { return x < 0 ? -x : x; }
  static double max(double a, double b) { return a > b ? a : b; }
  static double min(double a, double b) { return a < b ? a : b; }
};

}  // namespace loom::reference
