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

// Shapes name an open batch as the reader knows it, not by the number that stands for it here:
// [7919, 4] is [batch, 4], and four samples laid side by side are 4 x batch.
std::string with_open_batch(std::string_view reason, int64_t batch) {
  std::string text;
  for (size_t at = 0; at < reason.size();) {
    const size_t end = std::min(reason.find_first_not_of("0123456789", at), reason.size());
    const std::string_view digits = reason.substr(at, end - at);
    int64_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    const int64_t times = number % batch == 0 ? number / batch : 0;
    if (times == 0) {
      text += digits.empty() ? reason.substr(at, 1) : digits;
    } else {
      text += times == 1 ? "batch" : cat(times, " x batch");
    }
    at = std::max(end, at + 1);
  }
  return text;
}

Error Lowering::refuse(const OnnxNode& n, std::string_view reason) const {
  return refused(cat("node '", printable(n.name), "' (", printable(n.op), "): ", reason));
}

Error Lowering::refused(std::string_view message) const {
  return unsupported(
      batch_ == open_batch_ ? with_open_batch(message, batch_) : std::string(message), where_);
}

Result<const PatternValue*> Lowering::input(const OnnxNode& n, size_t i) const {
  if (!has_input(n, i)) return refuse(n, cat("input ", i, " is absent"));
  const auto found = values_.find(n.inputs[i]);
  if (found == values_.end())
    return refuse(n, cat("its input '", printable(n.inputs[i]),
                         "' is made by no node before it, or is an output Loom does not compute"));
  return &found->second;
}

Status Lowering::spend(const OnnxNode& n, int64_t values) {
  if (values > left_)
    return refuse(n, "the model makes far more values than it holds; that is no model of Loom's");
  left_ -= values;
  return {};
}

Result<ConstantRef> Lowering::constant(const OnnxNode& n, size_t i) {
  LOOM_ASSIGN(const PatternValue* value, input(n, i));
  if (value->constant != nullptr) return value->constant;
  if (value->tensor == nullptr)
    return refuse(n, cat("its input '", printable(n.inputs[i]), "' must be a constant"));
  LOOM_TRY(spend(n, value->tensor->count()));
  LOOM_ASSIGN(Constant made, constant_of(*value->tensor));
  return std::make_shared<const Constant>(std::move(made));
}

Result<std::vector<int64_t>> Lowering::list(const OnnxNode& n, size_t i) {
  LOOM_ASSIGN(const ConstantRef c, constant(n, i));
  if (c->dims.size() != 1 || c->count() > static_cast<int64_t>(kMaxOnnxRank))
    return refuse(n, cat("input ", i, " must be a list of at most ", kMaxOnnxRank));
  return c->integers();
}

// Functions of weights are folded where only predictions are asked for.
bool Lowering::learns(const OnnxNode& n, size_t i) const {
  const Origin from = origins_.of(n.inputs[i]);
  return from == Origin::weight || (from == Origin::derived && !options_.for_training);
}

Result<ConstantRef> Lowering::weights(const OnnxNode& n, size_t i) {
  LOOM_ASSIGN(const ConstantRef c, constant(n, i));
  if (c->values.size() == 1) LOOM_TRY(spend(n, c->count()));  // one value that stands for many
  if (!learns(n, i)) unlearned_ += c->count();
  return c;
}

