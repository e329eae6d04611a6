// Elementwise operators: functions are collected until a layer reads the value, and then become the
// item that computes them. Sums of two streams, gates, and scales per channel. See lower.hpp.
#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "onnx/import/lower/lower.hpp"

namespace loom::core {
namespace {

ExprRef of(const PatternValue& x) {
  return x.f != nullptr ? x.f : expr_x();
}

bool is_dense(const Item& item) {
  return item.role == Item::Role::layer && item.layer.def->kind == LayerKind::dense;
}

const std::vector<float>* param(const Item& item, std::string_view path) {
  for (const ItemParam& p : item.params) {
    if (p.path == path) return p.values.get();
  }
  return nullptr;
}

bool all_are(const std::vector<float>& values, float what) {
  return std::ranges::all_of(values, [what](float v) { return v == what; });
}

// Whether a constant leaves the extents of what it meets as they are.
bool keeps(const Constant& c, const PatternValue& x) {
  std::vector<int64_t> dims = x.view.dims();
  if (x.reduced) dims.back() = 1;
  if (c.dims.size() > dims.size()) return false;
  for (size_t k = 1; k <= c.dims.size(); ++k) {
    const int64_t extent = c.dims[c.dims.size() - k];
    if (extent != 1 && extent != dims[dims.size() - k]) return false;
  }
  return true;
}

// A constant that broadcasts to a sample, once per value of it.
std::vector<float> spread(const Constant& c, const Shape& sample) {
  std::vector<float> out;
  for (int64_t i = 0; i < sample.count(); ++i) {
    int64_t at = 0, stride = 1, rest = i;
    for (int axis = sample.rank(); axis-- > 0; rest /= sample[axis]) {
      const auto back = static_cast<size_t>(sample.rank() - axis);
      if (back > c.dims.size()) break;
      const int64_t extent = c.dims[c.dims.size() - back];
      if (extent != 1) at += rest % sample[axis] * stride;
      stride *= extent;
    }
    out.push_back(static_cast<float>(c.at(at)));
  }
  return out;
}

// W of a product with the scale of its outputs taken in. ConvTransposed keeps its filters in
// columns.
Weights scaled_product(const Item& item, const std::vector<float>& scale) {
  const bool columns = item.layer.def->name.starts_with("ConvTransposed");
  std::vector<float> w = *item.params[0].values;
  const size_t outs = scale.size();
  const int64_t groups = columns ? item.layer.integer(fields::conv_transposed::kGroups) : 1;
  const size_t rows = static_cast<size_t>(item.params[0].shape[0]), cols = w.size() / rows;
  const size_t per_group = outs / static_cast<size_t>(groups);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < cols; ++c) {
      const size_t group = r / (rows / static_cast<size_t>(groups));
      const size_t out = columns ? group * per_group + c / (cols / per_group) : r;
      w[r * cols + c] *= scale[out];
    }
  }
  return shared(std::move(w));
}

// W and b of a product with scale and shift of its outputs taken in. folded: what becomes of two
// values of the file is made up.
void join_product(Item& item, const AffineParts& by, bool folded) {
  std::vector<float> b(by.shift);
  const ItemParam* old = item.params.size() > 1 ? &item.params[1] : nullptr;
  for (size_t i = 0; i < b.size() && old != nullptr; ++i) b[i] += (*old->values)[i] * by.scale[i];
  const bool made_up = old != nullptr ? old->made_up || folded : folded && !by.exact;
  const bool biased = old != nullptr || by.shifts;
  item.params.resize(1);
  if (!all_are(by.scale, 1.0f)) {
    item.params[0].values = scaled_product(item, by.scale);
    item.params[0].made_up |= folded;
  }
  if (!biased) return;
  item.layer = with_field(item.layer, "bias", 1);
  const auto outs = static_cast<int64_t>(b.size());
  item.params.push_back({"bias", Shape{outs}, shared(std::move(b)), made_up});
}

