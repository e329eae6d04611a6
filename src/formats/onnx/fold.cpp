// Constants from constants: what exporters compute about shapes and masks. Every result is at most
// kMaxFolded values (or one that stands for all), and indices are checked. See values.hpp.
#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "base/text.hpp"
#include "dtype/codec.hpp"
#include "formats/onnx/schema.hpp"
#include "formats/onnx/values.hpp"

namespace loom::core {
namespace {

constexpr double kExact = 9007199254740992.0;  // 2^53

using Inputs = std::vector<ConstantRef>;
using Folded = Result<Constant>;

Error bad(const OnnxNode& node, std::string_view message) {
  return bad_file(cat("node '", printable(node.name), "' (", printable(node.op), "): ", message));
}

// Extents of at most `most` values.
Status within(const OnnxNode& node, const std::vector<int64_t>& dims, uint64_t most) {
  uint64_t count = 1;
  for (const int64_t d : dims) {
    if (d < 0 || !checked_mul(count, static_cast<uint64_t>(d), count) || count > most ||
        dims.size() > kMaxOnnxRank)
      return bad(node, cat("a constant of more than ", most, " values, or no shape at all"));
  }
  return {};
}
// That may be allocated.
Status small(const OnnxNode& node, const std::vector<int64_t>& dims) {
  return within(node, dims, static_cast<uint64_t>(kMaxFolded));
}

// Axes, extents and places stand in lists.
Status a_list(const OnnxNode& node, const Constant& c) {
  return c.dims.size() == 1 ? Status{} : bad(node, "an input that must be a list");
}

Result<int64_t> axis_of(const OnnxNode& node, int64_t axis, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r) return bad(node, cat("axis ", axis, " of ", r));
  return axis < 0 ? axis + r : axis;
}

// Row-major places in the inputs of each value of the output, under broadcasting.
struct Broadcast {
  std::vector<int64_t> dims;
  int64_t place(int64_t i, const Constant& c) const {
    int64_t out = 0, stride = 1;
    for (size_t k = 0; k < dims.size(); ++k) {
      const size_t axis = dims.size() - 1 - k;
      const int64_t at = i % dims[axis];
      i /= dims[axis];
      if (k >= c.dims.size()) continue;
      const int64_t extent = c.dims[c.dims.size() - 1 - k];
      if (extent != 1) out += at * stride;
      stride *= extent;
    }
    return out;
  }
};

Result<Broadcast> broadcast(const OnnxNode& node, const Inputs& inputs) {
  Broadcast b;
  for (const ConstantRef& c : inputs) {
    while (b.dims.size() < c->dims.size()) b.dims.insert(b.dims.begin(), 1);
    for (size_t k = 0; k < c->dims.size(); ++k) {
      int64_t& have = b.dims[b.dims.size() - 1 - k];
      const int64_t extent = c->dims[c->dims.size() - 1 - k];
      if (have != extent && have != 1 && extent != 1) return bad(node, "shapes that do not fit");
      if (have == 1) have = extent;
    }
  }
  LOOM_TRY(small(node, b.dims));
  return b;
}

// Whole numbers are kept as doubles, which hold all of them up to 2^53.
Status exact(const OnnxNode& node, const Constant& c) {
  if (is_float(c.type)) return {};
  if (std::ranges::any_of(c.values, [](double v) { return v >= kExact || v <= -kExact; }))
    return bad(node, "computes with a whole number beyond 2^53");
  return {};
}

// The low bits of v, as the type reads them.
double wrapped(OnnxType type, uint64_t v) {
  switch (type) {
    case OnnxType::u8: return static_cast<uint8_t>(v);
    case OnnxType::i8: return static_cast<int8_t>(v);
    case OnnxType::u16: return static_cast<uint16_t>(v);
    case OnnxType::i16: return static_cast<int16_t>(v);
    case OnnxType::u32: return static_cast<uint32_t>(v);
    case OnnxType::i32: return static_cast<int32_t>(v);
    case OnnxType::u64: return static_cast<double>(v);
    default: return static_cast<double>(static_cast<int64_t>(v));
  }
}

// v as a float type holds it.
double rounded(OnnxType type, double v) {
  const auto f = static_cast<float>(v);
  if (type == OnnxType::f32) return static_cast<double>(f);
  if (type == OnnxType::f16) return static_cast<double>(f32_from_f16(f16_from_f32(f)));
  if (type == OnnxType::bf16) return static_cast<double>(f32_from_bf16(bf16_from_f32(f)));
  return v;
}

// v as a type holds it that it is converted to; a whole number beyond the type leaves it undefined.
Result<double> converted(const OnnxNode& node, OnnxType from, OnnxType to, double v) {
  if (to == OnnxType::boolean) return v != 0 ? 1.0 : 0.0;
  if (is_float(to)) return rounded(to, v);
  const bool fits = v > -kExact && v < kExact;
  const double cut = fits ? static_cast<double>(static_cast<int64_t>(v)) : 0;
  const double held = wrapped(to, static_cast<uint64_t>(static_cast<int64_t>(cut)));
  if (!fits || (is_float(from) && held != cut))
    return bad(node, cat("makes ", onnx_type_name(to), " of a number that it cannot hold"));
  return held;
}

double compare(const std::string& op, double a, double b) {
  if (op == "Equal") return a == b ? 1 : 0;
  if (op == "Greater") return a > b ? 1 : 0;
  if (op == "GreaterOrEqual") return a >= b ? 1 : 0;
  if (op == "Less") return a < b ? 1 : 0;
  if (op == "LessOrEqual") return a <= b ? 1 : 0;
  if (op == "And") return a != 0 && b != 0 ? 1 : 0;
  return a != 0 || b != 0 ? 1 : 0;
}

double real_arithmetic(const std::string& op, double a, double b) {
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") return a / b;
  if (a != a || b != b) return a + b;
  return (op == "Max") == (a > b) ? a : b;
}

double whole_arithmetic(const std::string& op, OnnxType type, double a, double b) {
  const auto i = static_cast<int64_t>(a), k = static_cast<int64_t>(b);
  const auto u = static_cast<uint64_t>(i), v = static_cast<uint64_t>(k);
  if (op == "Add") return wrapped(type, u + v);
  if (op == "Sub") return wrapped(type, u - v);
  if (op == "Mul") return wrapped(type, u * v);
  if (op == "Div") return wrapped(type, static_cast<uint64_t>(i / k));
  return (op == "Max") == (a > b) ? a : b;
}

Result<double> power_of(const OnnxNode& node, OnnxType type, double a, double e) {
  if (e != 2 && e != 0.5 && e != 1)
    return bad(node, "a power other than 2, 1 and 0.5 of a constant");
  const double y = e == 2 ? a * a : e == 1 ? a : __builtin_sqrt(a);
  return converted(node, OnnxType::f64, type, y);
}

Folded binary(const OnnxNode& node, const Inputs& in) {
  LOOM_ASSIGN(const Broadcast b, broadcast(node, in));
  LOOM_TRY(exact(node, *in[0]));
  LOOM_TRY(exact(node, *in[1]));
  const OnnxType type = in[0]->type;
  constexpr std::string_view kArithmetic[] = {"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"};
  const bool computes = std::ranges::find(kArithmetic, node.op) != std::end(kArithmetic);
  Constant out{b.dims, computes ? type : OnnxType::boolean, {}};
  const bool uniform = in[0]->values.size() == 1 && in[1]->values.size() == 1;
  const int64_t n = uniform ? std::min<int64_t>(1, out.count()) : out.count();
  for (int64_t i = 0; i < n; ++i) {
    const double x = in[0]->at(b.place(i, *in[0])), y = in[1]->at(b.place(i, *in[1]));
    double v = 0;
    if (!computes) {
      v = compare(node.op, x, y);
    } else if (node.op == "Pow") {
      LOOM_ASSIGN(v, power_of(node, type, x, y));
    } else if (is_float(type)) {
      v = rounded(type, real_arithmetic(node.op, x, y));
    } else {
      if (node.op == "Div" && y == 0) return bad(node, "divides a whole number by 0");
      v = whole_arithmetic(node.op, type, x, y);
    }
    out.values.push_back(v);
  }
  LOOM_TRY(exact(node, out));
  return out;
}

Folded unary(const OnnxNode& node, const Inputs& in) {
  Constant out = *in[0];
  if (node.op == "Identity") return out;
  LOOM_TRY(exact(node, out));
  for (double& v : out.values) {
    if (node.op == "Sqrt") v = rounded(out.type, __builtin_sqrt(v));
    if (node.op == "Reciprocal") v = rounded(out.type, 1 / v);
    if (node.op == "Not") v = v == 0 ? 1 : 0;
    if (node.op != "Neg") continue;
    v = is_float(out.type) ? -v
                           : wrapped(out.type, static_cast<uint64_t>(-static_cast<int64_t>(v)));
  }
  return out;
}

Folded cast(const OnnxNode& node, const Inputs& in) {
  Constant out = *in[0];
  out.type = static_cast<OnnxType>(attribute(node, "to", 0));
  if (onnx_type_bytes(out.type) == 0) return bad(node, "makes values of a type that is not read");
  if (out.type == in[0]->type) return out;
  LOOM_TRY(exact(node, *in[0]));
  for (double& v : out.values) {
    LOOM_ASSIGN(v, converted(node, in[0]->type, out.type, v));
  }
  return out;
}

Folded where(const OnnxNode& node, const Inputs& in) {
  LOOM_ASSIGN(const Broadcast b, broadcast(node, in));
  Constant out{b.dims, in[1]->type, {}};
  for (int64_t i = 0; i < out.count(); ++i) {
    const Constant& from = in[0]->at(b.place(i, *in[0])) != 0 ? *in[1] : *in[2];
    out.values.push_back(from.at(b.place(i, from)));
  }
  return out;
}

// One axis replaced by the places `picked` of it.
Folded pick(const OnnxNode& node, const Constant& from, int64_t axis,
            const std::vector<int64_t>& picked, const std::vector<int64_t>& as) {
  const auto a = static_cast<size_t>(axis);
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < from.dims.size(); ++i) {
    if (i < a) outer *= from.dims[i];
    if (i > a) inner *= from.dims[i];
  }
  Constant out{from.dims, from.type, {}};
  out.dims.erase(out.dims.begin() + axis);
  out.dims.insert(out.dims.begin() + axis, as.begin(), as.end());
  if (from.values.size() == 1) {
    LOOM_TRY(within(node, out.dims, kMaxOnnxFile));
    out.values = from.values;
    return out;
  }
  LOOM_TRY(small(node, out.dims));
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t p : picked) {
      for (int64_t i = 0; i < inner; ++i)
        out.values.push_back(from.at((o * from.dims[a] + p) * inner + i));
    }
  }
  return out;
}

