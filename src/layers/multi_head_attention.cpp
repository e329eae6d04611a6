// MultiHeadAttention: causal (or full) self-attention with grouped-query heads. Options: biases;
// limits of q, k and v; norms of q and k; rotary embedding of a whole head or of its first values,
// or ALiBi; a sliding window; a cap on the scores; sinks; an RMS norm of the heads before Wo. Wq
// [H*D, width], Wk and Wv [G*D, width], Wo [width, H*D]; head h reads kv head h / (H/G). Keys and
// values are in the session's cache, so a prompt may come in pieces of any size.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "layers/latent_attention.hpp"
#include "ops/recording/pages.hpp"

namespace loom::core {
namespace {

using namespace fields::multi_head_attention;
enum { kQ, kK, kV, kO };

int64_t q_width(const LayerConfig& c) {
  return c.integer(kHeads) * c.integer(kHeadDim);
}
int64_t rope_width(const LayerConfig& c) {
  return c.integer(kRopeWidth) > 0 ? c.integer(kRopeWidth) : c.integer(kHeadDim);
}
int64_t kv_width(const LayerConfig& c) {
  return c.integer(kKvHeads) * c.integer(kHeadDim);
}

// A norm of q and k (QkNorm in include/loom/layers.hpp).
struct QkNormForm {
  std::string_view name;
  NormKind kind;
  bool by_head;  // each head is normalized alone
  bool shared;   // heads share the parameters
  bool gain, bias;
};
constexpr QkNormForm kQkNormForms[] = {
    {"rms", NormKind::rms, true, true, true, false},
    {"rms_wide", NormKind::rms, false, false, true, false},
    {"layer", NormKind::layer, true, false, true, false},
    {"layer_shared", NormKind::layer, true, true, true, true},
    {"l2", NormKind::rms, true, true, false, false},
};
// It is null if the name is unknown.
const QkNormForm* qk_norm_form(const LayerConfig& c) {
  for (const QkNormForm& form : kQkNormForms)
    if (form.name == c.text(kQkNormForm)) return &form;
  return nullptr;
}

void norm_params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  const QkNormForm* form = c.flag(kQkNorm) ? qk_norm_form(c) : nullptr;
  if (form == nullptr) return;
  const int64_t d = c.integer(kHeadDim);
  const Shape q{form->shared ? d : q_width(c)}, k{form->shared ? d : kv_width(c)};
  if (form->gain) {
    out.push_back({"q_norm", q, Init::ones});
    out.push_back({"k_norm", k, Init::ones});
  }
  if (form->bias) {
    out.push_back({"q_norm_bias", q});
    out.push_back({"k_norm_bias", k});
  }
}

void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  if (is_latent(c)) return latent_params(c, out);
  const int64_t width = c.integer(kWidth), q = q_width(c), kv = kv_width(c);
  out.push_back(product_weight("q", Shape{q, width}));
  out.push_back(product_weight("k", Shape{kv, width}));
  out.push_back(product_weight("v", Shape{kv, width}));
  out.push_back(product_weight("o", Shape{width, q}));
  if (c.flag(kBias)) {
    out.push_back({"q_bias", Shape{q}});
    out.push_back({"k_bias", Shape{kv}});
    out.push_back({"v_bias", Shape{kv}});
  }
  if (c.flag(kOutBias)) out.push_back({"o_bias", Shape{width}});
  norm_params(c, out);
  if (c.flag(kSubNorm)) out.push_back({"sub_norm", Shape{q}, Init::ones});
  if (c.flag(kSinks)) out.push_back({"sinks", Shape{c.integer(kHeads)}});
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  if (in.rank() == 0 || in.last() != c.integer(kWidth)) {
    return invalid(cat("MultiHeadAttention: input ", in.str(), " must end in ", c.integer(kWidth)));
  }
  if (c.integer(kHeads) % c.integer(kKvHeads) != 0) {
    return invalid(cat("MultiHeadAttention: kv_heads ", c.integer(kKvHeads), " must divide heads ",
                       c.integer(kHeads)));
  }
  if (is_latent(c)) LOOM_TRY(check_latent(c));
  if (c.integer(kRopeWidth) > c.integer(kHeadDim)) {
    return invalid(cat("MultiHeadAttention: rope_width ", c.integer(kRopeWidth),
                       " must not be above head_dim ", c.integer(kHeadDim)));
  }
  if (c.flag(kRope) && rope_width(c) % 2 != 0) {
    const bool part = c.integer(kRopeWidth) > 0;
    return invalid(cat("MultiHeadAttention: ", part ? "rope_width " : "head_dim ", rope_width(c),
                       " must be even for rotary embedding"));
  }
  if (qk_norm_form(c) == nullptr) {
    return invalid(cat("MultiHeadAttention: qk_norm_form '", printable(c.text(kQkNormForm)),
                       "' is not known; use rms, rms_wide, layer, layer_shared or l2"));
  }
  return in;
}

