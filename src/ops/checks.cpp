// One check per row of ops.def, in the order: each tensor alone, then how they fit together, then
// who shares memory; the ops of training are in checks_training.cpp. A check passes exactly when
// the reference body of the op is well-defined on those arguments; ids and the values of tensors
// are not looked at.
#include "ops/checks.hpp"

#include <limits>

#include "base/checked.hpp"
#include "ops/check_rules.hpp"

namespace loom::core {
namespace {

using rules::apart;
using rules::broken;
using rules::disagree;
using rules::in_place_or_apart;
using rules::packed;
using rules::packed_or_plain;
using rules::plain;
using rules::same_shape;

Status rows_in_rows_out(std::string_view op, const Tensor& x, const Tensor& y) {
  LOOM_TRY(plain(op, "x", x));
  return rules::like(op, "y", y, "x", x);
}

Status heads_divide(std::string_view op, std::string_view name, const Tensor& t, int64_t heads) {
  if (heads >= 1 && t.cols() % heads == 0) return {};
  return broken(op, name, " ", t.shape.str(), " cannot be cut into ", heads,
                " heads: the last extent must divide");
}

bool is_ieee(DType dtype) {
  return dtype_info(dtype).kind == NumberKind::ieee;
}

Status packed_rows(const PackArgs& args) {
  LOOM_TRY(plain("pack", "src", args.src, DType::f32));
  LOOM_TRY(rules::rows("pack", args.rows, "w", args.w));
  LOOM_TRY(rules::rows("pack", args.rows, "ranges", args.ranges));
  if (args.scope == ScaleScope::per_row && r16_packs_rows(args.w.dtype)) return {};
  return broken("pack", "rows alone need a scale per row; ", dtype_name(args.w.dtype),
                " has one of the tensor here");
}

Status held_ranges(const PackArgs& args) {
  const int values = r16_held_values(args.w.dtype);
  if (values == 0) {
    return broken("pack", dtype_name(args.w.dtype), " has no scale per row whose range is held");
  }
  if (!(args.band >= 0.0f && args.band < 1.0f))
    return broken("pack", "band is ", args.band, ": it must lie in [0, 1)");
  const int64_t scales = args.scope == ScaleScope::per_tensor ? 1 : args.w.rows();
  LOOM_TRY(plain("pack", "src", args.src, DType::f32));
  LOOM_TRY(rules::vector("pack", "ranges", args.ranges, scales * values, DType::f32));
  LOOM_TRY(apart("pack", "ranges", args.ranges, "src", args.src));
  return apart("pack", "ranges", args.ranges, "w", args.w);
}

}  // namespace

Status check(const MatmulArgs& args) {
  const auto& [x, w, bias, y, q8, activation, use_q8] = args;
  LOOM_TRY(plain("matmul", "x", x));
  LOOM_TRY(packed("matmul", "w", w));
  LOOM_TRY(plain("matmul", "y", y, x.dtype));
  if (x.cols() != w.cols())
    return disagree("matmul", "x", x, "w", w, "both must have the same last extent");
  if (y.rows() != x.rows() || y.cols() != w.rows()) {
    return broken("matmul", "y ", y.shape.str(), " does not fit x ", x.shape.str(), " and w ",
                  w.shape.str(), ": it must have ", x.rows(), " rows of ", w.rows());
  }
  if (!bias.empty()) {
    LOOM_TRY(rules::vector("matmul", "bias", bias, w.rows(), x.dtype));
    LOOM_TRY(apart("matmul", "y", y, "bias", bias));
  }
  LOOM_TRY(apart("matmul", "y", y, "x", x));
  return apart("matmul", "y", y, "w", w);
}

Status check(const QuantiseRowsArgs& args) {
  const Tensor& x = args.x;
  const Q8Rows& q = args.q;
  LOOM_TRY(plain("quantise_rows", "x", x, DType::f32));
  if (q.rows != x.rows() || q.cols != x.cols() || q.blocks != ceil_div(x.cols(), 32)) {
    return broken("quantise_rows", "x ", x.shape.str(), " does not fit q: ", q.rows, " rows of ",
                  q.cols, " values in ", q.blocks, " blocks of 32");
  }
  const bool memory =
      q.codes != nullptr && q.scales != nullptr && q.sums != nullptr && q.half_sums != nullptr;
  if (q.rows * q.blocks > 0 && !memory) return broken("quantise_rows", "q has no memory");
  return {};
}

Status check(const PackArgs& args) {
  if (args.stochastic && !r16_can_dither(args.w.dtype)) {
    return broken("pack", dtype_name(args.w.dtype),
                  " cannot be rounded stochastically: float16, bfloat16, fp8 and integers of 8 and "
                  "16 bits can");
  }
  if (args.stochastic && args.scope == ScaleScope::per_tensor)
    return broken("pack", "stochastic rounding takes a scale per row");
  LOOM_TRY(plain("pack", "src", args.src));
  LOOM_TRY(packed("pack", "w", args.w));
  LOOM_TRY(same_shape("pack", "src", args.src, "w", args.w));
  LOOM_TRY(rules::vector("pack", "src", args.src, args.src.shape.count(), args.src.dtype));
  if (!args.ranges.empty()) LOOM_TRY(held_ranges(args));
  if (!args.rows.empty()) LOOM_TRY(packed_rows(args));
  return apart("pack", "w", args.w, "src", args.src);
}

Status check(const GatherRowsArgs& args) {
  const auto& [table, ids, y, skip, sparse] = args;
  LOOM_TRY(plain("gather_rows", "y", y));
  LOOM_TRY(packed_or_plain("gather_rows", "table", table, y.dtype));
  LOOM_TRY(rules::vector("gather_rows", "ids", ids, y.rows(), DType::i32));
  if (y.cols() != table.cols()) {
    return disagree("gather_rows", "table", table, "y", y, "both must have the same last extent");
  }
  LOOM_TRY(apart("gather_rows", "y", y, "ids", ids));
  return apart("gather_rows", "y", y, "table", table);
}

Status check(const DistinctRowsArgs& args) {
  const auto& [ids, seen, rows, first, skip] = args;
  const int64_t count = ids.shape.count();
  LOOM_TRY(rules::vector("distinct_rows", "ids", ids, count, DType::i32));
  LOOM_TRY(rules::vector("distinct_rows", "seen", seen, seen.shape.count(), DType::i32));
  LOOM_TRY(rules::vector("distinct_rows", "rows", rows, count, DType::i32));
  LOOM_TRY(rules::vector("distinct_rows", "first", first, count, DType::i32));
  LOOM_TRY(apart("distinct_rows", "seen", seen, "ids", ids));
  LOOM_TRY(apart("distinct_rows", "rows", rows, "ids", ids));
  LOOM_TRY(apart("distinct_rows", "rows", rows, "seen", seen));
  LOOM_TRY(apart("distinct_rows", "first", first, "ids", ids));
  LOOM_TRY(apart("distinct_rows", "first", first, "seen", seen));
  return apart("distinct_rows", "first", first, "rows", rows);
}

Status check(const NormArgs& args) {
  const auto& [x, gamma, beta, y, eps, kind, segments] = args;
  LOOM_TRY(rows_in_rows_out("norm", x, y));
  LOOM_TRY(rules::segments("norm", x, segments, eps));
  if (kind == NormKind::rms && !beta.empty()) return broken("norm", "rms takes no beta");
  LOOM_TRY(rules::norm_parameter("norm", "gamma", gamma, x, segments));
  LOOM_TRY(rules::norm_parameter("norm", "beta", beta, x, segments));
  LOOM_TRY(apart("norm", "y", y, "gamma", gamma));
  return apart("norm", "y", y, "beta", beta);
}

Status check(const RopeArgs& args) {
  const auto& [x, y, cos, sin, heads, first, length, inverse, turned] = args;
  LOOM_TRY(rows_in_rows_out("rope", x, y));
  LOOM_TRY(plain("rope", "cos", cos, DType::f32));
  LOOM_TRY(plain("rope", "sin", sin, DType::f32));
  LOOM_TRY(same_shape("rope", "cos", cos, "sin", sin));
  LOOM_TRY(heads_divide("rope", "x", x, heads));
  if (turned < 0 || turned > x.cols() / heads) {
    return broken("rope", "turned is ", turned, ": a head has ", x.cols() / heads, " values");
  }
  if (turned > 0 && turned != cos.cols() * 2) {
    return broken("rope", "turned is ", turned, ": it must be twice as wide as cos ",
                  cos.shape.str());
  }
  if (turned == 0 && x.cols() != cos.cols() * heads * 2) {
    return disagree("rope", "x", x, "cos", cos,
                    cat("each of ", heads, " heads must be twice as wide as cos"));
  }
  if (length < 0 || (length > 0 && x.rows() % length != 0)) {
    return broken("rope", "x ", x.shape.str(), " cannot be cut into runs of ", length,
                  " rows: the first extent must divide");
  }
  if (first < 0 || first > cos.rows() - (length > 0 ? length : x.rows())) {
    return broken("rope", "x ", x.shape.str(), " at position ", first, " does not fit cos ",
                  cos.shape.str());
  }
  LOOM_TRY(apart("rope", "y", y, "cos", cos));
  return apart("rope", "y", y, "sin", sin);
}

Status check(const KvWriteArgs& args) {
  const auto& [k, v, cache, first] = args;
  LOOM_TRY(plain("kv_write", "k", k, DType::f32));
  LOOM_TRY(plain("kv_write", "v", v, DType::f32));
  LOOM_TRY(rules::cache("kv_write", cache));
  LOOM_TRY(same_shape("kv_write", "k", k, "v", v));
  if (k.cols() != cache.kv_heads * cache.head_dim) {
    return broken("kv_write", "k ", k.shape.str(), " does not fit a cache of ", cache.kv_heads,
                  " heads of ", cache.head_dim);
  }
  if (first < 0 || first > cache.capacity - k.rows()) {
    return broken("kv_write", "k ", k.shape.str(), " at position ", first,
                  " does not fit a cache of ", cache.capacity, " positions");
  }
  return {};
}

Status check(const AttentionArgs& args) {
  const auto& [q, y, cache, heads, first, length, window, scale, causal, soft_cap] = args;
  LOOM_TRY(plain("attention", "q", q, DType::f32));
  LOOM_TRY(plain("attention", "y", y, DType::f32));
  LOOM_TRY(rules::cache("attention", cache));
  LOOM_TRY(same_shape("attention", "q", q, "y", y));
  if (heads < 1 || heads % cache.kv_heads != 0) {
    return broken("attention", heads, " heads do not divide among ", cache.kv_heads, " kv heads");
  }
  if (q.cols() != heads * cache.head_dim) {
    return broken("attention", "q ", q.shape.str(), " is not ", heads, " heads of ",
                  cache.head_dim);
  }
  if (length < 0 || length > cache.capacity) {
    return broken("attention", "length ", length, " is not within a cache of ", cache.capacity,
                  " positions");
  }
  if (first < 0 || (causal && first > length - q.rows())) {
    return broken("attention", "q ", q.shape.str(), " at position ", first, " does not fit ",
                  length, " positions");
  }
  if (window < 0) return broken("attention", "window is ", window, ": it must not be negative");
  LOOM_TRY(rules::soft_cap("attention", soft_cap));
  return apart("attention", "y", y, "q", q);
}

Status check(const UnaryArgs& args) {
  return rows_in_rows_out("unary", args.x, args.y);
}

Status check(const BinaryArgs& args) {
  const auto& [a, b, y, kind] = args;
  LOOM_TRY(plain("binary", "a", a));
  LOOM_TRY(plain("binary", "b", b, a.dtype));
  LOOM_TRY(rules::like("binary", "y", y, "a", a));
  const bool row = b.rows() == 1 && b.cols() == a.cols();
  const bool column = b.rows() == a.rows() && b.cols() == 1;
  const bool same = b.rows() == a.rows() && b.cols() == a.cols();
  const bool single = b.rows() == 1 && b.cols() == 1;
  if (!same && !row && !column && !single) {
    return disagree("binary", "a", a, "b", b,
                    "b must have a's shape, be one row or column of it, or one value");
  }
  return in_place_or_apart("binary", "y", y, "b", b);
}

Status check(const GatedArgs& args) {
  const auto& [gate, up, y, activation] = args;
  LOOM_TRY(plain("gated", "gate", gate));
  LOOM_TRY(plain("gated", "up", up, gate.dtype));
  LOOM_TRY(same_shape("gated", "gate", gate, "up", up));
  LOOM_TRY(rules::like("gated", "y", y, "gate", gate));
  return in_place_or_apart("gated", "y", y, "up", up);
}

Status check(const SoftmaxArgs& args) {
  return rows_in_rows_out("softmax", args.x, args.y);
}

Status check(const ReduceArgs& args) {
  LOOM_TRY(plain("reduce", "x", args.x));
  LOOM_TRY(rules::vector("reduce", "y", args.y, args.x.rows(), args.x.dtype));
  return apart("reduce", "y", args.y, "x", args.x);
}

Status check(const ArgmaxArgs& args) {
  LOOM_TRY(plain("argmax", "x", args.x));
  LOOM_TRY(rules::vector("argmax", "ids", args.ids, args.x.rows(), DType::i32));
  if (args.x.cols() == 0) return broken("argmax", "x ", args.x.shape.str(), " has empty rows");
  return apart("argmax", "ids", args.ids, "x", args.x);
}

Status check(const TopkArgs& args) {
  const auto& [x, values, ids] = args;
  LOOM_TRY(plain("topk", "x", x));
  LOOM_TRY(plain("topk", "values", values, x.dtype));
  LOOM_TRY(plain("topk", "ids", ids, DType::i32));
  LOOM_TRY(same_shape("topk", "values", values, "ids", ids));
  if (values.rows() != x.rows() || values.cols() > x.cols()) {
    return disagree("topk", "x", x, "values", values,
                    "as many rows, and not more values than a row of x has");
  }
  LOOM_TRY(apart("topk", "values", values, "x", x));
  LOOM_TRY(apart("topk", "ids", ids, "x", x));
  return apart("topk", "ids", ids, "values", values);
}

Status check(const DrawArgs& args) {
  const auto& [values, ids, next, temperature, top_p, min_p, seed, index] = args;
  LOOM_TRY(plain("draw", "values", values, DType::f32));
  LOOM_TRY(plain("draw", "ids", ids, DType::i32));
  LOOM_TRY(same_shape("draw", "values", values, "ids", ids));
  LOOM_TRY(rules::vector("draw", "next", next, values.rows(), DType::i32));
  if (values.cols() < 1 || values.cols() > DrawArgs::kMost) {
    return broken("draw", "values ", values.shape.str(), " has ", values.cols(),
                  " candidates in a row: it must have 1 to ", DrawArgs::kMost);
  }
  constexpr float kLeast = std::numeric_limits<float>::min();
  constexpr float kMost = std::numeric_limits<float>::max();
  if (!(temperature >= kLeast && temperature <= kMost)) {
    return broken("draw", "temperature is ", temperature, ": it must be at least ", kLeast,
                  " and finite");
  }
  if (!(top_p > 0.0f && top_p <= 1.0f))
    return broken("draw", "top_p is ", top_p, ": it must lie in (0, 1]");
  if (!(min_p >= 0.0f && min_p <= 1.0f))
    return broken("draw", "min_p is ", min_p, ": it must lie in [0, 1]");
  LOOM_TRY(apart("draw", "next", next, "values", values));
  return apart("draw", "next", next, "ids", ids);
}

Status check(const ConvertArgs& args) {
  const auto& [x, y, rows] = args;
  LOOM_TRY(rules::rows("convert", rows, "y", y));
  if (x.layout == Layout::r16) {
    LOOM_TRY(packed("convert", "x", x));
    LOOM_TRY(plain("convert", "y", y));
  } else {
    if (!is_ieee(x.dtype) || !is_ieee(y.dtype)) {
      return broken("convert", "x is ", dtype_name(x.dtype), " and y is ", dtype_name(y.dtype),
                    ": plain rows are converted between float types of 16 bits or more only");
    }
    LOOM_TRY(plain("convert", "x", x, x.dtype));
    LOOM_TRY(plain("convert", "y", y, y.dtype));
  }
  LOOM_TRY(same_shape("convert", "x", x, "y", y));
  return in_place_or_apart("convert", "y", y, "x", x);
}

Status check(const FillArgs& args) {
  return plain("fill", "y", args.y);
}

}  // namespace loom::core