Folded gather(const OnnxNode& node, const Inputs& in) {
  LOOM_ASSIGN(const int64_t axis, axis_of(node, attribute(node, "axis", 0), in[0]->dims.size()));
  LOOM_TRY(small(node, in[1]->dims));
  const int64_t extent = in[0]->dims[static_cast<size_t>(axis)];
  std::vector<int64_t> picked;
  for (int64_t i = 0; i < in[1]->count(); ++i) {
    auto p = static_cast<int64_t>(in[1]->at(i));
    if (p < 0) p += extent;
    if (p < 0 || p >= extent) return bad(node, cat("index ", p, " of ", extent));
    picked.push_back(p);
  }
  return pick(node, *in[0], axis, picked, in[1]->dims);
}

Folded slice(const OnnxNode& node, const Inputs& in) {
  if (in.size() < 3) return bad(node, "has no starts or ends");
  Constant value = *in[0];
  for (size_t i = 1; i < in.size(); ++i) {
    if (in[i] != nullptr) LOOM_TRY(a_list(node, *in[i]));
  }
  const std::vector<int64_t> starts = in[1]->integers(), ends = in[2]->integers();
  std::vector<int64_t> axes, steps(starts.size(), 1);
  for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (in.size() > 3 && in[3] != nullptr) axes = in[3]->integers();
  if (in.size() > 4 && in[4] != nullptr) steps = in[4]->integers();
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size() || starts.size() > kMaxOnnxRank)
    return bad(node, "starts, ends, axes and steps differ in length");
  for (size_t i = 0; i < starts.size(); ++i) {
    LOOM_ASSIGN(const int64_t axis, axis_of(node, axes[i], value.dims.size()));
    const int64_t extent = value.dims[static_cast<size_t>(axis)];
    const auto place = [&](int64_t p) {
      return std::clamp(p < 0 ? p + extent : p, int64_t{0}, extent);
    };
    if (steps[i] < 1) return bad(node, "a step below 1");
    std::vector<int64_t> picked;
    for (int64_t p = place(starts[i]); p < place(ends[i]); p += std::min(steps[i], extent))
      picked.push_back(p);
    LOOM_ASSIGN(value, pick(node, value, axis, picked, {static_cast<int64_t>(picked.size())}));
  }
  return value;
}

