// Operators value by value, as other families use them. See unary.cpp and pairs.cpp.
#pragma once

#include "onnx/operators/operator.hpp"

namespace loom::core::evaluate {

// An Error if one of `numbers`, which are f64, is beyond the whole type `to`.
Status fits_whole_type(const Call& c, const Value& numbers, OnnxType to);

// The shape that inputs a and b have together. Errors: they do not fit.
Result<Dims> shape_of_both(const Call& c, const Dims& a, const Dims& b);

// Input i as places of an axis of n values, counted from 0.
Result<Dims> indices(const Call& c, size_t i, int64_t n);
// Copies `count` elements of x, from element `from` on, to element `to` of y.
void copy_blocks(const Value& x, Value& y, int64_t from, int64_t to, int64_t count);
// Axis k of the result is axis order[k] of x.
Result<Value> permuted(const Call& c, const Value& x, const std::vector<int>& order);
// Pads axis `a`, as Pad does in `mode`; a pad below 0 cuts. One axis after the other, so that
// corners follow.
Result<Value> pad_axis(const Call& c, const Value& x, size_t a, int64_t before, int64_t behind,
                       const std::string& mode, const Value& constant);
// One 0 of a type.
Result<Value> zero_of(const Call& c, OnnxType type);

// How a node asks for floats of few bits.
Result<Casting> casting_of(const Call& c);
// Where the scale of each element is: steps into scale (and zero point) over the axes of x. With
// blocks the axis is cut first: `dims` then has one axis more.
struct ScalePlan {
  Dims dims, steps;
};
Result<ScalePlan> scale_plan(const Call& c, const Value& x, const Value& scale);

enum class Pair : uint8_t { add, sub, mul, div, mod, remainder, max, min };
// a op b of one computing type.
Result<Value> combine(const Call& c, Pair op, const Value& a, const Value& b);

}  // namespace loom::core::evaluate