// The same for gamma, and beta if there is one, of a norm.
void join_norm(Item& item, const AffineParts& by, bool folded) {
  for (size_t p = 0; p < item.params.size(); ++p) {
    ItemParam& param = item.params[p];
    const bool beta = p == 1, own = beta ? by.shifts : by.scales;
    if (!own && !by.scales) continue;
    std::vector<float> values = *param.values;
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = values[i] * by.scale[i] + (beta ? by.shift[i] : 0.0f);
    param.values = shared(std::move(values));
    param.made_up = own && param.neutral ? folded && !by.exact : param.made_up || folded;
    param.neutral = param.neutral && !own;
  }
}

}  // namespace

bool is_product(const Item& item) {
  if (item.role != Item::Role::layer) return false;
  const LayerKind kind = item.layer.def->kind;
  return kind == LayerKind::dense || is_convolution(kind) || is_transposed_convolution(kind);
}

Status Lowering::unary_node(const OnnxNode& n) {
  LOOM_ASSIGN(const PatternValue* x, value(n, 0));
  if (x->item < 0 || x->scores != nullptr) return refuse(n, "its input is not a plain stream");
  double parameter = 1;
  const std::string_view function = layer_of(n.op).function;
  if (function == "leaky_relu") parameter = attribute_real(n, "alpha", 0.01);
  if (function == "elu") parameter = attribute_real(n, "alpha", 1);
  PatternValue y = *x;
  y.f = expr_of(n.op, {of(*x)}, parameter);
  if (y.f == nullptr) return refuse(n, "a function of too many operators");
  return define(n, std::move(y));
}

// The two forms have names of their own in an Expr.
Status Lowering::gelu(const OnnxNode& n, bool by_tanh) {
  OnnxNode named = n;
  named.op = by_tanh ? "GeluTanh" : "GeluErf";
  return unary_node(named);
}

// The mean of a row, of which norms are made, or of all positions of a channel, which is a pool.
Status Lowering::mean_node(const OnnxNode& n) {
  LOOM_ASSIGN(const PatternValue* x, value(n, 0));
  const auto rank = static_cast<int64_t>(x->view.axes.size());
  LOOM_ASSIGN(std::vector<int64_t> axes, list(n, 1, "axes", {}));
  if (rank >= 4 && static_cast<int64_t>(axes.size()) == rank - 2) {
    bool positions = attribute(n, "keepdims", 1) != 0;
    for (int64_t& a : axes) a += a < 0 ? rank : 0;
    std::sort(axes.begin(), axes.end());
    for (size_t i = 0; i < axes.size(); ++i)
      positions = positions && axes[i] == static_cast<int64_t>(i) + 2;
    OnnxNode pool;
    pool.name = n.name;
    pool.op = "GlobalAveragePool";
    pool.inputs = {n.inputs[0]};
    pool.outputs = n.outputs;
    if (positions) return pool_node(pool);
  }
  if (x->item < 0 || x->scores != nullptr || x->reduced || axes.size() != 1 ||
      (axes[0] != -1 && axes[0] != rank - 1) || attribute(n, "keepdims", 1) == 0 ||
      !x->view.plain() || rank < 1 ||
      x->view.dims().back() != items_[static_cast<size_t>(x->item)].out.last())
    return refuse(n, "only a mean over the last axis that keeps it, inside of a norm, is read");
  PatternValue y = *x;
  y.f = expr_of("mean", {of(*x)});
  y.reduced = true;
  if (y.f == nullptr) return refuse(n, "a function of too many operators");
  return define(n, std::move(y));
}