// Whether two shapes differ in this axis at most.
bool joins_along(size_t axis, const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (i != axis && a[i] != b[i]) return false;
  }
  return true;
}

Folded concat(const OnnxNode& node, const Inputs& in) {
  Constant out{in[0]->dims, in[0]->type, {}};
  if (out.dims.empty()) return bad(node, "joins single numbers");
  LOOM_ASSIGN(const int64_t along, axis_of(node, attribute(node, "axis", 0), out.dims.size()));
  const auto axis = static_cast<size_t>(along);
  out.dims[axis] = 0;
  for (const ConstantRef& c : in) {
    if (!joins_along(axis, c->dims, out.dims)) return bad(node, "shapes that do not fit");
    out.dims[axis] += c->dims[axis];
    LOOM_TRY(small(node, out.dims));
  }
  int64_t outer = 1;
  for (size_t i = 0; i < axis; ++i) outer *= out.dims[i];
  for (int64_t o = 0; o < outer; ++o) {
    for (const ConstantRef& c : in) {
      const int64_t block = c->count() / outer;
      for (int64_t i = 0; i < block; ++i) out.values.push_back(c->at(o * block + i));
    }
  }
  return out;
}

Folded expand(const OnnxNode& node, const Inputs& in) {
  LOOM_TRY(a_list(node, *in[1]));
  std::vector<int64_t> dims = in[1]->integers();
  if (in[0]->count() == 1) {
    while (dims.size() < in[0]->dims.size()) dims.insert(dims.begin(), 1);
    LOOM_TRY(within(node, dims, kMaxOnnxFile));
    return Constant{dims, in[0]->type, in[0]->values};
  }
  LOOM_TRY(small(node, dims));
  const auto shape = std::make_shared<Constant>(Constant{dims, OnnxType::i64, {0}});
  LOOM_ASSIGN(const Broadcast b, broadcast(node, {in[0], shape}));
  Constant out{b.dims, in[0]->type, {}};
  for (int64_t i = 0; i < out.count(); ++i) out.values.push_back(in[0]->at(b.place(i, *in[0])));
  return out;
}