float score_scale(const LayerConfig& c) {
  if (c.real(kScale) > 0) return static_cast<float>(c.real(kScale));
  return 1.0f / __builtin_sqrtf(static_cast<float>(c.integer(kHeadDim)));
}

// The parameters after those of the four products; empty tensors if they are absent.
struct Extras {
  Tensor bias[4], norm[2], norm_bias[2], sub_norm, sinks;
};
Extras extras_of(const ForwardCall& call) {
  const LayerConfig& c = call.config();
  size_t next = kO + 1;
  Extras e;
  if (c.flag(kBias)) {
    for (int i = 0; i < 3; ++i) e.bias[i] = call.param(next++);
  }
  if (c.flag(kOutBias)) e.bias[3] = call.param(next++);
  if (c.flag(kQkNorm) && qk_norm_form(c)->gain) {
    for (Tensor& gain : e.norm) gain = call.param(next++);
  }
  if (c.flag(kQkNorm) && qk_norm_form(c)->bias) {
    for (Tensor& bias : e.norm_bias) bias = call.param(next++);
  }
  if (c.flag(kSubNorm)) e.sub_norm = call.param(next++);
  if (c.flag(kSinks)) e.sinks = call.param(next++);
  return e;
}

// Values within [-clip, clip].
Result<Tensor> clipped(ForwardCall& call, const Tensor& t) {
  const auto limit = static_cast<float>(call.config().real(kClip));
  if (limit == 0) return t;
  LOOM_ASSIGN(const Tensor high, call.constant(limit));
  LOOM_ASSIGN(const Tensor low, call.constant(-limit));
  LOOM_ASSIGN(const Tensor below, call.like(t));
  LOOM_TRY(call.ops().binary({t, high, below, BinaryKind::min}));
  LOOM_ASSIGN(const Tensor both, call.like(t));
  LOOM_TRY(call.ops().binary({below, low, both, BinaryKind::max}));
  return both;
}

// q or k after its norm. which: 0 for q, 1 for k.
Result<Tensor> normed(ForwardCall& call, const Tensor& t, const Extras& e, int which) {
  const LayerConfig& c = call.config();
  const QkNormForm& form = *qk_norm_form(c);
  NormArgs n;
  n.x = t;
  LOOM_ASSIGN(n.y, call.like(t));
  n.gamma = e.norm[which];
  n.beta = e.norm_bias[which];
  n.kind = form.kind;
  n.eps = static_cast<float>(c.real(kQkNormEps));
  n.segments = form.by_head ? t.cols() / c.integer(kHeadDim) : 1;
  LOOM_TRY(call.ops().norm(n));
  return n.y;
}