Status Lowering::where(const OnnxNode& n) {
  ExprRef parts[3];
  const PatternValue* base = nullptr;
  for (size_t i = 0; i < 3; ++i) {
    LOOM_ASSIGN(const PatternValue* x, value(n, i));
    if (x->is_constant()) {
      LOOM_ASSIGN(const ConstantRef c, constant(n, i));
      if (c->values.size() != 1) return refuse(n, "only one number per choice is read");
      parts[i] = expr_number(c->values[0]);
      continue;
    }
    if (x->scores != nullptr ||
        (base != nullptr && (base->item != x->item || !(base->view == x->view))))
      return refuse(n, "chooses between values of two layers");
    base = x;
    parts[i] = of(*x);
  }
  for (size_t i = 0; i < 3; ++i) {
    if (parts[i]->op != "number") continue;
    LOOM_ASSIGN(const ConstantRef c, constant(n, i));
    if (!keeps(*c, *base)) return refuse(n, "a constant that does not fit");
  }
  PatternValue y = *base;
  y.f = expr_of("Where", {parts[0], parts[1], parts[2]});
  if (y.f == nullptr) return refuse(n, "a function of too many operators");
  return define(n, std::move(y));
}

// x - shift or * scale of the input by constants, which nothing else reads: see
// OnnxImportOptions::take_normalization. A shift precedes the scale.
Result<bool> Lowering::normalizes(const OnnxNode& n) {
  if (!options_.take_normalization || ids_) return false;
  const std::string_view function = layer_of(n.op).function;
  const bool shifts = function == "sub" || function == "add", divides = function == "div";
  if (!(shifts || divides || function == "mul") || n.inputs.size() != 2 || normalized_.empty() ||
      n.inputs[0] != normalized_ || n.outputs.size() != 1)
    return false;
  // Tried once per value: a graph of many readers is not searched for each of them.
  const std::string name = std::exchange(normalized_, "");
  int64_t readers = 0;
  for (const OnnxNode& other : model_.graph.nodes)
    readers += std::ranges::count(other.inputs, name);
  for (const OnnxValue& out : model_.graph.outputs) readers += out.name == name ? 1 : 0;
  LOOM_ASSIGN(const PatternValue* by, value(n, 1));
  // A weight of a file that says which initializers train is not a normalization.
  if (origins_.all_weights() && origins_.of(n.inputs[1]) != Origin::constant) return false;
  const int64_t count = sample_.count();
  Normalization& to = normalization_;
  if (readers != 1 || !by->is_constant() || count > kMaxFolded || !to.scale.empty() ||
      (shifts && !to.shift.empty()))
    return false;
  LOOM_ASSIGN(const ConstantRef c, constant(n, 1));
  const PatternValue& x = values_.at(input_name_);
  if (!keeps(*c, x) || (c->dims.size() == x.view.axes.size() && c->dims[0] != 1)) return false;
  std::vector<float> values = spread(*c, sample_);
  if (function == "add") std::ranges::transform(values, values.begin(), std::negate<>());
  if (divides) std::ranges::transform(values, values.begin(), [](float v) { return 1 / v; });
  (shifts ? to.shift : to.scale) = std::move(values);
  normalized_ = n.outputs[0];
  return true;
}

Status Lowering::binary_node(const OnnxNode& n) {
  LOOM_ASSIGN(const PatternValue* a, value(n, 0));
  LOOM_ASSIGN(const PatternValue* b, value(n, 1));
  if (n.inputs.size() != 2) return refuse(n, "only two inputs are read");
  if (!a->is_constant() && !b->is_constant()) {
    LOOM_ASSIGN(PatternValue y, stream_pair(n, *a, *b));
    return define(n, std::move(y));
  }
  const bool first = a->is_constant();
  LOOM_ASSIGN(const ConstantRef c, constant(n, first ? 0 : 1));
  LOOM_ASSIGN(PatternValue y, with_constant(n, first ? *b : *a, *c, first));
  return define(n, std::move(y));
}

Result<PatternValue> Lowering::with_constant(const OnnxNode& n, const PatternValue& x,
                                             const Constant& c, bool first) {
  if (x.scores != nullptr) return scores_with(n, x, c);
  if (!keeps(c, x)) return refuse(n, "a constant that does not fit");
  // A number of a formula, or a weight: one per value of an axis of one value, or lost to training.
  const bool weight = origins_.of(n.inputs[first ? 0 : 1]) == Origin::weight;
  const std::vector<int64_t> dims = x.view.dims();
  if (c.values.size() != 1 || (weight && !dims.empty() && dims.back() == 1))
    return affine(n, x, c, first);
  unlearned_ += weight;
  PatternValue y = x;
  const ExprRef number = expr_number(c.values[0]);
  y.f = first ? expr_of(n.op, {number, of(x)}) : expr_of(n.op, {of(x), number});
  if (y.f == nullptr) return refuse(n, "a function of too many operators");
  return y;
}

