// Operators with weights, norms and softmaxes as layers. See lower.hpp.
#include <algorithm>

#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "onnx/import/lower/lower.hpp"

namespace loom::core {
namespace {

// [rows, cols] as [cols, rows].
std::vector<float> transposed(const std::vector<float>& m, int64_t rows, int64_t cols) {
  std::vector<float> out(m.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c)
      out[static_cast<size_t>(c * rows + r)] = m[static_cast<size_t>(r * cols + c)];
  }
  return out;
}

std::vector<int64_t> dims_of(const Shape& shape) {
  std::vector<int64_t> out;
  for (int i = 0; i < shape.rank(); ++i) out.push_back(shape[i]);
  return out;
}

std::vector<int64_t> with_last(std::vector<int64_t> dims, int64_t last) {
  dims.back() = last;
  return dims;
}

constexpr std::string_view kNoPadding =
    "padding that differs at both ends, or follows from extents";

bool is_padding_of_layer(const OnnxWindow& window) {
  return window.begin == window.end && !window.automatic;
}

}  // namespace

Result<PatternValue> Lowering::dense(const OnnxNode& n, const PatternValue& x, ItemParam weight,
                                     ItemParam bias) {
  const int64_t out = weight.shape[0], in = weight.shape[1];
  const bool has_bias = bias.values != nullptr;
  const auto named = [](ItemParam p, const char* path) {
    p.path = path;
    return p;
  };
  const std::vector<int64_t> dims = x.view.dims();
  LOOM_ASSIGN(const int read, materialise(n, x));
  const Item source = items_[static_cast<size_t>(read)];
  // A Dense lays whole samples flat by itself.
  const bool flattens = source.out.rank() > 2 && source.out.last() != in && dims.size() == 2 &&
                        dims[0] == batch_ && dims[1] == in && x.view.plain();
  int from = read;
  if (!flattens) {
    LOOM_ASSIGN(from, rows(n, x, in));
  }
  const bool direct = from == read && in == source.out.last();
  if (direct && source.role == Item::Role::attention &&
      source.layer.integer(fields::multi_head_attention::kWidth) == out) {
    Item item = source;  // its output projection
    item.role = Item::Role::layer;
    item.out = Shape();
    for (ItemParam& p : item.params) {
      if (p.path == "o") p = named(weight, "o");
    }
    if (has_bias) {
      item.layer = with_field(item.layer, "out_bias", 1);
      item.params.push_back(named(bias, "o_bias"));
    }
    LOOM_ASSIGN(const int made, add(n, std::move(item)));
    return view_as(n, made, with_last(dims, out));
  }
  if (direct && source.role == Item::Role::gated &&
      source.layer.integer(fields::swiglu::kWidth) == out) {
    Item item = source;  // its down projection
    item.role = Item::Role::layer;
    item.out = Shape();
    item.params.push_back(named(weight, "down"));
    const bool biased = has_bias || item.layer.flag(fields::swiglu::kBias);
    if (biased) {
      item.layer = with_field(item.layer, "bias", 1);
      const auto zeros = [](const char* path, int64_t width) {
        return ItemParam{path, Shape{width}, shared(std::vector<float>(static_cast<size_t>(width))),
                         true};
      };
      if (item.params.size() == 3) {
        item.params.push_back(zeros("gate_bias", in));
        item.params.push_back(zeros("up_bias", in));
      }
      item.params.push_back(has_bias ? named(bias, "down_bias") : zeros("down_bias", out));
    }
    LOOM_ASSIGN(const int made, add(n, std::move(item)));
    return view_as(n, made, with_last(dims, out));
  }
  LOOM_ASSIGN(LayerConfig layer,
              make_layer(LayerKind::dense, {{"in", in}, {"out", out}, {"bias", has_bias}}));
  Item item = layer_item(std::move(layer), from);
  item.params.push_back(named(weight, "weight"));
  if (has_bias) item.params.push_back(named(bias, "bias"));
  LOOM_ASSIGN(const int made, add(n, std::move(item)));
  return view_as(n, made, with_last(dims, out));
}

