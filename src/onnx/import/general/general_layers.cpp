// Convolutions, pools and norms, the general way. See general.hpp.
#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "layers/core/fields.hpp"
#include "onnx/import/general/general.hpp"

namespace loom::core {

// What slides over the positions of `in`, with padding as ONNX counts it: at both ends.
Result<GraphImport::Window> GraphImport::window(const OnnxNode& n, const Shape& in,
                                                std::vector<int64_t> kernel) {
  const size_t axes = kernel.size();
  const std::vector<int64_t> ones(axes, 1), none(2 * axes, 0);
  Window w;
  w.stride = attribute_list(n, "strides", ones);
  w.dilation = attribute_list(n, "dilations", ones);
  std::vector<int64_t> pads = attribute_list(n, "pads", none);
  if (axes + 2 != static_cast<size_t>(in.rank()) || axes < 1 || axes > 3)
    return refuse(n, cat("an input ", in.str(), " and a kernel of ", axes,
                         " axes; one to three axes of positions are read"));
  if (attribute_list(n, "kernel_shape", kernel) != kernel)
    return refuse(n, "a kernel_shape that is not that of its weights");
  if (pads.size() != 2 * axes || w.stride.size() != axes || w.dilation.size() != axes)
    return refuse(n, "pads, strides or dilations of the wrong length");
  const std::string automatic = attribute_text(n, "auto_pad", "NOTSET");
  if (automatic != "NOTSET" && n.find("pads") != nullptr) return refuse(n, "pads beside auto_pad");
  const bool upper = automatic == "SAME_UPPER", lower = automatic == "SAME_LOWER";
  if (automatic == "VALID")
    pads = none;
  else if (automatic != "NOTSET" && !upper && !lower)
    return refuse(n, cat("auto_pad ", printable(automatic), " is not read"));
  for (size_t i = 0; i < axes; ++i) {
    if (w.stride[i] < 1 || w.dilation[i] < 1 || kernel[i] < 1)
      return refuse(n, "strides, dilations or kernels below 1");
    if (upper || lower) {
      const int64_t extent = in[2 + static_cast<int>(i)];
      const int64_t outputs = (extent + w.stride[i] - 1) / w.stride[i];
      const int64_t all = std::max<int64_t>(
          (outputs - 1) * w.stride[i] + w.dilation[i] * (kernel[i] - 1) + 1 - extent, 0);
      pads[i] = upper ? all / 2 : all - all / 2;
      pads[axes + i] = all - pads[i];
    }
    if (pads[i] < 0 || pads[axes + i] < 0) return refuse(n, "pads below 0");
  }
  w.kernel = std::move(kernel);
  w.begin.assign(pads.begin(), pads.begin() + static_cast<int64_t>(axes));
  w.end.assign(pads.begin() + static_cast<int64_t>(axes), pads.end());
  return w;
}

Status GraphImport::conv_node(const OnnxNode& n) {
  const bool transposed = layer_of(n.op).function == "transposed";
  LOOM_ASSIGN(Value x, stream(n, 0));
  LOOM_ASSIGN(const ConstantRef w, constant(n, 1));
  const auto axes = static_cast<size_t>(std::max(x.shape.rank() - 2, 0));
  if (axes < 1 || axes > 3 || w->dims.size() != axes + 2)
    return refuse(n, cat("an input ", x.shape.str(), " and weights of ", w->dims.size(),
                         " axes; one to three axes of positions are read"));
  LOOM_ASSIGN(Window v, window(n, x.shape, {w->dims.begin() + 2, w->dims.end()}));
  std::vector<int64_t> extra = attribute_list(n, "output_padding", std::vector<int64_t>(axes, 0));
  if (extra.size() != axes || n.find("output_shape") != nullptr)
    return refuse(n, "output_padding of the wrong length, or an output_shape; give pads");
  for (size_t i = 0; i < axes; ++i) {
    if (extra[i] < 0 || extra[i] >= v.stride[i])
      return refuse(n, "an output_padding that is not below the stride");
  }
  if (transposed && n.find("auto_pad") != nullptr &&
      attribute_text(n, "auto_pad", "NOTSET") != "NOTSET")
    return refuse(n, "auto_pad is not read here; give pads");
  std::vector<int64_t> less(axes, 0);  // of the output, at its ends
  if (transposed) {
    // Less padding at the end is more output there.
    for (size_t i = 0; i < axes; ++i) {
      extra[i] += v.begin[i] - v.end[i];
      if (extra[i] >= 0) continue;
      less[i] = -extra[i];
      extra[i] = 0;
    }
  } else {
    LOOM_ASSIGN(x, padded(n, x, v));
  }
  const int64_t groups = attribute(n, "group", 1), channels = x.shape[1];
  if (groups < 1 || groups > (1 << 20)) return refuse(n, "a number of groups that cannot be");
  const int64_t filters = transposed ? w->dims[1] * groups : w->dims[0];
  if ((transposed ? w->dims[0] : w->dims[1] * groups) != channels)
    return refuse(n, cat("weights that do not fit its input of ", channels, " channels"));
  const bool biased = has_input(n, 2);
  constexpr LayerKind kKinds[] = {LayerKind::cnn1, LayerKind::cnn2, LayerKind::cnn3};
  constexpr LayerKind kBack[] = {LayerKind::conv_transposed1, LayerKind::conv_transposed2,
                                 LayerKind::conv_transposed3};
  std::vector<Field> fields = {
      {"channels", channels}, {"filters", filters},     {"kernel", v.kernel}, {"stride", v.stride},
      {"padding", v.begin},   {"dilation", v.dilation}, {"groups", groups},   {"bias", biased}};
  if (transposed) fields.emplace_back("output_padding", extra);
  const int64_t rows = w->dims[0];
  std::vector<ItemParam> params = {
      param(n, 1, "weight", Shape{rows, w->count() / std::max<int64_t>(rows, 1)}, w->floats())};
  if (biased) {
    LOOM_ASSIGN(const ConstantRef b, constant(n, 2));
    if (b->dims != std::vector<int64_t>{filters})
      return refuse(n, "a bias that is not one per filter");
    params.push_back(param(n, 2, "bias", Shape{filters}, b->floats()));
  }
  LOOM_ASSIGN(Value y,
              emit(n, (transposed ? kBack : kKinds)[axes - 1], fields, {x}, std::move(params)));
  for (size_t i = 0; i < axes; ++i) {
    if (less[i] == 0) continue;
    using List = std::vector<int64_t>;
    LOOM_ASSIGN(y, emit(n, LayerKind::slice,
                        {{"starts", List{0}},
                         {"ends", List{-less[i]}},
                         {"axes", List{static_cast<int64_t>(i) + 2}}},
                        {y}));
  }
  return define(n, std::move(y));
}

// scale * x + shift per channel. Into the weights of the convolution before it, where nobody else
// reads that; else two nodes.
Result<GraphImport::Value> GraphImport::per_channel(const OnnxNode& n, const Value& x,
                                                    const std::vector<double>& scale,
                                                    const std::vector<double>& shift) {
  const auto channels = static_cast<int64_t>(scale.size());
  if (has_input(n, 0) && read_once(n.inputs[0], x)) {
    GraphNode& made = nodes_[static_cast<size_t>(x.at.node)];
    const LayerKind kind = made.layer.def->kind;
    const bool convolves =
        kind == LayerKind::cnn1 || kind == LayerKind::cnn2 || kind == LayerKind::cnn3;
    const int active = field_index(made.layer, "activation");
    if (convolves && made.layer.text(active) == "linear") {
      ItemParam& weight = made.params[0];
      std::vector<float> w = *weight.values, b(scale.size(), 0.0f);
      if (made.params.size() > 1) b = *made.params[1].values;
      const size_t patch = w.size() / scale.size();
      for (size_t f = 0; f < scale.size(); ++f) {
        for (size_t i = 0; i < patch; ++i)
          w[f * patch + i] = static_cast<float>(static_cast<double>(w[f * patch + i]) * scale[f]);
        b[f] = static_cast<float>(static_cast<double>(b[f]) * scale[f] + shift[f]);
      }
      weight.values = shared(std::move(w));
      made.params.resize(1);
      made.params.push_back({"bias", Shape{channels}, shared(std::move(b))});
      made.layer.values[static_cast<size_t>(field_index(made.layer, "bias"))].number = 1;
      return x;
    }
  }
  std::vector<int64_t> dims(static_cast<size_t>(x.shape.rank() - 1), 1);
  dims[0] = channels;
  LOOM_ASSIGN(const Value a, constant_stream(n, Constant{dims, OnnxType::f32, scale}, true));
  LOOM_ASSIGN(const Value b, constant_stream(n, Constant{dims, OnnxType::f32, shift}, true));
  LOOM_ASSIGN(const Value scaled, binary(n, "mul", x, a));
  return binary(n, "add", scaled, b);
}

Status GraphImport::batch_norm_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value x, stream(n, 0));
  if (x.shape.rank() < 2) return refuse(n, "its input has no channels");
  if (attribute(n, "training_mode", 0) != 0 || attribute(n, "spatial", 1) != 1 ||
      n.outputs.size() > 1)
    return refuse(n, "statistics of the batch at hand; export for inference");
  LOOM_ASSIGN(const Value* mean, value(n, 3));
  if (!mean->is_constant()) return measured_norm(n, x);
  const double eps = attribute_real(n, "epsilon", 1e-5f);
  std::vector<std::vector<float>> p;
  for (size_t i = 1; i < 5; ++i) {
    LOOM_ASSIGN(const ConstantRef c, constant(n, i));
    if (c->dims != std::vector<int64_t>{x.shape[1]})
      return refuse(n, cat("input ", i, " is not one value per channel"));
    p.push_back(c->floats());
  }
  if (options_.for_training) {
    const Shape each{x.shape[1]};
    std::vector<ItemParam> params = {param(n, 1, "gamma", each, p[0]),
                                     param(n, 2, "beta", each, p[1]),
                                     {"running_mean", each, shared(p[2])},
                                     {"running_var", each, shared(p[3])}};
    // ONNX weighs the running value, the layer the batch.
    const double momentum = 1 - attribute_real(n, "momentum", 0.9f);
    LOOM_ASSIGN(Value y, emit(n, LayerKind::batch_norm,
                              {{"channels", x.shape[1]}, {"eps", eps}, {"momentum", momentum}}, {x},
                              std::move(params)));
    return define(n, std::move(y));
  }
  std::vector<double> scale, shift;
  for (size_t i = 0; i < p[0].size(); ++i) {
    const double s = static_cast<double>(p[0][i]) / std::sqrt(static_cast<double>(p[3][i]) + eps);
    scale.push_back(s);
    shift.push_back(static_cast<double>(p[1][i]) - static_cast<double>(p[2][i]) * s);
  }
  LOOM_ASSIGN(Value y, per_channel(n, x, scale, shift));
  return define(n, std::move(y));
}

