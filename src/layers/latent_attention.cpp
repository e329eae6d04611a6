// See latent_attention.hpp.
#include "layers/latent_attention.hpp"

#include "base/text.hpp"
#include "layers/core/field_tables.hpp"

namespace loom::core {
namespace {

using namespace fields::multi_head_attention;

struct Sizes {
  int64_t heads, head, rope, nope, latent, value, key;
  explicit Sizes(const LayerConfig& c)
      : heads(c.integer(kHeads)),
        head(c.integer(kHeadDim)),
        rope(c.integer(kRopeWidth)),
        nope(head - rope),
        latent(c.integer(kLatent)),
        value(c.integer(kValueDim) > 0 ? c.integer(kValueDim) : head),
        key(rope + latent) {}
};

// The parameters, in the order of latent_params().
struct Indices {
  int q_down = -1, q_norm = -1, q = 0, kv_down, kv_norm, k_up, v_up, o;
  explicit Indices(const LayerConfig& c) {
    int next = 0;
    if (c.integer(kLatentQ) > 0) q_down = next++, q_norm = next++;
    q = next++;
    kv_down = next++;
    kv_norm = next++;
    k_up = next++;
    v_up = next++;
    o = next;
  }
};

Result<Tensor> product(ForwardCall& call, const Tensor& x, int weight) {
  const Tensor w = call.param(static_cast<size_t>(weight));
  LOOM_ASSIGN(const Tensor y, call.tensor(Shape{x.rows(), w.rows()}));
  LOOM_TRY(call.ops().matmul({x, w, {}, y}));
  return y;
}

Result<Tensor> normed(ForwardCall& call, const Tensor& x, int gain) {
  NormArgs n;
  n.x = x;
  LOOM_ASSIGN(n.y, call.like(x));
  n.gamma = call.param(static_cast<size_t>(gain));
  n.eps = static_cast<float>(call.config().real(kQkNormEps));
  LOOM_TRY(call.ops().norm(n));
  return n.y;
}

// Values of a matrix with three extents; steps of both sides.
struct Block {
  int64_t extent[3], from[3], to[3], from_first = 0, to_first = 0;
};

Status move(ForwardCall& call, const Tensor& x, const Block& block, bool whole, const Tensor& y) {
  CopyArgs a;
  a.x = x;
  a.y = y;
  a.rank = 3;
  for (int k = 0; k < 3; ++k) {
    a.extent[k] = block.extent[k];
    a.x_step[k] = block.from[k];
    a.y_step[k] = block.to[k];
  }
  a.x_first = block.from_first;
  a.y_first = block.to_first;
  a.whole = whole;
  return call.ops().copy(a);
}

// Columns [first, first + count) of each head of x [R, heads * stride]: [heads * R, count], the
// rows of a head together, or [R, heads * count].
Result<Tensor> of_heads(ForwardCall& call, const Tensor& x, int64_t heads, int64_t first,
                        int64_t count, bool by_head) {
  const int64_t rows = x.rows(), stride = x.cols() / heads;
  const Shape shape = by_head ? Shape{heads * rows, count} : Shape{rows, heads * count};
  LOOM_ASSIGN(const Tensor y, call.tensor(shape));
  Block block{{rows, heads, count}, {x.cols(), stride, 1}, {heads * count, count, 1}, first, 0};
  if (by_head) block.to[0] = count, block.to[1] = rows * count;
  LOOM_TRY(move(call, x, block, true, y));
  return y;
}

// The first row of each head in a matrix of `heads` times `rows` rows.
Result<Tensor> starts_of(ForwardCall& call, int64_t heads, int64_t rows) {
  LOOM_ASSIGN(const Tensor equal, call.tensor(Shape{rows, heads}));
  LOOM_TRY(call.ops().fill({equal, 0.0f}));
  LOOM_ASSIGN(const Tensor ids, call.ids(Shape{rows, heads}));
  LOOM_ASSIGN(const Tensor slots, call.ids(Shape{rows, heads}));
  LOOM_TRY(call.ops().top_experts({equal, {}, ids, slots}));  // each row chooses all heads
  const Shape pairs{rows * heads};
  LOOM_ASSIGN(const Tensor starts, call.ids(Shape{heads + 1}));
  LOOM_ASSIGN(const Tensor row_of, call.ids(pairs));
  LOOM_ASSIGN(const Tensor head_of, call.ids(pairs));
  LOOM_ASSIGN(const Tensor positions, call.ids(pairs));
  LOOM_TRY(call.ops().group_rows({ids, starts, row_of, head_of, positions}));
  return starts;
}

Result<Tensor> by_head_product(ForwardCall& call, const Tensor& x, const Tensor& starts, int weight,
                               int64_t width) {
  LOOM_ASSIGN(const Tensor y, call.tensor(Shape{x.rows(), width}));
  LOOM_TRY(call.ops().expert_matmul({x, starts, call.param(static_cast<size_t>(weight)), y}));
  return y;
}

// [k_r, c] of each row.
Result<Tensor> keys(ForwardCall& call, const Sizes& s, const Indices& at) {
  LOOM_ASSIGN(const Tensor both, product(call, call.x(), at.kv_down));
  LOOM_ASSIGN(Tensor latent, of_heads(call, both, 1, 0, s.latent, false));
  LOOM_ASSIGN(latent, normed(call, latent, at.kv_norm));
  LOOM_ASSIGN(Tensor with_positions, of_heads(call, both, 1, s.latent, s.rope, false));
  LOOM_ASSIGN(with_positions, rotated(call, with_positions, s.rope, s.rope));
  LOOM_ASSIGN(const Tensor y, call.tensor(Shape{both.rows(), s.key}));
  LOOM_TRY(call.ops().unary({with_positions, slice_cols(y, 0, s.rope)}));
  LOOM_TRY(call.ops().unary({latent, slice_cols(y, s.rope, s.latent)}));
  return y;
}

// [q_r, Wk^T q_n] of each head.
Result<Tensor> queries(ForwardCall& call, const Sizes& s, const Indices& at, const Tensor& starts) {
  Tensor x = call.x();
  if (at.q_down >= 0) {
    LOOM_ASSIGN(x, product(call, x, at.q_down));
    LOOM_ASSIGN(x, normed(call, x, at.q_norm));
  }
  LOOM_ASSIGN(const Tensor q, product(call, x, at.q));
  LOOM_ASSIGN(Tensor with_positions, of_heads(call, q, s.heads, s.nope, s.rope, false));
  LOOM_ASSIGN(with_positions, rotated(call, with_positions, s.rope, s.rope));
  LOOM_ASSIGN(const Tensor plain, of_heads(call, q, s.heads, 0, s.nope, true));
  LOOM_ASSIGN(const Tensor latent, by_head_product(call, plain, starts, at.k_up, s.latent));
  const int64_t rows = q.rows(), width = s.heads * s.key;
  LOOM_ASSIGN(const Tensor y, call.tensor(Shape{rows, width}));
  LOOM_TRY(move(call, with_positions,
                {{rows, s.heads, s.rope}, {s.heads * s.rope, s.rope, 1}, {width, s.key, 1}}, false,
                y));
  LOOM_TRY(move(
      call, latent,
      {{rows, s.heads, s.latent}, {s.latent, rows * s.latent, 1}, {width, s.key, 1}, 0, s.rope},
      false, y));
  return y;
}

}  // namespace

Result<Tensor> rotated(ForwardCall& call, const Tensor& x, int64_t head_dim, int64_t rotary_dim) {
  RopeArgs r;
  r.x = x;
  LOOM_ASSIGN(r.y, call.like(x));
  const PositionTable& angles = call.position_table();
  r.cos = angles.cos;
  r.sin = angles.sin;
  r.heads = x.cols() / head_dim;
  r.first = call.first();
  r.row_positions = call.row_positions();
  r.length = r.row_positions.empty() ? x.rows() / call.sequences() : 0;
  r.rotary_dim = rotary_dim;
  LOOM_TRY(call.ops().rope(r));
  return r.y;
}

bool is_latent(const LayerConfig& c) {
  return c.integer(kLatent) > 0;
}

int64_t latent_key_width(const LayerConfig& c) {
  return Sizes(c).key;
}

void latent_params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  const Sizes s(c);
  const int64_t width = c.integer(kWidth), rank = c.integer(kLatentQ);
  if (rank > 0) {
    out.push_back({"q_down", Shape{rank, width}, Init::glorot});
    out.push_back({"q_down_norm", Shape{rank}, Init::ones});
  }
  out.push_back(
      {rank > 0 ? "q_up" : "q", Shape{s.heads * s.head, rank > 0 ? rank : width}, Init::glorot});
  out.push_back({"kv_down", Shape{s.latent + s.rope, width}, Init::glorot});
  out.push_back({"kv_down_norm", Shape{s.latent}, Init::ones});
  out.push_back({"k_up", Shape{s.heads * s.latent, s.nope}, Init::fan_in});
  out.push_back({"v_up", Shape{s.heads * s.value, s.latent}, Init::fan_in});
  out.push_back({"o", Shape{width, s.heads * s.value}, Init::glorot});
  if (c.flag(kSinks)) out.push_back({"sinks", Shape{s.heads}});
}

