// Layers over maps [batch, channels, extents] as ONNX operators: pools, other extents, channels
// that become positions, norms of groups. See builder.hpp.
#include <algorithm>

#include "layers/spatial/axes.hpp"
#include "onnx/export/builder.hpp"

namespace loom::core {
namespace {

// Extents after the batch and the channels.
std::vector<int64_t> positions_of(const Shape& shape) {
  const std::vector<int64_t> extents = axis_extents(shape);
  return {extents.begin() + 2, extents.end()};
}

std::vector<int64_t> axes_from(int64_t first, size_t count) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < count; ++i) axes.push_back(first + static_cast<int64_t>(i));
  return axes;
}

struct PoolNames {
  std::string_view kind, pool, global, reduce;
};

PoolNames pool_names(FieldReader& f) {
  static constexpr PoolNames kRows[] = {
      {"max", "MaxPool", "GlobalMaxPool", "ReduceMax"},
      {"average", "AveragePool", "GlobalAveragePool", "ReduceMean"},
      {"lp", "LpPool", "GlobalLpPool", "ReduceL2"}};
  for (const PoolNames& row : kRows) {
    if (row.kind == f.text("kind")) return row;
  }
  return kRows[0];
}

// Windows of unequal width along one axis, each by itself, and joined again. Over several axes one
// goes after the other: largest values, means of equal rows and norms can be taken so.
std::string adaptive_axis(GraphBuilder& g, const std::string& x, std::string_view reduce, int axis,
                          int64_t in, int64_t out) {
  std::vector<std::string> parts;
  for (int64_t o = 0; o < out; ++o) {
    const int64_t first = o * in / out, behind = ((o + 1) * in + out - 1) / out;
    const std::string window =
        g.add("Slice", {x, g.integers({first}), g.integers({behind}), g.integers({axis})});
    parts.push_back(g.add(std::string(reduce), {window, g.integers({axis})},
                          {onnx_attribute("keepdims", int64_t{1})}));
  }
  return parts.size() == 1 ? parts[0]
                           : g.add("Concat", parts, {onnx_attribute("axis", int64_t{axis})});
}

std::string emit_adaptive(GraphBuilder& g, FieldReader& f, const ExportValue& x,
                          const std::vector<int64_t>& out) {
  const PoolNames names = pool_names(f);
  const int64_t p = f.integer("p");
  const bool lp = f.text("kind") == "lp";
  if (std::ranges::all_of(out, [](int64_t extent) { return extent == 1; })) {
    std::vector<OnnxAttribute> attributes;
    if (lp) attributes.push_back(onnx_attribute("p", p));
    return g.add(std::string(names.global), {x.name}, std::move(attributes));
  }
  std::string y = x.name;
  for (size_t axis = 0; axis < out.size(); ++axis) {
    const int to = static_cast<int>(axis) + 2;
    y = adaptive_axis(g, y, lp && p == 1 ? "ReduceL1" : names.reduce, to, x.shape[to], out[axis]);
  }
  return y;
}

}  // namespace

