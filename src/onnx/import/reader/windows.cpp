// Windows over positions, and norms of channels. See importer.hpp.
#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "onnx/import/reader/importer.hpp"

namespace loom::core {
namespace {

constexpr LayerKind kKinds[] = {LayerKind::cnn1, LayerKind::cnn2, LayerKind::cnn3};
constexpr LayerKind kTransposedKinds[] = {LayerKind::conv_transposed1, LayerKind::conv_transposed2,
                                          LayerKind::conv_transposed3};

std::string text_of(const std::vector<int64_t>& dims) {
  std::vector<std::string> parts;
  for (const int64_t extent : dims) parts.push_back(cat(extent));
  return cat("[", join(parts, ", "), "]");
}

}  // namespace

// `in`: the extents of the input. ONNX counts padding at both ends.
Result<OnnxWindow> Importer::window(const OnnxNode& n, const std::vector<int64_t>& in,
                                    std::vector<int64_t> kernel) const {
  const size_t axes = kernel.size();
  const std::vector<int64_t> ones(axes, 1), none(2 * axes, 0);
  OnnxWindow w;
  w.stride = attribute_list(n, "strides", ones);
  w.dilation = attribute_list(n, "dilations", ones);
  std::vector<int64_t> pads = attribute_list(n, "pads", none);
  if (axes + 2 != in.size() || axes < 1 || axes > 3)
    return refuse(n, cat("an input ", text_of(in), " and a kernel of ", axes,
                         " axes; one to three axes of positions are read"));
  if (attribute_list(n, "kernel_shape", kernel) != kernel)
    return refuse(n, "a kernel_shape that is not that of its weights");
  if (pads.size() != 2 * axes || w.stride.size() != axes || w.dilation.size() != axes)
    return refuse(n, "pads, strides or dilations of the wrong length");
  const std::string automatic = attribute_text(n, "auto_pad", "NOTSET");
  if (automatic != "NOTSET" && n.find("pads") != nullptr) return refuse(n, "pads beside auto_pad");
  const bool upper = automatic == "SAME_UPPER", lower = automatic == "SAME_LOWER";
  w.automatic = upper || lower;
  if (automatic == "VALID")
    pads = none;
  else if (automatic != "NOTSET" && !w.automatic)
    return refuse(n, cat("auto_pad ", printable(automatic), " is not read"));
  for (size_t i = 0; i < axes; ++i) {
    if (w.stride[i] < 1 || w.dilation[i] < 1 || kernel[i] < 1)
      return refuse(n, "strides, dilations or kernels below 1");
    if (w.automatic) {
      const int64_t extent = in[2 + i];
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

bool is_convolution(LayerKind kind) {
  return std::ranges::find(kKinds, kind) != std::end(kKinds);
}

bool is_transposed_convolution(LayerKind kind) {
  return std::ranges::find(kTransposedKinds, kind) != std::end(kTransposedKinds);
}

LayerKind OnnxConv::kind() const {
  return (transposed ? kTransposedKinds : kKinds)[window.kernel.size() - 1];
}

std::vector<Field> OnnxConv::fields(int64_t channels) const {
  std::vector<Field> out = {{"channels", channels},    {"filters", filters},
                            {"kernel", window.kernel}, {"stride", window.stride},
                            {"padding", window.begin}, {"dilation", window.dilation},
                            {"groups", groups},        {"bias", bias != nullptr}};
  if (transposed) out.emplace_back("output_padding", output_padding);
  return out;
}

Shape OnnxConv::weight_shape() const {
  const int64_t rows = weight->dims[0];
  return {rows, weight->count() / std::max<int64_t>(rows, 1)};
}

Status Importer::read_conv(const OnnxNode& n) {
  OnnxConv args;
  args.transposed = layer_of(n.op).function == "transposed";
  LOOM_ASSIGN(const std::vector<int64_t> in, extents_of(n, 0));
  LOOM_ASSIGN(args.weight, read_weights(n, 1));
  const std::vector<int64_t>& w = args.weight->dims;
  const size_t axes = in.size() - std::min<size_t>(in.size(), 2);
  if (axes < 1 || axes > 3 || w.size() != axes + 2)
    return refuse(n, cat("an input ", text_of(in), " and weights of ", w.size(),
                         " axes; one to three axes of positions are read"));
  LOOM_ASSIGN(args.window, window(n, in, {w.begin() + 2, w.end()}));
  args.output_padding = attribute_list(n, "output_padding", std::vector<int64_t>(axes, 0));
  if (args.output_padding.size() != axes || n.find("output_shape") != nullptr)
    return refuse(n, "output_padding of the wrong length, or an output_shape; give pads");
  for (size_t i = 0; i < axes; ++i) {
    if (args.output_padding[i] < 0 || args.output_padding[i] >= args.window.stride[i])
      return refuse(n, "an output_padding that is not below the stride");
  }
  if (args.transposed && attribute_text(n, "auto_pad", "NOTSET") != "NOTSET")
    return refuse(n, "auto_pad is not read here; give pads");
  args.groups = attribute(n, "group", 1);
  if (args.groups < 1 || args.groups > (1 << 20))
    return refuse(n, "a number of groups that cannot be");
  args.filters = args.transposed ? w[1] * args.groups : w[0];
  if ((args.transposed ? w[0] : w[1] * args.groups) != in[1])
    return refuse(n, cat("weights that do not fit its input of ", in[1], " channels"));
  if (has_input(n, 2)) {
    LOOM_ASSIGN(args.bias, read_weights(n, 2));
    if (args.bias->dims != std::vector<int64_t>{args.filters})
      return refuse(n, "a bias that is not one per filter");
  }
  return conv(n, std::move(args));
}

Status Importer::read_batch_norm(const OnnxNode& n) {
  LOOM_ASSIGN(const std::vector<int64_t> dims, extents_of(n, 0));
  if (dims.size() < 2) return refuse(n, "its input has no channels");
  if (attribute(n, "training_mode", 0) != 0 || attribute(n, "spatial", 1) != 1 ||
      n.outputs.size() > 1)
    return refuse(n, "statistics of the batch at hand; export for inference");
  OnnxBatchNorm args;
  args.eps = attribute_real(n, "epsilon", 1e-5f);
  // ONNX weighs the running value.
  args.momentum = 1 - attribute_real(n, "momentum", 0.9f);
  LOOM_ASSIGN(const ImportValue* mean, input(n, 3));
  if (!mean->is_constant()) return normalize(n, args);
  ConstantRef* const parts[] = {&args.gamma, &args.beta, &args.mean, &args.variance};
  for (size_t i = 0; i < 4; ++i) {
    LOOM_ASSIGN(*parts[i], read_weights(n, i + 1));
    if ((*parts[i])->dims != std::vector<int64_t>{dims[1]})
      return refuse(n, cat("input ", i + 1, " is not one value per channel"));
  }
  for (int64_t i = 0; i < dims[1]; ++i) {
    const double s = args.gamma->at(i) / std::sqrt(args.variance->at(i) + args.eps);
    args.scale.push_back(s);
    args.shift.push_back(args.beta->at(i) - s * args.mean->at(i));
  }
  return normalize(n, args);
}

}  // namespace loom::core