// q or k in the form that the scores take.
Result<Tensor> prepared(ForwardCall& call, const Tensor& t, const Extras& e, int which) {
  const LayerConfig& c = call.config();
  Tensor out = t;
  const bool last = c.flag(kQkNormAfterRope);
  if (c.flag(kQkNorm) && !last) {
    LOOM_ASSIGN(out, normed(call, out, e, which));
  }
  if (c.flag(kRope)) {
    LOOM_ASSIGN(out, rotated(call, out, c.integer(kHeadDim), c.integer(kRopeWidth)));
  }
  if (c.flag(kQkNorm) && last) {
    LOOM_ASSIGN(out, normed(call, out, e, which));
  }
  return out;
}

struct Projections {
  Tensor q, k, v, sinks;
};

// The slopes of ALiBi; absent without it.
Tensor slopes_of(const ForwardCall& call) {
  return call.config().real(kAlibi) > 0 ? call.position_table().slopes : Tensor{};
}

// Whole sequences, without a cache.
Status attend(ForwardCall& call, const Projections& p, const Tensor& y) {
  const LayerConfig& c = call.config();
  AttendArgs a;
  a.q = p.q;
  a.k = p.k;
  a.v = p.v;
  a.y = y;
  a.mask = call.mask();
  a.sequences = call.sequences();
  a.heads = c.integer(kHeads);
  a.kv_heads = is_latent(c) ? 1 : c.integer(kKvHeads);
  a.window = c.integer(kWindow);
  a.scale = score_scale(c);
  a.causal = c.flag(kCausal);
  a.soft_cap = static_cast<float>(c.real(kSoftCap));
  a.slopes = slopes_of(call);
  a.sinks = p.sinks;
  a.row_positions = call.row_positions();
  return call.ops().attend(a);
}

// Through the cache: one sequence after the other, or all rows at once if each has its position.
Status attend_cached(ForwardCall& call, const Projections& p, const Tensor& y) {
  const LayerConfig& c = call.config();
  AttentionArgs a;
  a.heads = c.integer(kHeads);
  a.first = call.first();
  a.window = c.integer(kWindow);
  a.scale = score_scale(c);
  a.causal = c.flag(kCausal);
  a.soft_cap = static_cast<float>(c.real(kSoftCap));
  a.slopes = slopes_of(call);
  a.sinks = p.sinks;
  if (const Tensor row_positions = call.row_positions(); !row_positions.empty()) {
    a.q = p.q;
    a.y = y;
    a.cache = call.cache();
    a.length = positions_of(row_positions, a.cache.capacity);
    a.row_positions = row_positions;
    LOOM_TRY(call.ops().kv_write({p.k, p.v, a.cache, 0, row_positions}));
    return call.ops().attention(a);
  }
  const int64_t length = p.q.rows() / call.sequences();
  a.length = call.first() + length;
  for (int64_t s = 0; s < call.sequences(); ++s) {
    const int64_t row = s * length;
    a.cache = call.cache().sequence(s);
    a.q = p.q.slice_rows(row, length);
    a.y = y.slice_rows(row, length);
    LOOM_TRY(call.ops().kv_write(
        {p.k.slice_rows(row, length), p.v.slice_rows(row, length), a.cache, call.first()}));
    LOOM_TRY(call.ops().attention(a));
  }
  return {};
}

// The heads in the form that the output projection takes.
Result<Tensor> sub_normed(ForwardCall& call, const Tensor& mixed, const Tensor& gain) {
  if (!call.config().flag(kSubNorm)) return mixed;
  NormArgs n;
  n.x = mixed;
  LOOM_ASSIGN(n.y, call.like(mixed));
  n.gamma = gain;
  n.eps = static_cast<float>(call.config().real(kSubNormEps));
  LOOM_TRY(call.ops().norm(n));
  return n.y;
}

Result<Tensor> latent_forward(ForwardCall& call) {
  const LayerConfig& c = call.config();
  LOOM_ASSIGN(const LatentOperands from, latent_operands(call));
  Projections p{from.q, from.k, from.v, {}};
  if (c.flag(kSinks)) p.sinks = call.param(c.integer(kLatentQ) > 0 ? 8 : 6);
  LOOM_ASSIGN(const Tensor mixed, call.like(p.q));
  LOOM_TRY(call.stateful() ? attend_cached(call, p, mixed) : attend(call, p, mixed));
  return latent_output(call, from, mixed);
}

