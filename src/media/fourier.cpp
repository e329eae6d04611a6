#include "media/fourier.hpp"

#include "base/numbers/dmath.hpp"

namespace loom::core {
namespace {

int64_t smallest_factor(int64_t n) {
  for (int64_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) return p;
  }
  return n;
}

}  // namespace

Fourier::Fourier(int64_t length) : length_(length), turns_(static_cast<size_t>(length)) {
  for (int64_t i = 0; i < length; ++i) {
    const double angle = 2 * kHalfTurn * static_cast<double>(i) / static_cast<double>(length);
    turns_[static_cast<size_t>(i)] = {dmath::cos(angle), -dmath::sin(angle)};
  }
}

void Fourier::transform(std::span<const double> in, std::span<Complex> out) const {
  part(in.data(), 1, length_, out.data());
}

// Decimation in time: `p` transforms of every p-th value, joined by one of length p.
void Fourier::part(const double* in, int64_t stride, int64_t length, Complex* out) const {
  if (length == 1) {
    out[0] = {*in, 0};
    return;
  }
  const int64_t p = smallest_factor(length), each = length / p;
  for (int64_t q = 0; q < p; ++q) part(in + q * stride, stride * p, each, out + q * each);
  std::vector<Complex> row(static_cast<size_t>(p));
  for (int64_t k = 0; k < each; ++k) {
    for (int64_t q = 0; q < p; ++q) row[static_cast<size_t>(q)] = out[q * each + k];
    for (int64_t r = 0; r < p; ++r) {
      Complex sum;
      for (int64_t q = 0; q < p; ++q) {
        const int64_t at = q * (k + r * each) % length * (length_ / length);
        const Complex w = turns_[static_cast<size_t>(at)], v = row[static_cast<size_t>(q)];
        sum.re += w.re * v.re - w.im * v.im;
        sum.im += w.re * v.im + w.im * v.re;
      }
      out[k + r * each] = sum;
    }
  }
}

}  // namespace loom::core
