// Attention as ONNX has it (opsets 23 on), rotary positions, attention by a running state, and the
// gate of SwiGLU. Products by the kernels of networks, in f32. Formulas: onnx.ai.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/numbers/dmath.hpp"
#include "onnx/interpreter/products.hpp"
#include "ops/fmath.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core::evaluate {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

Status only_f32(const Call& c) {
  if (!is_real(c.value(0).type)) return c.bad("takes floats");
  return c.value(0).type == OnnxType::f64 ? c.not_done("double") : Status{};
}

// [B, H, T, D] as it is, or of [B, T, H D].
Result<Value> by_heads(const Call& c, const Value& x, int64_t heads) {
  if (x.rank() == 4) return x;
  if (x.rank() != 3 || heads < 1 || x.dims[2] % heads != 0)
    return c.bad("takes [B, T, heads times size] with the heads as attributes, or four axes");
  const int64_t b = x.dims[0], t = x.dims[1], d = x.dims[2] / heads;
  LOOM_ASSIGN(Value y, c.make(x.type, {b, heads, t, d}));
  move(c, x, y, {y.dims, {t * heads * d, d, heads * d, 1}, steps_of(y.dims)});
  return y;
}
Result<Value> heads_back(const Call& c, const Value& x) {
  const int64_t b = x.dims[0], h = x.dims[1], t = x.dims[2], d = x.dims[3];
  LOOM_ASSIGN(Value y, c.make(x.type, {b, t, h * d}));
  move(c, x, y, {x.dims, steps_of(x.dims), {t * h * d, d, h * d, 1}});
  return y;
}

// Along the third axis: what was before, then what is new.
Result<Value> appended(const Call& c, size_t past, const Value& x) {
  if (!c.has(past)) return x;
  LOOM_ASSIGN(const Value before, c.as(past, OnnxType::f32));
  Dims dims = before.dims;
  if (before.rank() != 4 || dims[0] != x.dims[0] || dims[1] != x.dims[1] || dims[3] != x.dims[3])
    return c.bad("a past that does not fit");
  dims[2] += x.dims[2];
  LOOM_ASSIGN(Value y, c.make(x.type, dims));
  const Dims steps = steps_of(dims);
  move(c, before, y, {before.dims, steps_of(before.dims), steps});
  move(c, x, y, {x.dims, steps_of(x.dims), steps, 0, before.dims[2] * steps[2]});
  return y;
}

struct Attended {
  Value q, k, v;  // [B, H, T, D]; k and v with the past
  int64_t batch, heads, groups, rows, cols;
  Value mask;  // f32, added; [.., cols or less]
  Dims mask_steps;
  Dims lengths;  // of each sample; empty: all
  Dims offsets;  // place of the first query of each sample
  bool causal;
  int64_t left, right;
  float cap;
};

// A boolean becomes 0 or -inf.
Status add_mask(const Call& c, Attended& a) {
  if (!c.has(3)) return {};
  const Value& given = c.value(3);
  LOOM_ASSIGN(a.mask, c.as(3, OnnxType::f32));
  if (given.type == OnnxType::boolean) {
    LOOM_ASSIGN(Value added, c.make(OnnxType::f32, given.dims));
    for (int64_t i = 0; i < given.count(); ++i)
      added.data<float>()[i] = given.data<uint8_t>()[i] != 0 ? 0 : kNever;
    a.mask = added;
  }
  Dims whole{a.batch, a.heads, a.rows, a.cols}, dims = a.mask.dims;
  if (dims.empty() || dims.size() > 4 || dims.back() > a.cols)
    return c.bad("a mask that does not fit");
  const int64_t last = dims.back();
  if (last != 1) dims.back() = a.cols;  // places beyond it are masked
  Dims joined = whole;
  if (!broadcast(joined, dims) || joined != whole) return c.bad("a mask that does not fit");
  Dims steps = broadcast_steps(a.mask.dims, whole);
  a.mask_steps = steps;
  return {};
}

Status add_positions(const Call& c, Attended& a, int64_t past) {
  LOOM_ASSIGN(a.lengths, c.int_list(6));
  if (c.has(6) && static_cast<int64_t>(a.lengths.size()) != a.batch)
    return c.bad("a length per sample is needed");
  a.offsets.assign(static_cast<size_t>(a.batch), past);
  for (size_t b = 0; b < a.lengths.size(); ++b) a.offsets[b] = a.lengths[b] - a.rows;
  return {};
}