// With mean and variance that the graph computed, as exporters spell a layer norm: without scale
// and shift, which then may stand for any number of channels.
Status GraphImport::measured_norm(const OnnxNode& n, const Value& x) {
  for (size_t i = 1; i < 3; ++i) {
    LOOM_ASSIGN(const ConstantRef c, constant(n, i));
    const double want = i == 1 ? 1 : 0;
    if (c->values.empty() || std::ranges::any_of(c->values, [&](double v) { return v != want; }))
      return refuse(n, "a scale or shift beside computed statistics");
  }
  std::vector<int64_t> dims(static_cast<size_t>(x.shape.rank()), 1);
  dims[1] = x.shape[1];
  Value side[2];
  for (size_t i = 0; i < 2; ++i) {
    LOOM_ASSIGN(const Value given, stream(n, 3 + i));
    if (given.shape.rank() != 1 || given.shape[0] != x.shape[1])
      return refuse(n, "statistics that are not one value per channel");
    LOOM_ASSIGN(side[i], view(n, given, dims));
  }
  LOOM_ASSIGN(Value deviation, with_number(n, "add", side[1], attribute_real(n, "epsilon", 1e-5f)));
  LOOM_ASSIGN(deviation, unary(n, "sqrt", deviation));
  LOOM_ASSIGN(const Value centred, binary(n, "sub", x, side[0]));
  LOOM_ASSIGN(Value y, binary(n, "div", centred, deviation));
  return define(n, std::move(y));
}