Result<std::string> emit_pool(GraphBuilder& g, const Node& node, const ExportValue& x) {
  FieldReader& f = g.fields(node);
  LOOM_ASSIGN(const Shape shape, infer_shape(node.config, x.shape));
  const std::vector<int64_t> in = positions_of(x.shape), out = positions_of(shape);
  const size_t axes = in.size();
  f.skip({"ceil"});  // the extents of the output have it
  if (f.text("kind") != "lp") f.skip({"p"});
  if (f.text("kind") != "average") f.skip({"include_padding"});
  if (!f.list("output").empty()) {
    f.skip({"kernel", "stride", "padding", "dilation", "include_padding"});
    return emit_adaptive(g, f, x, out);
  }
  const std::vector<int64_t> kernel = f.per_axis("kernel", axes),
                             dilation = f.per_axis("dilation", axes);
  std::vector<int64_t> stride = f.per_axis("stride", axes), pads = f.list("padding");
  if (pads.size() != 2 * axes) {
    const std::vector<int64_t> both = f.per_axis("padding", axes);
    pads = both;
    pads.insert(pads.end(), both.begin(), both.end());
  }
  const bool counts = f.text("kind") == "average" && f.flag("include_padding");
  bool rounds_up = false;
  for (size_t i = 0; i < axes; ++i) {
    if (stride[i] == 0) stride[i] = kernel[i];
    if (const int64_t most = std::max(pads[i], pads[axes + i]); most >= kernel[i]) {
      return g.refuse(node, cat("padding ", most, " must be below the kernel, ", kernel[i],
                                ", in ONNX; put a Pad before it"));
    }
    // Runtimes differ in which windows a rounded extent has. Explicit padding after the end says it
    // as well, unless an average counts it.
    const int64_t reach = (out[i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1;
    const int64_t missing = reach - in[i] - pads[i] - pads[axes + i];
    rounds_up = rounds_up || missing > 0;
    if (!counts && missing > 0) pads[axes + i] += missing;
  }
  std::vector<OnnxAttribute> attributes = {
      onnx_attribute("kernel_shape", kernel), onnx_attribute("strides", stride),
      onnx_attribute("pads", pads), onnx_attribute("dilations", dilation)};
  if (counts) attributes.push_back(onnx_attribute("count_include_pad", int64_t{1}));
  if (counts && rounds_up) attributes.push_back(onnx_attribute("ceil_mode", int64_t{1}));
  if (f.text("kind") == "lp") attributes.push_back(onnx_attribute("p", f.integer("p")));
  return g.add(std::string(pool_names(f).pool), {x.name}, std::move(attributes));
}

// Nearest by the places themselves, which Resize computes in floats.
Result<std::string> emit_upsample(GraphBuilder& g, const Node& node, const ExportValue& x) {
  FieldReader& f = g.fields(node);
  LOOM_ASSIGN(const Shape shape, infer_shape(node.config, x.shape));
  const std::vector<int64_t> in = positions_of(x.shape), out = positions_of(shape);
  f.skip({"factor", "output"});  // the extents of the output have them
  if (f.text("mode") == "nearest") {
    f.skip({"align_corners"});
    std::string y = x.name;
    for (size_t axis = 0; axis < in.size(); ++axis) {
      if (in[axis] == out[axis]) continue;
      std::vector<int64_t> indices;
      for (int64_t i = 0; i < out[axis]; ++i) indices.push_back(i * in[axis] / out[axis]);
      y = g.add("Gather", {y, g.integers(indices)},
                {onnx_attribute("axis", static_cast<int64_t>(axis) + 2)});
    }
    return y;
  }
  const std::string corners = f.flag("align_corners") ? "align_corners" : "half_pixel";
  return g.add("Resize", {x.name, "", "", g.integers(out)},
               {onnx_attribute("axes", axes_from(2, out.size())),
                onnx_attribute("mode", std::string("linear")),
                onnx_attribute("coordinate_transformation_mode", corners)});
}

// [C r^k, extents] as [C, r.., extents], each r after its extent, [C, extents r]; or back.
Result<std::string> emit_pixel_shuffle(GraphBuilder& g, const Node& node, const ExportValue& x) {
  FieldReader& f = g.fields(node);
  LOOM_ASSIGN(const Shape shape, infer_shape(node.config, x.shape));
  const int64_t r = f.integer("factor");
  const bool inverse = f.flag("inverse");
  const std::vector<int64_t> small = positions_of(inverse ? shape : x.shape);
  const size_t axes = small.size();
  if (axes == 2 && !inverse) {
    return g.add("DepthToSpace", {x.name},
                 {onnx_attribute("blocksize", r), onnx_attribute("mode", std::string("CRD"))});
  }
  std::vector<int64_t> split = {inverse ? x.shape[1] : shape[1]}, perm = {0, 1};
  if (!inverse) split.insert(split.end(), axes, r);
  const auto k = static_cast<int64_t>(axes);
  for (size_t i = 0; i < axes; ++i) {
    split.push_back(small[i]);
    if (inverse) split.push_back(r);
    // The axes of [batch, C, r.., extents..] alternate; of [batch, C, extent, r, ..] r is first.
    const auto at = static_cast<int64_t>(i);
    if (!inverse) perm.insert(perm.end(), {2 + k + at, 2 + at});
  }
  for (int64_t i = 0; inverse && i < k; ++i) perm.push_back(3 + 2 * i);
  for (int64_t i = 0; inverse && i < k; ++i) perm.push_back(2 + 2 * i);
  const std::string transposed =
      g.add("Transpose", {g.reshape(x.name, split)}, {onnx_attribute("perm", perm)});
  const std::vector<int64_t> extents = axis_extents(shape);
  return g.reshape(transposed, {extents.begin() + 1, extents.end()});
}

// Groups are the channels of InstanceNormalization; gamma and beta belong to channels.
Result<std::string> emit_group_norm(GraphBuilder& g, const Node& node, const ExportValue& x) {
  FieldReader& f = g.fields(node);
  const int64_t channels = f.integer("channels");
  const int64_t groups =
      node.config.def->kind == LayerKind::group_norm ? f.integer("groups") : channels;
  const auto count = static_cast<size_t>(groups);
  const std::string rows = g.reshape(x.name, {groups, x.shape.count() / (x.shape[0] * groups)});
  const std::string normal =
      g.add("InstanceNormalization",
            {rows, g.constant("ones", {groups}, std::vector<float>(count, 1.0f)),
             g.constant("zeros", {groups}, std::vector<float>(count, 0.0f))},
            {onnx_attribute("epsilon", static_cast<float>(f.real("eps")))});
  const std::vector<int64_t> extents = axis_extents(x.shape);
  const std::string y = g.reshape(normal, {extents.begin() + 1, extents.end()});
  if (!f.flag("affine")) return y;
  std::vector<int64_t> per_channel(extents.size() - 1, 1);
  per_channel[0] = channels;
  LOOM_ASSIGN(const std::string gamma, g.param(node, 0, per_channel));
  LOOM_ASSIGN(const std::string beta, g.param(node, 1, per_channel));
  return g.add("Add", {g.add("Mul", {y, gamma}), beta});
}

}  // namespace loom::core
