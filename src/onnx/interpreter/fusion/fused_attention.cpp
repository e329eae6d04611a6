// Attention as ONNX Runtime's optimizer writes it (com.microsoft): with projections of its own,
// masks of several forms, and caches. All of them become the standard's Attention, with what they
// add to a score as one mask. Formulas: ContribOperators.md of ONNX Runtime.
#include <algorithm>
#include <array>
#include <limits>

#include "onnx/interpreter/families.hpp"
#include "onnx/interpreter/parts.hpp"

namespace loom::core::evaluate {
namespace {

constexpr std::string_view kMs = "com.microsoft";
constexpr float kNever = std::numeric_limits<float>::lowest();

// The extents of scores: B samples, S queries, T keys, P of them from before.
struct Scores {
  int64_t batch, rows, past, total;
};

// Whether a mask shows key j to query i: [B] where keys end, [2 B] where they end and begin, [B, T]
// or [B, S, T] by what is above 0.
bool shows(const Value& mask, const Scores& s, int64_t b, int64_t i, int64_t j) {
  const auto* m = mask.data<int32_t>();
  if (mask.rank() == 1) return j < m[b] && (mask.count() == s.batch || j >= m[s.batch + b]);
  return m[(mask.rank() == 2 ? b : b * s.rows + i) * s.total + j] > 0;
}

Status check_mask(const Call& c, const Value& mask, const Scores& s) {
  const int64_t n = mask.count();
  if (mask.rank() == 4 || (mask.rank() == 1 && n != s.batch && n == 3 * s.batch + 2))
    return c.not_done("a mask of this form");
  const bool fits = (mask.rank() == 1 && (n == s.batch || n == 2 * s.batch)) ||
                    mask.dims == Dims{s.batch, s.total} ||
                    mask.dims == Dims{s.batch, s.rows, s.total};
  if (mask.type != OnnxType::i32 || !fits) return c.bad("a mask that does not fit");
  return {};
}

// The addend of scores: mask `m`, `bias`, and with attribute `unidirectional` what comes later,
// except for the last query: ONNX Runtime lets it see all keys, which matters where there are more
// keys than queries. A value without extents: nothing.
Result<Value> added(const Call& c, size_t m, size_t bias, const Scores& s) {
  const bool causal = c.integer("unidirectional", 0) != 0 && s.rows > 1;
  Value sum;
  if (c.has(m) || causal) {
    if (c.has(m)) LOOM_TRY(check_mask(c, c.value(m), s));
    const auto hidden = static_cast<float>(c.real("mask_filter_value", -10000));
    LOOM_ASSIGN(sum, c.make(OnnxType::f32, {s.batch, 1, s.rows, s.total}));
    for (int64_t at = 0; at < sum.count(); ++at) {
      const int64_t j = at % s.total, i = at / s.total % s.rows, b = at / s.total / s.rows;
      const bool later = causal && i + 1 < s.rows && j > s.past + i;
      const bool shown = !c.has(m) || shows(c.value(m), s, b, i, j);
      sum.data<float>()[at] = later ? kNever : shown ? 0 : hidden;
    }
  }
  if (!c.has(bias)) return sum;
  LOOM_ASSIGN(const Value more, c.as(bias, OnnxType::f32));
  return sum.dims.empty() ? Result<Value>(more) : combine(c, Pair::add, sum, more);
}

struct Attended {
  Value q, k, v;  // [B, S, H D], keys and values also as [B, H, T, D]
  int64_t heads, groups;
  Value mask, past_k, past_v;  // without extents: none
};
const Value* present(const Value& v) {
  return v.dims.empty() ? nullptr : &v;
}

// Output, keys and values with those from before, and masked scores.
Result<std::vector<Slot>> attend(const Call& c, const Attended& a) {
  Part part(c, "Attention");
  part.set("q_num_heads", a.heads).set("kv_num_heads", a.groups);
  part.set("qk_matmul_output_mode", int64_t{2}).keep("softcap");
  if (c.real("scale", 0) != 0) part.keep("scale");
  return part.values({&a.q, &a.k, &a.v, present(a.mask), present(a.past_k), present(a.past_v)},
                     c.wants(3) ? 4 : 3);
}

// Places along the last axis, plus a bias for them.
Result<Value> columns(const Call& c, const Value& x, int64_t first, int64_t count,
                      const Value* bias) {
  if (first + count > x.last() || count < 1) return c.bad("widths that do not fit");
  LOOM_ASSIGN(const Value y, part_of(c, x, x.rank() - 1, first, count));
  if (bias == nullptr) return y;
  if (bias->rank() != 1 || bias->count() < first + count) return c.bad("a bias that does not fit");
  LOOM_ASSIGN(const Value shift, part_of(c, *bias, 0, first, count));
  return combine(c, Pair::add, y, shift);
}

// Number i of those that input `x` [2, B, H, P, D] has from before.
Result<Value> half_of(const Call& c, size_t x, int64_t i) {
  if (!c.has(x)) return Value{};
  LOOM_ASSIGN(const Value both, c.as(x, OnnxType::f32));
  if (both.rank() != 5 || both.dims[0] != 2) return c.bad("a past must be [2, B, heads, P, size]");
  LOOM_ASSIGN(const Value one, part_of(c, both, 0, i, 1));
  return one.view_as(Dims(both.dims.begin() + 1, both.dims.end()));
}

// x W + b in three parts, each by heads.
Status attention(const Call& c) {
  for (const char* name : {"do_rotary", "past_present_share_buffer"}) {
    if (c.integer(name, 0) != 0) return c.not_done(name);
  }
  if (c.has(6)) return c.not_done("past_sequence_length");
  LOOM_ASSIGN(const Value x, c.as(0, OnnxType::f32));
  LOOM_ASSIGN(const Value w, c.as(1, OnnxType::f32));
  if (x.rank() != 3 || w.rank() != 2) return c.bad("takes [B, S, W] and weights of two axes");
  Dims sizes = c.list("qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, w.last() / 3);
  if (sizes.size() != 3) return c.bad("qkv_hidden_sizes must be three");
  LOOM_ASSIGN(const Value all, Part(c, "MatMul").with(c.prepared).value({&x, &w}));
  Value bias;
  if (c.has(2)) {
    LOOM_ASSIGN(bias, c.as(2, OnnxType::f32));
  }
  Attended a{};
  a.heads = a.groups = c.integer("num_heads", 0);
  int64_t first = 0;
  const std::array<Value*, 3> parts{&a.q, &a.k, &a.v};
  for (size_t i = 0; i < 3; first += sizes[i++]) {
    LOOM_ASSIGN(*parts[i], columns(c, all, first, sizes[i], present(bias)));
  }
  LOOM_ASSIGN(a.past_k, half_of(c, 4, 0));
  LOOM_ASSIGN(a.past_v, half_of(c, 4, 1));
  const int64_t past = a.past_k.dims.empty() ? 0 : a.past_k.dims[2], rows = x.dims[1];
  LOOM_ASSIGN(a.mask, added(c, 3, 5, {x.dims[0], rows, past, past + rows}));
  LOOM_ASSIGN(const std::vector<Slot> made, attend(c, a));
  LOOM_TRY(c.give_as(made[0].tensor, c.value(0).type));
  if (!c.wants(1)) return {};
  Dims dims = made[1].tensor.dims;
  if (made[2].tensor.dims != dims) return c.not_done("a present of values of another size");
  dims.insert(dims.begin(), 1);
  const Value k = made[1].tensor.view_as(dims), v = made[2].tensor.view_as(dims);
  LOOM_ASSIGN(const Value both, Part(c, "Concat").set("axis", int64_t{0}).value({&k, &v}));
  return c.give_as(both, c.value(0).type, 1);
}
Part::PreparedResult prepare_attention(const Call& c) {
  return Part(c, "MatMul").prepare({nullptr, optional(c, 1)});
}

// The same of an input and weights in 8 bits, whose scales are inputs 3 and 4.
Status q_attention(const Call& c) {
  LOOM_ASSIGN(const Value x,
              Part(c, "DequantizeLinear").value({optional(c, 0), optional(c, 3), optional(c, 6)}));
  LOOM_ASSIGN(const Value w, Part(c, "DequantizeLinear")
                                 .set("axis", int64_t{1})
                                 .value({optional(c, 1), optional(c, 4), optional(c, 7)}));
  Part part(c, "Attention", kMs);
  for (const OnnxAttribute& a : c.node.attributes) part.keep(a.name);
  LOOM_ASSIGN(
      std::vector<Slot> made,
      part.values({&x, &w, optional(c, 2), optional(c, 5), optional(c, 8)}, c.wants(1) ? 2 : 1));
  LOOM_TRY(c.give(made[0].tensor));
  return c.wants(1) ? c.give(made[1].tensor, 1) : Status{};
}

// Number i of `count` that [B, T, H, count, D] holds, as [B, T, H D].
Result<Value> unpacked(const Call& c, const Value& x, int64_t i, int64_t count) {
  if (x.rank() != 5 || x.dims[3] != count)
    return c.bad(cat("takes [B, T, heads, ", count, ", size] where keys or values are left out"));
  LOOM_ASSIGN(const Value one, part_of(c, x, 3, i, 1));
  return one.view_as({x.dims[0], x.dims[1], x.dims[2] * x.dims[4]});
}

// Queries, keys and values, which may be in one input or two.
Status take_inputs(const Call& c, Attended& a) {
  LOOM_ASSIGN(a.q, c.as(0, OnnxType::f32));
  if (!c.has(1)) {
    const Value all = a.q;
    LOOM_ASSIGN(a.q, unpacked(c, all, 0, 3));
    LOOM_ASSIGN(a.k, unpacked(c, all, 1, 3));
    LOOM_ASSIGN(a.v, unpacked(c, all, 2, 3));
    return {};
  }
  LOOM_ASSIGN(a.k, c.as(1, OnnxType::f32));
  if (c.has(2)) {
    LOOM_ASSIGN(a.v, c.as(2, OnnxType::f32));
    return {};
  }
  const Value both = a.k;
  LOOM_ASSIGN(a.k, unpacked(c, both, 0, 2));
  LOOM_ASSIGN(a.v, unpacked(c, both, 1, 2));
  return {};
}

Status multi_head(const Call& c) {
  if (c.has(8) || c.has(9)) return c.not_done("a cache that is shared");
  Attended a{};
  a.heads = a.groups = c.integer("num_heads", 0);
  LOOM_TRY(take_inputs(c, a));
  if (a.q.rank() != 3 || (a.k.rank() != 3 && a.k.rank() != 4) || a.v.rank() != a.k.rank())
    return c.bad("queries, keys and values that do not fit");
  if (c.has(3)) {
    LOOM_ASSIGN(const Value bias, c.as(3, OnnxType::f32));
    const int64_t width = a.q.last();
    int64_t first = 0;
    for (Value* x : {&a.q, &a.k, &a.v}) {  // keys by heads have their bias already
      if (x->rank() != 3) break;
      const int64_t count = x->last();
      LOOM_ASSIGN(const Value shift, columns(c, bias, first, count, nullptr));
      LOOM_ASSIGN(*x, combine(c, Pair::add, *x, shift));
      first += count;
    }
    if (a.k.rank() == 3 && first != bias.count()) return c.bad("a bias that does not fit");
    if (width < 1) return c.bad("queries of no width");
  }
  for (size_t i = 6; i < 8; ++i) {
    if (!c.has(i)) continue;
    LOOM_ASSIGN((i == 6 ? a.past_k : a.past_v), c.as(i, OnnxType::f32));
    if (c.value(i).rank() != 4) return c.bad("a past that does not fit");
  }
  const int64_t past = a.past_k.dims.empty() ? 0 : a.past_k.dims[2];
  const int64_t keys = a.k.dims[a.k.rank() == 4 ? 2 : 1];
  LOOM_ASSIGN(a.mask, added(c, 4, 5, {a.q.dims[0], a.q.dims[1], past, past + keys}));
  LOOM_ASSIGN(const std::vector<Slot> made, attend(c, a));
  for (size_t i = 0; i < made.size(); ++i) LOOM_TRY(c.give_as(made[i].tensor, c.value(0).type, i));
  return {};
}

// Positions [B, S] from `first` of each sample on.
Result<Value> positions(const Call& c, const Dims& first, int64_t rows) {
  const auto batch = static_cast<int64_t>(first.size());
  LOOM_ASSIGN(Value v, c.make(OnnxType::i64, {batch, rows}));
  for (int64_t i = 0; i < v.count(); ++i)
    v.data<int64_t>()[i] = first[static_cast<size_t>(i / rows)] + i % rows;
  return v;
}

Status rotary(const Call& c) {
  if (c.integer("is_packed_batching", 0) != 0) return c.not_done("is_packed_batching");
  if (c.real("scale", 1) != 1) return c.not_done("a scale");
  const Value &x = c.value(0), &cosines = c.value(2);
  if ((x.rank() != 3 && x.rank() != 4) || cosines.rank() != 2 || cosines.last() < 1)
    return c.bad("takes [B, S, heads size] or [B, heads, S, size], and angles of two axes");
  Value at = c.value(1);
  if (at.count() == 1) {
    LOOM_ASSIGN(const int64_t first, c.whole_number(1, 0));
    const Dims all(static_cast<size_t>(x.dims[0]), first);
    LOOM_ASSIGN(at, positions(c, all, x.dims[x.rank() == 3 ? 1 : 2]));
  }
  const int64_t transposed = c.integer("rotary_embedding_dim", 0);
  const int64_t heads =
      transposed > 0 ? c.integer("num_heads", 0) : x.last() / (2 * cosines.last());
  Part part(c, "RotaryEmbedding");
  part.keep("interleaved").set("rotary_embedding_dim", transposed).set("num_heads", heads);
  LOOM_ASSIGN(Value y, part.value({&x, &cosines, &c.value(3), &at}));
  return c.give(std::move(y));
}

// The tokens of a step begin at `first` of each sample, in a cache of `room` tokens.
struct Step {
  int64_t batch, rows, room;
  bool prompt;  // the first step, which may be padded
  Dims first, lengths;
};

Result<Step> step_of(const Call& c, const Value& q) {
  LOOM_ASSIGN(const int64_t total, c.whole_number(6, 0));
  Step s{q.dims[0], q.dims[1], total, total == q.dims[1], {}, {}};
  LOOM_ASSIGN(s.lengths, c.int_list(5));
  if (static_cast<int64_t>(s.lengths.size()) != s.batch)
    return c.bad("seqlens_k must have a number per sample");
  const int64_t known = c.has(3) && c.value(3).rank() == 4 ? c.value(3).dims[2] : 0;
  if (total < s.rows) return c.bad("total_sequence_length is less than the tokens of the step");
  s.room = std::max(total, known);
  for (int64_t& length : s.lengths) {
    length += 1;
    const int64_t first = s.prompt ? 0 : length - s.rows;
    if (length < 1 || length > s.room || first < 0 || first > known)
      return c.bad("seqlens_k that do not fit");
    s.first.push_back(first);
  }
  return s;
}

// The past and the new rows of a sample, in a cache of `room` tokens; zeros after them.
Result<Value> cached(const Call& c, size_t past, const Value& fresh, const Step& s, int64_t heads,
                     int64_t room) {
  const int64_t size = fresh.last() / heads;
  LOOM_ASSIGN(Value y, c.make(OnnxType::f32, {s.batch, heads, room, size}));
  fill_zero(y);
  Value before;
  if (c.has(past)) {
    LOOM_ASSIGN(before, c.as(past, OnnxType::f32));
    Dims fits = y.dims;
    if (before.rank() == 4) fits[2] = before.dims[2];
    if (before.dims != fits) return c.bad("a past that does not fit");
  }
  for (int64_t r = 0; r < s.batch * heads; ++r) {
    const int64_t b = r / heads, first = s.first[static_cast<size_t>(b)];
    float* to = y.data<float>() + r * room * size;
    if (first > 0) std::copy_n(before.data<float>() + r * before.dims[2] * size, first * size, to);
    for (int64_t i = 0; i < s.rows; ++i)
      std::copy_n(fresh.data<float>() + ((b * s.rows + i) * heads + r % heads) * size, size,
                  to + (first + i) * size);
  }
  return y;
}

// The addend of the score of each head, query and key. The column after the keys of the cache,
// where there is one, is the sink: it takes a share of the weights and gives nothing.
Result<Value> cache_mask(const Call& c, const Step& s, int64_t heads, bool sink) {
  const int64_t window = c.integer("local_window_size", -1), cols = s.room + (sink ? 1 : 0);
  const bool causal = c.integer("causal", 1) != 0;
  Value bias, weights;
  if (c.has(10)) {
    LOOM_ASSIGN(bias, c.as(10, OnnxType::f32));
    Dims whole{s.batch, heads, s.rows, bias.last()};
    if (bias.rank() != 4 || bias.dims[2] != s.rows || bias.last() > s.room ||
        !broadcast(whole, bias.dims) || whole[0] != s.batch || whole[1] != heads)
      return c.bad("an attention_bias that does not fit");
  }
  if (c.has(11)) {
    LOOM_ASSIGN(weights, c.as(11, OnnxType::f32));
    if (weights.count() != heads) return c.bad("a head_sink per head is needed");
  }
  const Dims steps =
      c.has(10) ? broadcast_steps(bias.dims, {s.batch, heads, s.rows, bias.last()}) : Dims(4, 0);
  const auto at = [&](int64_t b, int64_t h, int64_t i, int64_t j) -> float {
    if (j == s.room) return weights.dims.empty() ? 0 : weights.data<float>()[h];
    const int64_t own = s.first[static_cast<size_t>(b)] + i;
    const bool late = causal ? j > own : j >= s.lengths[static_cast<size_t>(b)];
    if (late || (window > 0 && own - j >= window)) return kNever;
    if (!c.has(10) || j >= bias.last()) return 0;
    return bias.data<float>()[b * steps[0] + h * steps[1] + i * steps[2] + j];
  };
  LOOM_ASSIGN(Value y, c.make(OnnxType::f32, {s.batch, heads, s.rows, cols}));
  for (int64_t r = 0; r < s.batch * heads * s.rows; ++r) {
    for (int64_t j = 0; j < cols; ++j)
      y.data<float>()[r * cols + j] = at(r / s.rows / heads, r / s.rows % heads, r % s.rows, j);
  }
  return y;
}

Status check_group_query(const Call& c) {
  for (const char* name : {"qk_output", "sliding_window_cache", "kv_cache_bit_width"}) {
    if (c.integer(name, 0) != 0) return c.not_done(name);
  }
  for (const char* name : {"k_quant_type", "v_quant_type"}) {
    if (c.text(name, "NONE") != "NONE") return c.not_done(name);
  }
  for (size_t i = 12; i < 17; ++i) {
    if (c.has(i)) return c.not_done(cat("input ", i));
  }
  if (c.has(3) != c.has(4)) return c.bad("past keys and values come together");
  if (!c.has(5) || !c.has(6)) return c.bad("takes seqlens_k and total_sequence_length");
  return {};
}

// The positions that input 9 gives, of a prompt the first one and those after it, as ONNX Runtime
// reads them; without it those in the cache.
Result<Value> step_positions(const Call& c, const Step& s) {
  if (!c.has(9)) return positions(c, s.first, s.rows);
  if (!s.prompt) return c.value(9);
  LOOM_ASSIGN(const Dims ids, c.int_list(9));
  if (ids.empty()) return c.bad("position_ids of no position");
  return positions(c, Dims(static_cast<size_t>(s.batch), ids[0]), s.rows);
}

Result<Value> transposed(const Call& c, const Value& x, int64_t heads, const Value& at) {
  Part part(c, "RotaryEmbedding");
  part.keep("rotary_interleaved", "interleaved").set("num_heads", heads);
  part.set("rotary_embedding_dim", 2 * c.value(7).last());
  LOOM_ASSIGN(const Value cosines, c.as(7, OnnxType::f32));
  LOOM_ASSIGN(const Value sines, c.as(8, OnnxType::f32));
  return part.value({&x, &cosines, &sines, &at});
}

Status group_query(const Call& c) {
  LOOM_TRY(check_group_query(c));
  Attended a{};
  a.heads = c.integer("num_heads", 0), a.groups = c.integer("kv_num_heads", 0);
  LOOM_ASSIGN(const Value first, c.as(0, OnnxType::f32));
  if (first.rank() != 3 || a.heads < 1 || a.groups < 1) return c.bad("takes [B, S, heads size]");
  if (c.has(1) && c.has(2)) {
    a.q = first;
    LOOM_ASSIGN(a.k, c.as(1, OnnxType::f32));
    LOOM_ASSIGN(a.v, c.as(2, OnnxType::f32));
  } else {
    const int64_t size = first.last() / (a.heads + 2 * a.groups), wide = a.groups * size;
    LOOM_ASSIGN(a.q, columns(c, first, 0, a.heads * size, nullptr));
    LOOM_ASSIGN(a.k, columns(c, first, a.heads * size, wide, nullptr));
    LOOM_ASSIGN(a.v, columns(c, first, a.heads * size + wide, wide, nullptr));
  }
  const Dims rows{a.q.dims[0], a.q.dims[1]};
  for (const Value* x : {&a.k, &a.v}) {
    if (x->rank() != 3 || x->dims[0] != rows[0] || x->dims[1] != rows[1] ||
        x->last() * a.heads != a.q.last() * a.groups || x->last() % a.groups != 0)
      return c.bad("queries, keys and values that do not fit");
  }
  LOOM_ASSIGN(const Step s, step_of(c, a.q));
  if (c.integer("do_rotary", 0) != 0) {
    if (!c.has(7) || !c.has(8)) return c.bad("takes cos_cache and sin_cache");
    LOOM_ASSIGN(const Value at, step_positions(c, s));
    LOOM_ASSIGN(a.q, transposed(c, a.q, a.heads, at));
    LOOM_ASSIGN(a.k, transposed(c, a.k, a.groups, at));
  }
  const Value fresh_k = a.k, fresh_v = a.v;
  const bool sink = c.has(11) || c.integer("smooth_softmax", -1) == 1;
  const int64_t room = s.room + (sink ? 1 : 0);
  LOOM_ASSIGN(a.k, cached(c, 3, fresh_k, s, a.groups, room));
  LOOM_ASSIGN(a.v, cached(c, 4, fresh_v, s, a.groups, room));
  LOOM_ASSIGN(a.mask, cache_mask(c, s, a.heads, sink));
  LOOM_ASSIGN(const std::vector<Slot> made, attend(c, a));
  LOOM_TRY(c.give_as(made[0].tensor, c.value(0).type));
  LOOM_ASSIGN(const Value k, part_of(c, a.k, 2, 0, s.room));
  LOOM_ASSIGN(const Value v, part_of(c, a.v, 2, 0, s.room));
  LOOM_TRY(c.give_as(k, c.value(0).type, 1));
  return c.give_as(v, c.value(0).type, 2);
}

constexpr Operator kFusedAttention[] = {
    {kMs, "Attention", attention,
     "aa?aaaaa do_rotary mask_filter_value num_heads past_present_share_buffer qkv_hidden_sizes "
     "rotary_embedding_dim scale unidirectional",
     "", Operator::none, prepare_attention},
    {kMs, "QAttention", q_attention,
     "aaaaa?aaaa do_rotary mask_filter_value num_heads past_present_share_buffer scale "
     "unidirectional"},
    {kMs, "MultiHeadAttention", multi_head,
     "a?aaaaaaaaa mask_filter_value num_heads scale unidirectional"},
    {kMs, "GroupQueryAttention", group_query,
     "a?aaaaaaaaaaaaaaaa causal do_rotary k_norm_epsilon k_quant_type kv_cache_bit_width "
     "kv_num_heads local_window_size num_heads q_norm_epsilon qk_norm_epsilon qk_output "
     "rotary_interleaved scale sliding_window_cache smooth_softmax softcap v_quant_type"},
    {kMs, "RotaryEmbedding", rotary,
     "aaaa interleaved is_packed_batching num_heads rotary_embedding_dim scale"},
};

}  // namespace

std::span<const Operator> fused_attention_operators() {
  return kFusedAttention;
}

}  // namespace loom::core::evaluate
