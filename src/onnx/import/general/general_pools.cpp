// Windows over positions and what surrounds them, the general way. See general.hpp.
#include <algorithm>

#include "base/text.hpp"
#include "layers/spatial/axes.hpp"
#include "onnx/import/general/general.hpp"

namespace loom::core {

// x with the padding of a window around it, where it differs at both ends; then the window has
// none.
Result<GraphImport::Value> GraphImport::padded(const OnnxNode& n, const Value& x,
                                               OnnxWindow& window) {
  if (window.begin == window.end) return x;
  LOOM_ASSIGN(Value y,
              emit(n, LayerKind::pad, {{"before", window.begin}, {"after", window.end}}, {x}));
  std::ranges::fill(window.begin, 0);
  std::ranges::fill(window.end, 0);
  return y;
}

Status GraphImport::pool_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value x, stream(n, 0));
  constexpr std::string_view kGlobal = "global_";
  std::string_view kind = layer_of(n.op).function;
  const bool over_all = kind.starts_with(kGlobal);
  if (over_all) kind.remove_prefix(kGlobal.size());
  std::vector<Field> fields = {{"kind", std::string(kind)}, {"p", attribute(n, "p", 2)}};
  if (over_all) {
    fields.emplace_back("output", std::vector<int64_t>{1});
  } else {
    if (n.outputs.size() > 1 && !n.outputs[1].empty())
      return refuse(n, "the places of the largest values are not given");
    LOOM_ASSIGN(const OnnxWindow w,
                window(n, axis_extents(x.shape), attribute_list(n, "kernel_shape", {})));
    for (size_t i = 0; i < w.kernel.size(); ++i) {
      if (w.begin[i] >= w.kernel[i] || w.end[i] >= w.kernel[i])
        return refuse(n, "pads that are not below the kernel");
    }
    std::vector<int64_t> padding = w.begin;
    padding.insert(padding.end(), w.end.begin(), w.end.end());
    fields.insert(fields.end(), {{"kernel", w.kernel},
                                 {"stride", w.stride},
                                 {"padding", padding},
                                 {"dilation", w.dilation},
                                 {"ceil", attribute(n, "ceil_mode", 0) != 0},
                                 {"include_padding", attribute(n, "count_include_pad", 0) != 0}});
  }
  LOOM_ASSIGN(Value y, emit(n, LayerKind::pool, fields, {x}));
  return define(n, std::move(y));
}

Status GraphImport::pad_node(const OnnxNode& n) {
  LOOM_ASSIGN(Value x, stream(n, 0));
  const int rank = x.shape.rank();
  LOOM_ASSIGN(const std::vector<int64_t> pads, list(n, 1, "pads", {}));
  std::vector<int64_t> all;
  for (int i = 0; i < rank; ++i) all.push_back(i);
  LOOM_ASSIGN(const std::vector<int64_t> axes, list(n, 3, "axes", all));
  if (pads.size() != 2 * axes.size()) return refuse(n, "pads of the wrong length");
  std::vector<int64_t> before(static_cast<size_t>(rank), 0), after = before;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    if (axis < 0 || axis >= rank) return refuse(n, "an axis that does not exist");
    before[static_cast<size_t>(axis)] = pads[i];
    after[static_cast<size_t>(axis)] = pads[axes.size() + i];
  }
  for (int i = 0; i < rank; ++i) {
    const int64_t a = before[static_cast<size_t>(i)], b = after[static_cast<size_t>(i)];
    if (a < 0 || b < 0) return refuse(n, "pads below 0 are not read; use a Slice");
  }
  const bool first = before[0] > 0 || after[0] > 0;
  if (first && batch_ == open_batch_) return refuse(n, "makes the batch larger");
  if (first) {  // of one sample the first axis is like the others
    std::vector<int64_t> dims = axis_extents(x.shape);
    dims.insert(dims.begin(), 1);
    LOOM_ASSIGN(x, view(n, x, dims));
  } else {
    before.erase(before.begin());
    after.erase(after.begin());
  }
  double with = attribute_real(n, "value", 0);
  if (has_input(n, 2)) {
    LOOM_ASSIGN(const ConstantRef c, constant(n, 2));
    if (c->count() != 1) return refuse(n, "a value that is not one number");
    with = c->at(0);
  }
  LOOM_ASSIGN(Value y, emit(n, LayerKind::pad,
                            {{"before", before},
                             {"after", after},
                             {"mode", attribute_text(n, "mode", "constant")},
                             {"value", with}},
                            {x}));
  if (first) {
    std::vector<int64_t> dims = axis_extents(y.shape);
    dims.erase(dims.begin());
    LOOM_ASSIGN(y, view(n, y, dims));
  }
  return define(n, std::move(y));
}

// DepthToSpace and SpaceToDepth: blocks of b x b positions against channels.
Status GraphImport::blocks_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value x, stream(n, 0));
  const int64_t b = attribute(n, "blocksize", 0);
  if (x.shape.rank() != 4 || b < 1 || b > 4096) return refuse(n, "is read of images alone");
  const int64_t batch = x.shape[0], c = x.shape[1], h = x.shape[2], w = x.shape[3];
  const bool to_space = layer_of(n.op).function == "to_space";
  if (to_space ? c % (b * b) != 0 : (h % b != 0 || w % b != 0))
    return refuse(n, cat("blocks of ", b, " do not divide ", x.shape.str()));
  const std::string mode = attribute_text(n, "mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return refuse(n, "a mode that is neither DCR nor CRD");
  using List = std::vector<int64_t>;
  const int64_t fewer = c / (b * b);
  List apart = mode == "DCR" ? List{batch, b, b, fewer, h, w} : List{batch, fewer, b, b, h, w};
  List order = mode == "DCR" ? List{0, 3, 4, 1, 5, 2} : List{0, 1, 4, 2, 5, 3};
  List whole = {batch, fewer, h * b, w * b};
  if (!to_space) {
    apart = {batch, c, h / b, b, w / b, b};
    order = {0, 3, 5, 1, 2, 4};
    whole = {batch, c * b * b, h / b, w / b};
  }
  LOOM_ASSIGN(const Value cut, view(n, x, apart));
  LOOM_ASSIGN(const Value moved, emit(n, LayerKind::transpose, {{"axes", order}}, {cut}));
  LOOM_ASSIGN(Value y, view(n, moved, whole));
  return define(n, std::move(y));
}

// Each channel of each sample by itself, then scaled and shifted per channel.
Status GraphImport::instance_norm_node(const OnnxNode& n) {
  LOOM_ASSIGN(const Value x, stream(n, 0));
  LOOM_ASSIGN(const ConstantRef gamma, constant(n, 1));
  LOOM_ASSIGN(const ConstantRef beta, constant(n, 2));
  const int64_t channels = x.shape.rank() > 2 ? x.shape[1] : 0;
  if (gamma->count() != channels || beta->count() != channels)
    return refuse(n, "a scale or bias that is not one value per channel");
  LOOM_ASSIGN(
      Value y,
      emit(n, LayerKind::instance_norm,
           {{"channels", channels}, {"eps", attribute_real(n, "epsilon", 1e-5f)}, {"affine", true}},
           {x},
           {param(n, 1, "gamma", Shape{channels}, gamma->floats()),
            param(n, 2, "beta", Shape{channels}, beta->floats())}));
  return define(n, std::move(y));
}

}  // namespace loom::core