// Over all axes from `axis` on, which become one row.
Status GraphImport::layer_norm_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value x, stream(n, 0));
  LOOM_ASSIGN(const ConstantRef gamma, constant(n, 1));
  int64_t axis = attribute(n, "axis", -1);
  if (axis < 0) axis += x.shape.rank();
  if (axis < 0 || axis >= x.shape.rank() || n.outputs.size() > 1)
    return refuse(n, "an axis that does not exist, or more than one output");
  std::vector<int64_t> dims, rows;
  int64_t width = 1;
  for (int i = 0; i < x.shape.rank(); ++i) {
    dims.push_back(x.shape[i]);
    if (i < axis)
      rows.push_back(x.shape[i]);
    else
      width *= x.shape[i];
  }
  rows.push_back(width);
  const std::vector<int64_t> own(dims.begin() + axis, dims.end());
  if (gamma->dims != own) return refuse(n, "a scale of another shape than what it normalizes");
  std::vector<float> beta(static_cast<size_t>(width), 0.0f);
  if (has_input(n, 2)) {
    LOOM_ASSIGN(const ConstantRef b, constant(n, 2));
    if (b->dims != own) return refuse(n, "a bias of another shape than what it normalizes");
    beta = b->floats();
  }
  LOOM_ASSIGN(const Value flat, view(n, x, rows));
  LOOM_ASSIGN(const Value y,
              emit(n, LayerKind::layer_norm,
                   {{"width", width}, {"eps", attribute_real(n, "epsilon", 1e-5f)}}, {flat},
                   {param(n, 1, "gamma", Shape{width}, gamma->floats()),
                    param(n, 2, "beta", Shape{width}, std::move(beta))}));
  LOOM_ASSIGN(Value back, view(n, y, dims));
  return define(n, std::move(back));
}

}  // namespace loom::core
