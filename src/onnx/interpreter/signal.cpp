// Signals: the discrete Fourier transform in double precision, its short-time form, windows, mel
// filters. Formulas: onnx.ai.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/numbers/dmath.hpp"
#include "onnx/interpreter/families.hpp"
#include "onnx/operators/rows.hpp"

namespace loom::core::evaluate {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

// e^(-2 pi i k / n) for k in [0, n), or with +: the table of a transform.
struct Angles {
  std::vector<double> cosine, sine;
  Angles(int64_t n, bool inverse) {
    for (int64_t k = 0; k < n; ++k) {
      const double angle = kTurn * static_cast<double>(k) / static_cast<double>(n);
      cosine.push_back(dmath::cos(angle));
      sine.push_back(inverse ? dmath::sin(angle) : -dmath::sin(angle));
    }
  }
};

// One transform of `in` values, `n` long (zeros after them, or cut), to `out` values; parts are
// real, imaginary. Sums ascend.
struct Line {
  std::vector<double> real, imaginary;
};
Line transformed(const Line& x, int64_t n, int64_t out, const Angles& a) {
  Line y;
  const auto in = std::min<int64_t>(n, static_cast<int64_t>(x.real.size()));
  for (int64_t k = 0; k < out; ++k) {
    double re = 0, im = 0;
    for (int64_t i = 0, at = 0; i < in; ++i) {
      const auto p = static_cast<size_t>(i), q = static_cast<size_t>(at);
      re += x.real[p] * a.cosine[q] - x.imaginary[p] * a.sine[q];
      im += x.real[p] * a.sine[q] + x.imaginary[p] * a.cosine[q];
      at += k;
      if (at >= n) at -= n;
    }
    y.real.push_back(re);
    y.imaginary.push_back(im);
  }
  return y;
}

constexpr int64_t kMaxLength = int64_t{1} << 24;

// The half of a spectrum of a real signal, as a whole one of n.
void mirrored(Line& x, int64_t n) {
  const auto have = static_cast<int64_t>(x.real.size());
  x.real.resize(static_cast<size_t>(n));
  x.imaginary.resize(static_cast<size_t>(n));
  for (int64_t k = have; k < n; ++k) {
    const auto from = static_cast<size_t>(n - k), to = static_cast<size_t>(k);
    if (n - k < have) x.real[to] = x.real[from], x.imaginary[to] = -x.imaginary[from];
  }
}

Status dft(const Call& c) {
  if (!is_real(c.value(0).type)) return c.bad("takes floats");
  LOOM_ASSIGN(const Value x, c.as(0, OnnxType::f64));
  const int64_t parts = x.last();
  if (x.rank() < 2 || (parts != 1 && parts != 2)) return c.bad("takes [..., 1 or 2]");
  LOOM_ASSIGN(const int64_t given, c.whole_number(2, c.integer("axis", c.opset < 20 ? 1 : -2)));
  LOOM_ASSIGN(const int axis, c.axis(given, x.rank()));
  if (axis == x.rank() - 1) return c.bad("an axis of real and imaginary parts");
  const bool inverse = c.integer("inverse", 0) != 0, half = c.integer("onesided", 0) != 0;
  const int64_t in = x.dims[static_cast<size_t>(axis)];
  LOOM_ASSIGN(const int64_t n, c.whole_number(1, inverse && half ? 2 * (in - 1) : in));
  if (n < 1 || n > kMaxLength) return c.bad("a length that is out of range");
  const bool to_real = inverse && half;
  const int64_t out = half && !inverse ? n / 2 + 1 : n, out_parts = to_real ? 1 : 2;
  Dims dims = x.dims;
  dims[static_cast<size_t>(axis)] = out;
  dims.back() = out_parts;
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, dims));
  const Angles angles(n, inverse);
  const int64_t inner = product(x.dims, axis + 1, x.rank() - 1), outer = product(x.dims, 0, axis);
  c.parallel(outer * inner, 2.0 * static_cast<double>(n * out), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      Line line;
      for (int64_t i = 0; i < in; ++i) {
        const double* at = x.data<double>() + ((r / inner * in + i) * inner + r % inner) * parts;
        line.real.push_back(at[0]);
        line.imaginary.push_back(parts == 2 ? at[1] : 0);
      }
      if (to_real) {
        line.real.resize(static_cast<size_t>(std::min(in, n / 2 + 1)));
        line.imaginary.resize(line.real.size());
        mirrored(line, n);
      }
      const Line made = transformed(line, n, out, angles);
      const double by = inverse ? 1.0 / static_cast<double>(n) : 1.0;
      for (int64_t k = 0; k < out; ++k) {
        double* to = y.data<double>() + ((r / inner * out + k) * inner + r % inner) * out_parts;
        to[0] = made.real[static_cast<size_t>(k)] * by;
        if (out_parts == 2) to[1] = made.imaginary[static_cast<size_t>(k)] * by;
      }
    }
  });
  return c.give_as(y, c.value(0).type);
}

