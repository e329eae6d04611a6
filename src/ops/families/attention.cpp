// Checks and gradient rules of rotation, caches and attention. products.cpp describes the layout of
// a check.
#include <tuple>

#include "ops/check_rules.hpp"
#include "ops/checks.hpp"
#include "ops/gradients/gradient_rules.hpp"
#include "ops/gradients/gradient_support.hpp"

namespace loom::core {

bool KvCache::can_hold(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  const bool plain = info.kind == NumberKind::ieee && info.bits <= 32;
  const bool blocks = info.scale == ScaleRule::f16 && info.zero == ZeroRule::none &&
                      info.block == 32 && (info.bits == 8 || info.bits == 4);
  return plain || blocks;
}

int64_t KvCache::sequence_bytes() const {
  const DTypeInfo& info = dtype_info(dtype);
  const int64_t scales = info.block > 0 ? sequence_numbers() / info.block * 2 : 0;
  return plain_bytes(dtype, Shape{sequence_numbers()}) + scales;
}

using Target = Differentiator::Target;

namespace {

using rules::apart;
using rules::apart_from;
using rules::disagree;
using rules::matrix_or_absent;
using rules::Named;
using rules::op_error;
using rules::plain;
using rules::rows_in_rows_out;
using rules::same_shape;

Status heads_divide(std::string_view op, std::string_view name, const Tensor& t, int64_t heads) {
  if (heads >= 1 && t.cols() % heads == 0) return {};
  return op_error(op, name, " ", t.shape.str(), " cannot be cut into ", heads,
                  " heads: the last extent must divide");
}

// slopes and sinks: absent, or one value per head.
template <class Args>
Status per_head(std::string_view op, const Args& args) {
  if (!args.slopes.empty())
    LOOM_TRY(rules::vector(op, "slopes", args.slopes, args.heads, DType::f32));
  if (args.sinks.empty()) return {};
  return rules::vector(op, "sinks", args.sinks, args.heads, args.q.dtype);
}

// Positions of rows. Their contents are known only when the op runs; the caller must ensure that
// they are valid.
Status placed(std::string_view op, const Tensor& row_positions, int64_t rows, int64_t first) {
  if (row_positions.empty()) return {};
  LOOM_TRY(plain(op, "places", row_positions, DType::i32));
  if (row_positions.shape.rank() != 2 || row_positions.rows() != rows || row_positions.cols() < 2) {
    return op_error(op, "places ", row_positions.shape.str(), " must be ", Shape{rows, 2}.str(),
                    ": a sequence and a position for each row, then pages, if there are any");
  }
  if (first == 0) return {};
  return op_error(op, "rows have places of their own and begin at ", first, ": one or the other");
}

// The common checks of attend and attend_dx.
template <class Args>
Status sequences(std::string_view op, const Args& args) {
  const auto& [q, k, v, mask] = std::tie(args.q, args.k, args.v, args.mask);
  LOOM_TRY(plain(op, "q", q));
  LOOM_TRY(plain(op, "k", k, q.dtype));
  LOOM_TRY(plain(op, "v", v, q.dtype));
  LOOM_TRY(same_shape(op, "k", k, "v", v));
  if (args.sequences < 1 || q.rows() % args.sequences != 0) {
    return op_error(op, "q ", q.shape.str(), " cannot be cut into ", args.sequences,
                    " sequences: the first extent must divide");
  }
  if (args.kv_heads < 1 || args.heads < 1 || args.heads % args.kv_heads != 0) {
    return op_error(op, args.heads, " heads do not divide among ", args.kv_heads, " kv heads");
  }
  const int64_t width = q.cols() / args.heads;
  if (q.cols() % args.heads != 0 || k.rows() != q.rows() || k.cols() != width * args.kv_heads) {
    return disagree(
        op, "q", q, "k", k,
        cat("as many rows, ", args.heads, " and ", args.kv_heads, " heads of one width"));
  }
  if (args.window < 0) return op_error(op, "window is ", args.window, ": it must not be negative");
  LOOM_TRY(rules::soft_cap(op, args.soft_cap));
  LOOM_TRY(per_head(op, args));
  LOOM_TRY(placed(op, args.row_positions, q.rows(), 0));
  if (!args.row_positions.empty() && !args.causal)
    return op_error(op, "rows with places of their own are causal; these are not");
  return matrix_or_absent(op, "mask", mask, args.sequences, q.rows() / args.sequences, q.dtype);
}

// Rows without `places` belong to the only sequence.
Status one_sequence(std::string_view op, const Tensor& row_positions, const KvCache& cache) {
  if (!row_positions.empty() || cache.sequences == 1) return {};
  return op_error(op, "the cache has ", cache.sequences,
                  " sequences, so each row needs a place that says whose it is");
}

}  // namespace

Status check(const RopeArgs& args) {
  const auto& [x, y, cos, sin, heads, first, length, inverse, rotary_dim, row_positions] = args;
  LOOM_TRY(rows_in_rows_out("rope", x, y));
  LOOM_TRY(plain("rope", "cos", cos, DType::f32));
  LOOM_TRY(plain("rope", "sin", sin, DType::f32));
  LOOM_TRY(same_shape("rope", "cos", cos, "sin", sin));
  LOOM_TRY(heads_divide("rope", "x", x, heads));
  if (rotary_dim < 0 || rotary_dim > x.cols() / heads) {
    return op_error("rope", "rotary_dim is ", rotary_dim, ": a head has ", x.cols() / heads,
                    " values");
  }
  if (rotary_dim > 0 && rotary_dim != cos.cols() * 2) {
    return op_error("rope", "rotary_dim is ", rotary_dim, ": it must be twice as wide as cos ",
                    cos.shape.str());
  }
  if (rotary_dim == 0 && x.cols() != cos.cols() * heads * 2) {
    return disagree("rope", "x", x, "cos", cos,
                    cat("each of ", heads, " heads must be twice as wide as cos"));
  }
  if (length < 0 || (length > 0 && x.rows() % length != 0)) {
    return op_error("rope", "x ", x.shape.str(), " cannot be cut into runs of ", length,
                    " rows: the first extent must divide");
  }
  LOOM_TRY(placed("rope", row_positions, x.rows(), first + length));
  const int64_t run = length > 0 ? length : x.rows();
  if (first < 0 || (row_positions.empty() && first > cos.rows() - run)) {
    return op_error("rope", "x ", x.shape.str(), " at position ", first, " does not fit cos ",
                    cos.shape.str());
  }
  LOOM_TRY(apart("rope", "y", y, "cos", cos));
  return apart("rope", "y", y, "sin", sin);
}

Status gradient_rule(Differentiator& d, const RopeArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Target x, d.gradient_target(a.x));
  if (x.out.empty()) return {};
  RopeArgs back = a;
  back.x = dy;
  back.y = x.out;
  back.inverse = !a.inverse;
  LOOM_TRY(d.ops().rope(back));
  return d.accumulate(x);
}