// A number per value of the last axis, or per channel.
Result<PatternValue> Lowering::affine(const OnnxNode& n, const PatternValue& x, const Constant& c,
                                      bool first) {
  const std::vector<int64_t> dims = x.view.dims();
  std::vector<int64_t> padded = c.dims;
  if (padded.size() > dims.size() || x.reduced) return refuse(n, "a constant that does not fit");
  padded.insert(padded.begin(), dims.size() - padded.size(), 1);
  int axis = -1;
  for (size_t i = 0; i < padded.size(); ++i) {
    if (padded[i] == 1) continue;
    if (padded[i] != dims[i] || axis >= 0)
      return refuse(n, "a constant of more than one axis: no layer adds or multiplies by it");
    axis = static_cast<int>(i);
  }
  if (axis < 0 && !dims.empty() && dims.back() == 1) axis = static_cast<int>(dims.size()) - 1;
  const bool last = axis == static_cast<int>(dims.size()) - 1;
  if (axis < 0 || (!last && axis != 1))
    return refuse(n, "a constant along an axis that is neither the last nor the channels");
  if (c.count() > kMaxFolded) return refuse(n, "too wide a constant");
  if (!learns(n, first ? 0 : 1)) unlearned_ += c.count();
  AffineParts by;
  by.from = AffineParts::From::weights;
  by.scale = by.shift = c.floats();
  const std::string_view function = layer_of(n.op).function;
  const bool less = function == "sub";
  by.exact = function == "add" || function == "mul";
  by.shifts = function == "add" || less;
  by.scales = !by.shifts || (less && first);
  if (by.shifts) {
    std::ranges::fill(by.scale, less && first ? -1.0f : 1.0f);
    if (less && !first) std::ranges::transform(by.shift, by.shift.begin(), std::negate<>());
  } else if (function == "mul" || (function == "div" && !first)) {
    std::ranges::fill(by.shift, 0.0f);
    if (function == "div")
      std::ranges::transform(by.scale, by.scale.begin(), [](float v) { return 1 / v; });
  } else {
    return refuse(n, "no layer has this function of a value and a constant");
  }
  int from = 0;
  if (last) {
    LOOM_ASSIGN(from, rows(n, x, dims.back()));
  } else {
    LOOM_ASSIGN(from, rows_of_item(n, x));
  }
  LOOM_ASSIGN(const int made, made_affine(n, from, last ? -1 : 1, std::move(by)));
  return view_as(n, made, dims);
}

// Into the weights of what it reads where that is a product or a norm, an item of its own else.
Result<int> Lowering::made_affine(const OnnxNode& n, int item, int axis, AffineParts by) {
  const Item& from = items_[static_cast<size_t>(item)];
  // Statistics of a norm may be folded if only predictions are asked for.
  const bool folded = by.from != AffineParts::From::statistics || options_.for_training;
  const bool joins = is_product(from) && (is_dense(from) ? axis == -1 : axis == 1);
  if (joins) {
    Item copy = from;
    LOOM_TRY(spend(n, copy.params[0].shape.count()));
    join_product(copy, by, folded);
    return add(n, std::move(copy));
  }
  const bool norm = from.role == Item::Role::layer && axis == -1 &&
                    (from.layer.def->kind == LayerKind::rms_norm ||
                     from.layer.def->kind == LayerKind::layer_norm);
  if (norm && (from.params.size() == 2 || all_are(by.shift, 0.0f))) {
    Item copy = from;
    join_norm(copy, by, folded);
    return add(n, std::move(copy));
  }
  const auto width = static_cast<int64_t>(by.scale.size());
  LOOM_TRY(spend(n, axis == 1 ? width : width * width));
  Item own;
  own.role = Item::Role::affine;
  own.sources = {item};
  own.out = from.out;
  own.axis = axis;
  own.scale = std::move(by.scale);
  own.shift = std::move(by.shift);
  LOOM_ASSIGN(Item layer, affine_item(from.out, own));
  layer.sources = {item};
  return add(n, std::move(layer));
}