Status Lowering::gemm(const OnnxNode& n, const OnnxGemm& args) {
  LOOM_ASSIGN(const PatternValue* x, value(n, 0));
  LOOM_ASSIGN(const ConstantRef b, read_weights(n, 1));
  const auto alpha = static_cast<float>(args.alpha);
  const auto beta = static_cast<float>(args.beta);
  if (x->item < 0 || args.transpose_a || b->dims.size() != 2)
    return refuse(n, "only x W + b with x computed, W a constant matrix and transA 0 is read");
  const bool turn = !args.transpose_b;
  const int64_t in = b->dims[turn ? 0 : 1], out = b->dims[turn ? 1 : 0];
  if (x->view.dims().size() != 2 || in < 1 || out < 1)
    return refuse(n, "its input must have two axes");
  std::vector<float> w = turn ? transposed(b->floats(), in, out) : b->floats();
  for (float& v : w) v *= alpha;
  ItemParam bias{"bias", Shape{out}, nullptr};
  if (has_input(n, 2)) {
    LOOM_ASSIGN(const ConstantRef c, read_weights(n, 2));
    // C meets [rows, out] as broadcasting has it: its last axis is that of the outputs.
    const bool row = c->dims.size() <= 2 && (c->dims.size() < 2 || c->dims[0] == 1);
    if (!row || (c->count() != out && c->count() != 1))
      return refuse(n, "a bias that is not one per output, the same for all rows");
    std::vector<float> values(static_cast<size_t>(out));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = beta * static_cast<float>(c->at(c->count() == 1 ? 0 : static_cast<int64_t>(i)));
    bias.values = shared(std::move(values));
    bias.made_up = beta != 1 || c->count() != out;
  }
  ItemParam weight{"weight", Shape{out, in}, shared(std::move(w)), alpha != 1};
  LOOM_ASSIGN(PatternValue y, dense(n, *x, std::move(weight), std::move(bias)));
  return define(n, std::move(y));
}

Status Lowering::matmul(const OnnxNode& n) {
  LOOM_ASSIGN(const PatternValue* a, value(n, 0));
  LOOM_ASSIGN(const PatternValue* b, value(n, 1));
  if (a->scores != nullptr && b->item >= 0) {
    LOOM_ASSIGN(PatternValue y, attend(n, *a, *b));
    return define(n, std::move(y));
  }
  if (a->item >= 0 && b->item >= 0 && b->scores == nullptr) {
    LOOM_ASSIGN(PatternValue y, scores(n, *a, *b));
    return define(n, std::move(y));
  }
  if (a->item < 0 || a->scores != nullptr || !b->is_constant())
    return refuse(n, "only x W with x computed and W a constant is read");
  LOOM_ASSIGN(const ConstantRef w, read_weights(n, 1));
  if (w->dims.size() != 2 || w->dims[0] < 1 || w->dims[1] < 1)
    return refuse(n, "W must be a matrix");
  const int64_t in = w->dims[0], out = w->dims[1];
  ItemParam weight{"weight", Shape{out, in}, shared(transposed(w->floats(), in, out))};
  LOOM_ASSIGN(PatternValue y, dense(n, *a, std::move(weight), {}));
  return define(n, std::move(y));
}

// A constant of exactly this shape.
Status Lowering::shaped(const OnnxNode& n, const Constant& c, const std::vector<int64_t>& dims,
                        std::string_view what) const {
  return c.dims == dims ? Status{} : refuse(n, what);
}

Status Lowering::conv(const OnnxNode& n, OnnxConv args) {
  LOOM_ASSIGN(const PatternValue* x, value(n, 0));
  if (x->item < 0) return refuse(n, "its input is a constant");
  LOOM_ASSIGN(const int from, rows_of_item(n, *x));
  if (!is_padding_of_layer(args.window)) return refuse(n, kNoPadding);
  const int64_t channels = items_[static_cast<size_t>(from)].out[1];
  Result<LayerConfig> layer = make_layer(args.kind(), args.fields(channels));
  if (!layer.ok()) return refuse(n, layer.error().message);
  Item item = layer_item(std::move(*layer), from);
  item.params.push_back({"weight", args.weight_shape(), shared(args.weight->floats())});
  if (args.bias != nullptr)
    item.params.push_back({"bias", Shape{args.filters}, shared(args.bias->floats())});
  LOOM_ASSIGN(const int made, add(n, std::move(item)));
  return define(n, stream(made, dims_of(items_[static_cast<size_t>(made)].out)));
}

