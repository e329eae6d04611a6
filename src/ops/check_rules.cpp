// The shared rules; see check_rules.hpp. They compute with shapes and addresses only: no element is
// read.
#include "ops/check_rules.hpp"

namespace loom::core::rules {
namespace {

bool has_negative_extent(const Shape& shape) {
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] < 0) return true;
  }
  return false;
}

int64_t row_bytes(const Tensor& t) {
  return t.cols() * dtype_info(t.dtype).bits / 8;
}
int64_t stride_bytes(const Tensor& t) {
  return t.row_stride * dtype_info(t.dtype).bits / 8;
}

// Whether two tensors share a byte. Column slices of one matrix interleave without touching. The
// result is exact if the strides agree or one side is a single row, and conservative otherwise.
bool overlap(const Tensor& a, const Tensor& b) {
  if (a.empty() || b.empty()) return false;
  if (a.shape.count() == 0 || b.shape.count() == 0) return false;
  if (a.data >= b.end() || b.data >= a.end()) return false;
  if (a.layout == Layout::r16 || b.layout == Layout::r16) return true;
  if (a.rows() == 1 && b.rows() == 1) return true;
  const int64_t stride = a.rows() == 1 ? stride_bytes(b) : stride_bytes(a);
  if (b.rows() > 1 && stride_bytes(b) != stride) return true;
  if (row_bytes(a) > stride || row_bytes(b) > stride) return true;
  const int64_t gap = b.data - a.data;
  const int64_t shift = ((gap % stride) + stride) % stride;
  return shift < row_bytes(a) || shift + row_bytes(b) > stride;
}

}  // namespace

Error disagree(std::string_view op, std::string_view a_name, const Tensor& a,
               std::string_view b_name, const Tensor& b, std::string_view must) {
  return op_error(op, a_name, " ", a.shape.str(), " and ", b_name, " ", b.shape.str(),
                  " do not agree: ", must);
}

namespace {

Status exists(std::string_view op, std::string_view name, const Tensor& t) {
  if (has_negative_extent(t.shape))
    return op_error(op, name, " ", t.shape.str(), " has a negative extent");
  if (t.empty() && t.shape.count() > 0)
    return op_error(op, name, " ", t.shape.str(), " has no memory");
  return {};
}

}  // namespace

Status plain(std::string_view op, std::string_view name, const Tensor& t, DType dtype) {
  if (t.layout != Layout::plain || t.dtype != dtype) {
    return op_error(op, name, " ", t.shape.str(), " is ",
                    t.layout == Layout::plain ? "plain " : "packed ", dtype_name(t.dtype),
                    ": it must be plain ", dtype_name(dtype));
  }
  LOOM_TRY(exists(op, name, t));
  if (t.rows() > 1 && t.row_stride < t.cols()) {
    return op_error(op, name, " ", t.shape.str(), " has rows that overlap: its row stride is ",
                    t.row_stride);
  }
  return {};
}

Status plain(std::string_view op, std::string_view name, const Tensor& t) {
  return plain(op, name, t, t.dtype == DType::f64 ? DType::f64 : DType::f32);
}

Status matrix(std::string_view op, std::string_view name, const Tensor& t, int64_t rows,
              int64_t cols, DType dtype) {
  LOOM_TRY(plain(op, name, t, dtype));
  if (t.rows() == rows && t.cols() == cols) return {};
  return op_error(op, name, " ", t.shape.str(), " must have ", rows, " rows of ", cols);
}

Status matrix_or_absent(std::string_view op, std::string_view name, const Tensor& t, int64_t rows,
                        int64_t cols, DType dtype) {
  return t.empty() ? Status{} : matrix(op, name, t, rows, cols, dtype);
}

Status packed(std::string_view op, std::string_view name, const Tensor& t) {
  if (t.layout != Layout::r16 || t.shape.rank() != 2) {
    return op_error(op, name, " ", t.shape.str(), " is ",
                    t.layout == Layout::plain ? "plain " : "packed ", dtype_name(t.dtype),
                    ": it must be a packed matrix");
  }
  return exists(op, name, t);
}

Status packed_or_plain(std::string_view op, std::string_view name, const Tensor& t, DType dtype) {
  return t.layout == Layout::r16 ? packed(op, name, t) : plain(op, name, t, dtype);
}

