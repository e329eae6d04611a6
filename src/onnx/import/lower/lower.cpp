// The walk itself: inputs, constants, views, and the table of operators. See lower.hpp.
#include "onnx/import/lower/lower.hpp"

#include <algorithm>
#include <charconv>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "layers/core/fields.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMinImport = 17, kMaxImport = 28;
constexpr int64_t kMaxOnnxSample = int64_t{1} << 31;
constexpr int64_t kMaxOnnxExtent = int64_t{1} << 24;
// Values that any model may make, and how often each of its own may be copied.
constexpr int64_t kFreely = int64_t{1} << 21, kCopies = 24;
constexpr uint64_t kMaxPass = uint64_t{1} << 46;  // values of one tensor of one pass

bool is_onnx(const OnnxNode& n) {
  return n.domain.empty() || n.domain == "ai.onnx";
}

}  // namespace

LayerConfig with_field(LayerConfig layer, std::string_view name, double value) {
  const int index = field_index(layer, name);
  if (index >= 0) layer.values[static_cast<size_t>(index)].number = value;
  return layer;
}

Result<const PatternValue*> Lowering::value(const OnnxNode& n, size_t i) const {
  LOOM_ASSIGN(const ImportValue* found, input(n, i));
  return static_cast<const PatternValue*>(found);
}

const ImportValue* Lowering::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

std::vector<int64_t> Lowering::extents(const ImportValue& computed) const {
  const auto& x = static_cast<const PatternValue&>(computed);
  std::vector<int64_t> dims = x.view.dims();
  if (x.reduced) dims.back() = 1;
  return dims;
}

Status Lowering::define_constant(const OnnxNode& n, ImportValue value) {
  PatternValue out;
  static_cast<ImportValue&>(out) = std::move(value);
  return define(n, std::move(out));
}

Status Lowering::define_same(const OnnxNode& n) {
  LOOM_ASSIGN(const PatternValue* x, value(n, 0));
  return define(n, *x);
}

Result<ConstantRef> Lowering::read_weights(const OnnxNode& n, size_t i) {
  LOOM_ASSIGN(const ConstantRef c, constant(n, i));
  if (c->values.size() == 1) LOOM_TRY(spend(n, c->count()));  // one value that stands for many
  if (!learns(n, i)) unlearned_ += c->count();
  return c;
}

Status Lowering::define(const OnnxNode& n, PatternValue value, size_t output) {
  if (output >= n.outputs.size() || n.outputs[output].empty()) return {};
  value.type = result_;
  if (!values_.emplace(n.outputs[output], std::move(value)).second)
    return refuse(n, cat("its output '", printable(n.outputs[output]), "' occurs twice"));
  return {};
}

PatternValue Lowering::stream(int item, const std::vector<int64_t>& dims) const {
  PatternValue out;
  out.item = item;
  out.view = OnnxView::of(dims);
  return out;
}

// The memory of an item as `dims`.
Result<PatternValue> Lowering::view_as(const OnnxNode& n, int item,
                                       std::vector<int64_t> dims) const {
  const Shape& shape = items_[static_cast<size_t>(item)].out;
  std::vector<int64_t> own;
  for (int i = 0; i < shape.rank(); ++i) own.push_back(shape[i]);
  PatternValue out = stream(item, own);
  if (!out.view.reshape(dims))
    return refuse(n, cat("its result ", shape.str(), " is not what the graph says it is"));
  return out;
}

Item Lowering::layer_item(LayerConfig layer, int source) const {
  Item item;
  item.layer = std::move(layer);
  item.sources = {source};
  return item;
}

Result<int> Lowering::add(const OnnxNode& n, Item item) {
  item.node = n.name;
  if (ids_ && item.sources[0] == 0 && !(item.layer.def != nullptr && takes_ids(item.layer)))
    return refuse(n, "computes with the ids of the input; only an embedding reads ids");
  if (item.out.rank() == 0) {
    const Shape& in = items_[static_cast<size_t>(item.sources[0])].out;
    Result<Shape> out = infer_shape(item.layer, in);
    if (!out.ok()) return refuse(n, out.error().message);
    item.out = *out;
    compare_layer(item.layer, item.params, {&in, 1}, {&item.out, 1});
  }
  uint64_t count = 1;
  for (int i = 0; i < item.out.rank(); ++i) {
    if (!checked_mul(count, static_cast<uint64_t>(item.out[i]), count) || count > kMaxPass)
      return refuse(n, "its result is too large");
  }
  items_.push_back(std::move(item));
  return static_cast<int>(items_.size()) - 1;
}