Folded filled(const OnnxNode& node, const Inputs& in) {
  const OnnxAttribute* value = node.find("value");
  auto one = std::make_shared<Constant>(Constant{{1}, OnnxType::f32, {0}});
  if (value != nullptr && value->tensors.size() == 1) {
    LOOM_ASSIGN(Constant made, constant_of(value->tensors[0]));
    if (made.values.size() != 1 || made.dims.size() != 1)
      return bad(node, "its value is not one number");
    *one = std::move(made);
  }
  if (in[0]->count() == 0) {
    LOOM_TRY(a_list(node, *in[0]));
    one->dims.clear();
    return *one;
  }
  return expand(node, {one, in[0]});
}

Folded range(const OnnxNode& node, const Inputs& in) {
  if (std::ranges::any_of(in, [](const ConstantRef& c) { return !c->dims.empty(); }))
    return bad(node, "start, limit and step must be single values");
  const double start = in[0]->at(0), limit = in[1]->at(0), step = in[2]->at(0);
  Constant out{{0}, in[0]->type, {}};
  if (!(step != 0) || !((limit - start) / step < static_cast<double>(kMaxFolded)))
    return bad(node, cat("a range of more than ", kMaxFolded));
  for (double i = 0; i < (limit - start) / step; ++i) out.values.push_back(start + i * step);
  out.dims[0] = static_cast<int64_t>(out.values.size());
  return out;
}

Folded trilu(const OnnxNode& node, const Inputs& in) {
  const bool upper = attribute(node, "upper", 1) != 0;
  const int64_t k = in.size() > 1 && in[1] != nullptr ? static_cast<int64_t>(in[1]->at(0)) : 0;
  if (in[0]->dims.size() < 2) return bad(node, "needs a matrix");
  LOOM_TRY(small(node, in[0]->dims));
  Constant out{in[0]->dims, in[0]->type, {}};
  const int64_t cols = out.dims.back(), rows = out.dims[out.dims.size() - 2];
  for (int64_t i = 0; i < out.count(); ++i) {
    const int64_t apart = i % cols - i / cols % rows;
    const bool kept = upper ? apart >= k : apart <= k;
    out.values.push_back(kept ? in[0]->at(i) : 0);
  }
  return out;
}