Result<Attended> attended(const Call& c) {
  LOOM_TRY(only_f32(c));
  if (c.has(4) != c.has(5)) return c.bad("past keys and values come together");
  if (c.has(6) && c.has(4)) return c.bad("lengths and a past do not come together");
  Attended a{};
  const int64_t q_heads = c.integer("q_num_heads", 0), kv_heads = c.integer("kv_num_heads", 0);
  LOOM_ASSIGN(const Value q, c.widened(0));
  LOOM_ASSIGN(const Value k, c.widened(1));
  LOOM_ASSIGN(const Value v, c.widened(2));
  if (k.type != OnnxType::f32 || v.type != OnnxType::f32) return c.bad("inputs of other types");
  LOOM_ASSIGN(a.q, by_heads(c, q, q_heads));
  LOOM_ASSIGN(a.k, by_heads(c, k, kv_heads));
  LOOM_ASSIGN(a.v, by_heads(c, v, kv_heads));
  LOOM_ASSIGN(a.k, appended(c, 4, a.k));
  LOOM_ASSIGN(a.v, appended(c, 5, a.v));
  a.batch = a.q.dims[0], a.heads = a.q.dims[1], a.rows = a.q.dims[2];
  a.groups = a.k.dims[1], a.cols = a.k.dims[2];
  if (a.groups < 1 || a.heads % a.groups != 0 || a.k.dims[0] != a.batch ||
      a.k.dims[3] != a.q.dims[3] || a.v.dims[0] != a.batch || a.v.dims[1] != a.groups ||
      a.v.dims[2] != a.cols)
    return c.bad("queries, keys and values that do not fit");
  a.causal = c.integer("is_causal", 0) != 0;
  a.left = c.integer("left_window_size", -1), a.right = c.integer("right_window_size", -1);
  a.cap = static_cast<float>(c.real("softcap", 0));
  LOOM_TRY(add_mask(c, a));
  LOOM_TRY(add_positions(c, a, c.has(4) ? c.value(4).dims[2] : 0));
  return a;
}

// The addend of the score of query i and key j; -inf: never.
float bias_at(const Attended& a, int64_t b, int64_t h, int64_t i, int64_t j) {
  const int64_t at = i + a.offsets[static_cast<size_t>(b)];
  if (a.causal && j > at) return kNever;
  if (a.left >= 0 && at - j > a.left) return kNever;
  if (a.right >= 0 && j - at > a.right) return kNever;
  if (!a.lengths.empty() && j >= a.lengths[static_cast<size_t>(b)]) return kNever;
  if (a.mask_steps.empty()) return 0;
  if (a.mask.last() != 1 && j >= a.mask.last()) return kNever;
  return a.mask.data<float>()[b * a.mask_steps[0] + h * a.mask_steps[1] + i * a.mask_steps[2] +
                              j * a.mask_steps[3]];
}

// A row of scores becomes weights; what mode asks for goes to `shown`.
void weigh_row(const Attended& a, float* row, float* shown, int64_t mode, int64_t r) {
  const int64_t i = r % a.rows, h = r / a.rows % a.heads, b = r / a.rows / a.heads;
  bool any = false;
  float most = kNever;
  for (int64_t j = 0; j < a.cols; ++j) {
    if (a.cap > 0) row[j] = a.cap * fmath::tanh<float>(row[j] / a.cap);
    if (shown != nullptr && mode < 2) shown[j] = row[j];
    const float bias = bias_at(a, b, h, i, j);
    any = any || bias != kNever;
    row[j] += bias;
    if (shown != nullptr && mode == 2) shown[j] = row[j];
    most = std::max(most, row[j]);
  }
  double sum = 0;
  for (int64_t j = 0; j < a.cols; ++j) {
    row[j] = !any || row[j] == kNever ? 0 : fmath::exp<float>(row[j] - most);
    sum += static_cast<double>(row[j]);
  }
  const auto by = static_cast<float>(sum > 0 ? 1 / sum : 0);
  for (int64_t j = 0; j < a.cols; ++j) row[j] *= by;
  if (shown != nullptr && mode == 3) std::copy_n(row, a.cols, shown);
}

