// The rules that several ops share: what a tensor must be, and how two of them must lie in memory.
// Each answers with a one-line Error that names the op and the shapes. Not part of the room's
// interface: only the checks include it. Nothing is allocated unless a rule is broken, since every
// recorded command passes here.
#pragma once

#include "base/text.hpp"
#include "ops/args.hpp"

namespace loom::rules {

template <class... Pieces>
Error broken(std::string_view op, const Pieces&... pieces) {
  return invalid(cat(op, ": ", pieces...));
}

// "x [3, 5] and w [4, 6] do not agree: `must`"
Error disagree(std::string_view op, std::string_view a_name, const Tensor& a,
               std::string_view b_name, const Tensor& b, std::string_view must);

// Plain rows of `dtype` that exist and do not run into each other.
Status plain(std::string_view op, std::string_view name, const Tensor& t, DType dtype = DType::f32);
// A packed matrix.
Status packed(std::string_view op, std::string_view name, const Tensor& t);
// A packed matrix, or plain rows of `dtype`.
Status packed_or_plain(std::string_view op, std::string_view name, const Tensor& t);
// `count` values of `dtype` without gaps.
Status vector(std::string_view op, std::string_view name, const Tensor& t, int64_t count,
              DType dtype = DType::f32);
// As many rows and as many values in each row.
Status same_shape(std::string_view op, std::string_view a_name, const Tensor& a,
                  std::string_view b_name, const Tensor& b);
// The written tensor y shares no byte with x.
Status apart(std::string_view op, std::string_view y_name, const Tensor& y, std::string_view x_name,
             const Tensor& x);
// y is exactly x (in place), or apart from it.
Status in_place_or_apart(std::string_view op, std::string_view y_name, const Tensor& y,
                         std::string_view x_name, const Tensor& x);
// A cache with memory and whole groups of 16 positions.
Status cache(std::string_view op, const KvCache& kv);

}  // namespace loom::rules
