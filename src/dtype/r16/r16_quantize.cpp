// Everything is in f64 and in one fixed order per row, but for the running row of GPTQ, which is
// f32. The plain scale is the first candidate, and the first of equals wins.
#include "dtype/r16/r16_quantize.hpp"

#include <algorithm>
#include <vector>

#include "dtype/codecs/super_block.hpp"
#include "dtype/elements.hpp"
#include "dtype/r16/planes.hpp"
#include "dtype/r16/r16_store.hpp"

namespace loom::core {
namespace {

// Ranges that are tried, as shares of the plain one.
constexpr double kShares[] = {1.0,  0.96, 0.92, 0.88, 0.84, 0.8,  0.75, 0.7,
                              0.64, 0.57, 0.5,  1.05, 1.12, 1.25, 1.5,  2.0};
constexpr int kRefinements = 2;  // by least squares, after the shares

uint8_t code_of(const DTypeInfo& info, double x, const Scale& s) {
  if (info.shifted() || info.super_block > 0) return block_code(info, x, s);
  const double q = x / divisor(s.step);
  switch (info.kind) {
    case NumberKind::sint:
    case NumberKind::uint:
    case NumberKind::ternary: {
      const double level = small_integer_code(q, s.zero, int_range(info));
      return static_cast<uint8_t>(static_cast<int32_t>(level) + info.code_bias);
    }
    default: return static_cast<uint8_t>(encode_value(info.dtype, q));
  }
}

// A run of columns whose scale is chosen at once.
struct Run {
  const float* x;
  const float* importance;  // null: 1 each
  int64_t n;
  double weight(int64_t i) const {
    return importance != nullptr ? static_cast<double>(importance[i]) : 1.0;
  }
};

class RowQuantizer {
 public:
  RowQuantizer(const R16& g, const TensorRange& range)
      : g_(g), info_(dtype_info(g.dtype)), values_(r16_code_values(g.dtype)) {
    span_ = info_.super_block > 0 ? info_.super_block : info_.block > 0 ? info_.block : g.cols;
    const int64_t runs = span_ > 0 ? ceil_div(g.cols, span_) : 0;
    if (info_.super_block > 0) {
      fields_.resize(static_cast<size_t>(runs));
    } else {
      chosen_.resize(static_cast<size_t>(runs));
    }
    codes_.resize(static_cast<size_t>(ceil_div(g.cols, kR16Block) * kR16Block));
    if (info_.scale == ScaleRule::e4m3) tensor_scale_ = nvfp4_tensor_scale(amax_of(range));
  }

  // Values that share a scale, or the numbers of a super-block.
  int64_t span() const { return span_; }

  // Chooses the scale of the run that begins at column k.
  void choose(int64_t k, const float* x, const float* importance) {
    const int64_t left = g_.cols - k;
    const Run run{x, importance, left < span_ ? left : span_};
    const auto index = static_cast<size_t>(k / span_);
    if (info_.super_block > 0) {
      quantize_super_block(info_, x, static_cast<int>(run.n), fields_[index], importance);
    } else {
      chosen_[index] = search(run);
    }
  }

  // Takes the nearest code for column k, and returns its value.
  double take(int64_t k, double x) {
    const Scale s = scale_at(k);
    const uint8_t code = code_of(info_, x, s);
    codes_[static_cast<size_t>(k)] = code;
    return value_of(code, s);
  }

  void put(int64_t lane, std::byte* group) {
    for (size_t i = 0; i < chosen_.size(); ++i) {
      if (info_.block > 0) {
        store_block_scale(g_, info_, static_cast<int64_t>(i), lane, chosen_[i], group);
      } else if (g_.has_row_scale) {
        store_row_scale(g_, info_, lane, chosen_[i].scale, group);
      }
    }
    if (g_.wide) {
      for (int64_t k = 0; k < g_.cols; ++k)
        store(group + g_.codes, k * kR16Rows + lane, codes_[static_cast<size_t>(k)]);
      return;
    }
    pad();
    for (size_t i = 0; i < fields_.size(); ++i) {
      const size_t first = i * kMaxBlockValues, left = codes_.size() - first;
      std::memcpy(fields_[i].codes, codes_.data() + first, std::min<size_t>(left, kMaxBlockValues));
      put_fields(g_, fields_[i], lane, static_cast<int64_t>(i), group);
    }
    for (int64_t b = 0; b < g_.blocks && fields_.empty(); ++b) {
      uint8_t codes[kR16Block];
      std::memcpy(codes, codes_.data() + b * kR16Block, sizeof(codes));
      put_codes(g_, codes, group + g_.codes + b * g_.block_code_bytes() + lane * 4);
    }
  }

 private:
  double value_of(uint8_t code, const Scale& s) const {
    const double value = static_cast<double>(values_[code]) * static_cast<double>(info_.level_unit);
    return (value - s.zero) * s.step + s.offset;
  }
  Scale scale_at(int64_t k) const {
    if (info_.super_block > 0) {
      const int64_t super = k / info_.super_block;
      return super_scale(info_, fields_[static_cast<size_t>(super)],
                         static_cast<int>(k % info_.super_block / info_.block));
    }
    return chosen_[static_cast<size_t>(k / span_)].scale;
  }

