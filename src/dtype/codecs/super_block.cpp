// Scales of super-blocks by least squares. Each block has a few candidate steps, its codes under
// each, and the step (and least value) with the best fit. Then the small integers are chosen from
// those. Everything is in f64, candidates have a fixed order, and the first of equals wins.
#include "dtype/codecs/super_block.hpp"

#include "dtype/elements.hpp"
#include "dtype/r16/planes.hpp"

namespace loom::core {
namespace {

constexpr int kCandidates = 9;

// x ~ level * step - least, least >= 0.
struct Fit {
  double step = 0, least = 0;
};

// The finite values of a block, and the factors of their squared errors.
struct Values {
  double at[32], factor[32];
  int n = 0;
  bool weighted = false;  // the factors are not all 1
};
Values finite_of(const float* x, int n, const float* importance) {
  Values v;
  v.weighted = importance != nullptr;
  for (int i = 0; i < n; ++i) {
    if (!(x[i] - x[i] == 0)) continue;
    v.factor[v.n] = importance != nullptr ? static_cast<double>(importance[i]) : 1.0;
    v.at[v.n++] = static_cast<double>(x[i]);
  }
  return v;
}

double clamped(double q, const IntRange& range) {
  return small_integer_code(q, 0.0, range);
}

// Levels on both sides of 0. Large values have more weight: x^2; with factors as in ggml,
// sqrt(mean square + x^2). Candidates put the largest
// magnitude, or a value near it, on the lowest level, which has no positive counterpart.
Fit fit_signed(const Values& x, const IntRange& levels) {
  double extreme = 0, squares = 0;
  for (int i = 0; i < x.n; ++i) {
    if (abs_of(x.at[i]) > abs_of(extreme)) extreme = x.at[i];
    squares += x.at[i] * x.at[i];
  }
  const double mean = x.n > 0 ? squares / x.n : 0;
  Fit best;
  double most = -1;
  for (int c = 0; c < kCandidates && extreme != 0; ++c) {
    const double inverse = (levels.lo + 0.2 * (c - kCandidates / 2)) / extreme;
    double xl = 0, ll = 0;
    for (int i = 0; i < x.n; ++i) {
      const double v = x.at[i], level = clamped(v * inverse, levels);
      const double w = x.weighted ? x.factor[i] * __builtin_sqrt(mean + v * v) : v * v;
      xl += w * v * level;
      ll += w * level * level;
    }
    // The squared error falls by xl^2 / ll.
    const double gain = ll > 0 ? xl * (xl / ll) : 0;
    if (gain <= most) continue;
    most = gain;
    best.step = ll > 0 ? xl / ll : 0;
  }
  return best;
}

// The sums of one assignment of levels.
struct Sums {
  double w = 0, x = 0, l = 0, xx = 0, xl = 0, ll = 0;
};

// The step and the least value with the best fit. A least value cannot be negative.
Fit solve(const Sums& s) {
  const double det = s.w * s.ll - s.l * s.l;
  Fit fit;
  if (det > 0) {
    fit.step = (s.w * s.xl - s.x * s.l) / det;
    fit.least = (s.l * s.xl - s.ll * s.x) / det;
  }
  if (det <= 0 || fit.least < 0) fit = {s.ll > 0 ? s.xl / s.ll : 0, 0};
  return fit;
}

// sum of w (level * step - least - x)^2.
double error_of(const Sums& s, const Fit& f) {
  const double cross = f.step * (f.least * s.l + s.xl) - f.least * s.x;
  return f.step * f.step * s.ll + f.least * f.least * s.w + s.xx - 2 * cross;
}

// Levels from 0 up. Weights as in ggml: the root of the mean square plus the magnitude itself.
Fit fit_shifted(const Values& x, double top) {
  double low = 0, high = x.n > 0 ? x.at[0] : 0, squares = 0;
  for (int i = 0; i < x.n; ++i) {
    const double v = x.at[i];
    low = v < low ? v : low;
    high = v > high ? v : high;
    squares += v * v;
  }
  Fit best{0, -low};
  const double mean = x.n > 0 ? __builtin_sqrt(squares / x.n) : 0;
  double min_error = -1;
  for (int c = 0; c < kCandidates && high > low; ++c) {
    const double inverse = (top + 0.25 * (c - kCandidates / 2)) / (high - low);
    Sums s;
    for (int i = 0; i < x.n; ++i) {
      const double v = x.at[i], w = (mean + abs_of(v)) * x.factor[i];
      const double level = clamped((v - low) * inverse, {0, top});
      s.w += w, s.x += w * v, s.l += w * level;
      s.xx += w * v * v, s.xl += w * v * level, s.ll += w * level * level;
    }
    const Fit fit = solve(s);
    const double error = error_of(s, fit);
    if (min_error >= 0 && error >= min_error) continue;
    min_error = error < 0 ? 0 : error;
    best = fit;
  }
  return best;
}

uint16_t f16_within(double x) {
  const double top = 65504;
  return f16_from_f32(static_cast<float>(x > top ? top : x < -top ? -top : x));
}

double small_of(double x, uint16_t unit, const IntRange& range) {
  const double u = static_cast<double>(f32_from_f16(unit));
  return u == 0 ? 0 : clamped(x / u, range);
}

// The f16 numbers and the small integers from the fits of the blocks.
void choose_fields(const DTypeInfo& info, const Fit* fits, int blocks, BlockFields& out) {
  const IntRange range = small_scale_range(info);
  double largest = 0, least = 0;
  for (int b = 0; b < blocks; ++b) {
    if (abs_of(fits[b].step) > abs_of(largest)) largest = fits[b].step;
    least = fits[b].least > least ? fits[b].least : least;
  }
  // Signed: the largest step is the lowest small integer, which has no counterpart above.
  const double unit = range.lo < 0 ? range.lo : range.hi;
  const uint16_t scale = largest == 0 ? 0 : f16_within(largest / unit);
  const uint16_t taken = f16_within(least / range.hi);
  out.scale = scale;
  out.least = info.shifted() ? taken : 0;
  for (int b = 0; b < blocks; ++b) {
    out.small_scales[b] = static_cast<int8_t>(small_of(fits[b].step, scale, range));
    if (info.shifted())
      out.small_leasts[b] = static_cast<uint8_t>(small_of(fits[b].least, taken, range));
  }
}

}  // namespace

R16Small get_small(const DTypeInfo& info, const std::byte* at) {
  const int first = std::to_integer<int>(at[0]);
  if (info.scale == ScaleRule::u4) return {first & 15, first >> 4};
  return {static_cast<int8_t>(first), info.shifted() ? std::to_integer<int>(at[kR16Rows]) : 0};
}

Scale super_scale(const DTypeInfo& info, const BlockFields& fields, int block) {
  const float step = f32_from_f16(static_cast<uint16_t>(fields.scale)) *
                     static_cast<float>(fields.small_scales[block]);
  const float least = f32_from_f16(static_cast<uint16_t>(fields.least)) *
                      static_cast<float>(fields.small_leasts[block]);
  Scale s;
  s.step = static_cast<double>(step);
  if (info.shifted()) s.offset = -static_cast<double>(least);
  return s;
}

void quantize_super_block(const DTypeInfo& info, const float* x, int n, BlockFields& out,
                          const float* importance) {
  out = BlockFields{};
  const IntRange levels = int_range(info);
  const int blocks = info.super_block / info.block;
  const auto count = [&](int b) {
    const int left = n - b * info.block;
    return left < 0 ? 0 : left < info.block ? left : info.block;
  };
  Fit fits[16];
  for (int b = 0; b < blocks; ++b) {
    const int first = b * info.block;
    const Values values =
        finite_of(x + first, count(b), importance != nullptr ? importance + first : nullptr);
    fits[b] = info.shifted() ? fit_shifted(values, levels.hi) : fit_signed(values, levels);
  }
  choose_fields(info, fits, blocks, out);
  for (int b = 0; b < blocks; ++b) {
    const Scale s = super_scale(info, out, b);
    uint8_t* codes = out.codes + b * info.block;
    for (int i = 0; i < info.block; ++i) {
      if (i < count(b)) {
        codes[i] = block_code(info, x[b * info.block + i], s);
      } else {
        codes[i] = static_cast<uint8_t>(info.code_bias);
      }
    }
  }
}

namespace {

// Fields of one lane: f16, or a byte.
void put_number(std::byte* at, int64_t lane, int64_t bytes, uint32_t value) {
  std::memcpy(at + lane * bytes, &value, static_cast<size_t>(bytes));
}
uint32_t get_number(const std::byte* at, int64_t lane, int64_t bytes) {
  uint32_t value = 0;
  std::memcpy(&value, at + lane * bytes, static_cast<size_t>(bytes));
  return value;
}

// The blocks of 32 k inside the matrix that (super-)block `index` covers, and the first.
struct Covered {
  int64_t first, count;
};
Covered covered(const R16& g, const DTypeInfo& info, int64_t index) {
  const int64_t span = block_values(info) / kR16Block, first = index * span;
  return {first, g.blocks - first < span ? g.blocks - first : span};
}

// The small integers of a block: a byte each, or the halves of one.
void put_small(const DTypeInfo& info, R16Small small, std::byte* at) {
  const bool halves = info.scale == ScaleRule::u4;
  at[0] = static_cast<std::byte>(halves ? small.scale | small.least << 4 : small.scale);
  if (info.shifted() && !halves) at[kR16Rows] = static_cast<std::byte>(small.least);
}

constexpr int64_t kHalf = kR16Rows * 2;  // bytes of an f16 for each lane

}  // namespace

void put_fields(const R16& g, const BlockFields& fields, int64_t lane, int64_t index,
                std::byte* group) {
  const DTypeInfo& info = dtype_info(g.dtype);
  const Covered k = covered(g, info, index);
  if (info.super_block > 0) {
    std::byte* super = group + g.super_scales + index * g.super_bytes;
    put_number(super, lane, 2, fields.scale);
    if (info.shifted()) put_number(super + kHalf, lane, 2, fields.least);
    const int64_t first = index * (info.super_block / info.block);
    for (int64_t b = 0; b < k.count * kR16Block / info.block; ++b) {
      std::byte* record = group + g.block_scales + (first + b) * g.scale_block_bytes;
      const R16Small small{fields.small_scales[b], fields.small_leasts[b]};
      put_small(info, small, record + lane);
    }
  } else {
    std::byte* record = group + g.block_scales + index * g.scale_block_bytes;
    put_number(record, lane, g.block_zeros / kR16Rows, fields.scale);
    if (info.shifted()) put_number(record + g.block_zeros, lane, 2, fields.least);
  }
  for (int64_t b = 0; b < k.count; ++b) {
    uint8_t codes[kR16Block];
    std::memcpy(codes, fields.codes + b * kR16Block, sizeof(codes));
    put_codes(g, codes, group + g.codes + (k.first + b) * g.block_code_bytes() + lane * 4);
  }
}

void get_fields(const R16& g, const std::byte* group, int64_t lane, int64_t index,
                BlockFields& fields) {
  const DTypeInfo& info = dtype_info(g.dtype);
  const Covered k = covered(g, info, index);
  if (info.super_block > 0) {
    const std::byte* super = group + g.super_scales + index * g.super_bytes;
    fields.scale = get_number(super, lane, 2);
    if (info.shifted()) fields.least = get_number(super + kHalf, lane, 2);
    const int64_t first = index * (info.super_block / info.block);
    for (int64_t b = 0; b < k.count * kR16Block / info.block; ++b) {
      const std::byte* record = group + g.block_scales + (first + b) * g.scale_block_bytes;
      const R16Small small = get_small(info, record + lane);
      fields.small_scales[b] = static_cast<int8_t>(small.scale);
      fields.small_leasts[b] = static_cast<uint8_t>(small.least);
    }
  } else {
    const std::byte* record = group + g.block_scales + index * g.scale_block_bytes;
    fields.scale = get_number(record, lane, g.block_zeros / kR16Rows);
    if (info.shifted()) fields.least = get_number(record + g.block_zeros, lane, 2);
  }
  for (int64_t b = 0; b < k.count; ++b) {
    uint8_t codes[kR16Block];
    get_codes(g, group + g.codes + (k.first + b) * g.block_code_bytes() + lane * 4, codes);
    std::memcpy(fields.codes + b * kR16Block, codes, sizeof(codes));
  }
}

}  // namespace loom::core