Status Lowering::pool_node(const OnnxNode& n) {
  LOOM_ASSIGN(const PatternValue* x, value(n, 0));
  if (x->item < 0) return refuse(n, "its input is a constant");
  LOOM_ASSIGN(const int from, rows_of_item(n, *x));
  const std::vector<int64_t> in = dims_of(items_[static_cast<size_t>(from)].out);
  const size_t axes = in.size() - std::min<size_t>(in.size(), 2);
  if (axes < 1 || axes > 3) return refuse(n, "one to three axes of positions are read");
  std::vector<int64_t> kernel(in.begin() + 2, in.end());
  if (layer_of(n.op).function == "average") kernel = attribute_list(n, "kernel_shape", {});
  if (kernel.size() != axes) return refuse(n, "a kernel_shape of the wrong length");
  LOOM_ASSIGN(const OnnxWindow v, window(n, in, std::move(kernel)));
  if (!is_padding_of_layer(v)) return refuse(n, kNoPadding);
  const bool padded = std::ranges::any_of(v.begin, [](int64_t p) { return p != 0; });
  if (attribute(n, "ceil_mode", 0) != 0 || (padded && attribute(n, "count_include_pad", 0) == 0))
    return refuse(n, "only means over whole windows are read (no ceil_mode, pads counted)");
  for (size_t i = 0; i < axes; ++i) {
    if (v.begin[i] >= v.kernel[i] && padded) return refuse(n, "pads that are not below the kernel");
  }
  return pool(n, from, v);
}

Status Lowering::pool(const OnnxNode& n, int from, const OnnxWindow& v) {
  std::vector<Field> fields = {{"kind", "average"}};
  if (layer_of(n.op).function == "global_average") {
    fields.emplace_back("output", std::vector<int64_t>{1});
  } else {
    fields.insert(fields.end(), {{"kernel", v.kernel},
                                 {"stride", v.stride},
                                 {"padding", v.begin},
                                 {"dilation", v.dilation},
                                 {"include_padding", true}});
  }
  Result<LayerConfig> layer = make_layer(LayerKind::pool, fields);
  if (!layer.ok()) return refuse(n, layer.error().message);
  LOOM_ASSIGN(const int made, add(n, layer_item(std::move(*layer), from)));
  return define(n, stream(made, dims_of(items_[static_cast<size_t>(made)].out)));
}

Status Lowering::normalize(const OnnxNode& n, const OnnxBatchNorm& args) {
  LOOM_ASSIGN(const PatternValue* x, value(n, 0));
  const std::vector<int64_t> dims = x->view.dims();
  if (x->item < 0 || args.gamma == nullptr) return refuse(n, "only constant statistics are read");
  AffineParts by;
  by.from = AffineParts::From::statistics;
  by.scales = by.shifts = true;
  by.scale.assign(args.scale.begin(), args.scale.end());
  by.shift.assign(args.shift.begin(), args.shift.end());
  int from = 0;
  if (dims.size() == 2) {
    LOOM_ASSIGN(from, rows(n, *x, dims[1]));
  } else {
    LOOM_ASSIGN(from, rows_of_item(n, *x));
  }
  LOOM_ASSIGN(const int made, made_affine(n, from, dims.size() == 2 ? -1 : 1, std::move(by)));
  LOOM_ASSIGN(PatternValue y, view_as(n, made, dims));
  return define(n, std::move(y));
}

