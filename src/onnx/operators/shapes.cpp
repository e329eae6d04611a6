// Shapes as values, and values as other shapes: nothing is moved here. See elementwise.hpp.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "onnx/operators/elementwise.hpp"

namespace loom::core::evaluate {
namespace {

Status identity(const Call& c) {
  c.out[0] = c.slot(0);
  return {};
}

// Nothing is dropped when a graph is used; a mask, if asked for, is all true.
Status dropout(const Call& c) {
  if (c.has(2)) {
    LOOM_ASSIGN(const double training, c.number(2, 0));
    LOOM_ASSIGN(const double ratio, c.number(1, 0.5));
    if (training != 0 && ratio != 0) return c.not_done("values dropped at random (training_mode)");
  }
  c.out[0] = c.slot(0);
  if (!c.wants(1)) return {};
  LOOM_ASSIGN(Value mask, c.make(OnnxType::boolean, c.value(0).dims));
  std::memset(mask.data<uint8_t>(), 1, static_cast<size_t>(mask.count()));
  return c.give(std::move(mask), 1);
}

Result<Value> list_value(const Call& c, const Dims& list, Dims dims) {
  LOOM_ASSIGN(Value v, c.make(OnnxType::i64, std::move(dims)));
  std::ranges::copy(list, v.data<int64_t>());
  return v;
}

Status constant(const Call& c) {
  if (c.node.attributes.size() != 1) return c.bad("must have one value");
  const OnnxAttribute& a = c.node.attributes[0];
  if (a.name == "value" && a.tensors.size() == 1) {
    LOOM_ASSIGN(Value v, value_of(c.rt.memory, a.tensors[0]));
    return c.give(std::move(v));
  }
  if (a.name == "value_int" || a.name == "value_ints") {
    const bool one = a.name == "value_int";
    LOOM_ASSIGN(Value v,
                one ? list_value(c, {a.integer}, {})
                    : list_value(c, a.integers, {static_cast<int64_t>(a.integers.size())}));
    return c.give(std::move(v));
  }
  if (a.name == "value_float" || a.name == "value_floats") {
    const bool one = a.name == "value_float";
    LOOM_ASSIGN(Value v,
                c.make(OnnxType::f32, one ? Dims{} : Dims{static_cast<int64_t>(a.reals.size())}));
    if (one)
      *v.data<float>() = a.real;
    else
      std::ranges::copy(a.reals, v.data<float>());
    return c.give(std::move(v));
  }
  return c.not_done(cat("'", printable(a.name), "'"));
}

Result<Dims> list_of_extents(const Call& c) {
  return c.whole_list(0);
}

Status constant_of_shape(const Call& c) {
  LOOM_ASSIGN(Dims dims, list_of_extents(c));
  const OnnxAttribute* a = c.node.find("value");
  if (a == nullptr || a->tensors.size() != 1) {
    LOOM_ASSIGN(Value y, c.make(OnnxType::f32, std::move(dims)));
    fill_zero(y);
    return c.give(std::move(y));
  }
  LOOM_ASSIGN(const Value one, value_of(c.rt.memory, a->tensors[0]));
  if (one.rank() != 1 || one.count() != 1) return c.bad("its value must be a list of one number");
  LOOM_ASSIGN(Value y, c.make(one.type, std::move(dims)));
  fill(y, one);
  return c.give(std::move(y));
}

Status shape_of(const Call& c) {
  const Dims& dims = c.value(0).dims;
  const auto rank = static_cast<int64_t>(dims.size());
  const auto at = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  const int64_t start = at(c.integer("start", 0)), end = at(c.integer("end", rank));
  Dims part;
  if (start < end) part.assign(dims.begin() + start, dims.begin() + end);
  const auto count = static_cast<int64_t>(part.size());
  LOOM_ASSIGN(Value v, list_value(c, part, {count}));
  return c.give(std::move(v));
}

Status size_of(const Call& c) {
  LOOM_ASSIGN(Value v, list_value(c, {c.value(0).count()}, {}));
  return c.give(std::move(v));
}

// Another shape of the same elements, which follows from the shape of the input alone.
template <Result<Dims> (*Shape)(const Call&)>
Status under_shape(const Call& c) {
  LOOM_ASSIGN(Dims dims, Shape(c));
  return c.give(c.value(0).view_as(std::move(dims)));
}

Result<Dims> reshaped(const Call& c) {
  const Value& x = c.value(0);
  Dims dims = c.list("shape");
  if (c.has(1)) {
    LOOM_ASSIGN(dims, c.whole_list(1));
  }
  const bool zeros = c.integer("allowzero", 0) != 0;
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !zeros) {
      if (i >= x.dims.size()) return c.bad("a 0 in the shape where the input has no axis");
      dims[i] = x.dims[i];
    }
    if (dims[i] < -1 || (dims[i] == -1 && open >= 0)) return c.bad("an invalid shape");
    if (dims[i] == -1)
      open = static_cast<int64_t>(i);
    else if (__builtin_mul_overflow(known, dims[i], &known))
      return c.bad("too large a shape");
  }
  if (open >= 0) {
    if (known == 0 || x.count() % known != 0) return c.bad("an extent that does not come out even");
    dims[static_cast<size_t>(open)] = x.count() / known;
    known = x.count();
  }
  if (known != x.count()) return c.bad(cat(x.count(), " values in a shape of ", known));
  return dims;
}

