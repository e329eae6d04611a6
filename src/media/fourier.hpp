// The discrete Fourier transform of any length, by its prime factors: length 400 takes little more
// time than 512. Tables are computed once, with our own sine, so the bits are the same on every
// machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace loom::core {

constexpr double kHalfTurn = 3.14159265358979323846;

struct Complex {
  double re = 0, im = 0;
};

class Fourier {
 public:
  explicit Fourier(int64_t length);
  int64_t length() const { return length_; }
  // out[k] = sum over i of in[i] e^(-2 pi j i k / length). Both have that length and must not
  // alias.
  void transform(std::span<const double> in, std::span<Complex> out) const;

 private:
  void part(const double* in, int64_t stride, int64_t length, Complex* out) const;

  int64_t length_;
  std::vector<Complex> turns_;  // e^(-2 pi j i / length)
};

}  // namespace loom::core
