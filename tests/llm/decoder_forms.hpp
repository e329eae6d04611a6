// Decoders of any form with random weights, and a second implementation in double precision:
// literal, row by row, without a cache. It shares with the engine only the description of the model
// and the roles of its parameters.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "base/numbers/rng.hpp"
#include "llm/decoder.hpp"
#include "llm/decoder_role.hpp"
#include "llm/literal_mixers.hpp"
#include "llm/stories.hpp"

namespace loom::core::test {

// Weights of every parameter, biases and gains too.
class FormSource : public ModelSource {
 public:
  FormSource(const DecoderConfig& shape, uint64_t seed) {
    path = "random forms";
    config = shape;
    const auto grid = decoder_grid(config);
    EXPECT_TRUE(grid.ok()) << grid.error().str();
    uint64_t stream = 0;
    each_decoder_param(*grid, [&](const Param& param) {
      const DecoderPiece piece = decoder_piece(param, config);
      const Rng rng(seed, stream++);
      std::vector<float> values(static_cast<size_t>(param.spec.shape.count()));
      const bool matrix = param.spec.matrix();
      const float spread =
          matrix ? 1.7f / std::sqrt(static_cast<float>(param.spec.shape[1])) : 0.4f;
      const float centre = param.spec.init == Init::ones ? 1.0f : 0.0f;
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = centre + spread * (2 * rng.uniform(i) - 1);
      values_.emplace(std::pair(piece.block, piece.role), std::move(values));
    });
  }

  Result<SourceWeight> weight(const Param& param) const override {
    const DecoderPiece piece = decoder_piece(param, config);
    const std::vector<float>& values = values_.at({piece.block, piece.role});
    const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
    SourceWeight weight;
    weight.rows = [&values, cols](int64_t first, int64_t count, float* out) -> Status {
      std::copy_n(values.begin() + first * cols, count * cols, out);
      return {};
    };
    return weight;
  }

  // Empty if the model has no such parameter.
  const std::vector<float>& of(DecoderRole role, int64_t block = -1) const {
    static const std::vector<float> none;
    const auto found = values_.find({block, role});
    return found == values_.end() ? none : found->second;
  }

 private:
  std::map<std::pair<int64_t, DecoderRole>, std::vector<float>> values_;
};

using Row = std::vector<double>;

class LiteralDecoder {
 public:
  explicit LiteralDecoder(const FormSource& source) : s_(source), c_(source.config) {}

  // Logits after every token.
  std::vector<Row> logits(std::span<const TokenId> ids) const {
    std::vector<Row> x;
    for (size_t t = 0; t < ids.size(); ++t) x.push_back(embedded(ids[t], t));
    for (int64_t b = 0; b < c_.num_layers; ++b) add_block(b, x);
    std::vector<Row> out;
    for (const Row& row : x) {
      const Row normed = norm(row, DecoderRole::output_norm, DecoderRole::output_norm_bias, -1);
      const bool tied = c_.tie_word_embeddings;
      out.push_back(linear(normed, tied ? DecoderRole::token_embedding : DecoderRole::head,
                           DecoderRole::head_bias, -1));
      for (double& logit : out.back()) logit *= c_.logit_scale;
    }
    return out;
  }

 private:
  using Role = DecoderRole;

  Row embedded(TokenId id, size_t position) const {
    const auto width = static_cast<size_t>(c_.hidden_size);
    const std::vector<float>&table = s_.of(Role::token_embedding),
          &learned = s_.of(Role::positions);
    Row row(width);
    for (size_t i = 0; i < width; ++i) {
      row[i] = static_cast<double>(table[static_cast<size_t>(id) * width + i]);
      if (!learned.empty()) row[i] += static_cast<double>(learned[position * width + i]);
    }
    return row;
  }

