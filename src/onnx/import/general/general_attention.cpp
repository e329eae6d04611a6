// Attention of opset 23, the general way: products, a softmax, and masks as constants. It is what
// torch.onnx writes for scaled_dot_product_attention from that opset on. See general.hpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.hpp"
#include "layers/spatial/axes.hpp"
#include "onnx/import/general/general.hpp"

namespace loom::core {

// Input i as [batch, heads, time, width]; one of three axes has its heads side by side.
Result<GraphImport::Value> GraphImport::by_heads(const OnnxNode& n, size_t i,
                                                 std::string_view attribute_of_heads) {
  LOOM_ASSIGN(const Value x, stream(n, i));
  if (x.shape.rank() == 4) return x;
  const int64_t heads = attribute(n, attribute_of_heads, 0);
  if (x.shape.rank() != 3 || heads < 1 || x.shape[2] % heads != 0)
    return refuse(n, cat("an input ", x.shape.str(), " of ", heads, " heads"));
  using List = std::vector<int64_t>;
  LOOM_ASSIGN(const Value apart,
              view(n, x, List{x.shape[0], x.shape[1], heads, x.shape[2] / heads}));
  return emit(n, LayerKind::transpose, {{"axes", List{0, 2, 1, 3}}}, {apart});
}

// Each head of keys or values for as many heads of queries: [.., kv, ..] as [.., heads, ..].
Result<GraphImport::Value> GraphImport::repeated_heads(const OnnxNode& n, const Value& x,
                                                       int64_t heads) {
  const int64_t have = x.shape[1];
  if (have == heads) return x;
  if (have < 1 || heads % have != 0)
    return refuse(n, cat(heads, " heads of queries for ", have, " of keys"));
  using List = std::vector<int64_t>;
  LOOM_ASSIGN(Value y, view(n, x, List{x.shape[0], have, 1, x.shape[2], x.shape[3]}));
  LOOM_ASSIGN(y, emit(n, LayerKind::expand, {{"shape", List{heads / have, 1, 1}}}, {y}));
  return view(n, y, List{x.shape[0], heads, x.shape[2], x.shape[3]});
}

// The addend of scores [.., rows, cols]: constants unchanged, booleans as 0 and -inf.
Result<GraphImport::Value> GraphImport::score_mask(const OnnxNode& n, int64_t rows, int64_t cols) {
  LOOM_ASSIGN(const Value* given, value(n, 3));
  if (!given->is_constant()) return stream(n, 3);
  LOOM_ASSIGN(const ConstantRef c, constant(n, 3));
  Constant mask{c->dims, OnnxType::f32, c->values};
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  if (c->type == OnnxType::boolean) {
    for (double& v : mask.values) v = v != 0 ? 0 : kNever;
  }
  const bool fits =
      mask.dims.size() >= 2 && mask.dims.back() == cols &&
      (mask.dims[mask.dims.size() - 2] == rows || mask.dims[mask.dims.size() - 2] == 1);
  if (!fits) return refuse(n, cat("a mask that is not one of ", rows, " x ", cols));
  for (int64_t r = 0; r < mask.count(); r += cols) {
    bool sees = false;
    for (int64_t i = 0; i < cols; ++i) sees = sees || mask.at(r + i) > kNever;
    if (!sees) return refuse(n, "a mask with a query that sees no key");
  }
  return constant_stream(n, mask);
}

Status GraphImport::attention_node(const OnnxNode& n) {
  for (size_t i = 4; i < 7; ++i) {
    if (has_input(n, i)) return refuse(n, "a past, or lengths of samples");
  }
  for (size_t i = 1; i < n.outputs.size(); ++i) {
    if (!n.outputs[i].empty()) return refuse(n, "outputs besides the first");
  }
  if (attribute(n, "left_window_size", -1) >= 0 || attribute(n, "right_window_size", -1) >= 0)
    return refuse(n, "windows");
  LOOM_ASSIGN(const Value* first, value(n, 0));
  const bool flat = first->shape.rank() == 3;
  LOOM_ASSIGN(const Value q, by_heads(n, 0, "q_num_heads"));
  LOOM_ASSIGN(Value k, by_heads(n, 1, "kv_num_heads"));
  LOOM_ASSIGN(Value v, by_heads(n, 2, "kv_num_heads"));
  LOOM_ASSIGN(k, repeated_heads(n, k, q.shape[1]));
  LOOM_ASSIGN(v, repeated_heads(n, v, q.shape[1]));
  const int64_t rows = q.shape[2], cols = k.shape[2];
  LOOM_ASSIGN(Value s, emit(n, LayerKind::matmul, {{"transpose_b", true}}, {q, k}));
  const double scale = 1 / std::sqrt(static_cast<double>(q.shape[3]));
  LOOM_ASSIGN(s, with_number(n, "mul", s, attribute_real(n, "scale", scale)));
  if (const double cap = attribute_real(n, "softcap", 0); cap > 0) {
    LOOM_ASSIGN(s, with_number(n, "div", s, cap));
    LOOM_ASSIGN(s, unary(n, "tanh", s));
    LOOM_ASSIGN(s, with_number(n, "mul", s, cap));
  }
  if (has_input(n, 3)) {
    LOOM_ASSIGN(const Value mask, score_mask(n, rows, cols));
    LOOM_ASSIGN(s, binary(n, "add", s, mask));
  }
  if (attribute(n, "is_causal", 0) != 0) {
    if (has_input(n, 3)) return refuse(n, "a mask beside is_causal");
    if (rows * cols > kMaxFolded) return refuse(n, "too long a causal mask");
    Constant past{{rows, cols}, OnnxType::f32, {}};
    for (int64_t i = 0; i < rows * cols; ++i)
      past.values.push_back(i % cols > i / cols ? -std::numeric_limits<double>::infinity() : 0);
    LOOM_ASSIGN(const Value mask, constant_stream(n, past));
    LOOM_ASSIGN(s, binary(n, "add", s, mask));
  }
  LOOM_ASSIGN(s, emit(n, LayerKind::softmax, {}, {s}));
  LOOM_ASSIGN(Value y, emit(n, LayerKind::matmul, {}, {s, v}));
  if (flat) {
    using List = std::vector<int64_t>;
    LOOM_ASSIGN(y, emit(n, LayerKind::transpose, {{"axes", List{0, 2, 1, 3}}}, {y}));
    LOOM_ASSIGN(y, view(n, y, List{y.shape[0], y.shape[1], y.shape[2] * y.shape[3]}));
  }
  return define(n, std::move(y));
}

}  // namespace loom::core