Result<Dims> flattened(const Call& c) {
  const Value& x = c.value(0);
  const int64_t given = c.integer("axis", 1);
  const int64_t axis = given < 0 ? given + x.rank() : given;
  if (axis < 0 || axis > x.rank()) return c.bad(cat("axis ", given));
  const int64_t rows = product(x.dims, 0, static_cast<int>(axis));
  return Dims{rows, product(x.dims, static_cast<int>(axis), x.rank())};
}

Result<Dims> has_axes(const Call& c) {
  if (c.has(1) && c.value(1).rank() > 1) return c.bad("axes must be a list");
  if (c.has(1)) return c.int_list(1);
  return c.list("axes");
}

// One number in place of a list is computed, for functions of the standard use it.
Status axes_defined(const Call& c) {
  return c.has(1) && c.value(1).rank() != 1 ? c.bad("input 1 must be a list") : Status{};
}

Result<Dims> squeezed(const Call& c) {
  const Value& x = c.value(0);
  LOOM_ASSIGN(const Dims list, has_axes(c));
  LOOM_ASSIGN(const std::vector<int> axes, c.axes(list, x.rank()));
  const bool all = !c.has(1) && !c.given("axes");
  Dims dims;
  for (int a = 0; a < x.rank(); ++a) {
    const int64_t extent = x.dims[static_cast<size_t>(a)];
    const bool named = std::ranges::find(axes, a) != axes.end();
    if (named && extent != 1) return c.bad(cat("axis ", a, " has an extent of ", extent));
    if (!named && !(all && extent == 1)) dims.push_back(extent);
  }
  return dims;
}

Result<Dims> unsqueezed(const Call& c) {
  const Value& x = c.value(0);
  LOOM_ASSIGN(const Dims list, has_axes(c));
  const int rank = x.rank() + static_cast<int>(list.size());
  if (rank > static_cast<int>(kMaxOnnxRank)) return c.not_done(cat("values of ", rank, " axes"));
  LOOM_ASSIGN(const std::vector<int> axes, c.axes(list, rank));
  Dims dims;
  size_t next = 0;
  for (int a = 0; a < rank; ++a)
    dims.push_back(std::ranges::find(axes, a) != axes.end() ? 1 : x.dims[next++]);
  return dims;
}

// A Range: the type that it is computed in; start, limit and step in that; and the number of
// values.
struct RangeOf {
  OnnxType in = OnnxType::f32;
  Value parts[3];
  int64_t count = 0;
};
Result<RangeOf> range_of(const Call& c) {
  LOOM_TRY(c.same_type(0, 1));
  LOOM_TRY(c.same_type(0, 2));
  RangeOf r{computing_type(c.value(0).type), {}, 0};
  if (r.in == OnnxType::u64) r.in = OnnxType::i64;
  double numbers[3] = {};
  for (const size_t i : {0UL, 1UL, 2UL}) {
    if (c.value(i).count() != 1) return c.bad("takes one number each");
    LOOM_ASSIGN(r.parts[i], c.as(i, r.in));
    LOOM_ASSIGN(const Value wide, cast(c.rt.memory, r.parts[i], OnnxType::f64));
    numbers[i] = *wide.data<double>();
  }
  if (numbers[2] == 0) return c.bad("a step of 0");
  const double count = std::ceil((numbers[1] - numbers[0]) / numbers[2]);
  if (!(count < 1e12)) return c.bad("too many values");
  r.count = std::max<int64_t>(0, static_cast<int64_t>(count));
  return r;
}