Result<int> Lowering::rows(const OnnxNode& n, const PatternValue& x, int64_t width) {
  LOOM_ASSIGN(const int item, materialise(n, x));
  const std::vector<int64_t> dims = x.view.dims();
  const Shape& out = items_[static_cast<size_t>(item)].out;
  if (!x.view.plain()) return refuse(n, "what it reads is transposed, which no layer undoes");
  if (dims.empty() || dims.back() != width)
    return refuse(n, cat("reads rows of ", dims.empty() ? 1 : dims.back(), ", needs ", width));
  if (out.last() == width) return item;
  if (dims[0] == batch_ && out.count() == batch_ * width) {
    // A whole sample is the row: Parallel lays samples flat.
    LOOM_ASSIGN(LayerConfig nothing, make_layer(LayerKind::sequential, {}));
    LOOM_ASSIGN(LayerConfig flat, make_layer(LayerKind::parallel, {}, {std::move(nothing)}));
    return add(n, layer_item(std::move(flat), item));
  }
  return refuse(n, cat("reads ", out.str(), " as rows of ", width, ", which no layer does"));
}

Result<int> Lowering::rows_of_item(const OnnxNode& n, const PatternValue& x) {
  LOOM_ASSIGN(const int item, materialise(n, x));
  const std::vector<int64_t> dims = x.view.dims();
  const Shape& out = items_[static_cast<size_t>(item)].out;
  bool same = x.view.plain() && static_cast<int>(dims.size()) == out.rank();
  for (int i = 0; same && i < out.rank(); ++i) same = dims[static_cast<size_t>(i)] == out[i];
  if (!same) return refuse(n, cat("reads ", out.str(), " in another shape, which no layer gives"));
  return item;
}

Result<int> Lowering::shaped(const OnnxNode& n, int item, const std::vector<int64_t>& dims) {
  const Shape& out = items_[static_cast<size_t>(item)].out;
  if (dims.size() < 2 || dims[0] != batch_ || out[0] != batch_) return item;
  const std::vector<int64_t> sample(dims.begin() + 1, dims.end());
  bool same = static_cast<int>(dims.size()) == out.rank();
  for (int i = 1; same && i < out.rank(); ++i) same = dims[static_cast<size_t>(i)] == out[i];
  if (same) return item;
  const bool flat = sample.size() == 1;
  LOOM_ASSIGN(LayerConfig layer, flat ? make_layer(LayerKind::flatten, {})
                                      : make_layer(LayerKind::reshape, {{"shape", sample}}));
  return add(n, layer_item(std::move(layer), item));
}

Status Lowering::check_opset() {
  for (const auto& [domain, version] : model_.opsets) {
    if (!domain.empty()) continue;
    opset_ = version;
    if (version >= kMinImport && version <= kMaxImport) return {};
    return unsupported(cat("opset ", version, " is not read; export with one from ", kMinImport,
                           " to ", kMaxImport),
                       where_);
  }
  return unsupported("the model imports no opset of ONNX itself", where_);
}

// An initializer may be declared as an input, too, whose value it is unless a caller gives another.
Status Lowering::check_default(const OnnxValue& v, const OnnxTensor& tensor) const {
  bool same = v.type == tensor.type && (!v.has_shape || v.shape.size() == tensor.shape.size());
  for (size_t i = 0; same && i < v.shape.size(); ++i)
    same = v.shape[i].extent < 0 || v.shape[i].extent == tensor.shape[i];
  if (same) return {};
  return bad_file(cat("input '", printable(v.name),
                      "' has another type or shape than the initializer of that name"),
                  where_);
}