Result<PatternValue> Lowering::stream_pair(const OnnxNode& n, const PatternValue& a,
                                           const PatternValue& b) {
  if (a.scores != nullptr || b.scores != nullptr)
    return refuse(n, "attention scores and a computed value");
  const bool together = a.item == b.item && a.view == b.view;
  if (together) {
    PatternValue y = a;
    y.reduced = a.reduced && b.reduced;
    y.f = expr_of(n.op, {of(a), of(b)});
    if (y.f == nullptr) return refuse(n, "a function of too many operators");
    return y;
  }
  if (a.reduced || b.reduced) return refuse(n, "the mean of one layer and values of another");
  const std::string_view function = layer_of(n.op).function;
  if (function == "add") return add_streams(n, a, b);
  if (function == "mul") return gate(n, a, b);
  return refuse(n, "of two computed values only sums, and products that are gates, are read");
}

Result<PatternValue> Lowering::add_streams(const OnnxNode& n, const PatternValue& a,
                                           const PatternValue& b) {
  LOOM_ASSIGN(const int one, materialise(n, a));
  LOOM_ASSIGN(const int two, materialise(n, b));
  const std::vector<int64_t> dims = a.view.dims();
  const Shape& shape = items_[static_cast<size_t>(one)].out;
  if (dims != b.view.dims() || !a.view.plain() || !b.view.plain() ||
      !(shape == items_[static_cast<size_t>(two)].out))
    return refuse(n, "adds values of different shapes, which no layer does");
  Item item;
  item.role = Item::Role::add;
  item.sources = {one, two};
  item.out = shape;
  LOOM_ASSIGN(const int made, add(n, std::move(item)));
  return view_as(n, made, dims);
}

// act(W1 x + b1) * (W2 x + b2): the inside of a SwiGLU.
Result<PatternValue> Lowering::gate(const OnnxNode& n, const PatternValue& a,
                                    const PatternValue& b) {
  const PatternValue& g = b.f != nullptr ? b : a;
  const PatternValue& u = b.f != nullptr ? a : b;
  const Item &one = items_[static_cast<size_t>(g.item)], &two = items_[static_cast<size_t>(u.item)];
  Recognized r;
  r.kind = Recognized::Kind::activation;
  if (g.f != nullptr) r = recognize(*g.f);
  if (u.f != nullptr || r.kind != Recognized::Kind::activation || !is_dense(one) ||
      !is_dense(two) || one.sources != two.sources || !(one.out == two.out) || !(g.view == u.view))
    return refuse(n, "a product of two computed values that is not a gate: act(W1 x) * (W2 x)");
  const int64_t width = one.layer.integer(fields::dense::kIn),
                inner = one.layer.integer(fields::dense::kOut);
  const std::vector<float>*b1 = param(one, "bias"), *b2 = param(two, "bias");
  const bool biased = b1 != nullptr || b2 != nullptr;
  LOOM_ASSIGN(
      LayerConfig layer,
      make_layer(LayerKind::swiglu, {{"width", width},
                                     {"inner", inner},
                                     {"bias", biased},
                                     {"activation", std::string(activation_name(r.activation))}}));
  Item item = layer_item(std::move(layer), one.sources[0]);
  item.role = Item::Role::gated;
  item.out = one.out;
  item.params = {{"gate", Shape{inner, width}, one.params[0].values, one.params[0].made_up},
                 {"up", Shape{inner, width}, two.params[0].values, two.params[0].made_up}};
  if (biased) {
    const std::vector<float> zeros(static_cast<size_t>(inner));
    item.params.push_back(
        {"gate_bias", Shape{inner}, shared(b1 != nullptr ? *b1 : zeros), b1 == nullptr});
    item.params.push_back(
        {"up_bias", Shape{inner}, shared(b2 != nullptr ? *b2 : zeros), b2 == nullptr});
  }
  const std::vector<int64_t> dims = g.view.dims();
  LOOM_ASSIGN(const int made, add(n, std::move(item)));
  return view_as(n, made, dims);
}