Status Lowering::norm_node(const OnnxNode& n) {
  LOOM_ASSIGN(const PatternValue* x, value(n, 0));
  LOOM_ASSIGN(const ConstantRef gamma, read_weights(n, 1));
  const std::vector<int64_t> dims = x->view.dims();
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = attribute(n, "axis", -1);
  if (x->item < 0 || rank < 1 || (axis != -1 && axis != rank - 1))
    return refuse(n, "only norms over the last axis are read");
  const bool layer_norm = layer_of(n.op).function == "layer";
  LOOM_TRY(shaped(n, *gamma, {dims.back()}, "a scale that is not one per value"));
  if (attribute(n, "stash_type", 1) != 1) return refuse(n, "a stash_type other than 1, float");
  LOOM_ASSIGN(const int from, rows(n, *x, dims.back()));
  const double eps = attribute_real(n, "epsilon", static_cast<double>(1e-5f));
  Result<LayerConfig> layer = make_layer(layer_norm ? LayerKind::layer_norm : LayerKind::rms_norm,
                                         {{"width", dims.back()}, {"eps", eps}});
  if (!layer.ok()) return refuse(n, layer.error().message);
  Item item = layer_item(std::move(*layer), from);
  item.params.push_back({"gamma", Shape{dims.back()}, shared(gamma->floats())});
  if (layer_norm) {
    std::vector<float> beta(static_cast<size_t>(dims.back()));
    if (has_input(n, 2)) {
      LOOM_ASSIGN(const ConstantRef given, read_weights(n, 2));
      LOOM_TRY(shaped(n, *given, {dims.back()}, "a bias that is not one per value"));
      beta = given->floats();
    }
    item.params.push_back(
        {"beta", Shape{dims.back()}, shared(std::move(beta)), !has_input(n, 2), !has_input(n, 2)});
  }
  LOOM_ASSIGN(const int made, add(n, std::move(item)));
  LOOM_ASSIGN(PatternValue y, view_as(n, made, dims));
  return define(n, std::move(y));
}

Status Lowering::softmax(const OnnxNode& n, int64_t axis, bool log) {
  LOOM_ASSIGN(const PatternValue* x, value(n, 0));
  std::vector<int64_t> dims = x->view.dims();
  if (x->item < 0 || log || axis + 1 != static_cast<int64_t>(dims.size()))
    return refuse(n, "only softmaxes over the last axis are read");
  if (x->scores != nullptr) {
    PatternValue y = *x;
    Scores s = *x->scores;
    if (s.softmax) return refuse(n, "a second softmax of attention scores");
    s.softmax = true;
    y.scores = std::make_shared<const Scores>(s);
    return define(n, std::move(y));
  }
  // A factor before it is a temperature.
  PatternValue bare = *x;
  double temperature = 1;
  if (x->f != nullptr) {
    const Recognized r = recognize(*x->f);
    if (r.kind == Recognized::Kind::affine && r.shift == 0 && r.scale > 0) {
      temperature = 1 / r.scale;
      bare.f = nullptr;
    }
  }
  LOOM_ASSIGN(const int item, materialise(n, bare));
  std::vector<Field> fields = {{"temperature", temperature}};
  const int64_t last = items_[static_cast<size_t>(item)].out.last();
  int from = item;
  if (last != dims.back() && last % dims.back() == 0 && x->view.plain()) {
    // The row in pieces.
    fields.emplace_back("variant", "grid");
    fields.emplace_back("rows", last / dims.back());
    fields.emplace_back("cols", dims.back());
  } else {
    LOOM_ASSIGN(from, rows(n, bare, dims.back()));
  }
  Result<LayerConfig> layer = make_layer(LayerKind::softmax, fields);
  if (!layer.ok()) return refuse(n, layer.error().message);
  LOOM_ASSIGN(const int made, add(n, layer_item(std::move(*layer), from)));
  LOOM_ASSIGN(PatternValue y, view_as(n, made, dims));
  return define(n, std::move(y));
}

Status Lowering::concat(const OnnxNode& n, int64_t axis) {
  Item item;
  item.role = Item::Role::concat;
  int64_t width = 0;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    LOOM_ASSIGN(const PatternValue* x, value(n, i));
    const std::vector<int64_t> dims = x->view.dims();
    const bool fits = x->item >= 0 && x->scores == nullptr && dims.size() == 2 && dims[0] == batch_;
    if (!fits || (axis != 1 && axis != -1) || !x->view.plain())
      return refuse(n, "only computed [batch, n] along axis 1 is read");
    LOOM_ASSIGN(const int from, materialise(n, *x));
    item.sources.push_back(from);
    width += dims[1];
  }
  if (item.sources.empty()) return refuse(n, "joins nothing");
  item.out = Shape{batch_, width};
  LOOM_ASSIGN(const int made, add(n, std::move(item)));
  return define(n, stream(made, {batch_, width}));
}

}  // namespace loom::core