  Row norm(const Row& x, Role gain, Role bias, int64_t block) const {
    const auto n = static_cast<double>(x.size());
    double mean = 0, square = 0;
    for (const double v : x) mean += c_.layer_norms ? v / n : 0.0;
    for (const double v : x) square += (v - mean) * (v - mean) / n;
    Row y(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      y[i] = (x[i] - mean) / std::sqrt(square + c_.rms_norm_eps) *
             (s_.of(gain, block).empty() ? 1.0 : static_cast<double>(s_.of(gain, block)[i]));
      if (c_.layer_norms && !s_.of(bias, block).empty())
        y[i] += static_cast<double>(s_.of(bias, block)[i]);
    }
    return y;
  }

  Row linear(const Row& x, Role matrix, Role bias, int64_t block) const {
    const std::vector<float>&w = s_.of(matrix, block), &b = s_.of(bias, block);
    Row y(w.size() / x.size());
    for (size_t r = 0; r < y.size(); ++r) {
      if (!b.empty()) y[r] = static_cast<double>(b[r]);
      for (size_t i = 0; i < x.size(); ++i) y[r] += static_cast<double>(w[r * x.size() + i]) * x[i];
    }
    return y;
  }

  double activated(double v) const {
    constexpr double kPi = 3.14159265358979323846;
    const std::string& name = c_.hidden_act;
    if (name == "relu") return std::max(v, 0.0);
    if (name == "relu2") return std::max(v, 0.0) * std::max(v, 0.0);
    if (name == "gelu") return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0)));
    if (name == "silu") return v / (1 + std::exp(-v));
    return 0.5 * v * (1 + std::tanh(std::sqrt(2 / kPi) * (v + 0.044715 * v * v * v)));
  }

  Row mlp(const Row& x, int64_t block) const {
    if (c_.has_experts(block)) return experts(x, block);
    Row up = linear(x, Role::up, Role::up_bias, block);
    const Row gate = c_.gated_mlp ? linear(x, Role::gate, Role::gate_bias, block) : Row();
    for (size_t i = 0; i < up.size(); ++i)
      up[i] = c_.gated_mlp ? activated(gate[i]) * up[i] : activated(up[i]);
    return linear(up, Role::down, Role::down_bias, block);
  }

  // x times rows [first, first + count) of a matrix.
  Row part(const Row& x, Role matrix, int64_t block, int64_t first, int64_t count) const {
    const std::vector<float>& w = s_.of(matrix, block);
    Row y(static_cast<size_t>(count));
    for (size_t r = 0; r < y.size(); ++r) {
      for (size_t i = 0; i < x.size(); ++i)
        y[r] += static_cast<double>(w[(static_cast<size_t>(first) + r) * x.size() + i]) * x[i];
    }
    return y;
  }

  Row gated(const Row& x, const Role (&roles)[3], int64_t block, int64_t expert,
            int64_t inner) const {
    const Row gate = part(x, roles[0], block, expert * inner, inner);
    Row up = part(x, roles[1], block, expert * inner, inner);
    for (size_t i = 0; i < up.size(); ++i) up[i] *= activated(gate[i]);
    return part(up, roles[2], block, expert * c_.hidden_size, c_.hidden_size);
  }

  // Every expert, with the weight 0 if it is not chosen.
  Row experts(const Row& x, int64_t block) const {
    const DecoderExperts& e = c_.experts;
    Row scores = part(x, Role::router, block, 0, e.count);
    const bool sigmoid = e.score == RouterScore::sigmoid;
    double total = 0;
    for (double& s : scores) total += s = sigmoid ? 1 / (1 + std::exp(-s)) : std::exp(s);
    Row ranked = scores;
    for (size_t i = 0; i < scores.size(); ++i) {
      if (!sigmoid) ranked[i] = scores[i] /= total;
      if (e.choice_bias) ranked[i] += static_cast<double>(s_.of(Role::choice_bias, block)[i]);
    }
    Row sorted = ranked;
    std::sort(sorted.rbegin(), sorted.rend());
    const double least = sorted[static_cast<size_t>(e.chosen) - 1];
    double sum = 0;
    for (size_t i = 0; i < scores.size(); ++i) sum += ranked[i] >= least ? scores[i] : 0.0;
    Row y(x.size());
    const Role routed[] = {Role::expert_gate, Role::expert_up, Role::expert_down};
    for (int64_t i = 0; i < e.count; ++i) {
      const auto at = static_cast<size_t>(i);
      if (ranked[at] < least) continue;
      const double weight = e.scale * scores[at] / (e.normalize ? sum : 1.0);
      const Row out = gated(x, routed, block, i, e.inner);
      for (size_t k = 0; k < y.size(); ++k) y[k] += weight * out[k];
    }
    if (e.shared_inner == 0) return y;
    const Role shared[] = {Role::shared_gate, Role::shared_up, Role::shared_down};
    const Row out = gated(x, shared, block, 0, e.shared_inner);
    double share = 1;
    if (e.shared_gate) share = 1 / (1 + std::exp(-part(x, Role::shared_router, block, 0, 1)[0]));
    for (size_t k = 0; k < y.size(); ++k) y[k] += share * out[k];
    return y;
  }

  // The angle of pair j of a head per position, in a session of max_positions.
  double turn_of(size_t j, double width) const {
    const double factor = c_.rope_factor;
    const auto original = static_cast<double>(c_.rope_original_max_positions);
    const auto length = static_cast<double>(c_.max_positions);
    double base = c_.rope_theta;
    if (c_.rope == RopeKind::dynamic && length > original)
      base *= std::pow(factor * length / original - (factor - 1), width / (width - 2));
    const double plain = std::pow(base, -2.0 * static_cast<double>(j) / width);
    if (c_.rope == RopeKind::linear) return plain / factor;
    if (c_.rope == RopeKind::longrope)
      return plain / (length > original ? c_.rope_long : c_.rope_short)[j];
    if (c_.rope != RopeKind::yarn) return plain;
    constexpr double kPi = 3.14159265358979323846;
    const auto index = [&](double turns) {
      return width * std::log(original / (turns * 2 * kPi)) / (2 * std::log(c_.rope_theta));
    };
    double low = index(c_.rope_beta_fast), high = index(c_.rope_beta_slow);
    if (c_.rope_truncate) low = std::floor(low), high = std::ceil(high);
    low = std::max(low, 0.0), high = std::min(high, width - 1);
    if (low == high) high += 0.001;
    const double ramp = std::clamp((static_cast<double>(j) - low) / (high - low), 0.0, 1.0);
    return plain / factor * ramp + plain * (1 - ramp);
  }

  // Rotates the first values of every head, in pairs half of them apart.
  void turn(Row& x, size_t position) const {
    if (c_.rope == RopeKind::none) return;
    const auto dim = static_cast<size_t>(c_.head_dim);
    const size_t width = c_.rope_width > 0 ? static_cast<size_t>(c_.rope_width) : dim;
    const double scale = c_.rope_attention;
    for (size_t head = 0; head < x.size(); head += dim) {
      for (size_t j = 0; j < width / 2; ++j) {
        const double angle = static_cast<double>(position) * turn_of(j, static_cast<double>(width));
        double &a = x[head + j], &b = x[head + j + width / 2];
        const double rotated = scale * (a * std::cos(angle) - b * std::sin(angle));
        b = scale * (b * std::cos(angle) + a * std::sin(angle));
        a = rotated;
      }
    }
  }

  // The norm of queries or keys: parts of a row, each with its mean and mean square.
  void norm_heads(Row& x, Role gain, Role bias, int64_t block) const {
    using enum QkNormForm;
    const QkNormForm form = c_.qk_norm_form;
    const auto dim = static_cast<size_t>(c_.head_dim);
    const size_t part = form == rms_wide ? x.size() : dim;
    const std::vector<float>&g = s_.of(gain, block), &b = s_.of(bias, block);
    for (size_t from = 0; from < x.size(); from += part) {
      double mean = 0, square = 0;
      const bool centred = form == layer || form == layer_shared;
      for (size_t i = 0; i < part && centred; ++i) mean += x[from + i] / static_cast<double>(part);
      for (size_t i = 0; i < part; ++i)
        square += (x[from + i] - mean) * (x[from + i] - mean) / static_cast<double>(part);
      for (size_t i = 0; i < part; ++i) {
        double& v = x[from + i];
        v = (v - mean) / std::sqrt(square + c_.rms_norm_eps);
        if (!g.empty()) v *= static_cast<double>(g[(from + i) % g.size()]);
        if (!b.empty()) v += static_cast<double>(b[(from + i) % b.size()]);
      }
    }
  }

  // A projection with its limits, and for queries and keys norm and positions.
  Row projected(const Row& x, Role matrix, Role bias, int64_t block) const {
    Row y = linear(x, matrix, bias, block);
    for (double& v : y)
      if (c_.clip_qkv > 0) v = std::clamp(v, -c_.clip_qkv, c_.clip_qkv);
    return y;
  }
  void add_positions(Row& x, bool query, size_t position, int64_t block) const {
    const Role gain = query ? Role::q_norm : Role::k_norm;
    const Role bias = query ? Role::q_norm_bias : Role::k_norm_bias;
    if (c_.qk_norm && !c_.qk_norm_after_rope) norm_heads(x, gain, bias, block);
    if (c_.layer(block).rope) turn(x, position);
    if (c_.qk_norm && c_.qk_norm_after_rope) norm_heads(x, gain, bias, block);
  }

  // The slope of a head: those of a power of 2 of heads, then every second one of twice as many.
  double slope(size_t head) const {
    size_t n = 1;
    while (2 * n <= static_cast<size_t>(c_.num_heads)) n *= 2;
    const double step = head < n ? static_cast<double>(head + 1) / static_cast<double>(n)
                                 : (static_cast<double>(head - n) + 0.5) / static_cast<double>(n);
    return c_.alibi > 0 ? c_.alibi_scale * std::pow(2.0, -c_.alibi * step) : 0.0;
  }

  // The values of head `h` at position t.
  void mix(size_t t, size_t h, const std::vector<Row>& q, const std::vector<Row>& k,
           const std::vector<Row>& v, int64_t block, Row& mixed) const {
    const auto dim = static_cast<size_t>(c_.head_dim);
    const size_t own = h * dim,
                 group = h / static_cast<size_t>(c_.num_heads / c_.num_kv_heads) * dim;
    const auto window = static_cast<size_t>(c_.layer(block).window);
    const size_t first = window > 0 && t + 1 > window ? t + 1 - window : 0;
    Row weights(t + 1);
    double total = c_.sinks ? std::exp(static_cast<double>(s_.of(Role::sinks, block)[h])) : 0.0;
    for (size_t j = first; j <= t; ++j) {
      double score = 0;
      for (size_t i = 0; i < dim; ++i) score += q[t][own + i] * k[j][group + i];
      score = score / std::sqrt(static_cast<double>(dim)) - slope(h) * static_cast<double>(t - j);
      total += weights[j] = std::exp(score);
    }
    for (size_t j = first; j <= t; ++j) {
      for (size_t i = 0; i < dim; ++i) mixed[own + i] += weights[j] / total * v[j][group + i];
    }
  }

  std::vector<Row> attention(const std::vector<Row>& x, int64_t block) const {
    std::vector<Row> q, k, v, out;
    for (size_t t = 0; t < x.size(); ++t) {
      q.push_back(projected(x[t], Role::q, Role::q_bias, block));
      k.push_back(projected(x[t], Role::k, Role::k_bias, block));
      v.push_back(projected(x[t], Role::v, Role::v_bias, block));
      add_positions(q[t], true, t, block);
      add_positions(k[t], false, t, block);
    }
    for (size_t t = 0; t < x.size(); ++t) {
      Row mixed(q[t].size());
      for (size_t h = 0; h < static_cast<size_t>(c_.num_heads); ++h)
        mix(t, h, q, k, v, block, mixed);
      out.push_back(linear(mixed, Role::o, Role::o_bias, block));
    }
    return out;
  }

  void add_block(int64_t block, std::vector<Row>& x) const {
    const auto add = [this](Row& to, const Row& what) {
      for (size_t i = 0; i < to.size(); ++i) to[i] += c_.residual_scale * what[i];
    };
    const auto before_part = [&](const Row& row, Role gain, Role bias) {
      return c_.pre_norms ? norm(row, gain, bias, block) : row;
    };
    const auto after_part = [&](const Row& row, Role gain) {
      return c_.post_norms ? norm(row, gain, gain, block) : row;
    };
    const DecoderLayer own = c_.layer(block);
    std::vector<Row> normed;
    for (const Row& row : x)
      normed.push_back(before_part(row, Role::attention_norm, Role::attention_norm_bias));
    const std::vector<Row> attended = own.mixer == BlockMixer::attention
                                          ? attention(normed, block)
                                          : LiteralMixer(s_, block).run(normed);
    for (size_t t = 0; t < x.size(); ++t) {
      const Row before = x[t];
      add(x[t], after_part(attended[t], Role::attention_post_norm));
      if (!own.mlp) continue;
      const Row& stream = c_.residual == ResidualKind::serial ? x[t] : before;
      const bool shared = c_.residual == ResidualKind::shared_norm;
      const Row in = shared ? normed[t] : before_part(stream, Role::mlp_norm, Role::mlp_norm_bias);
      add(x[t], after_part(mlp(in, block), Role::mlp_post_norm));
    }
  }

  const FormSource& s_;
  const DecoderConfig& c_;
};

