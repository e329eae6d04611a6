// Normalizations. Means and variances are in double precision, lane by lane (rows.hpp).
#include <algorithm>
#include <cmath>

#include "onnx/interpreter/families.hpp"
#include "onnx/operators/functions.hpp"
#include "onnx/operators/rows.hpp"

namespace loom::core::evaluate {
namespace {

struct Moments {
  double mean, variance;
};
template <class T>
Moments moments_of(const T* x, int64_t n) {
  const double mean = folded_sum<double>(x, n, [](double v) { return v; }) / static_cast<double>(n);
  const double squares =
      folded_sum<double>(x, n, [=](double v) { return (v - mean) * (v - mean); });
  return {mean, squares / static_cast<double>(n)};
}

// A scale or shift for every value of the last n, or nothing.
Result<Value> along_row(const Call& c, size_t i, OnnxType type, const Dims& row) {
  if (!c.has(i)) return Value{};
  LOOM_ASSIGN(const Value v, c.as(i, type));
  Dims whole = row;
  if (!broadcast(whole, v.dims) || whole != row) return c.bad(cat("input ", i, " does not fit"));
  return expanded(c.rt.memory, v, row);
}

Result<Dims> normalized_part(const Call& c, const Value& x) {
  LOOM_ASSIGN(const int axis, c.axis(c.integer("axis", -1), x.rank()));
  return Dims(x.dims.begin() + axis, x.dims.end());
}

Status layer_norm(const Call& c) {
  if (!is_real(c.value(0).type)) return c.bad("takes floats");
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(const Dims part, normalized_part(c, x));
  LOOM_ASSIGN(const Value scale, along_row(c, 1, x.type, part));
  LOOM_ASSIGN(const Value shift, along_row(c, 2, x.type, part));
  const double eps = c.real("epsilon", 1e-5F);
  const int64_t n = product(part), rows = n == 0 ? 0 : x.count() / n;
  LOOM_ASSIGN(Value y, c.make(x.type, x.dims));
  Dims dims(x.dims.begin(), x.dims.end() - static_cast<int64_t>(part.size()));
  dims.resize(x.dims.size(), 1);
  LOOM_ASSIGN(Value mean, c.make(x.type, dims));
  LOOM_ASSIGN(Value inverse, c.make(x.type, dims));
  with_real(x.type, [&]<class T>(T) {
    c.parallel(rows, 3.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* from = x.data<T>() + r * n;
        T* to = y.data<T>() + r * n;
        const Moments m = moments_of(from, n);
        const double by = 1 / std::sqrt(m.variance + eps);
        mean.data<T>()[r] = static_cast<T>(m.mean);
        inverse.data<T>()[r] = static_cast<T>(by);
        for (int64_t i = 0; i < n; ++i) {
          const auto v = static_cast<T>((static_cast<double>(from[i]) - m.mean) * by);
          to[i] = v * scale.data<T>()[i] + (c.has(2) ? shift.data<T>()[i] : T{});
        }
      }
    });
  });
  const auto stash = static_cast<OnnxType>(c.integer("stash_type", 1));
  LOOM_TRY(c.give_as(y, c.value(0).type));
  if (!c.wants(1) && !c.wants(2)) return {};
  if (element_bytes(stash) == 0) return c.not_done("this stash_type");
  LOOM_TRY(c.give_as(mean, stash, 1));
  return c.give_as(inverse, stash, 2);
}

Status rms_norm(const Call& c) {
  if (!is_real(c.value(0).type)) return c.bad("takes floats");
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(const Dims part, normalized_part(c, x));
  LOOM_ASSIGN(const Value scale, along_row(c, 1, x.type, part));
  const double eps = c.real("epsilon", 1e-5F);
  const int64_t n = product(part), rows = n == 0 ? 0 : x.count() / n;
  LOOM_ASSIGN(Value y, c.make(x.type, x.dims));
  with_real(x.type, [&]<class T>(T) {
    for (int64_t r = 0; r < rows; ++r) {
      const T* from = x.data<T>() + r * n;
      const double squares = folded_sum<double>(from, n, [](double v) { return v * v; });
      const double by = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
      for (int64_t i = 0; i < n; ++i)
        y.data<T>()[r * n + i] =
            static_cast<T>(static_cast<double>(from[i]) * by) * scale.data<T>()[i];
    }
  });
  return c.give_as(y, c.value(0).type);
}

// y = x times a + b, for channels of [N, C, ...].
void affine_channels(const Call& c, const Value& x, Value& y, const std::vector<double>& a,
                     const std::vector<double>& b) {
  const int64_t channels = x.dims[1], inner = product(x.dims, 2, x.rank());
  with_real(x.type, [&]<class T>(T) {
    c.parallel(x.dims[0] * channels, static_cast<double>(inner), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const auto factor = static_cast<T>(a[static_cast<size_t>(r % channels)]);
        const auto shift = static_cast<T>(b[static_cast<size_t>(r % channels)]);
        const T* from = x.data<T>() + r * inner;
        T* to = y.data<T>() + r * inner;
        for (int64_t i = 0; i < inner; ++i) to[i] = from[i] * factor + shift;
      }
    });
  });
}

