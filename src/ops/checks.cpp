// One check per row of ops.def, in the order: each tensor alone, then how they fit together, then
// who shares memory. A check passes exactly when the reference body of the op is well-defined on
// those arguments; ids and the values of tensors are not looked at.
#include "ops/checks.hpp"

#include "base/checked.hpp"
#include "ops/check_rules.hpp"

namespace loom {
namespace {

using rules::apart;
using rules::broken;
using rules::disagree;
using rules::in_place_or_apart;
using rules::packed;
using rules::packed_or_plain;
using rules::plain;
using rules::same_shape;

// The second operand and the gate ops work row by row on operands of one shape.
Status rows_in_rows_out(std::string_view op, const Tensor& x, const Tensor& y) {
  LOOM_TRY(plain(op, "x", x));
  LOOM_TRY(plain(op, "y", y));
  LOOM_TRY(same_shape(op, "x", x, "y", y));
  return in_place_or_apart(op, "y", y, "x", x);
}

// gamma and beta: absent, one value per position of a segment, or one per position of a row.
Status norm_parameter(std::string_view name, const Tensor& t, const NormArgs& args) {
  if (t.empty()) return {};
  const int64_t row = args.x.cols();
  const int64_t segment = row / args.segments;
  LOOM_TRY(rules::vector("norm", name, t, t.shape.count() == row ? row : segment));
  return apart("norm", "y", args.y, name, t);
}

Status heads_divide(std::string_view op, std::string_view name, const Tensor& t, int64_t heads) {
  if (heads >= 1 && t.cols() % heads == 0) return {};
  return broken(op, name, " ", t.shape.str(), " cannot be cut into ", heads,
                " heads: the last extent must divide");
}

bool is_ieee(DType dtype) {
  return dtype_info(dtype).kind == NumberKind::ieee;
}

}  // namespace

Status check(const MatmulArgs& args) {
  const auto& [x, w, bias, y, q8, activation, use_q8] = args;
  LOOM_TRY(plain("matmul", "x", x));
  LOOM_TRY(packed("matmul", "w", w));
  LOOM_TRY(plain("matmul", "y", y));
  if (x.cols() != w.cols())
    return disagree("matmul", "x", x, "w", w, "both must have the same last extent");
  if (y.rows() != x.rows() || y.cols() != w.rows()) {
    return broken("matmul", "y ", y.shape.str(), " does not fit x ", x.shape.str(), " and w ",
                  w.shape.str(), ": it must have ", x.rows(), " rows of ", w.rows());
  }
  if (!bias.empty()) {
    LOOM_TRY(rules::vector("matmul", "bias", bias, w.rows()));
    LOOM_TRY(apart("matmul", "y", y, "bias", bias));
  }
  LOOM_TRY(apart("matmul", "y", y, "x", x));
  return apart("matmul", "y", y, "w", w);
}

Status check(const QuantiseRowsArgs& args) {
  const Tensor& x = args.x;
  const Q8Rows& q = args.q;
  LOOM_TRY(plain("quantise_rows", "x", x));
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
  LOOM_TRY(plain("pack", "src", args.src));
  LOOM_TRY(packed("pack", "w", args.w));
  LOOM_TRY(same_shape("pack", "src", args.src, "w", args.w));
  LOOM_TRY(rules::vector("pack", "src", args.src, args.src.shape.count()));
  return apart("pack", "w", args.w, "src", args.src);
}

Status check(const GatherRowsArgs& args) {
  const auto& [table, ids, y] = args;
  LOOM_TRY(packed_or_plain("gather_rows", "table", table));
  LOOM_TRY(plain("gather_rows", "y", y));
  LOOM_TRY(rules::vector("gather_rows", "ids", ids, y.rows(), DType::i32));
  if (y.cols() != table.cols()) {
    return disagree("gather_rows", "table", table, "y", y, "both must have the same last extent");
  }
  LOOM_TRY(apart("gather_rows", "y", y, "ids", ids));
  return apart("gather_rows", "y", y, "table", table);
}

Status check(const NormArgs& args) {
  LOOM_TRY(rows_in_rows_out("norm", args.x, args.y));
  if (args.segments < 1 || args.x.cols() % args.segments != 0) {
    return broken("norm", "x ", args.x.shape.str(), " cannot be cut into ", args.segments,
                  " segments: the last extent must divide");
  }
  if (args.kind == NormKind::rms && !args.beta.empty()) return broken("norm", "rms takes no beta");
  if (!(args.eps >= 0.0f)) return broken("norm", "eps is ", args.eps, ": it must not be negative");
  LOOM_TRY(norm_parameter("gamma", args.gamma, args));
  return norm_parameter("beta", args.beta, args);
}

Status check(const RopeArgs& args) {
  const auto& [x, cos, sin, heads, first] = args;
  LOOM_TRY(plain("rope", "x", x));
  LOOM_TRY(plain("rope", "cos", cos));
  LOOM_TRY(plain("rope", "sin", sin));
  LOOM_TRY(same_shape("rope", "cos", cos, "sin", sin));
  LOOM_TRY(heads_divide("rope", "x", x, heads));
  if (x.cols() != cos.cols() * heads * 2) {
    return disagree("rope", "x", x, "cos", cos,
                    cat("each of ", heads, " heads must be twice as wide as cos"));
  }
  if (first < 0 || first > cos.rows() - x.rows()) {
    return broken("rope", "x ", x.shape.str(), " at position ", first, " does not fit cos ",
                  cos.shape.str());
  }
  LOOM_TRY(apart("rope", "x", x, "cos", cos));
  return apart("rope", "x", x, "sin", sin);
}

Status check(const KvWriteArgs& args) {
  const auto& [k, v, cache, first] = args;
  LOOM_TRY(plain("kv_write", "k", k));
  LOOM_TRY(plain("kv_write", "v", v));
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
  const auto& [q, y, cache, heads, first, length, window, scale, causal] = args;
  LOOM_TRY(plain("attention", "q", q));
  LOOM_TRY(plain("attention", "y", y));
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
  return apart("attention", "y", y, "q", q);
}

Status check(const UnaryArgs& args) {
  return rows_in_rows_out("unary", args.x, args.y);
}

Status check(const BinaryArgs& args) {
  const auto& [a, b, y, kind] = args;
  LOOM_TRY(plain("binary", "a", a));
  LOOM_TRY(plain("binary", "b", b));
  LOOM_TRY(plain("binary", "y", y));
  LOOM_TRY(same_shape("binary", "a", a, "y", y));
  if (b.cols() != a.cols() || (b.rows() != a.rows() && b.rows() != 1)) {
    return disagree("binary", "a", a, "b", b,
                    "b must have a's shape or be a vector of its last extent");
  }
  LOOM_TRY(in_place_or_apart("binary", "y", y, "a", a));
  return in_place_or_apart("binary", "y", y, "b", b);
}

Status check(const GatedArgs& args) {
  LOOM_TRY(plain("gated", "gate", args.gate));
  LOOM_TRY(plain("gated", "up", args.up));
  LOOM_TRY(plain("gated", "y", args.y));
  LOOM_TRY(same_shape("gated", "gate", args.gate, "up", args.up));
  LOOM_TRY(same_shape("gated", "gate", args.gate, "y", args.y));
  LOOM_TRY(in_place_or_apart("gated", "y", args.y, "gate", args.gate));
  return in_place_or_apart("gated", "y", args.y, "up", args.up);
}

Status check(const SoftmaxArgs& args) {
  return rows_in_rows_out("softmax", args.x, args.y);
}

Status check(const ReduceArgs& args) {
  LOOM_TRY(plain("reduce", "x", args.x));
  LOOM_TRY(rules::vector("reduce", "y", args.y, args.x.rows()));
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
  LOOM_TRY(plain("topk", "values", values));
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

Status check(const ConvertArgs& args) {
  const auto& [x, y] = args;
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

}  // namespace loom