// Any of the scalings of rotary positions.
inline void add_scaling(DecoderConfig& c, uint64_t seed) {
  const Rng rng(seed, 80);
  const RopeKind kinds[] = {RopeKind::standard, RopeKind::linear, RopeKind::yarn, RopeKind::dynamic,
                            RopeKind::longrope};
  c.rope = kinds[rng.bits(0) % std::size(kinds)];
  const int64_t width = c.rope_width > 0 ? c.rope_width : c.head_dim;
  if (c.rope == RopeKind::dynamic && width <= 2) c.rope = RopeKind::linear;
  c.rope_factor = 1.5 + 3 * static_cast<double>(rng.uniform(1));
  c.rope_original_max_positions = rng.bits(2) % 2 == 0 ? 8 : 1000;
  if (c.rope == RopeKind::yarn || c.rope == RopeKind::longrope) c.rope_attention = 1.2;
  if (c.rope == RopeKind::yarn) c.rope_truncate = rng.bits(3) % 2 == 0;
  for (int64_t j = 0; c.rope == RopeKind::longrope && j < width / 2; ++j) {
    c.rope_short.push_back(1 + 0.125 * static_cast<double>(j));
    c.rope_long.push_back(2 + 0.5 * static_cast<double>(j));
  }
}

// Any of the options of attention.
inline void add_attention_options(DecoderConfig& c, uint64_t seed) {
  const Rng rng(seed, 79);
  uint64_t drawn = 0;
  const auto below = [&](uint64_t n) { return rng.bits(drawn++) % n; };
  c.qk_norm = below(2) == 0;
  if (c.qk_norm) c.qk_norm_form = static_cast<QkNormForm>(below(std::size(kQkNormForms)));
  c.qk_norm_after_rope = c.qk_norm && below(2) == 0;
  if (below(3) == 0) c.clip_qkv = 0.1 + 0.2 * static_cast<double>(below(4));
  if (c.rope == RopeKind::none || below(4) == 0) {
    if (below(2) == 0) c.alibi = below(2) == 0 ? 8.0 : 5.0;
    if (below(2) == 0) c.alibi_scale = 0.5;
  }
  c.sinks = below(3) == 0;
  if (below(3) == 0) c.head_dim = 16;  // kernels have a body for whole vectors
  if (below(3) > 0) return;
  c.layers.resize(static_cast<size_t>(c.num_layers));
  for (DecoderLayer& layer : c.layers) {
    layer.window = static_cast<int64_t>(below(6));
    layer.rope = below(3) > 0;
  }
}