Status stft(const Call& c) {
  if (!is_real(c.value(0).type)) return c.bad("takes floats");
  LOOM_ASSIGN(const Value x, c.as(0, OnnxType::f64));
  if (x.rank() < 2 || x.rank() > 3) return c.bad("takes [B, L] or [B, L, 1 or 2]");
  const int64_t parts = x.rank() == 3 ? x.dims[2] : 1, length = x.dims[1];
  LOOM_ASSIGN(const int64_t step, c.whole_number(1, 0));
  Value window;
  if (c.has(2)) {
    LOOM_ASSIGN(window, c.as(2, OnnxType::f64));
  }
  LOOM_ASSIGN(const int64_t n, c.whole_number(3, c.has(2) ? window.count() : length));
  if (step < 1 || n < 1 || n > length || (parts != 1 && parts != 2) ||
      (c.has(2) && window.count() != n))
    return c.bad("frames, steps and window that do not fit");
  const bool half = c.integer("onesided", 1) != 0;
  if (half && parts == 2) return c.bad("onesided takes a real signal");
  const int64_t frames = (length - n) / step + 1, out = half ? n / 2 + 1 : n;
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, {x.dims[0], frames, out, 2}));
  const Angles angles(n, false);
  c.parallel(
      x.dims[0] * frames, 2.0 * static_cast<double>(n * out), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const double* from = x.data<double>() + (r / frames * length + r % frames * step) * parts;
          Line line;
          for (int64_t i = 0; i < n; ++i) {
            const double w = c.has(2) ? window.data<double>()[i] : 1;
            line.real.push_back(from[i * parts] * w);
            line.imaginary.push_back(parts == 2 ? from[i * parts + 1] * w : 0);
          }
          const Line made = transformed(line, n, out, angles);
          for (int64_t k = 0; k < out; ++k) {
            y.data<double>()[(r * out + k) * 2] = made.real[static_cast<size_t>(k)];
            y.data<double>()[(r * out + k) * 2 + 1] = made.imaginary[static_cast<size_t>(k)];
          }
        }
      });
  return c.give_as(y, c.value(0).type);
}

// a - b cos(2 pi i / N) + c cos(4 pi i / N).
Status window_of(const Call& c, double a, double b, double d) {
  LOOM_ASSIGN(const int64_t n, c.whole_number(0, 0));
  if (n < 1 || n > kMaxLength) return c.bad("a size that is out of range");
  const bool periodic = c.integer("periodic", 1) != 0;
  const auto type = static_cast<OnnxType>(c.integer("output_datatype", 1));
  if (element_bytes(type) == 0) return c.not_done("this output_datatype");
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, {n}));
  const auto whole = static_cast<double>(std::max<int64_t>(1, periodic ? n : n - 1));
  for (int64_t i = 0; i < n; ++i) {
    const double angle = kTurn * static_cast<double>(i) / whole;
    y.data<double>()[i] = a - b * dmath::cos(angle) + d * dmath::cos(2 * angle);
  }
  return c.give_as(y, type);
}
Status hann(const Call& c) {
  return window_of(c, 0.5, 0.5, 0);
}
Status hamming(const Call& c) {
  return window_of(c, 25.0 / 46, 21.0 / 46, 0);
}
Status blackman(const Call& c) {
  return window_of(c, 0.42, 0.5, 0.08);
}

// Triangles over the bins of a spectrum, even on the mel scale.
Status mel_weights(const Call& c) {
  LOOM_ASSIGN(const int64_t bands, c.whole_number(0, 0));
  LOOM_ASSIGN(const int64_t length, c.whole_number(1, 0));
  LOOM_ASSIGN(const double rate, c.number(2, 0));
  LOOM_ASSIGN(const double low, c.number(3, 0));
  LOOM_ASSIGN(const double high, c.number(4, 0));
  const auto type = static_cast<OnnxType>(c.integer("output_datatype", 1));
  if (bands < 1 || bands > 65536 || length < 1 || length > kMaxLength || !(rate > 0) ||
      !(low >= 0) || !(high >= low) || element_bytes(type) == 0)
    return c.bad("numbers that make no filters");
  const int64_t bins = length / 2 + 1;
  const double log10 = dmath::log(10);
  const auto mel = [=](double hertz) { return 2595 * dmath::log1p(hertz / 700) / log10; };
  const double step = (mel(high) - mel(low)) / static_cast<double>(bands + 2);
  std::vector<int64_t> edge;
  for (int64_t i = 0; i < bands + 2; ++i) {
    const double hertz =
        700 * dmath::expm1((static_cast<double>(i) * step + mel(low)) / 2595 * log10);
    edge.push_back(
        static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / rate)));
    if (edge.back() >= bins) return c.bad("an edge beyond the spectrum");
  }
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, {bins, bands}));
  fill_zero(y);
  for (int64_t b = 0; b < bands; ++b) {
    const int64_t left = edge[static_cast<size_t>(b)], top = edge[static_cast<size_t>(b) + 1];
    const int64_t right = edge[static_cast<size_t>(b) + 2];
    if (top == left) y.data<double>()[top * bands + b] = 1;
    for (int64_t j = left; top > left && j <= top; ++j)
      y.data<double>()[j * bands + b] =
          static_cast<double>(j - left) / static_cast<double>(top - left);
    for (int64_t j = top; j < right; ++j)
      y.data<double>()[j * bands + b] =
          static_cast<double>(right - j) / static_cast<double>(right - top);
  }
  return c.give_as(y, type);
}

constexpr Operator kSignals[] = {
    {"", "DFT", dft, "a?aa axis inverse onesided"},
    {"", "STFT", stft, "aa?aa onesided"},
    {"", "HannWindow", hann, "a output_datatype periodic"},
    {"", "HammingWindow", hamming, "a output_datatype periodic"},
    {"", "BlackmanWindow", blackman, "a output_datatype periodic"},
    {"", "MelWeightMatrix", mel_weights, "aaaaa output_datatype"},
};

}  // namespace

std::span<const Operator> signal_operators() {
  return kSignals;
}

}  // namespace loom::core::evaluate