Result<Tensor> forward(ForwardCall& call) {
  if (is_latent(call.config())) return latent_forward(call);
  const LayerConfig& c = call.config();
  const int64_t rows = call.x().rows();
  const Extras e = extras_of(call);
  Projections p;
  LOOM_ASSIGN(p.q, call.tensor(Shape{rows, q_width(c)}));
  LOOM_ASSIGN(p.k, call.tensor(Shape{rows, kv_width(c)}));
  LOOM_ASSIGN(p.v, call.tensor(Shape{rows, kv_width(c)}));
  LOOM_TRY(call.product(kQ, {call.x(), {}, e.bias[0], p.q}));
  LOOM_TRY(call.product(kK, {call.x(), {}, e.bias[1], p.k}));
  LOOM_TRY(call.product(kV, {call.x(), {}, e.bias[2], p.v}));
  for (Tensor* t : {&p.q, &p.k, &p.v}) {
    LOOM_ASSIGN(*t, clipped(call, *t));
  }
  LOOM_ASSIGN(p.q, prepared(call, p.q, e, 0));
  LOOM_ASSIGN(p.k, prepared(call, p.k, e, 1));
  p.sinks = e.sinks;
  LOOM_ASSIGN(Tensor mixed, call.tensor(Shape{rows, q_width(c)}));
  LOOM_TRY(call.stateful() ? attend_cached(call, p, mixed) : attend(call, p, mixed));
  LOOM_ASSIGN(mixed, sub_normed(call, mixed, e.sub_norm));
  LOOM_ASSIGN(const Tensor y, call.like(call.x()));
  LOOM_TRY(call.product(kO, {mixed, {}, e.bias[3], y}));
  return y;
}

StateSpec state(const LayerConfig& c) {
  if (is_latent(c)) return {1, latent_key_width(c), 0};
  return {c.integer(kKvHeads), c.integer(kHeadDim), 0};
}

// Rotary positions and slopes.
RopeSpec rope(const LayerConfig& c) {
  RopeSpec spec;
  if (c.real(kAlibi) > 0) {
    spec.slopes = c.integer(kHeads);
    spec.alibi = c.real(kAlibi);
    spec.alibi_scale = c.real(kAlibiScale);
  }
  if (!c.flag(kRope)) return spec;
  spec.width = rope_width(c);
  spec.theta = c.real(kRopeTheta);
  spec.scaling = c.text(kRopeScaling);
  spec.factor = c.real(kRopeFactor);
  spec.low_freq = c.real(kRopeLowFreq);
  spec.high_freq = c.real(kRopeHighFreq);
  spec.original_positions = c.integer(kRopeOriginal);
  spec.attention = c.real(kRopeAttention);
  spec.beta_fast = c.real(kRopeBetaFast);
  spec.beta_slow = c.real(kRopeBetaSlow);
  spec.truncate = c.flag(kRopeTruncate);
  spec.short_factors = c.text(kRopeShort);
  spec.long_factors = c.text(kRopeLong);
  return spec;
}

LayerExample example() {
  return {Shape{8, 12},
          {{LayerKind::multi_head_attention,
            {{"width", 12},
             {"heads", 4},
             {"kv_heads", 2},
             {"head_dim", 4},
             {"bias", true},
             {"out_bias", true},
             {"qk_norm", true}}}},
          3};
}

}  // namespace

extern const LayerDef kMultiHeadAttention;
const LayerDef kMultiHeadAttention = {.kind = LayerKind::multi_head_attention,
                                      .name = "MultiHeadAttention",
                                      .fields = kFields,
                                      .ragged = true,
                                      .params = params,
                                      .infer = infer,
                                      .forward = forward,
                                      .state = state,
                                      .rope = rope,
                                      .example = example};

}  // namespace loom::core