Status Lowering::read_input() {
  const OnnxValue* value = nullptr;
  for (const OnnxValue& v : model_.graph.inputs) {
    const auto known = values_.find(v.name);
    if (known != values_.end()) {
      LOOM_TRY(check_default(v, *known->second.tensor));
      continue;
    }
    if (value != nullptr)
      return unsupported(cat("the model has more than one input: '", printable(value->name), "', '",
                             printable(v.name), "'; Loom's networks have one"),
                         where_);
    value = &v;
  }
  if (value == nullptr) return unsupported("the model has no input", where_);
  const std::string who = cat("input '", printable(value->name), "'");
  ids_ = value->type == OnnxType::i64 || value->type == OnnxType::i32;
  if (!ids_ && value->type != OnnxType::f32 && value->type != OnnxType::f16 &&
      value->type != OnnxType::bf16 && value->type != OnnxType::f64)
    return unsupported(cat(who, " holds ", onnx_type_name(value->type), " values"), where_);
  if (value->shape.size() < 2 || value->shape.size() >= Shape::kMaxRank)
    return unsupported(cat(who, " has ", value->shape.size(), " axes; a batch and 1 to ",
                           Shape::kMaxRank - 2, " more are read"),
                       where_);
  batch_ = value->shape[0].extent >= 0 ? value->shape[0].extent : open_batch_;
  if (batch_ < 1 || batch_ > kMaxOnnxExtent)
    return unsupported(cat(who, " has a batch of ", batch_), where_);
  std::vector<int64_t> dims = {batch_};
  int64_t count = batch_;
  for (size_t i = 1; i < value->shape.size(); ++i) {
    int64_t extent = value->shape[i].extent;
    if (extent < 0) extent = options_.open_extent;
    if (extent < 1 || extent > kMaxOnnxExtent || count < 1 ||
        count > kMaxOnnxSample / extent * batch_)
      return unsupported(cat(who, " leaves axis ", i, " open ('", printable(value->shape[i].symbol),
                             "') or too large; give its extent with --open-extent"),
                         where_);
    dims.push_back(extent);
    count *= extent;
  }
  for (size_t i = dims.size(); i-- > 1;) sample_ = sample_.after(dims[i]);
  Item first;
  first.role = Item::Role::input;
  first.out = sample_.after(batch_);
  items_.push_back(std::move(first));
  input_name_ = normalized_ = value->name;
  PatternValue x = stream(0, dims);
  x.type = value->type;
  values_.emplace(value->name, std::move(x));
  return {};
}

// Views, Transpose and Expand change how a computed value is seen: no memory moves.
Status Lowering::reshape(const OnnxNode& n) {
  LOOM_ASSIGN(const PatternValue* x, value(n, 0));
  PatternValue out = *x;
  if (x->scores != nullptr || x->reduced) return refuse(n, "not of attention scores or means");
  LOOM_ASSIGN(const std::vector<int64_t> dims, reshaped(n, x->view.dims()));
  if (dims.size() > kMaxOnnxRank || !out.view.reshape(dims))
    return refuse(n, "this reshape moves memory, which no layer does");
  return define(n, std::move(out));
}

Status Lowering::transpose(const OnnxNode& n, const std::vector<int64_t>& order) {
  LOOM_ASSIGN(const PatternValue* x, value(n, 0));
  PatternValue out = *x;
  if (x->scores != nullptr || x->reduced) return refuse(n, "not of attention scores or means");
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted.size() != out.view.axes.size() || sorted[i] != static_cast<int64_t>(i))
      return refuse(n, "perm is not a permutation");
  }
  out.view = out.view.permuted(order);
  return define(n, std::move(out));
}

Status Lowering::expand(const OnnxNode& n, const std::vector<int64_t>& to) {
  LOOM_ASSIGN(const PatternValue* x, value(n, 0));
  PatternValue out = *x;
  if (x->scores != nullptr || x->reduced) return refuse(n, "not of attention scores or means");
  if (!out.view.expand(to)) return refuse(n, "its shapes do not fit");
  return define(n, std::move(out));
}

