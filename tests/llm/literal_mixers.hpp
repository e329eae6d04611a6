// Selective scans and gated convolutions in double precision: literal, step by step from the first
// row. A part of LiteralDecoder (decoder_forms.hpp).
#pragma once

#include <cmath>
#include <vector>

#include "base/numbers/rng.hpp"
#include "llm/decoder_config.hpp"
#include "llm/roles.hpp"

namespace loom::core::test {

// Source has the parameters of a block by role: of(role, block).
template <class Source>
class LiteralMixer {
 public:
  using Row = std::vector<double>;
  LiteralMixer(const Source& source, int64_t block)
      : s_(source), c_(source.config), scan_(source.config.scan), block_(block) {}

  std::vector<Row> run(const std::vector<Row>& x) const {
    return c_.layer(block_).mixer == BlockMixer::conv ? conv(x) : scan(x);
  }

 private:
  using Role = DecoderRole;

  double at(Role role, size_t i) const { return static_cast<double>(s_.of(role, block_)[i]); }
  bool has(Role role) const { return !s_.of(role, block_).empty(); }

  // Without a bias if the matrix is named twice.
  Row linear(const Row& x, Role matrix, Role bias) const {
    Row y(s_.of(matrix, block_).size() / x.size());
    for (size_t r = 0; r < y.size(); ++r) {
      if (bias != matrix && has(bias)) y[r] = at(bias, r);
      for (size_t i = 0; i < x.size(); ++i) y[r] += at(matrix, r * x.size() + i) * x[i];
    }
    return y;
  }
  static Row part(const Row& x, size_t first, size_t count) {
    return Row(x.begin() + static_cast<std::ptrdiff_t>(first),
               x.begin() + static_cast<std::ptrdiff_t>(first + count));
  }
  static double silu(double v) { return v / (1 + std::exp(-v)); }
  double activated(double v) const {
    constexpr double kPi = 3.14159265358979323846;
    const std::string& name = c_.hidden_act;
    if (name == "relu") return std::max(v, 0.0);
    if (name == "relu2") return std::max(v, 0.0) * std::max(v, 0.0);
    if (name == "gelu") return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0)));
    if (name == "silu") return silu(v);
    return 0.5 * v * (1 + std::tanh(std::sqrt(2 / kPi) * (v + 0.044715 * v * v * v)));
  }

  // The causal convolution of rows with a kernel for each channel.
  std::vector<Row> past(const std::vector<Row>& x, size_t kernel) const {
    std::vector<Row> y;
    for (size_t t = 0; t < x.size(); ++t) {
      y.emplace_back(x[t].size());
      for (size_t c = 0; c < x[t].size(); ++c) {
        if (has(Role::mixer_conv_bias)) y[t][c] = at(Role::mixer_conv_bias, c);
        for (size_t k = 0; k < kernel; ++k) {
          if (t + k + 1 >= kernel)
            y[t][c] += at(Role::mixer_conv, c * kernel + k) * x[t + k + 1 - kernel][c];
        }
      }
    }
    return y;
  }

  std::vector<Row> conv(const std::vector<Row>& x) const {
    std::vector<Row> in, gated, out;
    const size_t width = x.front().size();
    for (const Row& row : x) {
      in.push_back(linear(row, Role::mixer_in, Role::mixer_in_bias));
      gated.emplace_back(width);
      for (size_t i = 0; i < width; ++i) gated.back()[i] = in.back()[i] * in.back()[2 * width + i];
    }
    std::vector<Row> y = past(gated, static_cast<size_t>(c_.conv.kernel));
    for (size_t t = 0; t < x.size(); ++t) {
      for (size_t i = 0; i < width; ++i) y[t][i] *= in[t][width + i];
      out.push_back(linear(y[t], Role::mixer_out, Role::mixer_out_bias));
    }
    return out;
  }

  // Divides each of `parts` by its root mean square, and multiplies with the gain if there is one.
  void norm(Row& x, Role gain, double eps, size_t parts) const {
    const size_t n = x.size() / parts;
    for (size_t from = 0; from < x.size(); from += n) {
      double square = 0;
      for (size_t i = from; i < from + n; ++i) square += x[i] * x[i] / static_cast<double>(n);
      for (size_t i = from; i < from + n; ++i)
        x[i] = x[i] / std::sqrt(square + eps) * (has(gain) ? at(gain, i) : 1.0);
    }
  }

  struct Inputs {
    std::vector<Row> x, z, step, b, c;
  };

  Inputs inputs(const std::vector<Row>& u) const {
    Inputs in;
    const auto inner = static_cast<size_t>(scan_.inner), n = static_cast<size_t>(scan_.state);
    const bool heads = scan_.heads > 0;
    const size_t mixed = static_cast<size_t>(scan_.groups) * n;
    const auto scaled = [&](Row row, size_t which) {
      for (double& v : row) v *= scan_.scales[which];
      return row;
    };
    std::vector<Row> convolved;
    for (const Row& row : u) {
      const Row all = linear(scaled(row, 0), Role::mixer_in, Role::mixer_in_bias);
      in.z.push_back(scaled(part(all, heads ? 0 : inner, inner), 1));
      convolved.push_back(scaled(part(all, heads ? inner : 0, inner), 2));
      if (!heads) continue;
      for (const size_t which : {size_t{3}, size_t{4}}) {
        const Row more = scaled(part(all, 2 * inner + (which - 3) * mixed, mixed), which);
        convolved.back().insert(convolved.back().end(), more.begin(), more.end());
      }
      in.step.push_back(
          scaled(part(all, 2 * inner + 2 * mixed, static_cast<size_t>(scan_.heads)), 5));
      for (size_t i = 0; i < in.step.back().size(); ++i)
        in.step.back()[i] += at(Role::mixer_step_bias, i);
    }
    for (Row& row : past(convolved, static_cast<size_t>(scan_.kernel))) {
      for (double& v : row) v = activated(v);
      in.x.push_back(part(row, 0, inner));
      if (heads) {
        in.b.push_back(part(row, inner, mixed));
        in.c.push_back(part(row, inner + mixed, mixed));
        continue;
      }
      const Row chosen = linear(row, Role::mixer_select, Role::mixer_select);
      const size_t rank = chosen.size() - 2 * n;
      Row step = part(chosen, 0, rank);
      in.b.push_back(part(chosen, rank, n));
      in.c.push_back(part(chosen, rank + n, n));
      if (scan_.step_norm != "none") {
        norm(step, Role::mixer_step_norm, scan_.step_norm_eps, 1);
        norm(in.b.back(), Role::mixer_b_norm, scan_.step_norm_eps, 1);
        norm(in.c.back(), Role::mixer_c_norm, scan_.step_norm_eps, 1);
      }
      in.step.push_back(linear(step, Role::mixer_step, Role::mixer_step_bias));
    }
    return in;
  }

  std::vector<Row> scan(const std::vector<Row>& u) const {
    const Inputs in = inputs(u);
    const auto inner = static_cast<size_t>(scan_.inner), n = static_cast<size_t>(scan_.state);
    const size_t heads = scan_.heads > 0 ? static_cast<size_t>(scan_.heads) : inner;
    const size_t groups = static_cast<size_t>(scan_.groups);
    std::vector<double> h(inner * n);
    std::vector<Row> out;
    for (size_t t = 0; t < u.size(); ++t) {
      Row y(inner);
      for (size_t c = 0; c < inner; ++c) {
        const size_t head = c / (inner / heads), group = head / (heads / groups);
        const double step = std::log1p(std::exp(in.step[t][head]));
        for (size_t i = 0; i < n; ++i) {
          const double log = at(Role::mixer_rates, scan_.heads > 0 ? head : c * n + i);
          double& state = h[c * n + i];
          state =
              std::exp(-step * std::exp(log)) * state + step * in.b[t][group * n + i] * in.x[t][c];
          y[c] += in.c[t][group * n + i] * state;
        }
        y[c] += at(Role::mixer_through, head) * in.x[t][c];
      }
      if (scan_.norm == "before_gate") norm(y, Role::mixer_norm, c_.rms_norm_eps, groups);
      for (size_t c = 0; c < inner; ++c) y[c] *= silu(in.z[t][c]);
      if (scan_.norm == "gated") norm(y, Role::mixer_norm, c_.rms_norm_eps, groups);
      out.push_back(linear(y, Role::mixer_out, Role::mixer_out_bias));
      for (double& v : out.back()) v *= scan_.scales[6];
    }
    return out;
  }

  const Source& s_;
  const DecoderConfig& c_;
  const DecoderScan& scan_;
  int64_t block_;
};