Result<Dims> range_shape(const Call& c) {
  LOOM_ASSIGN(const RangeOf r, range_of(c));
  return Dims{r.count};
}

// Lists of one number are computed, for functions of the standard use them.
Status range_defined(const Call& c) {
  for (const size_t i : {0UL, 1UL, 2UL}) {
    if (c.value(i).rank() != 0) return c.bad("start, limit and step must be single values");
  }
  return {};
}

// Whole numbers wrap, so they are computed without a sign.
Status range(const Call& c) {
  LOOM_ASSIGN(const RangeOf r, range_of(c));
  LOOM_ASSIGN(Value y, c.make(r.in, {r.count}));
  with_type(is_real(r.in) ? r.in : OnnxType::u64, [&]<class T>(T) {
    const T start = *r.parts[0].data<T>(), step = *r.parts[2].data<T>();
    for (int64_t i = 0; i < r.count; ++i) y.data<T>()[i] = start + static_cast<T>(i) * step;
  });
  return c.give_as(y, c.value(0).type);
}

Status eye_like(const Call& c) {
  const Value& x = c.value(0);
  if (x.rank() != 2) return c.bad("takes two axes");
  const auto type = static_cast<OnnxType>(c.integer("dtype", static_cast<int64_t>(x.type)));
  LOOM_ASSIGN(Value y, c.make(OnnxType::i64, x.dims));
  fill_zero(y);
  const int64_t k = c.integer("k", 0);
  for (int64_t r = 0; r < x.dims[0]; ++r) {
    if (k <= x.dims[1] && k >= -x.dims[0] && r + k >= 0 && r + k < x.dims[1])
      y.data<int64_t>()[r * x.dims[1] + r + k] = 1;
  }
  if (element_bytes(type) == 0) return c.not_done("this dtype");
  return c.give_as(y, type);
}

constexpr uint16_t kViews = Operator::moves | Operator::picks;
constexpr Operator kShapes[] = {
    {"", "Identity", identity, "A>A", "same",
     Operator::lists | Operator::folds | Operator::pointwise | Operator::moves},
    {"", "Dropout", dropout, "F>F2 ratio:f is_test|12 F?fb>F2 seed:i", "same dropout"},
    {"", "Constant", constant,
     ".>c value:t value_float:f value_floats:F value_int:i value_ints:I value_string:s "
     "value_strings:S",
     "constant"},
    {"", "ConstantOfShape", constant_of_shape, "l>c value:t", "",
     Operator::folds | Operator::moves | Operator::fills, nullptr, list_of_extents},
    {"", "Shape", shape_of, "a>l|15 a>l start:i end:i", "shape"},
    {"", "Size", size_of, "a>l"},
    {"", "Reshape", under_shape<reshaped>, "A shape consumed_inputs|5 Al>A|14 Al>A allowzero:g",
     "view reshape", kViews, nullptr, reshaped},
    {"", "Flatten", under_shape<flattened>, "A>A axis:i", "view", kViews, nullptr, flattened},
    {"", "Squeeze", under_shape<squeezed>, "A>A axes:I|13 A?l>A", "view", kViews, nullptr, squeezed,
     axes_defined},
    {"", "Unsqueeze", under_shape<unsqueezed>, "A>A axes:I!|13 Al>A", "view", kViews, nullptr,
     unsqueezed, axes_defined},
    {"", "Range", range, "RRR>R stash_type", "", Operator::folds, nullptr, range_shape,
     range_defined},
    {"", "EyeLike", eye_like, "a dtype k"},
};

}  // namespace

std::span<const Operator> shape_operators() {
  return kShapes;
}

}  // namespace loom::core::evaluate
