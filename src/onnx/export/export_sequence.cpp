// Recurrent layers, softmaxes and soft k-means as ONNX operators. ONNX keeps the time axis first
// and the gates of an LSTM in the order i o f c (ours: i f g o, g being c), those of a GRU as z r h
// (ours: r z n, with the reset after the product: linear_before_reset 1).
#include "onnx/export/builder.hpp"

namespace loom::core {
namespace {

// Blocks of `rows` equal rows of a matrix, in another order.
std::vector<float> reordered(const std::vector<float>& all, const std::vector<size_t>& order) {
  const size_t block = all.size() / order.size();
  std::vector<float> out;
  out.reserve(all.size());
  for (const size_t from : order) {
    const auto begin = all.begin() + static_cast<int64_t>(from * block);
    out.insert(out.end(), begin, begin + static_cast<int64_t>(block));
  }
  return out;
}

struct Gates {
  std::string op;
  std::vector<size_t> order;  // the position of each of our gates
};

Gates gates_of(LayerKind kind) {
  if (kind == LayerKind::lstm) return {"LSTM", {0, 3, 1, 2}};
  if (kind == LayerKind::gru) return {"GRU", {1, 0, 2}};
  return {"RNN", {0}};
}

// The activation of an RNN, as attributes.
Result<std::vector<OnnxAttribute>> rnn_attributes(GraphBuilder& g, const Node& node) {
  struct Row {
    std::string_view ours, theirs;
    float alpha;
  };
  static constexpr Row kRows[] = {{"tanh", "Tanh", 0},
                                  {"relu", "Relu", 0},
                                  {"sigmoid", "Sigmoid", 0},
                                  {"softplus", "Softplus", 0},
                                  {"leaky_relu", "LeakyRelu", 0.01f},
                                  {"elu", "Elu", 1.0f},
                                  {"linear", "Affine", 1.0f}};
  const std::string_view name = g.fields(node).text("activation");
  for (const Row& row : kRows) {
    if (row.ours != name) continue;
    std::vector<OnnxAttribute> out = {
        onnx_attribute("activations", std::vector<std::string>{std::string(row.theirs)})};
    if (row.alpha != 0)
      out.push_back(onnx_attribute("activation_alpha", std::vector<float>{row.alpha}));
    if (row.theirs == "Affine")
      out.push_back(onnx_attribute("activation_beta", std::vector<float>{0.0f}));
    return out;
  }
  return g.refuse(node, cat("an RNN with activation ", name, " has no form in ONNX"));
}

}  // namespace

Result<std::string> emit_recurrent(GraphBuilder& g, const Node& node, const ExportValue& x) {
  FieldReader& f = g.fields(node);
  if (x.shape.rank() != 3)
    return g.refuse(node, cat("input ", x.shape.str(), " has no time axis of its own"));
  const Gates cell = gates_of(node.config.def->kind);
  const auto gates = static_cast<int64_t>(cell.order.size());
  const int64_t in = f.integer("in"), hidden = f.integer("hidden");
  LOOM_ASSIGN(const std::vector<float> wih, g.values(node, 0));
  LOOM_ASSIGN(const std::vector<float> whh, g.values(node, 1));
  LOOM_ASSIGN(std::vector<float> bias, g.values(node, 2));
  bias = reordered(bias, cell.order);
  std::vector<float> more(bias.size());
  if (node.params.size() > 3) {
    LOOM_ASSIGN(more, g.values(node, 3));
    more = reordered(more, cell.order);
  }
  // One bias of the two that ONNX asks for: the other is a Constant, which learns nowhere.
  const bool one = cell.op != "GRU" && !f.flag("state_bias");
  if (!one) bias.insert(bias.end(), more.begin(), more.end());
  const auto width = static_cast<int64_t>(bias.size());
  std::string biases = g.floats_of(node, "B", {1, width}, bias);
  if (one)
    biases =
        g.add("Concat", {biases, g.constant("none", {1, width}, std::vector<float>(bias.size()))},
              {onnx_attribute("axis", int64_t{1})});
  std::vector<OnnxAttribute> attributes = {onnx_attribute("hidden_size", hidden)};
  if (cell.op == "GRU") attributes.push_back(onnx_attribute("linear_before_reset", int64_t{1}));
  if (cell.op == "RNN") {
    LOOM_ASSIGN(const auto extra, rnn_attributes(g, node));
    attributes.insert(attributes.end(), extra.begin(), extra.end());
  }
  const OnnxAttribute swap = onnx_attribute("perm", std::vector<int64_t>{1, 0, 2});
  const bool all = f.flag("return_sequence");
  const std::vector<std::string> y = g.add_many(
      cell.op,
      {g.add("Transpose", {x.name}, {swap}),
       g.floats_of(node, "W", {1, gates * hidden, in}, reordered(wih, cell.order)),
       g.floats_of(node, "R", {1, gates * hidden, hidden}, reordered(whh, cell.order)), biases},
      attributes, {all, !all});
  if (!all) return g.add("Squeeze", {y[1], g.integers({0})});
  return g.add("Transpose", {g.add("Squeeze", {y[0], g.integers({1})})}, {swap});
}

namespace {

// Fields of one variant have no meaning in the others.
void skip_other_variants(FieldReader& f, std::string_view variant) {
  if (variant != "grid" && variant != "mixture") f.skip({"rows", "cols"});
  if (variant != "hierarchical") f.skip({"levels"});
  if (variant != "entmax") f.skip({"alpha"});
  if (variant != "masked") f.skip({"mask"});
  if (variant != "gumbel") f.skip({"noise", "hard"});
  if (variant != "adaptive") f.skip({"kappa", "target_entropy"});
}

}  // namespace

Result<std::string> emit_softmax(GraphBuilder& g, const Node& node, const ExportValue& x) {
  FieldReader& f = g.fields(node);
  const std::string_view variant = f.text("variant");
  const int64_t width = x.shape.last();
  skip_other_variants(f, variant);
  int64_t row = width;
  std::string z = x.name;
  if (variant == "grid") {
    if (f.integer("rows") * f.integer("cols") > 0) row = f.integer("cols");
  } else if (variant == "masked") {
    std::vector<float> keep(static_cast<size_t>(width));
    for (size_t i = 0; i < f.list("mask").size(); ++i) {
      if (f.list("mask")[i] == 0) keep[i] = -__builtin_inff();
    }
    z = g.add("Add", {z, g.constant("mask", {width}, keep)});
  } else if (variant == "gumbel" && (f.flag("noise") || f.flag("hard"))) {
    return g.refuse(node, "gumbel with noise or hard choices has no form in ONNX");
  } else if (variant == "entmax" && f.real("alpha") > 1) {
    return g.refuse(node, "entmax with alpha above 1 has no form in ONNX");
  } else if (variant != "standard" && variant != "temperature" && variant != "gumbel" &&
             variant != "entmax") {
    return g.refuse(node, cat("the variant ", variant, " has no form in ONNX"));
  }
  const auto scale = static_cast<float>(1.0 / f.real("temperature"));
  if (scale != 1.0f) z = g.add("Mul", {z, g.number(scale)});
  std::vector<int64_t> rest;
  for (int i = 1; i < x.shape.rank(); ++i) rest.push_back(x.shape[i]);
  if (row != width) {
    std::vector<int64_t> cut = rest;
    cut.back() = width / row;
    cut.push_back(row);
    z = g.reshape(z, cut);
  }
  z = g.add("Softmax", {z}, {onnx_attribute("axis", int64_t{-1})});
  return row == width ? z : g.reshape(z, rest);
}

// softmax(-|x - c_k|^2 / (2 tau^2)), or its mean of the centres.
Result<std::string> emit_kmeans(GraphBuilder& g, const Node& node, const ExportValue& x) {
  FieldReader& f = g.fields(node);
  f.skip({"clusters", "width"});  // its parameter has them
  const double tau = f.real("temperature");
  LOOM_ASSIGN(const std::string centres, g.param(node, 0));
  const std::string apart = g.add("Sub", {g.add("Unsqueeze", {x.name, g.integers({-2})}), centres});
  const std::string squares = g.add("ReduceSum", {g.add("Mul", {apart, apart}), g.integers({-1})},
                                    {onnx_attribute("keepdims", int64_t{0})});
  const std::string scores =
      g.add("Mul", {squares, g.number(static_cast<float>(-1.0 / (2.0 * tau * tau)))});
  std::string p = g.add("Softmax", {scores}, {onnx_attribute("axis", int64_t{-1})});
  if (f.text("mode") == "features") p = g.add("MatMul", {p, centres});
  return emit_activation(g, p, f.text("activation"));
}

}  // namespace loom::core