Result<std::vector<double>> per_channel(const Call& c, size_t i, int64_t channels) {
  LOOM_ASSIGN(const Value v, c.as(i, OnnxType::f64));
  if (v.count() != channels) return c.bad(cat("input ", i, " must have a value per channel"));
  return std::vector<double>(v.data<double>(), v.data<double>() + channels);
}

Status give_reals(const Call& c, const std::vector<double>& list, OnnxType type, size_t i) {
  LOOM_ASSIGN(Value v, c.make(OnnxType::f64, {static_cast<int64_t>(list.size())}));
  std::ranges::copy(list, v.data<double>());
  return c.give_as(v, type, i);
}

// Statistics of the batch take the place of the given ones, which move towards them.
Status batch_statistics(const Call& c, const Value& x, std::vector<double>& mean,
                        std::vector<double>& variance) {
  const int64_t channels = x.dims[1], inner = product(x.dims, 2, x.rank());
  const double momentum = c.real("momentum", 0.9F);
  const int64_t n = x.dims[0] * inner;
  std::vector<double> values(static_cast<size_t>(n));
  LOOM_ASSIGN(const Value wide, cast(c.rt.memory, x, OnnxType::f64));
  std::vector<double> running_mean = mean, running_variance = variance;
  for (int64_t ch = 0; ch < channels; ++ch) {
    const auto k = static_cast<size_t>(ch);
    for (int64_t b = 0; b < x.dims[0]; ++b)
      std::copy_n(wide.data<double>() + (b * channels + ch) * inner, inner,
                  values.begin() + b * inner);
    const Moments m = moments_of(values.data(), n);
    running_mean[k] = mean[k] * momentum + m.mean * (1 - momentum);
    running_variance[k] = variance[k] * momentum + m.variance * (1 - momentum);
    mean[k] = m.mean, variance[k] = m.variance;
  }
  LOOM_TRY(give_reals(c, running_mean, c.value(3).type, 1));
  return give_reals(c, running_variance, c.value(4).type, 2);
}

Status batch_norm(const Call& c) {
  if (!is_real(c.value(0).type)) return c.bad("takes floats");
  LOOM_ASSIGN(Value x, c.widened(0));
  if (x.rank() < 2) return c.bad("takes [N, C, ...]");
  if (c.integer("spatial", 1) != 1) return c.not_done("spatial 0");
  const int64_t channels = x.dims[1];
  LOOM_ASSIGN(std::vector<double> scale, per_channel(c, 1, channels));
  LOOM_ASSIGN(std::vector<double> shift, per_channel(c, 2, channels));
  LOOM_ASSIGN(std::vector<double> mean, per_channel(c, 3, channels));
  LOOM_ASSIGN(std::vector<double> variance, per_channel(c, 4, channels));
  if (c.integer("training_mode", 0) != 0) LOOM_TRY(batch_statistics(c, x, mean, variance));
  const double eps = c.real("epsilon", 1e-5F);
  for (size_t k = 0; k < scale.size(); ++k) {
    scale[k] /= std::sqrt(variance[k] + eps);
    shift[k] -= mean[k] * scale[k];
  }
  LOOM_ASSIGN(Value y, c.make(x.type, x.dims));
  affine_channels(c, x, y, scale, shift);
  return c.give_as(y, c.value(0).type);
}

// Each sample's channels in groups; scale and shift per channel, or (opset 18) per group.
Status normalize_groups(const Call& c, int64_t groups) {
  if (!is_real(c.value(0).type)) return c.bad("takes floats");
  LOOM_ASSIGN(const Value x, c.widened(0));
  if (x.rank() < 2 || groups < 1 || x.dims[1] % groups != 0)
    return c.bad("takes [N, C, ...] with C a multiple of the groups");
  const int64_t channels = x.dims[1], inner = product(x.dims, 2, x.rank());
  const bool by_group = c.value(1).count() == groups && groups != channels;
  LOOM_ASSIGN(const std::vector<double> scale, per_channel(c, 1, by_group ? groups : channels));
  LOOM_ASSIGN(const std::vector<double> shift, per_channel(c, 2, by_group ? groups : channels));
  const double eps = c.real("epsilon", 1e-5F);
  LOOM_ASSIGN(Value y, c.make(x.type, x.dims));
  const int64_t each = channels / groups, n = each * inner;
  with_real(x.type, [&]<class T>(T) {
    c.parallel(n == 0 ? 0 : x.dims[0] * groups, 3.0 * static_cast<double>(n),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) {
                   const T* from = x.data<T>() + r * n;
                   const Moments m = moments_of(from, n);
                   const double by = 1 / std::sqrt(m.variance + eps);
                   for (int64_t i = 0; i < n; ++i) {
                     const int64_t ch = r % groups * each + i / inner;
                     const auto k = static_cast<size_t>(by_group ? r % groups : ch);
                     const double v = (static_cast<double>(from[i]) - m.mean) * by;
                     y.data<T>()[r * n + i] = static_cast<T>(v * scale[k] + shift[k]);
                   }
                 }
               });
  });
  return c.give_as(y, c.value(0).type);
}
Status group_norm(const Call& c) {
  return normalize_groups(c, c.integer("num_groups", 0));
}
Status instance_norm(const Call& c) {
  return normalize_groups(c, c.value(0).rank() > 1 ? c.value(0).dims[1] : 0);
}