Status Lowering::define(const OnnxNode& n, PatternValue value, size_t output) {
  if (output >= n.outputs.size() || n.outputs[output].empty()) return {};
  value.type = result_;
  if (!values_.emplace(n.outputs[output], std::move(value)).second)
    return refuse(n, cat("its output '", printable(n.outputs[output]), "' stands twice"));
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

Status Lowering::constant_node(const OnnxNode& n) {
  if (n.attributes.size() != 1) return refuse(n, "must have one value");
  const OnnxAttribute* value = n.find("value");
  PatternValue out;
  if (value != nullptr && value->tensors.size() == 1) {
    out.tensor = &value->tensors[0];
  } else {
    out.constant = numbers_of(n);
    if (out.constant == nullptr) return refuse(n, "a constant of strings or sparse values");
  }
  return define(n, std::move(out));
}

Status Lowering::shape_node(const OnnxNode& n) {
  LOOM_ASSIGN(const PatternValue* x, input(n, 0));
  std::vector<int64_t> dims = x->view.dims();
  if (x->constant != nullptr) dims = x->constant->dims;
  if (x->tensor != nullptr) dims = x->tensor->shape;
  if (x->reduced) dims.back() = 1;
  PatternValue made;
  made.constant = std::make_shared<const Constant>(shape_of(n, dims));
  return define(n, std::move(made));
}

// What a Reshape, Flatten, Squeeze or Unsqueeze makes of the extents.
Result<std::vector<int64_t>> Lowering::target_dims(const OnnxNode& n,
                                                   const std::vector<int64_t>& have) {
  std::vector<ConstantRef> inputs(n.inputs.size());
  if (has_input(n, 1)) {
    LOOM_ASSIGN(inputs[1], constant(n, 1));
  }
  Result<std::vector<int64_t>> dims = shape_by_row(n, opset_, have, inputs);
  if (!dims.ok()) return refused(dims.error().message);
  return dims;
}

// Reshape, Flatten, Squeeze, Unsqueeze, Transpose, Expand: no memory moves.
Status Lowering::view_node(const OnnxNode& n) {
  LOOM_ASSIGN(const PatternValue* x, input(n, 0));
  if (n.op == "Transpose" || n.op == "Expand") {
    PatternValue out = *x;
    if (x->scores != nullptr || x->reduced) return refuse(n, "not of attention scores or means");
    if (n.op == "Expand") {
      LOOM_ASSIGN(const std::vector<int64_t> to, list(n, 1));
      if (!out.view.expand(to)) return refuse(n, "its shapes do not fit");
      return define(n, std::move(out));
    }
    std::vector<int64_t> order;
    for (size_t i = out.view.axes.size(); i-- > 0;) order.push_back(static_cast<int64_t>(i));
    order = attribute_list(n, "perm", order);
    std::vector<int64_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i) {
      if (sorted.size() != out.view.axes.size() || sorted[i] != static_cast<int64_t>(i))
        return refuse(n, "perm is no permutation");
    }
    out.view = out.view.permuted(order);
    return define(n, std::move(out));
  }
  if (x->is_constant()) {
    LOOM_ASSIGN(const ConstantRef from, constant(n, 0));
    Constant made = *from;
    LOOM_TRY(spend(n, static_cast<int64_t>(made.values.size())));
    LOOM_ASSIGN(made.dims, target_dims(n, from->dims));
    PatternValue out;
    out.constant = std::make_shared<const Constant>(std::move(made));
    return define(n, std::move(out));
  }
  PatternValue out = *x;
  if (x->scores != nullptr || x->reduced) return refuse(n, "not of attention scores or means");
  LOOM_ASSIGN(const std::vector<int64_t> dims, target_dims(n, x->view.dims()));
  if (dims.size() > kMaxOnnxRank || !out.view.reshape(dims))
    return refuse(n, "this reshape moves memory, which no layer does");
  return define(n, std::move(out));
}

// Identity, Dropout, Cast: the value itself.
Status Lowering::same_node(const OnnxNode& n) {
  LOOM_ASSIGN(const PatternValue* x, input(n, 0));
  if (layer_of(n.op).function == "dropout") LOOM_TRY(check_dropout(n));
  if (n.op == "Cast") LOOM_TRY(check_cast(n, x->holds()));
  return define(n, *x);
}

Status Lowering::check_dropout(const OnnxNode& n) {
  for (size_t i = 1; i < n.inputs.size(); ++i) {
    if (!has_input(n, i)) continue;
    LOOM_ASSIGN(const ConstantRef c, constant(n, i));
    if (!c->dims.empty()) return refuse(n, cat("input ", i, " must be a single value"));
    if (i == 1 && !(c->at(0) >= 0 && c->at(0) < 1))
      return refuse(n, "a ratio that is not from 0 to 1");
    if (i == 2 && c->at(0) != 0)
      return refuse(n, "training_mode drops values at random; export for inference");
  }
  return {};
}

// Loom computes with f32 whatever the file says, so only what a type cannot hold would be lost.
Status Lowering::check_cast(const OnnxNode& n, OnnxType from) const {
  const OnnxType to = result_;
  const bool ids = is_integer(from) && (to == OnnxType::i64 || to == OnnxType::i32);
  const bool wide = to == OnnxType::f32 || to == OnnxType::f64;
  if (to == from || ids || (wide && !is_integer(from))) return {};
  if (is_float(from) && is_float(to))
    return refuse(n, cat("rounds computed values to ", onnx_type_name(to),
                         ", which no layer does; export the model in one type"));
  return refuse(n, cat("makes ", onnx_type_name(to), " of computed ", onnx_type_name(from),
                       " values, which no layer does"));
}