Folded transpose(const OnnxNode& node, const Inputs& in) {
  const OnnxAttribute* perm = node.find("perm");
  const size_t rank = in[0]->dims.size();
  std::vector<int64_t> order;
  for (size_t i = 0; i < rank; ++i) order.push_back(static_cast<int64_t>(rank - 1 - i));
  if (perm != nullptr) order = perm->integers;
  std::vector<bool> seen(rank);
  Constant out{{}, in[0]->type, {}};
  for (const int64_t axis : order) {
    if (axis < 0 || axis >= static_cast<int64_t>(rank) || seen[static_cast<size_t>(axis)])
      return bad(node, "perm is no permutation");
    seen[static_cast<size_t>(axis)] = true;
    out.dims.push_back(in[0]->dims[static_cast<size_t>(axis)]);
  }
  if (order.size() != rank) return bad(node, "perm is no permutation");
  std::vector<int64_t> strides(rank, 1);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * in[0]->dims[i];
  if (in[0]->values.size() == 1) {
    out.values = in[0]->values;
    return out;
  }
  for (int64_t i = 0; i < out.count(); ++i) {
    int64_t at = 0, rest = i;
    for (size_t k = rank; k-- > 0; rest /= out.dims[k])
      at += rest % out.dims[k] * strides[static_cast<size_t>(order[k])];
    out.values.push_back(in[0]->at(at));
  }
  return out;
}

// The places of what is not 0, an axis of places for each axis of the input.
Folded non_zero(const OnnxNode& node, const Inputs& in) {
  LOOM_TRY(small(node, in[0]->dims));
  const size_t rank = in[0]->dims.size();
  std::vector<std::vector<double>> places(rank);
  for (int64_t i = 0; i < in[0]->count(); ++i) {
    if (in[0]->at(i) == 0) continue;
    int64_t rest = i;
    for (size_t k = rank; k-- > 0; rest /= in[0]->dims[k])
      places[k].push_back(static_cast<double>(rest % in[0]->dims[k]));
  }
  if (rank == 0 || places[0].empty()) return bad(node, "a single number, or nothing but 0");
  Constant out{
      {static_cast<int64_t>(rank), static_cast<int64_t>(places[0].size())}, OnnxType::i64, {}};
  LOOM_TRY(small(node, out.dims));
  for (const std::vector<double>& axis : places)
    out.values.insert(out.values.end(), axis.begin(), axis.end());
  return out;
}

// All values of a list as one, or [1]: what exporters ask of shapes.
Folded product(const OnnxNode& node, const Inputs& in) {
  std::vector<int64_t> axes = {0};
  if (const OnnxAttribute* given = node.find("axes")) axes = given->integers;
  if (in.size() > 1 && in[1] != nullptr) axes = in[1]->integers();
  if (in[0]->dims.size() != 1 ||
      (axes != std::vector<int64_t>{0} && axes != std::vector<int64_t>{-1}))
    return bad(node, "multiplies what is no list");
  LOOM_TRY(small(node, in[0]->dims));
  Constant out{{}, in[0]->type, {1}};
  if (attribute(node, "keepdims", 1) != 0) out.dims = {1};
  for (int64_t i = 0; i < in[0]->count(); ++i) {
    const double one = in[0]->at(i);
    double& all = out.values[0];
    all = is_float(out.type) ? rounded(out.type, all * one)
                             : whole_arithmetic("Mul", out.type, all, one);
    LOOM_TRY(exact(node, out));
  }
  return out;
}

struct FoldRow {
  std::string_view op;
  size_t least;  // inputs
  Folded (*fold)(const OnnxNode&, const Inputs&);
};
constexpr FoldRow kFolds[] = {{"Add", 2, binary},          {"Sub", 2, binary},
                              {"Mul", 2, binary},          {"Div", 2, binary},
                              {"Pow", 2, binary},          {"Equal", 2, binary},
                              {"Greater", 2, binary},      {"GreaterOrEqual", 2, binary},
                              {"Less", 2, binary},         {"LessOrEqual", 2, binary},
                              {"And", 2, binary},          {"Or", 2, binary},
                              {"Max", 2, binary},          {"Min", 2, binary},
                              {"Sqrt", 1, unary},          {"Neg", 1, unary},
                              {"Reciprocal", 1, unary},    {"Not", 1, unary},
                              {"Cast", 1, cast},           {"Identity", 1, unary},
                              {"Where", 3, where},         {"Gather", 2, gather},
                              {"Slice", 3, slice},         {"Concat", 1, concat},
                              {"Expand", 2, expand},       {"ConstantOfShape", 1, filled},
                              {"Range", 3, range},         {"Trilu", 1, trilu},
                              {"Transpose", 1, transpose}, {"ReduceProd", 1, product},
                              {"NonZero", 1, non_zero}};

}  // namespace