Status attention(const Call& c) {
  LOOM_ASSIGN(const Attended a, attended(c));
  const OnnxType type = c.value(0).type;
  const int64_t size = a.q.dims[3], width = a.v.dims[3],
                mode = c.integer("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) return c.bad("unknown qk_matmul_output_mode");
  const double scale = c.real("scale", 1 / std::sqrt(static_cast<double>(size)));
  LOOM_ASSIGN(Value scaled, c.make(OnnxType::f32, a.q.dims));
  for (int64_t i = 0; i < scaled.count(); ++i)
    scaled.data<float>()[i] = a.q.data<float>()[i] * static_cast<float>(scale);
  LOOM_ASSIGN(Value scores, c.make(OnnxType::f32, {a.batch, a.heads, a.rows, a.cols}));
  LOOM_ASSIGN(Value y, c.make(OnnxType::f32, {a.batch, a.heads, a.rows, width}));
  Value shown;
  if (c.wants(3)) {
    LOOM_ASSIGN(shown, c.make(OnnxType::f32, scores.dims));
  }
  const auto group = [&](int64_t r) {
    return r / a.heads * a.groups + r % a.heads / (a.heads / a.groups);
  };
  for (int64_t r = 0; r < a.batch * a.heads; ++r)
    LOOM_TRY(multiply(
        c, scaled.data<float>() + r * a.rows * size, a.k.data<float>() + group(r) * a.cols * size,
        scores.data<float>() + r * a.rows * a.cols, {a.rows, size, a.cols, false, true}));
  LOOM_TRY(c.rt.recorder.flush());
  c.parallel(a.batch * a.heads * a.rows, 10.0 * static_cast<double>(a.cols),
             [&](int64_t begin, int64_t end) {
               for (int64_t r = begin; r < end; ++r)
                 weigh_row(a, scores.data<float>() + r * a.cols,
                           c.wants(3) ? shown.data<float>() + r * a.cols : nullptr, mode, r);
             });
  for (int64_t r = 0; r < a.batch * a.heads; ++r)
    LOOM_TRY(multiply(c, scores.data<float>() + r * a.rows * a.cols,
                      a.v.data<float>() + group(r) * a.cols * width,
                      y.data<float>() + r * a.rows * width, {a.rows, a.cols, width}));
  LOOM_TRY(c.rt.recorder.flush());
  LOOM_ASSIGN(const Value out, c.value(0).rank() == 3 ? heads_back(c, y) : Result<Value>(y));
  LOOM_TRY(c.give_as(out, type, 0));
  LOOM_TRY(c.give_as(a.k, c.value(1).type, 1));
  LOOM_TRY(c.give_as(a.v, c.value(2).type, 2));
  return c.wants(3) ? c.give_as(shown, type, 3) : Status{};
}

// Pairs (first half, second half) or neighbours, turned by the angles of their place.
Status rotary(const Call& c) {
  LOOM_TRY(only_f32(c));
  LOOM_ASSIGN(const Value given, c.widened(0));
  LOOM_ASSIGN(const Value x, by_heads(c, given, c.integer("num_heads", 0)));
  LOOM_ASSIGN(const Value cosines, c.as(1, OnnxType::f32));
  LOOM_ASSIGN(const Value sines, c.as(2, OnnxType::f32));
  LOOM_ASSIGN(const Dims at, c.int_list(3));
  const int64_t b = x.dims[0], h = x.dims[1], t = x.dims[2], d = x.dims[3];
  const int64_t asked = c.integer("rotary_embedding_dim", 0), transposed = asked == 0 ? d : asked;
  const int64_t half = transposed / 2;
  if (transposed < 0 || transposed > d || transposed % 2 != 0 || cosines.dims != sines.dims ||
      cosines.rank() < 2 || cosines.last() != half)
    return c.bad("angles that do not fit");
  const int64_t num_positions = half == 0 ? 0 : cosines.count() / half;
  if (c.has(3) ? static_cast<int64_t>(at.size()) != b * t : num_positions != b * t)
    return c.bad("a place per position is needed");
  for (const int64_t p : at) {
    if (p < 0 || p >= num_positions) return c.bad(cat("place ", p, " of ", num_positions));
  }
  const bool neighbours = c.integer("interleaved", 0) != 0;
  LOOM_ASSIGN(Value y, c.make(x.type, x.dims));
  for (int64_t r = 0; r < b * h * t; ++r) {
    const int64_t position = r / (h * t) * t + r % t;
    const int64_t cell_of = c.has(3) ? at[static_cast<size_t>(position)] : position;
    const float* from = x.data<float>() + r * d;
    float* to = y.data<float>() + r * d;
    std::copy_n(from, d, to);
    for (int64_t i = 0; i < half; ++i) {
      const float co = cosines.data<float>()[cell_of * half + i];
      const float si = sines.data<float>()[cell_of * half + i];
      const int64_t p = neighbours ? 2 * i : i, q = neighbours ? 2 * i + 1 : i + half;
      to[p] = co * from[p] - si * from[q];
      to[q] = si * from[p] + co * from[q];
    }
  }
  LOOM_ASSIGN(const Value out, given.rank() == 3 ? heads_back(c, y) : Result<Value>(y));
  return c.give_as(out, c.value(0).type);
}

// One head of attention by a running state S [d_k, d_v]. Steps: S = S exp(g) (gated), v = beta (v -
// S^T k) (delta), S += k v^T. The result is y = scale S^T q for each query head.
struct LinearHead {
  int64_t keys, values;
  const float *k, *v, *decay, *beta;
  int64_t decays;  // 1 or keys
};
void step_state(const LinearHead& h, double* state, double* fresh) {
  for (int64_t i = 0; h.decay != nullptr && i < h.keys; ++i) {
    const double by = dmath::exp(static_cast<double>(h.decay[h.decays == 1 ? 0 : i]));
    for (int64_t m = 0; m < h.values; ++m) state[i * h.values + m] *= by;
  }
  for (int64_t m = 0; m < h.values; ++m) {
    fresh[m] = static_cast<double>(h.v[m]);
    if (h.beta == nullptr) continue;
    double known = 0;
    for (int64_t i = 0; i < h.keys; ++i)
      known += state[i * h.values + m] * static_cast<double>(h.k[i]);
    fresh[m] = static_cast<double>(*h.beta) * (fresh[m] - known);
  }
  for (int64_t i = 0; i < h.keys; ++i) {
    for (int64_t m = 0; m < h.values; ++m)
      state[i * h.values + m] += static_cast<double>(h.k[i]) * fresh[m];
  }
}

Status linear_attention(const Call& c) {
  LOOM_TRY(only_f32(c));
  const std::string rule = c.text("update_rule", "gated_delta");
  const bool gated = rule.starts_with("gated"), delta = rule.ends_with("delta");
  if (!gated && !delta && rule != "linear") return c.bad("unknown update_rule");
  const int64_t heads = c.integer("q_num_heads", 0), groups = c.integer("kv_num_heads", 0);
  Value in[6];
  for (size_t i = 0; i < c.in.size(); ++i) {
    if (!c.has(i)) continue;
    LOOM_ASSIGN(in[i], c.as(i, OnnxType::f32));
  }
  if (c.has(4) != gated || c.has(5) != delta) return c.bad("inputs that are not those of its rule");
  const Value &q = in[0], &k = in[1], &v = in[2];
  if (heads < 1 || groups < 1 || heads % groups != 0 || q.rank() != 3 || k.rank() != 3 ||
      v.rank() != 3 || q.last() % heads != 0 || v.last() % groups != 0 ||
      k.last() != q.last() / heads * groups)
    return c.bad("queries, keys and values that do not fit");
  const int64_t b = q.dims[0], t = q.dims[1], dk = q.last() / heads, dv = v.last() / groups;
  const auto rows_fit = [&](const Value& x) {
    return x.rank() == 3 && x.dims[0] == b && x.dims[1] == t;
  };
  if (!rows_fit(k) || !rows_fit(v) || (gated && !rows_fit(in[4])) || (delta && !rows_fit(in[5])))
    return c.bad("inputs of other batches or lengths");
  const int64_t decays = gated ? in[4].last() / groups : 0, betas = delta ? in[5].last() : 0;
  if ((gated && (in[4].last() % groups != 0 || (decays != 1 && decays != dk))) ||
      (delta && betas != 1 && betas != groups))
    return c.bad("decays or betas that do not fit");
  LOOM_ASSIGN(Value state, c.make(OnnxType::f64, {b, groups, dk, dv}));
  fill_zero(state);
  if (c.has(3)) {
    if (c.value(3).dims != state.dims) return c.bad("a state that does not fit");
    LOOM_ASSIGN(const Value past, c.as(3, OnnxType::f64));
    std::copy_n(past.data<double>(), past.count(), state.data<double>());
  }
  const double asked = c.real("scale", 0);
  const double scale = asked == 0 ? 1 / std::sqrt(static_cast<double>(dk)) : asked;
  LOOM_ASSIGN(Value y, c.make(OnnxType::f32, {b, t, heads * dv}));
  std::vector<double> fresh(static_cast<size_t>(dv));
  for (int64_t r = 0; r < b * groups * t; ++r) {
    const int64_t step = r % t, g = r / t % groups, n = r / t / groups, at = n * t + step;
    double* s = state.data<double>() + (n * groups + g) * dk * dv;
    step_state(
        {dk, dv, k.data<float>() + (at * groups + g) * dk, v.data<float>() + (at * groups + g) * dv,
         gated ? in[4].data<float>() + (at * groups + g) * decays : nullptr,
         delta ? in[5].data<float>() + at * betas + (betas == 1 ? 0 : g) : nullptr, decays},
        s, fresh.data());
    for (int64_t h = g * (heads / groups); h < (g + 1) * (heads / groups); ++h) {
      for (int64_t m = 0; m < dv; ++m) {
        double sum = 0;
        for (int64_t i = 0; i < dk; ++i)
          sum += static_cast<double>(q.data<float>()[(at * heads + h) * dk + i]) * s[i * dv + m];
        y.data<float>()[(at * heads + h) * dv + m] = static_cast<float>(scale * sum);
      }
    }
  }
  LOOM_TRY(c.give_as(y, c.value(0).type, 0));
  return c.give_as(state, c.has(3) ? c.value(3).type : c.value(0).type, 1);
}

// A depthwise convolution over [past, x], each output seeing only what is before it.
Status causal_conv(const Call& c) {
  LOOM_TRY(only_f32(c));
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(const Value w, c.widened(1));
  const std::string activation = c.text("activation", "none");
  const bool silu = activation == "silu" || activation == "swish";
  if (!silu && activation != "none") return c.bad("unknown activation");
  if (x.rank() != 3 || w.rank() != 3 || w.dims[0] != x.dims[1] || w.dims[1] != 1 || w.dims[2] < 1)
    return c.bad("takes [B, C, L] and weights [C, 1, K]");
  const int64_t b = x.dims[0], ch = x.dims[1], n = x.dims[2], k = w.dims[2];
  Value bias, past;
  if (c.has(2)) {
    LOOM_ASSIGN(bias, c.as(2, OnnxType::f32));
  }
  if (c.has(3)) {
    LOOM_ASSIGN(past, c.as(3, OnnxType::f32));
  }
  if ((c.has(2) && bias.count() != ch) || (c.has(3) && past.dims != Dims{b, ch, k - 1}))
    return c.bad("a bias or a state that does not fit");
  LOOM_ASSIGN(Value y, c.make(OnnxType::f32, x.dims));
  LOOM_ASSIGN(Value present, c.make(OnnxType::f32, {b, ch, k - 1}));
  std::vector<float> line(static_cast<size_t>(n + k - 1));
  for (int64_t r = 0; r < b * ch; ++r) {
    std::fill_n(line.begin(), k - 1, 0.0F);
    if (c.has(3)) std::copy_n(past.data<float>() + r * (k - 1), k - 1, line.begin());
    std::copy_n(x.data<float>() + r * n, n, line.begin() + (k - 1));
    for (int64_t i = 0; i < n; ++i) {
      double sum = c.has(2) ? static_cast<double>(bias.data<float>()[r % ch]) : 0;
      for (int64_t j = 0; j < k; ++j)
        sum += static_cast<double>(line[static_cast<size_t>(i + j)]) *
               static_cast<double>(w.data<float>()[r % ch * k + j]);
      y.data<float>()[r * n + i] = static_cast<float>(silu ? sum / (1 + dmath::exp(-sum)) : sum);
    }
    std::copy_n(line.begin() + n, k - 1, present.data<float>() + r * (k - 1));
  }
  LOOM_TRY(c.give_as(y, c.value(0).type, 0));
  return c.give_as(present, c.has(3) ? c.value(3).type : c.value(0).type, 1);
}

// a sigmoid(alpha a) b.
Status swiglu(const Call& c) {
  LOOM_TRY(only_f32(c));
  LOOM_TRY(c.same_type(0, 1));
  if (c.value(0).dims != c.value(1).dims) return c.bad("inputs of different shapes");
  const double alpha = c.real("alpha", 1);
  LOOM_ASSIGN(const Value a, c.widened(0));
  LOOM_ASSIGN(const Value b, c.widened(1));
  LOOM_ASSIGN(Value y, c.make(a.type, a.dims));
  for (int64_t i = 0; i < y.count(); ++i) {
    const auto x = static_cast<double>(a.data<float>()[i]);
    y.data<float>()[i] = static_cast<float>(x / (1 + dmath::exp(-alpha * x)) *
                                            static_cast<double>(b.data<float>()[i]));
  }
  return c.give_as(y, c.value(0).type);
}

constexpr Operator kAttention[] = {
    {"", "Attention", attention, {}},
    {"", "RotaryEmbedding", rotary, "aaa?a interleaved num_heads rotary_embedding_dim"},
    {"", "LinearAttention", linear_attention,
     "aaa?aaa chunk_size kv_num_heads q_num_heads scale update_rule"},
    {"", "CausalConvWithState", causal_conv, "aa?aa activation"},
    {"", "SwiGLU", swiglu, "aa alpha"},
};

}  // namespace

std::span<const Operator> attention_operators() {
  return kAttention;
}

}  // namespace loom::core::evaluate