std::span<const Lowering::HandlerRow> Lowering::handlers() {
  using L = Lowering;
  static constexpr HandlerRow kRows[] = {
      {"Constant", &L::constant_node},
      {"Shape", &L::shape_node},
      {"view", &L::view_node},
      {"Transpose", &L::view_node},
      {"Expand", &L::view_node},
      {"same", &L::same_node},
      {"Cast", &L::same_node},
      {"Gemm", &L::gemm_node},
      {"MatMul", &L::matmul_node},
      {"conv", &L::conv_node},
      {"pool average", &L::pool_node},
      {"pool global_average", &L::pool_node},
      {"BatchNormalization", &L::batch_norm_node},
      {"norm", &L::norm_node},
      {"Softmax", &L::softmax_node},
      {"Gather", &L::gather_node},
      {"Slice", &L::slice_node},
      {"recurrent", &L::recurrent_node},
      {"Concat", &L::concat_node},
      {"Gelu", &L::gelu_node},
      {"Where", &L::where_node},
      {"reduce mean", &L::mean_node},
  };
  return kRows;
}

Result<OnnxType> Lowering::checked(const OnnxNode& n) const {
  if (!knows_operator(n.op)) {
    std::vector<std::string> names;
    for (const HandlerRow& row : handlers()) add_names(row.op, names);
    return refuse(n,
                  cat("no layer computes this operator; read are elementwise functions, Add, Mul, ",
                      join(names, ", ")));
  }
  std::vector<OnnxType> types;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    types.push_back(OnnxType::undefined);
    if (!has_input(n, i)) continue;
    LOOM_ASSIGN(const PatternValue* value, input(n, i));
    types.back() = value->holds();
  }
  const Result<OnnxType> type = check_node(n, opset_, types);
  if (!type.ok()) return refuse(n, type.error().message);
  return *type;
}

Status Lowering::node(const OnnxNode& n) {
  if (!is_onnx(n)) return refuse(n, cat("the domain '", printable(n.domain), "' is not read"));
  LOOM_ASSIGN(result_, checked(n));
  if (n.op == "CastLike") return node(cast_of(n, result_));
  if (n.op == "Cast" && attribute(n, "saturate", 1) != 1)
    return refuse(n, "saturate is for types of 8 bits, which are not read");
  LOOM_ASSIGN(const bool normalizes_input, normalizes(n));
  if (normalizes_input) return define(n, values_.at(input_name_));
  bool known = !n.inputs.empty();
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (!has_input(n, i)) continue;
    LOOM_ASSIGN(const PatternValue* value, input(n, i));
    known = known && value->is_constant();
  }
  if (known && folds(n)) {
    std::vector<ConstantRef> inputs;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      inputs.push_back(nullptr);
      if (!has_input(n, i)) continue;
      LOOM_ASSIGN(inputs.back(), constant(n, i));
    }
    Result<Constant> made = fold(n, opset_, inputs);
    if (!made.ok()) return refused(made.error().message);
    LOOM_TRY(spend(n, static_cast<int64_t>(made->values.size())));
    PatternValue out;
    out.constant = std::make_shared<const Constant>(std::move(*made));
    return define(n, std::move(out));
  }
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
    if (t.name.empty() || !values_.emplace(t.name, std::move(value)).second)
      return bad_file(cat("initializer '", printable(t.name), "' has no name, or stands twice"),
                      where_);
  }
  LOOM_TRY(read_input());
  for (const OnnxNode& n : model_.graph.nodes) LOOM_TRY(node(n));
  if (model_.graph.outputs.empty()) return unsupported("the model has no output", where_);
  OnnxNode end;
  end.op = "output";
  end.name = model_.graph.outputs[0].name;
  end.inputs = {end.name};
  LOOM_ASSIGN(const PatternValue* y, input(end, 0));
  if (y->item < 0 || y->scores != nullptr || y->reduced)
    return refuse(end, "is not what a layer computes");
  const OnnxType declared = model_.graph.outputs[0].type, type = y->holds();
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
