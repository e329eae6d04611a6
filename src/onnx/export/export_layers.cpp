// The nodes of each kind of layer in ONNX. Attention, recurrences and softmaxes have files of their
// own. See builder.hpp.
#include "onnx/export/builder.hpp"

namespace loom::core {

Result<std::string> emit_activation(GraphBuilder& g, const std::string& x,
                                    std::string_view activation) {
  struct Row {
    std::string_view name, op;
  };
  static constexpr Row kSame[] = {{"relu", "Relu"},         {"tanh", "Tanh"},
                                  {"sigmoid", "Sigmoid"},   {"mish", "Mish"},
                                  {"softplus", "Softplus"}, {"hard_swish", "HardSwish"}};
  for (const Row& row : kSame) {
    if (activation == row.name) return g.add(std::string(row.op), {x});
  }
  if (activation == "linear") return x;
  if (activation == "leaky_relu") return g.add("LeakyRelu", {x}, {onnx_attribute("alpha", 0.01f)});
  if (activation == "elu") return g.add("Elu", {x}, {onnx_attribute("alpha", 1.0f)});
  if (activation == "silu") return g.add("Mul", {x, g.add("Sigmoid", {x})});
  if (activation == "gelu_erf")
    return g.add("Gelu", {x}, {onnx_attribute("approximate", std::string("none"))});
  if (activation == "gelu_tanh")
    return g.add("Gelu", {x}, {onnx_attribute("approximate", std::string("tanh"))});
  if (activation == "relu2") {
    const std::string y = g.add("Relu", {x});
    return g.add("Mul", {y, y});
  }
  return unsupported(cat("cell ", g.path(), ": activation ", activation, " has no form in ONNX"));
}

Result<std::string> emit_product(GraphBuilder& g, const Node& node, const std::string& x, int rank,
                                 size_t weight, int bias) {
  if (rank == 2) {
    LOOM_ASSIGN(const std::string w, g.param(node, weight));
    std::vector<std::string> inputs = {x, w};
    if (bias >= 0) {
      LOOM_ASSIGN(const std::string b, g.param(node, static_cast<size_t>(bias)));
      inputs.push_back(b);
    }
    return g.add("Gemm", inputs, {onnx_attribute("transB", int64_t{1})});
  }
  LOOM_ASSIGN(const std::string w, g.transposed(node, weight));
  const std::string y = g.add("MatMul", {x, w});
  if (bias < 0) return y;
  LOOM_ASSIGN(const std::string b, g.param(node, static_cast<size_t>(bias)));
  return g.add("Add", {y, b});
}

std::string emit_rms(GraphBuilder& g, const std::string& x, const std::string& gamma, double eps) {
  const auto epsilon = static_cast<float>(eps);
  const OnnxAttribute axis = onnx_attribute("axis", int64_t{-1});
  if (g.opset() >= 23)
    return g.add("RMSNormalization", {x, gamma}, {axis, onnx_attribute("epsilon", epsilon)});
  const std::string mean = g.add("ReduceMean", {g.add("Mul", {x, x}), g.integers({-1})},
                                 {onnx_attribute("keepdims", int64_t{1})});
  const std::string root = g.add("Sqrt", {g.add("Add", {mean, g.number(epsilon)})});
  return g.add("Mul", {g.add("Div", {x, root}), gamma});
}

std::string emit_scale(GraphBuilder& g, const std::string& x, double scale) {
  return scale == 1 ? x : g.add("Mul", {x, g.number(static_cast<float>(scale))});
}

std::string emit_soft_cap(GraphBuilder& g, const std::string& x, double cap) {
  if (cap == 0) return x;
  const std::string c = g.number(static_cast<float>(cap));
  return g.add("Mul", {g.add("Tanh", {g.add("Div", {x, c})}), c});
}

namespace {

Result<std::string> emit_dense(GraphBuilder& g, const Node& node, const ExportValue& x) {
  FieldReader& f = g.fields(node);
  f.skip({"out"});  // its weight has them
  const int64_t in = f.integer("in");
  const bool flattens = x.shape.rank() > 2 && x.shape.last() != in;
  const std::string rows = flattens ? g.reshape(x.name, {in}) : x.name;
  const int bias = f.flag("bias") ? 1 : -1;
  LOOM_ASSIGN(const std::string y,
              emit_product(g, node, rows, flattens ? 2 : x.shape.rank(), 0, bias));
  LOOM_ASSIGN(const std::string active, emit_activation(g, y, f.text("activation")));
  return emit_soft_cap(g, emit_scale(g, active, f.real("scale")), f.real("soft_cap"));
}

Result<std::string> emit_conv(GraphBuilder& g, const Node& node, const ExportValue& x) {
  FieldReader& f = g.fields(node);
  const auto axes = static_cast<size_t>(x.shape.rank() - 2);
  const bool transposed = node.config.def->name.starts_with("ConvTransposed");
  const std::vector<int64_t> kernel = f.per_axis("kernel", axes);
  std::vector<int64_t> pads = f.per_axis("padding", axes);
  pads.insert(pads.end(), pads.begin(), pads.begin() + static_cast<int64_t>(axes));
  const int64_t groups = f.integer("groups");
  std::vector<int64_t> shape = {f.integer(transposed ? "channels" : "filters"),
                                f.integer(transposed ? "filters" : "channels") / groups};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  LOOM_ASSIGN(const std::string w, g.param(node, 0, shape));
  std::vector<std::string> inputs = {x.name, w};
  if (f.flag("bias")) {
    LOOM_ASSIGN(const std::string b, g.param(node, 1));
    inputs.push_back(b);
  }
  std::vector<OnnxAttribute> attributes = {
      onnx_attribute("kernel_shape", kernel), onnx_attribute("strides", f.per_axis("stride", axes)),
      onnx_attribute("pads", pads), onnx_attribute("dilations", f.per_axis("dilation", axes)),
      onnx_attribute("group", groups)};
  if (transposed) {
    const std::vector<int64_t> extra = f.per_axis("output_padding", axes),
                               stride = f.per_axis("stride", axes);
    for (size_t i = 0; i < axes; ++i) {
      if (extra[i] < stride[i]) continue;
      return g.refuse(node, cat("output_padding ", extra[i], " must be below the stride, ",
                                stride[i], ", in ONNX; lower it, or raise the stride"));
    }
    attributes.push_back(onnx_attribute("output_padding", extra));
  }
  const std::string y = g.add(transposed ? "ConvTranspose" : "Conv", inputs, attributes);
  return emit_activation(g, y, f.text("activation"));
}

Result<std::string> emit_layer_norm(GraphBuilder& g, const Node& node, const ExportValue& x) {
  g.fields(node).skip({"width"});  // its parameters have it
  const bool weight = g.fields(node).flag("weight"), bias = g.fields(node).flag("bias");
  const int64_t width = x.shape.last();
  std::vector<std::string> reads = {x.name};
  for (size_t i = 0; i < (weight ? 1u : 0u) + (bias ? 1u : 0u); ++i) {
    LOOM_ASSIGN(std::string name, g.param(node, i));
    reads.push_back(std::move(name));
  }
  if (!weight) {
    const std::vector<float> ones(static_cast<size_t>(width), 1.0f);
    reads.insert(reads.begin() + 1, g.constant("ones", {width}, ones));
  }
  const auto eps = static_cast<float>(g.fields(node).real("eps"));
  return g.add("LayerNormalization", reads,
               {onnx_attribute("axis", int64_t{-1}), onnx_attribute("epsilon", eps)});
}

Result<std::string> emit_rms_norm(GraphBuilder& g, const Node& node, const ExportValue& x) {
  g.fields(node).skip({"width"});
  LOOM_ASSIGN(const std::string gamma, g.param(node, 0));
  return emit_rms(g, x.name, gamma, g.fields(node).real("eps"));
}

Result<std::string> emit_embedding(GraphBuilder& g, const Node& node, const ExportValue& x) {
  if (x.shape.rank() != 2)
    return g.refuse(node, cat("ids of shape ", x.shape.str(), "; only [batch, time] is written"));
  FieldReader& f = g.fields(node);
  f.skip({"vocab", "width", "padding_id", "sparse"});  // the table has it, and training alone
  LOOM_ASSIGN(const std::string table, g.param(node, 0));
  std::string y = g.add("Gather", {table, x.name}, {onnx_attribute("axis", int64_t{0})});
  if (const auto scale = static_cast<float>(f.real("scale")); scale != 1.0f)
    y = g.add("Mul", {y, g.number(scale)});
  if (f.integer("positions") > 0) {
    const int64_t time = x.shape[1], width = f.integer("width");
    if (time > f.integer("positions"))
      return g.refuse(node, cat("texts of ", time, " ids, but it has learned ",
                                f.integer("positions"), " positions"));
    LOOM_ASSIGN(std::vector<float> learned, g.values(node, 1));
    learned.resize(static_cast<size_t>(time * width));
    y = g.add("Add", {y, g.floats_of(node, "positions", {time, width}, learned)});
  }
  return emit_activation(g, y, f.text("activation"));
}

Result<std::string> emit_swiglu(GraphBuilder& g, const Node& node, const ExportValue& x) {
  FieldReader& f = g.fields(node);
  const int bias = f.flag("bias") ? 3 : -1, rank = x.shape.rank();
  f.skip({"width", "inner"});
  const auto next = [&](int i) { return bias < 0 ? -1 : bias + i; };
  LOOM_ASSIGN(const std::string gate, emit_product(g, node, x.name, rank, 0, next(0)));
  LOOM_ASSIGN(const std::string up, emit_product(g, node, x.name, rank, 1, next(1)));
  LOOM_ASSIGN(const std::string active, emit_activation(g, gate, f.text("activation")));
  std::string mixed = g.add("Mul", {active, up});
  if (f.flag("sub_norm")) {
    LOOM_ASSIGN(const std::string gamma, g.param(node, bias < 0 ? 3 : 6));
    mixed = emit_rms(g, mixed, gamma, f.real("sub_norm_eps"));
  } else {
    f.skip({"sub_norm_eps"});
  }
  return emit_product(g, node, mixed, rank, 2, next(2));
}

Result<std::string> emit_batch_norm(GraphBuilder& g, const Node& node, const ExportValue& x) {
  FieldReader& f = g.fields(node);
  f.skip({"momentum"});  // of training alone
  const int64_t channels = f.integer("channels");
  const auto count = static_cast<size_t>(channels);
  const size_t first = f.flag("affine") ? 2 : 0;
  std::string scale, shift;
  if (first > 0) {
    LOOM_ASSIGN(scale, g.param(node, 0));
    LOOM_ASSIGN(shift, g.param(node, 1));
  } else {
    scale = g.constant("ones", {channels}, std::vector<float>(count, 1.0f));
    shift = g.constant("zeros", {channels}, std::vector<float>(count, 0.0f));
  }
  LOOM_ASSIGN(const std::string mean, g.param(node, first));
  LOOM_ASSIGN(const std::string var, g.param(node, first + 1));
  return g.add("BatchNormalization", {x.name, scale, shift, mean, var},
               {onnx_attribute("epsilon", static_cast<float>(f.real("eps")))});
}

Result<std::string> emit_dropout(GraphBuilder& g, const Node& node, const ExportValue& x) {
  g.fields(node).skip({"rate", "form"});  // of training alone
  return g.add("Identity", {x.name});
}

// For layers that read one value.
template <Result<std::string> (*emit)(GraphBuilder&, const Node&, const ExportValue&)>
Result<std::string> one(GraphBuilder& g, const Node& node, ExportInputs x) {
  return emit(g, node, x[0]);
}

struct EmitRow {
  LayerKind kind;
  EmitLayer emit;
};
constexpr EmitRow kEmitters[] = {
    {LayerKind::dense, one<emit_dense>},
    {LayerKind::multi_head_attention, one<emit_attention>},
    {LayerKind::swiglu, one<emit_swiglu>},
    {LayerKind::rms_norm, one<emit_rms_norm>},
    {LayerKind::cnn1, one<emit_conv>},
    {LayerKind::cnn2, one<emit_conv>},
    {LayerKind::cnn3, one<emit_conv>},
    {LayerKind::rnn, one<emit_recurrent>},
    {LayerKind::lstm, one<emit_recurrent>},
    {LayerKind::gru, one<emit_recurrent>},
    {LayerKind::layer_norm, one<emit_layer_norm>},
    {LayerKind::conv_transposed1, one<emit_conv>},
    {LayerKind::conv_transposed2, one<emit_conv>},
    {LayerKind::conv_transposed3, one<emit_conv>},
    {LayerKind::embedding, one<emit_embedding>},
    {LayerKind::kmeans, one<emit_kmeans>},
    {LayerKind::softmax, one<emit_softmax>},
    {LayerKind::dropout, one<emit_dropout>},
    {LayerKind::batch_norm, one<emit_batch_norm>},
    {LayerKind::group_norm, one<emit_group_norm>},
    {LayerKind::instance_norm, one<emit_group_norm>},
    {LayerKind::pool, one<emit_pool>},
    {LayerKind::flatten, one<emit_reshape>},
    {LayerKind::reshape, one<emit_reshape>},
    {LayerKind::permute, one<emit_permute>},
    {LayerKind::pad, one<emit_pad>},
    {LayerKind::upsample, one<emit_upsample>},
    {LayerKind::pixel_shuffle, one<emit_pixel_shuffle>},
    {LayerKind::unary, one<emit_unary>},
    {LayerKind::reduce, one<emit_reduce>},
    {LayerKind::slice, one<emit_slice>},
    {LayerKind::transpose, one<emit_transpose>},
    {LayerKind::view, one<emit_view>},
    {LayerKind::binary, emit_binary},
    {LayerKind::concat, emit_concat},
    {LayerKind::matmul, emit_matmul},
    {LayerKind::expand, emit_expand},
    {LayerKind::scan, emit_scan},
    {LayerKind::constant, emit_constant},
};

}  // namespace

EmitLayer emitter_of(LayerKind kind) {
  for (const EmitRow& row : kEmitters) {
    if (row.kind == kind) return row.emit;
  }
  return nullptr;
}

}  // namespace loom::core