Status vector(std::string_view op, std::string_view name, const Tensor& t, int64_t count,
              DType dtype) {
  LOOM_TRY(plain(op, name, t, dtype));
  if (t.shape.count() != count) {
    return op_error(op, name, " ", t.shape.str(), " has ", t.shape.count(),
                    " values: it must have ", count);
  }
  if (t.rows() > 1 && t.row_stride != t.cols()) {
    return op_error(op, name, " ", t.shape.str(), " has gaps: its row stride is ", t.row_stride);
  }
  return {};
}

Status rows(std::string_view op, const Tensor& rows, std::string_view y_name, const Tensor& y) {
  if (rows.empty()) return {};
  LOOM_TRY(vector(op, "rows", rows, rows.shape.count(), DType::i32));
  return apart(op, y_name, y, "rows", rows);
}

Status same_shape(std::string_view op, std::string_view a_name, const Tensor& a,
                  std::string_view b_name, const Tensor& b) {
  if (a.rows() == b.rows() && a.cols() == b.cols()) return {};
  return disagree(op, a_name, a, b_name, b, "both must have the same shape");
}

Status apart(std::string_view op, std::string_view y_name, const Tensor& y, std::string_view x_name,
             const Tensor& x) {
  if (!overlap(y, x)) return {};
  return op_error(op, y_name, " ", y.shape.str(), " and ", x_name, " ", x.shape.str(),
                  " share memory: the result needs its own");
}

Status apart_from(std::string_view op, std::string_view y_name, const Tensor& y,
                  std::initializer_list<Named> others) {
  for (const Named& other : others) LOOM_TRY(apart(op, y_name, y, other.name, other.t));
  return {};
}

Status in_place_or_apart(std::string_view op, std::string_view y_name, const Tensor& y,
                         std::string_view x_name, const Tensor& x) {
  const bool same_rows =
      y.rows() == x.rows() && y.cols() == x.cols() && y.dtype == x.dtype && y.layout == x.layout;
  if (y.data == x.data && same_rows && (y.rows() <= 1 || y.row_stride == x.row_stride)) return {};
  return apart(op, y_name, y, x_name, x);
}

Status like(std::string_view op, std::string_view y_name, const Tensor& y, std::string_view x_name,
            const Tensor& x) {
  LOOM_TRY(plain(op, y_name, y, x.dtype));
  LOOM_TRY(same_shape(op, x_name, x, y_name, y));
  return in_place_or_apart(op, y_name, y, x_name, x);
}

Status rows_in_rows_out(std::string_view op, const Tensor& x, const Tensor& y) {
  LOOM_TRY(plain(op, "x", x));
  return like(op, "y", y, "x", x);
}

Status segments(std::string_view op, const Tensor& x, int64_t segments, float eps) {
  if (segments < 1 || x.cols() % segments != 0) {
    return op_error(op, "x ", x.shape.str(), " cannot be cut into ", segments,
                    " segments: the last extent must divide");
  }
  if (!(eps >= 0.0f)) return op_error(op, "eps is ", eps, ": it must not be negative");
  return {};
}

Status norm_parameter(std::string_view op, std::string_view name, const Tensor& t, const Tensor& x,
                      int64_t segments) {
  if (t.empty()) return {};
  const int64_t row = x.cols();
  return vector(op, name, t, t.shape.count() == row ? row : row / segments, x.dtype);
}

Status soft_cap(std::string_view op, float cap) {
  if (cap >= 0.0f && cap < __builtin_inff()) return {};
  return op_error(op, "soft_cap is ", cap, ": it must be finite and not negative");
}

Status cache(std::string_view op, const KvCache& kv) {
  if (kv.kv_heads < 1 || kv.head_dim < 1 || kv.capacity < 0 || kv.capacity % 16 != 0) {
    return op_error(op, "the cache has ", kv.kv_heads, " heads of ", kv.head_dim, " and ",
                    kv.capacity,
                    " positions: heads and width must be positive, positions a multiple of 16");
  }
  if (!KvCache::can_hold(kv.dtype)) {
    return op_error(op, "the cache is of ", dtype_name(kv.dtype),
                    ": it must be float32, float16, bfloat16, q8_0 or q4_0");
  }
  if (const int block = dtype_info(kv.dtype).block; block > 0 && kv.head_dim % block != 0) {
    return op_error(op, "the cache is of ", dtype_name(kv.dtype), " and has heads of ", kv.head_dim,
                    ": they must be a multiple of ", block);
  }
  if (kv.sequences < 1) return op_error(op, "the cache is for ", kv.sequences, " sequences");
  if (kv.capacity > 0 && (kv.keys == nullptr || kv.values == nullptr)) {
    return op_error(op, "the cache of ", kv.capacity, " positions has no memory");
  }
  return {};
}

}  // namespace loom::core::rules