Status check(const KvWriteArgs& args) {
  const auto& [k, v, cache, first, row_positions] = args;
  LOOM_TRY(plain("kv_write", "k", k, DType::f32));
  LOOM_TRY(plain("kv_write", "v", v, DType::f32));
  LOOM_TRY(rules::cache("kv_write", cache));
  LOOM_TRY(same_shape("kv_write", "k", k, "v", v));
  if (k.cols() != cache.kv_heads * cache.head_dim) {
    return op_error("kv_write", "k ", k.shape.str(), " does not fit a cache of ", cache.kv_heads,
                    " heads of ", cache.head_dim);
  }
  LOOM_TRY(placed("kv_write", row_positions, k.rows(), first));
  LOOM_TRY(one_sequence("kv_write", row_positions, cache));
  if (first < 0 || (row_positions.empty() && first > cache.capacity - k.rows())) {
    return op_error("kv_write", "k ", k.shape.str(), " at position ", first,
                    " does not fit a cache of ", cache.capacity, " positions");
  }
  return {};
}

Status check(const AttentionArgs& args) {
  const auto& [q, y, cache, heads, first, length, window, scale, causal, soft_cap, row_positions,
               slopes, sinks] = args;
  LOOM_TRY(plain("attention", "q", q, DType::f32));
  LOOM_TRY(plain("attention", "y", y, DType::f32));
  LOOM_TRY(rules::cache("attention", cache));
  LOOM_TRY(same_shape("attention", "q", q, "y", y));
  if (heads < 1 || heads % cache.kv_heads != 0) {
    return op_error("attention", heads, " heads do not divide among ", cache.kv_heads, " kv heads");
  }
  if (q.cols() != heads * cache.head_dim) {
    return op_error("attention", "q ", q.shape.str(), " is not ", heads, " heads of ",
                    cache.head_dim);
  }
  if (length < 0 || length > cache.capacity) {
    return op_error("attention", "length ", length, " is not within a cache of ", cache.capacity,
                    " positions");
  }
  LOOM_TRY(placed("attention", row_positions, q.rows(), first));
  LOOM_TRY(one_sequence("attention", row_positions, cache));
  if (!row_positions.empty() && !causal)
    return op_error("attention", "rows with places of their own are causal; these are not");
  if (first < 0 || (causal && row_positions.empty() && first > length - q.rows())) {
    return op_error("attention", "q ", q.shape.str(), " at position ", first, " does not fit ",
                    length, " positions");
  }
  if (window < 0) return op_error("attention", "window is ", window, ": it must not be negative");
  LOOM_TRY(rules::soft_cap("attention", soft_cap));
  LOOM_TRY(per_head("attention", args));
  return apart_from("attention", "y", y, {{"q", q}, {"slopes", slopes}, {"sinks", sinks}});
}