Result<int> Lowering::materialise(const OnnxNode& n, const PatternValue& x) {
  if (x.item < 0 || x.scores != nullptr)
    return refuse(n, "reads a value that is not an output of a layer");
  if (x.f == nullptr) return x.item;
  if (x.reduced) return refuse(n, "reads the mean of a row outside of a norm");
  if (ids_ && x.item == 0) return refuse(n, "computes with the ids of the input");
  return function_item(n, x.item, x.f);
}

// Items for f of an item's values: one when f is a function we have, else of its parts.
Result<int> Lowering::function_item(const OnnxNode& n, int item, const ExprRef& f) {
  if (f->op == "x") return item;
  const auto known = functions_.find({item, f});
  if (known != functions_.end()) return known->second;
  Recognized r = recognize(*f);
  int from = item;
  const std::vector<ExprRef> parts = expr_parts(f);
  for (size_t i = parts.size() - 1; r.kind == Recognized::Kind::none && i-- > 0;) {
    if (parts[i]->op == "x" || parts[i]->op == "number") continue;
    r = recognize(*f, parts[i].get());
    if (r.kind == Recognized::Kind::none) continue;
    LOOM_ASSIGN(from, function_item(n, item, parts[i]));
  }
  const Shape shape = items_[static_cast<size_t>(from)].out;
  const int64_t width = shape.last();
  int made = 0;
  if (r.kind == Recognized::Kind::activation) {
    Item own;
    own.role = Item::Role::activation;
    own.sources = {from};
    own.out = shape;
    own.activation = r.activation;
    LOOM_ASSIGN(made, add(n, std::move(own)));
  } else if (r.kind == Recognized::Kind::affine && width <= kMaxFolded) {
    const Item& before = items_[static_cast<size_t>(from)];
    const bool channels = is_product(before) && !is_dense(before);
    const auto all = [&](double v) {
      return std::vector<float>(static_cast<size_t>(channels ? shape[1] : width),
                                static_cast<float>(v));
    };
    AffineParts by;
    by.scales = r.scale != 1;
    by.shifts = r.shift != 0;
    by.scale = all(r.scale);
    by.shift = all(r.shift);
    LOOM_ASSIGN(made, made_affine(n, from, channels ? 1 : -1, std::move(by)));
  } else if ((r.kind == Recognized::Kind::rms || r.kind == Recognized::Kind::layer) &&
             width <= kMaxFolded) {
    const bool layer = r.kind == Recognized::Kind::layer;
    LOOM_ASSIGN(LayerConfig config, make_layer(layer ? LayerKind::layer_norm : LayerKind::rms_norm,
                                               {{"width", width}, {"eps", r.eps}}));
    Item own = layer_item(std::move(config), from);
    const auto all = [&](float v) {
      return shared(std::vector<float>(static_cast<size_t>(width), v));
    };
    own.params.push_back({"gamma", Shape{width}, all(1.0f), true, true});
    if (layer) own.params.push_back({"beta", Shape{width}, all(0.0f), true, true});
    LOOM_ASSIGN(made, add(n, std::move(own)));
  } else if (layer_of(f->op).function == "add" && f->args[0]->op != "number" &&
             f->args[1]->op != "number") {
    Item own;
    own.role = Item::Role::add;
    LOOM_ASSIGN(const int one, function_item(n, item, f->args[0]));
    LOOM_ASSIGN(const int two, function_item(n, item, f->args[1]));
    own.sources = {one, two};
    own.out = shape;
    LOOM_ASSIGN(made, add(n, std::move(own)));
  } else {
    return refuse(n, "what it reads is a function of its values that no layer has");
  }
  functions_.emplace(std::pair(item, f), made);
  return made;
}

}  // namespace loom::core