// x / (bias + alpha / size * sum of squares of `size` channels around)^beta.
Status lrn(const Call& c) {
  if (!is_real(c.value(0).type) || c.value(0).rank() < 2) return c.bad("takes floats [N, C, ...]");
  LOOM_ASSIGN(const Value x, c.widened(0));
  const int64_t size = c.integer("size", 0), channels = x.dims[1];
  if (size < 1) return c.bad("size must be 1 or more");
  const double alpha = c.real("alpha", 1e-4F), beta = c.real("beta", 0.75F);
  const double bias = c.real("bias", 1), share = alpha / static_cast<double>(size);
  const int64_t inner = product(x.dims, 2, x.rank());
  LOOM_ASSIGN(Value y, c.make(x.type, x.dims));
  with_real(x.type, [&]<class T>(T) {
    c.parallel(
        x.dims[0] * channels, 20.0 * static_cast<double>(inner), [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            const int64_t ch = r % channels, sample = r - ch;
            const int64_t low = std::max<int64_t>(0, ch - (size - 1) / 2);
            const int64_t high = std::min(channels - 1, ch + size / 2);
            for (int64_t i = 0; i < inner; ++i) {
              double sum = 0;
              for (int64_t k = low; k <= high; ++k) {
                const auto v = static_cast<double>(x.data<T>()[(sample + k) * inner + i]);
                sum += v * v;
              }
              y.data<T>()[r * inner + i] = static_cast<T>(
                  static_cast<double>(x.data<T>()[r * inner + i]) / pow(bias + share * sum, beta));
            }
          }
        });
  });
  return c.give_as(y, c.value(0).type);
}

Status lp_normalization(const Call& c) {
  if (!is_real(c.value(0).type)) return c.bad("takes floats");
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(const int axis, c.axis(c.integer("axis", -1), x.rank()));
  const int64_t p = c.integer("p", 2);
  if (p != 1 && p != 2) return c.bad("p must be 1 or 2");
  std::vector<int> order;
  LOOM_ASSIGN(const Value moved, axes_last(c, x, {axis}, order));
  const int64_t n = x.dims[static_cast<size_t>(axis)];
  LOOM_ASSIGN(Value y, c.make(x.type, moved.dims));
  with_real(x.type, [&]<class T>(T) {
    for (int64_t r = 0; r < y.count(); r += n) {
      const double sum = folded_sum<double>(moved.data<T>() + r, n,
                                            [=](double v) { return p == 1 ? std::abs(v) : v * v; });
      const double norm = p == 1 ? sum : std::sqrt(sum);
      for (int64_t i = r; i < r + n; ++i)
        y.data<T>()[i] =
            norm == 0 ? T{} : static_cast<T>(static_cast<double>(moved.data<T>()[i]) / norm);
    }
  });
  LOOM_ASSIGN(const Value back, axes_back(c, y, order));
  return c.give_as(back, c.value(0).type);
}

Status mean_variance(const Call& c) {
  if (!is_real(c.value(0).type)) return c.bad("takes floats");
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(const std::vector<int> axes,
              c.axes(c.given("axes") ? c.list("axes") : Dims{0, 2, 3}, x.rank()));
  std::vector<int> order;
  LOOM_ASSIGN(const Value moved, axes_last(c, x, axes, order));
  int64_t n = 1;
  for (const int a : axes) n *= x.dims[static_cast<size_t>(a)];
  LOOM_ASSIGN(Value y, c.make(x.type, moved.dims));
  with_real(x.type, [&]<class T>(T) {
    for (int64_t r = 0; r < y.count(); r += n) {
      const Moments m = moments_of(moved.data<T>() + r, n);
      const double by = 1 / (std::sqrt(m.variance) + 1e-9);
      for (int64_t i = r; i < r + n; ++i)
        y.data<T>()[i] = static_cast<T>((static_cast<double>(moved.data<T>()[i]) - m.mean) * by);
    }
  });
  LOOM_ASSIGN(const Value back, axes_back(c, y, order));
  return c.give_as(back, c.value(0).type);
}

constexpr Operator kNorms[] = {
    {"", "LayerNormalization", layer_norm, {}},
    {"", "RMSNormalization", rms_norm, {}},
    {"", "BatchNormalization", batch_norm, {}},
    {"", "GroupNormalization", group_norm, "aaa epsilon num_groups stash_type"},
    {"", "InstanceNormalization", instance_norm, {}},
    {"", "LRN", lrn, {}},
    {"", "LpNormalization", lp_normalization, "a axis p"},
    {"", "MeanVarianceNormalization", mean_variance, "a axes"},
};

}  // namespace

std::span<const Operator> norm_operators() {
  return kNorms;
}

}  // namespace loom::core::evaluate