Status check_latent(const LayerConfig& c) {
  const bool plain = !c.flag(kBias) && !c.flag(kOutBias) && !c.flag(kQkNorm) && !c.flag(kSubNorm) &&
                     c.real(kClip) == 0 && c.integer(kKvHeads) == c.integer(kHeads);
  if (!plain) {
    return invalid(
        "MultiHeadAttention: the latent form has no bias, out_bias, qk_norm, sub_norm and clip, "
        "and "
        "as many kv_heads as heads");
  }
  const Sizes s(c);
  if (s.rope > 0 && s.nope > 0 && c.flag(kRope)) return {};
  return invalid(
      cat("MultiHeadAttention: the latent form needs rope and a rope_width below head_dim ", s.head,
          "; rope_width is ", s.rope));
}

Result<LatentOperands> latent_operands(ForwardCall& call) {
  const Sizes s(call.config());
  const Indices at(call.config());
  LatentOperands y;
  LOOM_ASSIGN(y.starts, starts_of(call, s.heads, call.x().rows()));
  LOOM_ASSIGN(y.q, queries(call, s, at, y.starts));
  LOOM_ASSIGN(y.k, keys(call, s, at));
  LOOM_ASSIGN(y.v, call.like(y.k));
  LOOM_TRY(call.ops().unary({y.k, y.v}));
  return y;
}

Result<Tensor> latent_output(ForwardCall& call, const LatentOperands& from, const Tensor& mixed) {
  const Sizes s(call.config());
  const Indices at(call.config());
  LOOM_ASSIGN(const Tensor latent, of_heads(call, mixed, s.heads, s.rope, s.latent, true));
  LOOM_ASSIGN(const Tensor values, by_head_product(call, latent, from.starts, at.v_up, s.value));
  const int64_t rows = mixed.rows();
  LOOM_ASSIGN(const Tensor joined, call.tensor(Shape{rows, s.heads * s.value}));
  LOOM_TRY(move(
      call, values,
      {{rows, s.heads, s.value}, {s.value, rows * s.value, 1}, {s.heads * s.value, s.value, 1}},
      true, joined));
  LOOM_ASSIGN(const Tensor y, call.like(call.x()));
  LOOM_TRY(call.ops().matmul({joined, call.param(static_cast<size_t>(at.o)), {}, y}));
  return y;
}

}  // namespace loom::core