// Scans or convolutions in some blocks of a serial decoder, and blocks without an MLP.
inline void add_mixers(DecoderConfig& c, uint64_t seed) {
  const Rng rng(seed, 81);
  uint64_t drawn = 0;
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(rng.bits(drawn++) % static_cast<uint64_t>(n));
  };
  if (c.residual != ResidualKind::serial || below(2) == 0) return;
  c.layers.resize(static_cast<size_t>(c.num_layers));
  const BlockMixer mixer = below(3) == 0 ? BlockMixer::conv : BlockMixer::scan;
  for (DecoderLayer& layer : c.layers) {
    if (below(4) > 0) layer.mixer = mixer;
    layer.mlp = below(3) > 0;
  }
  c.conv = {1 + below(4), below(2) == 0};
  DecoderScan& s = c.scan;
  s.groups = below(2) == 0 ? 1 : 2;
  s.heads = below(2) == 0 ? 0 : s.groups * (1 + below(3));
  if (s.heads == 0) s.groups = 1;
  s.inner = s.heads == 0 ? 1 + below(20) : s.heads * (1 + below(5)) * (s.groups == 2 ? 2 : 1);
  s.state = 1 + below(18);
  s.rank = below(3);
  s.kernel = 1 + below(4);
  s.bias = below(2) == 0;
  s.conv_bias = below(2) == 0;
  const char* norms[] = {"none", "gated", "before_gate"};
  s.norm = norms[below(3)];
  const char* steps[] = {"none", "plain", "weighted"};
  s.step_norm = steps[below(3)];
  if (below(3) == 0) s.scales = {1.5, 0.7, 1.25, 0.5, 2.0, 0.75, 0.6};
}

}  // namespace loom::core::test
