// Shared rules of op checks: the properties of a tensor, and how two tensors may share memory. Each
// returns a one-line Error that names the op and the shapes. Private to the files of ops. Allocates
// only if a rule is broken, because every recorded command runs through it.
#pragma once

#include <initializer_list>

#include "base/text.hpp"
#include "ops/args.hpp"

namespace loom::core::rules {

template <class... Pieces>
Error op_error(std::string_view op, const Pieces&... pieces) {
  return invalid(cat(op, ": ", pieces...));
}

// "x [3, 5] and w [4, 6] do not agree: `must`"
Error disagree(std::string_view op, std::string_view a_name, const Tensor& a,
               std::string_view b_name, const Tensor& b, std::string_view must);

// Plain rows of `dtype` that exist and do not overlap.
Status plain(std::string_view op, std::string_view name, const Tensor& t, DType dtype);
// The same for a compute type, f32 or f64. An op checks one activation with it, and the other
// activations against its dtype.
Status plain(std::string_view op, std::string_view name, const Tensor& t);
// Plain rows of `dtype` with exactly these extents.
Status matrix(std::string_view op, std::string_view name, const Tensor& t, int64_t rows,
              int64_t cols, DType dtype);
// The same, or absent.
Status matrix_or_absent(std::string_view op, std::string_view name, const Tensor& t, int64_t rows,
                        int64_t cols, DType dtype);
// A packed matrix.
Status packed(std::string_view op, std::string_view name, const Tensor& t);
// A packed matrix, or plain rows of `dtype`.
Status packed_or_plain(std::string_view op, std::string_view name, const Tensor& t, DType dtype);
// `count` contiguous values of `dtype`.
Status vector(std::string_view op, std::string_view name, const Tensor& t, int64_t count,
              DType dtype);
// A list of rows: any number of contiguous i32, not overlapping y; may be absent.
Status rows(std::string_view op, const Tensor& rows, std::string_view y_name, const Tensor& y);
// Equal numbers of rows, and of values in each row.
Status same_shape(std::string_view op, std::string_view a_name, const Tensor& a,
                  std::string_view b_name, const Tensor& b);
// The written tensor y shares no byte with x.
Status apart(std::string_view op, std::string_view y_name, const Tensor& y, std::string_view x_name,
             const Tensor& x);
struct Named {
  std::string_view name;
  const Tensor& t;
};
// y shares no byte with any of the others. Absent tensors share nothing.
Status apart_from(std::string_view op, std::string_view y_name, const Tensor& y,
                  std::initializer_list<Named> others);
// y is exactly x (in place), or apart from it.
Status in_place_or_apart(std::string_view op, std::string_view y_name, const Tensor& y,
                         std::string_view x_name, const Tensor& x);
// y is in place or disjoint, with plain rows of the dtype and the shape of x.
Status like(std::string_view op, std::string_view y_name, const Tensor& y, std::string_view x_name,
            const Tensor& x);
// x is plain rows of a compute type, and y is like it.
Status rows_in_rows_out(std::string_view op, const Tensor& x, const Tensor& y);
// Rows that can be split into `segments` equal parts, and eps not negative.
Status segments(std::string_view op, const Tensor& x, int64_t segments, float eps);
// gamma and beta: absent, one value per position of a segment, or one per position of a row.
Status norm_parameter(std::string_view op, std::string_view name, const Tensor& t, const Tensor& x,
                      int64_t segments);
// Zero (none) or positive, and finite.
Status soft_cap(std::string_view op, float cap);
// A cache with memory and complete groups of 16 positions.
Status cache(std::string_view op, const KvCache& kv);

}  // namespace loom::core::rules