// Any of the forms: kinds of norms, positions, MLPs, residuals and heads, of odd sizes.
inline DecoderConfig random_form(uint64_t seed) {
  const Rng rng(seed, 77);
  uint64_t drawn = 0;
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(rng.bits(drawn++) % static_cast<uint64_t>(n));
  };
  DecoderConfig c;
  c.num_layers = 1 + below(3);
  c.num_kv_heads = 1 + below(3);
  c.num_heads = c.num_kv_heads * (1 + below(3));
  c.hidden_size = 3 + below(21);
  c.intermediate_size = 1 + below(40);
  c.vocab_size = 5 + below(40);
  c.max_positions = 12 + below(20);
  c.rms_norm_eps = below(2) == 0 ? 1e-5 : 1e-3;
  c.layer_norms = below(3) > 0;
  c.attention_bias = below(2) == 0;
  c.attention_out_bias = below(2) == 0;
  c.mlp_bias = below(2) == 0;
  c.tie_word_embeddings = below(2) == 0;
  c.head_bias = !c.tie_word_embeddings && below(2) == 0;
  const char* acts[] = {"gelu", "gelu_new", "relu", "silu", "relu2", "gelu_pytorch_tanh"};
  c.hidden_act = acts[below(6)];
  const ResidualKind kinds[] = {ResidualKind::serial, ResidualKind::parallel,
                                ResidualKind::shared_norm};
  c.residual = kinds[below(3)];
  const bool serial = c.residual == ResidualKind::serial;
  c.gated_mlp = below(3) == 0;
  c.norm_weights = below(4) > 0;
  c.norm_biases = below(3) > 0;
  c.post_norms = serial && !c.layer_norms && below(2) == 0;
  c.pre_norms = !c.post_norms || below(2) == 0;
  c.residual_scale = serial && below(3) == 0 ? 0.35 : 1.0;
  c.logit_scale = below(3) == 0 ? 0.6 : 1.0;
  const int64_t positions = below(4);  // learned, rotary, rotary in part, both
  c.learned_positions = positions == 0 || positions == 3 ? c.max_positions : 0;
  c.rope = positions == 0 ? RopeKind::none : RopeKind::standard;
  c.head_dim = positions == 0 ? 1 + below(9) : 2 + 2 * below(5);
  if (positions == 2) c.rope_width = 2 + 2 * below(c.head_dim / 2);
  if (c.gated_mlp && c.residual == ResidualKind::serial && !c.sub_norms && below(2) == 0) {
    DecoderExperts& e = c.experts;
    e.count = 1 + below(9);
    e.chosen = 1 + below(e.count);
    e.inner = 1 + below(30);
    if (below(2) == 0) e.score = RouterScore::sigmoid;
    e.choice_bias = below(2) == 0;
    e.normalize = below(2) == 0;
    e.scale = below(2) == 0 ? 1.0 : 1.5;
    e.shared_inner = below(2) * (1 + below(20));
    e.shared_gate = e.shared_inner > 0 && below(2) == 0;
    c.layers.resize(static_cast<size_t>(c.num_layers));
    for (DecoderLayer& layer : c.layers) layer.dense = below(4) == 0;
  }
  add_attention_options(c, seed);
  if (c.rope != RopeKind::none) add_scaling(c, seed);
  add_mixers(c, seed);
  return c;
}

inline std::vector<TokenId> random_ids(const DecoderConfig& c, uint64_t seed, int64_t count) {
  const Rng rng(seed, 78);
  std::vector<TokenId> ids;
  for (int64_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<TokenId>(rng.bits(static_cast<uint64_t>(i)) %
                                       static_cast<uint64_t>(c.vocab_size)));
  }
  return ids;
}

}  // namespace loom::core::test
