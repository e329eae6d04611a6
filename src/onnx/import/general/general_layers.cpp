// Convolutions, pools and norms, the general way. See general.hpp.
#include <algorithm>

#include "base/text.hpp"
#include "layers/core/fields.hpp"
#include "onnx/import/general/general.hpp"

namespace loom::core {

Status GraphImport::conv(const OnnxNode& n, OnnxConv args) {
  LOOM_ASSIGN(Value x, stream(n, 0));
  const size_t axes = args.window.kernel.size();
  std::vector<int64_t> less(axes, 0);  // of the output, at its ends
  if (args.transposed) {
    // Less padding at the end is more output there.
    for (size_t i = 0; i < axes; ++i) {
      int64_t& extra = args.output_padding[i];
      extra += args.window.begin[i] - args.window.end[i];
      if (extra >= 0) continue;
      less[i] = -extra;
      extra = 0;
    }
  } else {
    LOOM_ASSIGN(x, padded(n, x, args.window));
  }
  std::vector<ItemParam> params = {
      param(n, 1, "weight", args.weight_shape(), args.weight->floats())};
  if (args.bias != nullptr)
    params.push_back(param(n, 2, "bias", Shape{args.filters}, args.bias->floats()));
  LOOM_ASSIGN(Value y, emit(n, args.kind(), args.fields(x.shape[1]), {x}, std::move(params)));
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

// scale * x + shift per channel. It goes into the weights of the convolution before it if nothing
// else reads that; else it is two nodes.
Result<GraphImport::Value> GraphImport::per_channel(const OnnxNode& n, const Value& x,
                                                    const std::vector<double>& scale,
                                                    const std::vector<double>& shift) {
  const auto channels = static_cast<int64_t>(scale.size());
  if (has_input(n, 0) && read_once(n.inputs[0], x)) {
    GraphNode& made = nodes_[static_cast<size_t>(x.at.node)];
    const bool convolves = is_convolution(made.layer.def->kind);
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

Status GraphImport::normalize(const OnnxNode& n, const OnnxBatchNorm& args) {
  LOOM_ASSIGN(const Value x, stream(n, 0));
  if (args.gamma == nullptr) return measured_norm(n, x, args.eps);
  if (!options_.for_training) {
    LOOM_ASSIGN(Value y, per_channel(n, x, args.scale, args.shift));
    return define(n, std::move(y));
  }
  const Shape each{x.shape[1]};
  LOOM_ASSIGN(Value y,
              emit(n, LayerKind::batch_norm,
                   {{"channels", x.shape[1]}, {"eps", args.eps}, {"momentum", args.momentum}}, {x},
                   {param(n, 1, "gamma", each, args.gamma->floats()),
                    param(n, 2, "beta", each, args.beta->floats()),
                    {"running_mean", each, shared(args.mean->floats())},
                    {"running_var", each, shared(args.variance->floats())}}));
  return define(n, std::move(y));
}

// With mean and variance that the graph computed, as exporters spell a layer norm: without scale
// and shift, which then may stand for any number of channels.
Status GraphImport::measured_norm(const OnnxNode& n, const Value& x, double eps) {
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
  LOOM_ASSIGN(Value deviation, with_number(n, "add", side[1], eps));
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