// A boolean is 1 or 0 in a function, so a cast to a float changes nothing.
Status Lowering::cast(const OnnxNode& n, OnnxType from, OnnxType to) {
  if (!is_integer(from) && !is_float(from) && (to == OnnxType::f32 || to == OnnxType::f64))
    return define_same(n);
  return refuse(n, cat("makes ", onnx_type_name(to), " of computed ", onnx_type_name(from),
                       " values, which no layer does"));
}

std::span<const Lowering::HandlerRow> Lowering::handlers() {
  using L = Lowering;
  static constexpr HandlerRow kRows[] = {
      {"pool average", &L::pool_node},
      {"pool global_average", &L::pool_node},
      {"norm", &L::norm_node},
      {"reduce mean", &L::mean_node},
  };
  return kRows;
}

Status Lowering::node(const OnnxNode& n) {
  if (!is_onnx(n)) return refuse(n, cat("the domain '", printable(n.domain), "' is not read"));
  LOOM_ASSIGN(result_, checked(n));
  if (is_cast_like(n)) return node(cast_of(n, result_));
  LOOM_ASSIGN(const bool normalizes_input, normalizes(n));
  if (normalizes_input) return define(n, values_.at(input_name_));
  LOOM_ASSIGN(const bool known, all_known(n));
  if (known && folds(n)) return fold_node(n);
  if (const ReaderRow* row = handler_of(readers(), n.op)) return (this->*row->read)(n);
  if (const HandlerRow* row = handler_of(handlers(), n.op)) return (this->*row->handle)(n);
  if (expr_knows(n.op, 1)) return unary_node(n);
  if (expr_knows(n.op, 2)) return binary_node(n);
  return refuse(n, "is read where all its inputs are constants");
}

Result<ImportedNetwork> Lowering::run() {
  LOOM_TRY(check_opset());
  left_ = kFreely;
  for (const OnnxTensor& t : model_.graph.initializers) {
    left_ += kCopies * t.count();
    PatternValue value;
    value.tensor = &t;
    value.type = t.type;
    if (t.name.empty() || !values_.emplace(t.name, std::move(value)).second)
      return bad_file(cat("initializer '", printable(t.name), "' has no name, or occurs twice"),
                      where_);
  }
  LOOM_TRY(read_input());
  for (const OnnxNode& n : model_.graph.nodes) LOOM_TRY(node(n));
  if (model_.graph.outputs.empty()) return unsupported("the model has no output", where_);
  OnnxNode end;
  end.op = "output";
  end.name = model_.graph.outputs[0].name;
  end.inputs = {end.name};
  LOOM_ASSIGN(const PatternValue* y, value(end, 0));
  if (y->item < 0 || y->scores != nullptr || y->reduced)
    return refuse(end, "is not what a layer computes");
  const OnnxType declared = model_.graph.outputs[0].type, type = y->type;
  if (!is_float(type))
    return refuse(end, cat("holds ", onnx_type_name(type), " values; layers give floats"));
  if (declared != type && declared != OnnxType::undefined)
    return refuse(end, cat("holds ", onnx_type_name(type), " values; the file says ",
                           onnx_type_name(declared)));
  LOOM_ASSIGN(int last, materialise(end, *y));
  if (!y->view.plain()) return refuse(end, "is transposed, which no layer undoes");
  LOOM_ASSIGN(last, shaped(end, last, y->view.dims()));
  Result<ImportedNetwork> made = grid_of(std::move(items_), last, sample_);
  if (!made.ok()) {
    Error error = made.error();
    error.where = where_;
    return error;
  }
  made->made_up += unlearned_;
  made->input = input_name_;
  made->output = end.name;
  Normalization& n = normalization_;
  if (n.scale.empty()) n.scale.assign(n.shift.size(), 1.0f);
  if (n.shift.empty()) n.shift.assign(n.scale.size(), 0.0f);
  made->normalization = std::move(n);
  made->metadata = model_.metadata;
  for (size_t i = 1; i < model_.graph.outputs.size(); ++i)
    made->notes.push_back(cat("output '", printable(model_.graph.outputs[i].name),
                              "' is left out: a network has one output, here '",
                              printable(end.name), "'"));
  return made;
}

}  // namespace loom::core