int64_t Constant::count() const {
  int64_t n = 1;
  for (const int64_t d : dims) n *= d;
  return n;
}

std::vector<int64_t> Constant::integers() const {
  std::vector<int64_t> out;
  const int64_t n = std::min(count(), kMaxFolded);
  for (int64_t i = 0; i < n; ++i) {
    const double v = at(i);
    out.push_back(static_cast<int64_t>(std::clamp(v == v ? v : 0, -kExact, kExact)));
  }
  return out;
}

std::vector<float> Constant::floats() const {
  std::vector<float> out(static_cast<size_t>(count()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(at(static_cast<int64_t>(i)));
  return out;
}

Result<Constant> constant_of(const OnnxTensor& tensor) {
  Constant out{tensor.shape, tensor.type, {}};
  if (is_float(tensor.type)) {
    LOOM_ASSIGN(out.values, onnx_f64(tensor));
    return out;
  }
  LOOM_ASSIGN(const std::vector<int64_t> whole, onnx_i64(tensor));
  for (const int64_t v : whole)
    out.values.push_back(std::clamp(static_cast<double>(v), -kExact, kExact));
  return out;
}

Result<OnnxTensor> tensor_of(const Constant& constant) {
  OnnxTensor out;
  out.type = constant.type;
  out.shape = constant.dims;
  const size_t bytes = onnx_type_bytes(constant.type);
  out.own.resize(static_cast<size_t>(constant.count()) * bytes);
  for (int64_t i = 0; i < constant.count(); ++i) {
    const double v = constant.at(i);
    std::byte* at = out.own.data() + static_cast<size_t>(i) * bytes;
    if (!is_float(constant.type)) {
      if (v >= kExact || v <= -kExact) return unsupported("a whole number beyond 2^53");
      const auto whole = static_cast<int64_t>(v);
      std::memcpy(at, &whole, bytes);  // little-endian, as files are
    } else if (constant.type == OnnxType::f64) {
      std::memcpy(at, &v, bytes);
    } else {
      const auto f = static_cast<float>(v);
      const uint16_t half = constant.type == OnnxType::f16 ? f16_from_f32(f) : bf16_from_f32(f);
      std::memcpy(at, bytes == 4 ? static_cast<const void*>(&f) : &half, bytes);
    }
  }
  return out;
}

OnnxNode cast_of(const OnnxNode& node, OnnxType type) {
  OnnxNode cast = node;
  cast.op = "Cast";
  cast.inputs.resize(1);
  OnnxAttribute to;
  to.name = "to";
  to.integer = static_cast<int64_t>(type);
  cast.attributes.push_back(std::move(to));
  return cast;
}

bool folds(const OnnxNode& node) {
  return std::any_of(std::begin(kFolds), std::end(kFolds),
                     [&](const FoldRow& row) { return row.op == node.op; });
}

Result<Constant> fold(const OnnxNode& node, const std::vector<ConstantRef>& inputs) {
  const FoldRow& row = *std::find_if(std::begin(kFolds), std::end(kFolds),
                                     [&](const FoldRow& r) { return r.op == node.op; });
  for (size_t i = 0; i < std::max(row.least, inputs.size()); ++i) {
    const bool here = i < inputs.size() && inputs[i] != nullptr;
    if (!here && (i < row.least || row.op == "Concat")) return bad(node, "an input is absent");
    // What has no values is no constant to compute with, but by one value each. An empty list is
    // the shape of one number.
    const bool may_be_empty =
        row.op == "Concat" || row.op == "ConstantOfShape" || row.fold == binary;
    if (here && inputs[i]->count() == 0 && !may_be_empty) return bad(node, "an empty constant");
  }
  if (row.fold == binary && inputs.size() != 2) return bad(node, "more than two inputs");
  return row.fold(node, inputs);
}

}  // namespace loom::core