Status check(const AttendArgs& args) {
  const auto& [q, k, v, y, mask, n, heads, kv_heads, window, scale, causal, cap, slopes, sinks,
               row_positions] = args;
  LOOM_TRY(sequences("attend", args));
  LOOM_TRY(plain("attend", "y", y, q.dtype));
  LOOM_TRY(same_shape("attend", "q", q, "y", y));
  return apart_from("attend", "y", y,
                    {{"q", q},
                     {"k", k},
                     {"v", v},
                     {"mask", mask},
                     {"slopes", slopes},
                     {"sinks", sinks},
                     {"places", row_positions}});
}

Status gradient_rule(Differentiator& d, const AttendArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Target q, d.gradient_target(a.q));
  LOOM_ASSIGN(const Target k, d.gradient_target(a.k));
  LOOM_ASSIGN(const Target v, d.gradient_target(a.v));
  LOOM_ASSIGN(const Target sinks, d.gradient_target(a.sinks, true));
  if (q.out.empty() && k.out.empty() && v.out.empty() && sinks.out.empty()) return {};
  AttendDxArgs g;
  g.q = a.q;
  g.k = a.k;
  g.v = a.v;
  g.dy = dy;
  g.mask = a.mask;
  g.dq = q.out.empty() ? d.fresh(a.q.shape) : q.out;
  g.dk = k.out.empty() ? d.fresh(a.k.shape) : k.out;
  g.dv = v.out.empty() ? d.fresh(a.v.shape) : v.out;
  g.sequences = a.sequences;
  g.heads = a.heads;
  g.kv_heads = a.kv_heads;
  g.window = a.window;
  g.scale = a.scale;
  g.causal = a.causal;
  g.soft_cap = a.soft_cap;
  g.slopes = a.slopes;
  g.sinks = a.sinks;
  g.row_positions = a.row_positions;
  if (!a.sinks.empty()) g.dsinks = d.fresh(Shape{a.q.rows(), a.heads});
  LOOM_TRY(d.ops().attend_dx(g));
  if (!sinks.out.empty()) LOOM_TRY(d.ops().reduce_cols({g.dsinks, sinks.out, sinks.accumulate}));
  LOOM_TRY(d.accumulate(q));
  LOOM_TRY(d.accumulate(k));
  return d.accumulate(v);
}

Status check(const AttendDxArgs& args) {
  const auto& [q, k, v, dy, mask, dq, dk, dv, n, heads, kv_heads, window, scale, causal, cap,
               slopes, sinks, dsinks, row_positions] = args;
  LOOM_TRY(sequences("attend_dx", args));
  LOOM_TRY(plain("attend_dx", "dy", dy, q.dtype));
  LOOM_TRY(same_shape("attend_dx", "q", q, "dy", dy));
  LOOM_TRY(plain("attend_dx", "dq", dq, q.dtype));
  LOOM_TRY(same_shape("attend_dx", "q", q, "dq", dq));
  for (const Named& out : {Named{"dk", dk}, Named{"dv", dv}}) {
    LOOM_TRY(plain("attend_dx", out.name, out.t, q.dtype));
    LOOM_TRY(same_shape("attend_dx", "k", k, out.name, out.t));
  }
  if (sinks.empty() != dsinks.empty())
    return op_error("attend_dx", "sinks and dsinks come together");
  LOOM_TRY(matrix_or_absent("attend_dx", "dsinks", dsinks, q.rows(), heads, q.dtype));
  for (const Named& out :
       {Named{"dq", dq}, Named{"dk", dk}, Named{"dv", dv}, Named{"dsinks", dsinks}}) {
    LOOM_TRY(apart_from("attend_dx", out.name, out.t,
                        {{"q", q},
                         {"k", k},
                         {"v", v},
                         {"dy", dy},
                         {"mask", mask},
                         {"slopes", slopes},
                         {"sinks", sinks}}));
  }
  LOOM_TRY(apart_from("attend_dx", "dsinks", dsinks, {{"dq", dq}, {"dk", dk}, {"dv", dv}}));
  LOOM_TRY(apart_from("attend_dx", "dq", dq, {{"dk", dk}, {"dv", dv}}));
  return apart("attend_dx", "dk", dk, "dv", dv);
}

}  // namespace loom::core
