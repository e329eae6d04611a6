// Operators of com.microsoft that work on 8 bits with a scale and a zero point, which ONNX
// Runtime's quantizers write. A result is that of the float operator between a dequantization and a
// quantization; products are exact sums of integers (quantized.cpp). See parts.hpp.
#include <algorithm>

#include "onnx/interpreter/families.hpp"
#include "onnx/interpreter/parts.hpp"

namespace loom::core::evaluate {
namespace {

constexpr std::string_view kMs = "com.microsoft";

// (x - zero) scale, of three inputs that follow each other.
Result<Value> real(const Call& c, size_t x) {
  return Part(c, "DequantizeLinear")
      .value({optional(c, x), optional(c, x + 1), optional(c, x + 2)});
}
// `y` in the type of input 0 or of its zero point: scale and zero point are inputs.
Status give_codes(const Call& c, const Value& y, size_t scale, size_t zero, OnnxType type) {
  LOOM_ASSIGN(const Value none, zero_of(c, type));
  LOOM_ASSIGN(Value codes,
              Part(c, "QuantizeLinear")
                  .value({&y, optional(c, scale), c.has(zero) ? &c.value(zero) : &none}));
  return c.give(std::move(codes));
}

Status linear_pair(const Call& c, std::string_view op) {
  LOOM_ASSIGN(const Value a, real(c, 0));
  LOOM_ASSIGN(const Value b, real(c, 3));
  LOOM_ASSIGN(const Value y, Part(c, op).value({&a, &b}));
  return give_codes(c, y, 6, 7, c.value(0).type);
}
Status linear_add(const Call& c) {
  return linear_pair(c, "Add");
}
Status linear_mul(const Call& c) {
  return linear_pair(c, "Mul");
}

// One operand; scale and zero point of the result are inputs 3 and 4.
Status linear_unary(const Call& c, Part part) {
  LOOM_ASSIGN(const Value x, real(c, 0));
  LOOM_ASSIGN(const Value y, part.value({&x}));
  return give_codes(c, y, 3, 4, c.value(0).type);
}
Status linear_sigmoid(const Call& c) {
  return linear_unary(c, Part(c, "Sigmoid"));
}
Status linear_leaky_relu(const Call& c) {
  return linear_unary(c, Part(c, "LeakyRelu").keep("alpha"));
}
Status linear_softmax(const Call& c) {
  return linear_unary(
      c, Part(c, "Softmax").set("axis", c.integer("axis", -1)).version(c.integer("opset", 13)));
}

// Axes of [N, ..., C] as [N, C, ...], or back.
Result<Value> channels_moved(const Call& c, const Value& x, bool last) {
  if (x.rank() < 3) return c.bad("takes [N, C, ...]");
  const auto rank = static_cast<int64_t>(x.rank());
  std::vector<int64_t> order{0};
  if (!last) order.push_back(rank - 1);
  for (int64_t a = last ? 2 : 1; a < (last ? rank : rank - 1); ++a) order.push_back(a);
  if (last) order.push_back(1);
  return Part(c, "Transpose").set("perm", order).value({&x});
}

// A pooling of input 0 (floats where `x` is given), whose channels are last where `last`.
Result<Value> pooled(const Call& c, Part part, const Value& given, bool last) {
  Value x = given;
  if (last) {
    LOOM_ASSIGN(x, channels_moved(c, x, false));
  }
  LOOM_ASSIGN(const Value y, part.value({&x}));
  return last ? channels_moved(c, y, true) : Result<Value>(y);
}
Part windows(const Call& c, std::string_view op) {
  Part part(c, op);
  for (const char* name : {"auto_pad", "ceil_mode", "count_include_pad", "dilations",
                           "kernel_shape", "pads", "strides"})
    part.keep(name);
  return part;
}
Status linear_pool(const Call& c, Part part) {
  LOOM_ASSIGN(const Value x, real(c, 0));
  LOOM_ASSIGN(const Value y, pooled(c, std::move(part), x, c.integer("channels_last", 0) != 0));
  return give_codes(c, y, 3, 4, c.value(0).type);
}

// Pads of an average over whole windows: where padding counts, ONNX Runtime also counts what
// ceil_mode adds at the end. If empty, the node's own pads apply.
Dims counted_pads(const Call& c) {
  if (c.integer("ceil_mode", 0) == 0 || c.integer("count_include_pad", 0) == 0) return {};
  const bool last = c.integer("channels_last", 0) != 0;
  const Dims kernel = c.list("kernel_shape"), strides = c.list("strides");
  Dims pads = c.list("pads");
  const size_t axes = kernel.size();
  if (pads.empty()) pads.assign(2 * axes, 0);
  if (c.value(0).dims.size() != axes + 2 || pads.size() != 2 * axes ||
      (!strides.empty() && strides.size() != axes))
    return {};
  for (size_t a = 0; a < axes; ++a) {
    const int64_t extent = c.value(0).dims[a + (last ? 1 : 2)],
                  step = strides.empty() ? 1 : strides[a];
    const int64_t rest = extent + pads[a] + pads[axes + a] - kernel[a];
    if (step < 1 || rest < 0) return {};
    int64_t more = (rest + step - 1) / step;      // windows after the first
    if (more * step >= extent + pads[a]) --more;  // one that begins after the input
    pads[axes + a] += std::max<int64_t>(0, more * step - rest);
  }
  return pads;
}

Status linear_average_pool(const Call& c) {
  const Dims pads = counted_pads(c);
  if (pads.empty()) return linear_pool(c, windows(c, "AveragePool"));
  Part part(c, "AveragePool");
  part.keep("kernel_shape").keep("strides").keep("count_include_pad").set("pads", pads);
  return linear_pool(c, std::move(part));
}
Status linear_global_pool(const Call& c) {
  return linear_pool(c, Part(c, "GlobalAveragePool"));
}
Status nhwc_max_pool(const Call& c) {
  LOOM_ASSIGN(Value y, pooled(c, windows(c, "MaxPool"), c.value(0), true));
  return c.give(std::move(y));
}

// Scale, zero point, then three inputs for each part.
Status linear_concat(const Call& c) {
  Value joined;
  const int64_t axis = c.integer("axis", 0);
  if (c.in.size() % 3 != 2) return c.bad("takes a scale and a zero point, and three inputs a part");
  for (size_t i = 2; i < c.in.size(); i += 3) {
    LOOM_ASSIGN(const Value part, real(c, i));
    if (i == 2) {
      joined = part;
      continue;
    }
    LOOM_ASSIGN(joined, Part(c, "Concat").set("axis", axis).value({&joined, &part}));
  }
  return give_codes(c, joined, 0, 1, c.value(1).type);
}

// Condition, x, y, and how the result is scaled.
Status linear_where(const Call& c) {
  LOOM_ASSIGN(const Value x, real(c, 1));
  LOOM_ASSIGN(const Value y, real(c, 4));
  LOOM_ASSIGN(const Value z, Part(c, "Where").value({optional(c, 0), &x, &y}));
  return give_codes(c, z, 7, 8, c.value(1).type);
}

Part conv_part(const Call& c) {
  Part part(c, "QLinearConv");
  for (const char* name : {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"})
    part.keep(name);
  return part;
}
Status linear_conv(const Call& c) {
  const bool last = c.integer("channels_last", 0) != 0;
  Value x = c.value(0);
  if (last) {
    LOOM_ASSIGN(x, channels_moved(c, x, false));
  }
  LOOM_ASSIGN(Value y,
              conv_part(c)
                  .with(c.prepared)
                  .value({&x, optional(c, 1), optional(c, 2), optional(c, 3), optional(c, 4),
                          optional(c, 5), optional(c, 6), optional(c, 7), optional(c, 8)}));
  if (last) {
    LOOM_ASSIGN(y, channels_moved(c, y, true));
  }
  return c.give(std::move(y));
}
Part::PreparedResult prepare_linear_conv(const Call& c) {
  if (!c.has(5)) return {nullptr};
  return conv_part(c).prepare({nullptr, nullptr, nullptr, optional(c, 3), nullptr, optional(c, 5)});
}

// Sums of integers times both scales, and a bias; `b_scale` may have a value per column.
Result<Value> scaled_sums(const Call& c, const Value& sums, const Value& a_scale,
                          const Value& b_scale, const Value* bias) {
  if (a_scale.count() != 1) return c.not_done("a scale of A for each row");
  LOOM_ASSIGN(const Value real_sums, cast(c.rt.memory, sums, OnnxType::f32));
  LOOM_ASSIGN(const Value left, cast(c.rt.memory, a_scale, OnnxType::f32));
  LOOM_ASSIGN(const Value right, cast(c.rt.memory, b_scale, OnnxType::f32));
  LOOM_ASSIGN(const Value both, combine(c, Pair::mul, left.view_as(Dims{}), right));
  LOOM_ASSIGN(const Value y, combine(c, Pair::mul, real_sums, both));
  if (y.dims != sums.dims) return c.bad("scales that do not fit");
  if (bias == nullptr) return y;
  LOOM_ASSIGN(const Value shift, cast(c.rt.memory, *bias, OnnxType::f32));
  return combine(c, Pair::add, y, shift);
}

// A in floats, B in 8 bits: A is rounded to 8 bits by its smallest and its largest value.
Status dynamic_matmul(const Call& c) {
  LOOM_ASSIGN(const std::vector<Slot> a, Part(c, "DynamicQuantizeLinear").values({&c.value(0)}, 3));
  LOOM_ASSIGN(const Value sums,
              Part(c, "MatMulInteger")
                  .with(c.prepared)
                  .value({&a[0].tensor, optional(c, 1), &a[2].tensor, optional(c, 3)}));
  LOOM_ASSIGN(Value y, scaled_sums(c, sums, a[1].tensor, c.value(2), optional(c, 4)));
  return c.give(std::move(y));
}

// Whether an input is there in some run though it is not known when the graph is opened.
bool moves(const Call& c, size_t i) {
  return i < c.node.inputs.size() && !c.node.inputs[i].empty() && !c.has(i);
}
Part::PreparedResult prepare_dynamic_matmul(const Call& c) {
  if (moves(c, 3)) return {nullptr};
  return Part(c, "MatMulInteger").prepare({nullptr, optional(c, 1), nullptr, optional(c, 3)});
}

Status integer_to_float(const Call& c) {
  LOOM_ASSIGN(const Value sums,
              Part(c, "MatMulInteger")
                  .with(c.prepared)
                  .value({optional(c, 0), optional(c, 1), optional(c, 4), optional(c, 5)}));
  LOOM_ASSIGN(const Value y, scaled_sums(c, sums, c.value(2), c.value(3), optional(c, 6)));
  return c.give_as(y, c.value(2).type);
}
Part::PreparedResult prepare_integer_to_float(const Call& c) {
  if (moves(c, 5)) return {nullptr};
  return Part(c, "MatMulInteger").prepare({nullptr, optional(c, 1), nullptr, optional(c, 5)});
}

// Exchanges the last two axes if an attribute says so.
Result<Value> transposed(const Call& c, size_t i, std::string_view attribute) {
  const Value& x = c.value(i);
  if (x.rank() != 2) return c.bad("takes matrices");
  if (c.integer(attribute, 0) == 0) return x;
  return Part(c, "Transpose").value({&x});
}

// alpha (A B) + C of integers, as floats or, with a scale of the result, as codes. C is in units of
// alpha and both scales.
Status linear_gemm(const Call& c) {
  LOOM_ASSIGN(const Value a, transposed(c, 0, "transA"));
  LOOM_ASSIGN(const Value b, transposed(c, 3, "transB"));
  LOOM_ASSIGN(Value sums, Part(c, "MatMulInteger").value({&a, &b, optional(c, 2), optional(c, 5)}));
  if (c.has(6)) {
    LOOM_ASSIGN(sums, Part(c, "Add").value({&sums, &c.value(6)}));
  }
  LOOM_ASSIGN(const Value factor, real_row(c, {c.real("alpha", 1)}));
  LOOM_ASSIGN(const Value scale, Part(c, "Mul").value({&factor, &c.value(1)}));
  LOOM_ASSIGN(Value y, scaled_sums(c, sums, scale, c.value(4), nullptr));
  if (!c.has(7)) return c.give(std::move(y));
  return give_codes(c, y, 7, 8, c.value(0).type);
}

// Weights [D, K, 4 H] as the standard's [D, 4 H, K] in floats; scales and zero points are inputs,
// of [D] or [D, 4 H].
Result<Value> gates(const Call& c, size_t i, size_t scale) {
  const Value& w = c.value(i);
  if (w.rank() != 3) return c.bad("weights must have three axes");
  if (!c.has(scale) || !c.has(scale + 1)) return c.bad("takes scales and zero points of weights");
  LOOM_ASSIGN(const Value x, c.as(i, OnnxType::f32));
  Value by[2];
  for (size_t k = 0; k < 2; ++k) {
    LOOM_ASSIGN(by[k], c.as(scale + k, OnnxType::f32));
    const int64_t count = by[k].count();
    if (count != w.dims[0] && count != w.dims[0] * w.dims[2])
      return c.bad("a scale and a zero point per direction or per gate are needed");
    by[k] = by[k].view_as({w.dims[0], 1, count / w.dims[0]});
  }
  LOOM_ASSIGN(const Value less, combine(c, Pair::sub, x, by[1]));
  LOOM_ASSIGN(const Value y, combine(c, Pair::mul, less, by[0]));
  return Part(c, "Transpose").set("perm", std::vector<int64_t>{0, 2, 1}).value({&y});
}

// An LSTM whose weights are in 8 bits. ONNX Runtime rounds inputs and states to 8 bits as well, for
// speed; here they stay floats, which is nearer to the network that was quantized.
Status dynamic_lstm(const Call& c) {
  LOOM_ASSIGN(const Value w, gates(c, 1, 8));
  LOOM_ASSIGN(const Value r, gates(c, 2, 10));
  Part part(c, "LSTM");
  for (const OnnxAttribute& a : c.node.attributes) part.keep(a.name);
  LOOM_ASSIGN(std::vector<Slot> made,
              part.values({optional(c, 0), &w, &r, optional(c, 3), optional(c, 4), optional(c, 5),
                           optional(c, 6), optional(c, 7)},
                          3));
  for (size_t i = 0; i < 3; ++i) LOOM_TRY(c.give(made[i].tensor, i));
  return {};
}

constexpr Operator kLinear[] = {
    {kMs, "QLinearAdd", linear_add, "aa?aaaaaa"},
    {kMs, "QLinearMul", linear_mul, "aa?aaaaaa"},
    {kMs, "QLinearSigmoid", linear_sigmoid, "aa?aaa"},
    {kMs, "QLinearLeakyRelu", linear_leaky_relu, "aa?aaa alpha"},
    {kMs, "QLinearSoftmax", linear_softmax, "aa?aaa axis opset"},
    {kMs, "QLinearAveragePool", linear_average_pool,
     "aa?aaa auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides"},
    {kMs, "QLinearGlobalAveragePool", linear_global_pool, "aa?aaa channels_last"},
    {kMs, "NhwcMaxPool", nhwc_max_pool, "a auto_pad ceil_mode dilations kernel_shape pads strides"},
    {kMs, "QLinearConcat", linear_concat, "aaaaa+ axis"},
    {kMs, "QLinearWhere", linear_where, "aaaaaaaaa"},
    {kMs, "QLinearConv", linear_conv,
     "aaaaaaaa?a auto_pad channels_last dilations group kernel_shape pads strides", "",
     Operator::none, prepare_linear_conv},
    {kMs, "DynamicQuantizeMatMul", dynamic_matmul, "aaa?aa", "", Operator::none,
     prepare_dynamic_matmul},
    {kMs, "MatMulIntegerToFloat", integer_to_float, "aaaa?aaa", "", Operator::none,
     prepare_integer_to_float},
    {kMs, "QGemm", linear_gemm, "aaaaaa?aaa alpha transA transB"},
    {kMs, "DynamicQuantizeLSTM", dynamic_lstm,
     "aaa?aaaaaaaaa activation_alpha activation_beta activations clip direction hidden_size "
     "input_forget"},
};

}  // namespace

std::span<const Operator> linear_operators() {
  return kLinear;
}

}  // namespace loom::core::evaluate