  BlockScale rule(const float* x, int64_t n) const {
    if (info_.block > 0) return block_scale(info_, x, static_cast<int>(n), tensor_scale_);
    BlockScale b;
    b.scale = range_scale(info_, range_of(x, n, 1));
    return b;
  }

  // The scale if the values were x times `share`, about the middle if blocks have an offset.
  BlockScale scaled(const Run& run, double share) {
    double middle = 0;
    if (info_.shifted()) {
      const TensorRange ends = range_of(run.x, run.n, 1);
      middle = (static_cast<double>(ends.min) + static_cast<double>(ends.max)) / 2;
    }
    scratch_.resize(static_cast<size_t>(run.n));
    for (int64_t i = 0; i < run.n; ++i) {
      const double x = static_cast<double>(run.x[i]);
      scratch_[static_cast<size_t>(i)] = static_cast<float>(middle + share * (x - middle));
    }
    return rule(scratch_.data(), run.n);
  }

  // The error of a run under a scale. fit: the share of the step with the least error for these
  // codes.
  double error_of(const Run& run, const Scale& s, double& fit) const {
    double error = 0, xl = 0, ll = 0;
    for (int64_t i = 0; i < run.n; ++i) {
      const double x = static_cast<double>(run.x[i]), w = run.weight(i);
      if (!(x - x == 0)) continue;
      const double value = value_of(code_of(info_, x, s), s), level = value - s.offset;
      error += w * (x - value) * (x - value);
      xl += w * (x - s.offset) * level;
      ll += w * level * level;
    }
    fit = ll > 0 ? xl / ll : 1;
    return error;
  }

  BlockScale search(const Run& run) {
    double share = 1, fit = 1;
    BlockScale best = rule(run.x, run.n);
    double least = error_of(run, best.scale, fit);
    const auto attempt = [&](double by) {
      const BlockScale tried = scaled(run, by);
      double refined = 1;
      const double error = error_of(run, tried.scale, refined);
      if (!(error < least)) return;
      least = error, best = tried, share = by, fit = refined;
    };
    // A negative step puts the largest magnitude on the other end of the levels.
    const bool mirrored = info_.scale == ScaleRule::f16 && info_.zero == ZeroRule::none;
    for (const double by : kShares) {
      if (by != 1) attempt(by);
      if (mirrored && info_.bits < 8) attempt(-by);
    }
    for (int i = 0; i < kRefinements && fit > 0; ++i) attempt(share * fit);
    return best;
  }

  // Codes after the last column have the value 0, or are 0 if no code has.
  void pad() {
    const bool zeroless = info_.kind == NumberKind::binary || info_.shifted();
    for (auto k = static_cast<size_t>(g_.cols); k < codes_.size(); ++k) {
      const Scale s = zeroless ? Scale{} : scale_at(g_.cols - 1);
      codes_[k] = zeroless ? uint8_t{0} : code_of(info_, 0.0, s);
    }
  }

  const R16& g_;
  const DTypeInfo& info_;
  const float* values_;
  int64_t span_ = 0;
  float tensor_scale_ = 0;
  std::vector<BlockFields> fields_;
  std::vector<BlockScale> chosen_;
  std::vector<uint8_t> codes_;
  std::vector<float> scratch_;
};

// Takes the columns of one row in order, and moves each error to later columns. `x`: the row; it
// is overwritten.
void feed_back(RowQuantizer& row, const ErrorWeights& w, int64_t cols, float* x) {
  for (int64_t k = 0; k < cols; ++k) {
    if (k % row.span() == 0)
      row.choose(k, x + k, w.importance != nullptr ? w.importance + k : nullptr);
    const auto own = static_cast<double>(x[k]);
    const float* u = w.factor + k * cols;
    const auto error = static_cast<float>((own - row.take(k, own)) / static_cast<double>(u[k]));
    for (int64_t j = k + 1; j < cols; ++j) x[j] -= error * u[j];
  }
}

}  // namespace

bool r16_can_quantize(DType dtype) {
  return dtype_info(dtype).bits < 16;
}

void r16_quantize(const R16& g, const float* src, int64_t first, int64_t count,
                  const TensorRange& range, const ErrorWeights& weights, std::byte* dst) {
  r16_pack(g, src, first, count, ScaleScope::per_row, range, dst);
  RowQuantizer row(g, range);
  std::vector<float> x(static_cast<size_t>(g.cols));
  for (int64_t r = 0; r < count; ++r) {
    const float* from = src + r * g.cols;
    if (weights.factor != nullptr) {
      std::copy_n(from, g.cols, x.data());
      feed_back(row, weights, g.cols, x.data());
    } else {
      for (int64_t k = 0; k < g.cols; ++k) {
        if (k % row.span() == 0)
          row.choose(k, from + k, weights.importance != nullptr ? weights.importance + k : nullptr);
        (void)row.take(k, static_cast<double>(from[k]));
      }
    }
    const int64_t at = first + r;
    row.put(at % kR16Rows, dst + at / kR16Rows * g.group_bytes);
  }
}

}  // namespace loom::core
