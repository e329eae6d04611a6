// The walk of the general way: inputs, constants, the table of operators, and the Graph at its end.
// See general.hpp.
#include "onnx/import/general/general.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "layers/core/fields.hpp"
#include "layers/spatial/axes.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMinGeneral = 7, kMaxGeneral = 28;
// Values that a model may make beyond its own, and how often each of its own may be copied.
constexpr int64_t kFree = int64_t{1} << 21;

// Operators that take integers and booleans as they take floats: they change no value.
bool moves_only(std::string_view op) {
  constexpr std::string_view kKinds[] = {"view",   "transpose", "slice",
                                         "concat", "expand",    "gather"};
  const evaluate::LayerName layer = layer_of(op);
  return (layer.kind == "same" && layer.function.empty()) ||
         std::ranges::find(kKinds, layer.kind) != std::end(kKinds) || op == "Split" ||
         op == "Tile" || op == "output";
}

// The largest integer up to which values of a type are exact: that of the type, or that of a float,
// whose sums stay exact.
double max_of(OnnxType type) {
  switch (type) {
    case OnnxType::boolean: return 1;
    case OnnxType::i8: return 127;
    case OnnxType::u8: return 255;
    case OnnxType::i16: return 32767;
    case OnnxType::u16: return 65535;
    default: return 16777216;
  }
}

}  // namespace

Result<const GraphImport::Value*> GraphImport::value(const OnnxNode& n, size_t i) const {
  LOOM_ASSIGN(const ImportValue* found, input(n, i));
  return static_cast<const Value*>(found);
}

const ImportValue* GraphImport::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

std::vector<int64_t> GraphImport::extents(const ImportValue& computed) const {
  const auto& x = static_cast<const Value&>(computed);
  return x.scalar ? std::vector<int64_t>() : axis_extents(x.shape);
}

Status GraphImport::define_constant(const OnnxNode& n, ImportValue value) {
  Value out;
  static_cast<ImportValue&>(out) = std::move(value);
  return define(n, std::move(out));
}

Status GraphImport::define_same(const OnnxNode& n) {
  LOOM_ASSIGN(const Value* x, value(n, 0));
  return define(n, *x);
}

// Exporters give one tensor a second name by an Identity.
int64_t GraphImport::folded_source(const OnnxNode& n) {
  if (layer_of(n.op).kind == "same") return values_.find(n.inputs[0])->second.source;
  return source_of(n, n.op);
}

void GraphImport::add_own_operators(std::vector<std::string>& names) const {
  for (const Row& row : rows()) add_names(row.op, names);
}

bool GraphImport::stays_number(const OnnxNode& n, size_t i) {
  if (!options_.for_training || !learns(n, i)) return false;
  numbers_.insert(n.inputs[i]);
  return !folds_numbers_;
}

ItemParam GraphImport::param(const OnnxNode& n, size_t i, std::string path, const Shape& shape,
                             std::vector<float> values) const {
  ItemParam made{std::move(path), shape, shared(std::move(values))};
  made.frozen = !learns(n, i);
  return made;
}

Result<GraphImport::Value> GraphImport::constant_stream(const OnnxNode& n, const Constant& c,
                                                        bool trained) {
  if (c.count() > left_)
    return refuse(n, "the model makes far more values than it holds; that is not supported");
  left_ -= c.count();
  if (c.dims.size() > static_cast<size_t>(Shape::kMaxRank) || c.count() < 1)
    return refuse(n, cat("a constant of ", c.dims.size(), " axes and ", c.count(), " values"));
  std::vector<int64_t> dims = c.dims.empty() ? std::vector<int64_t>{1} : c.dims;
  if (c.values.size() == 1 && batch_ == open_batch_) {
    // One number for all samples, however many there are.
    const auto axis = std::ranges::find(dims, batch_);
    if (axis != dims.end()) {
      *axis = 1;
      LOOM_ASSIGN(const Value one, constant_stream(n, Constant{dims, c.type, c.values}, trained));
      return for_each_sample(n, one, static_cast<int>(axis - dims.begin()));
    }
  }
  LOOM_ASSIGN(Value made, emit(n, LayerKind::constant, {{"shape", dims}, {"trained", trained}}, {},
                               {{"value", Shape{c.count()}, shared(c.floats())}}));
  made.scalar = c.dims.empty();
  return made;
}

// Whether input i is one node for all that read the weight. Exporters make one tensor of all that
// have the same values, so that a tensor of equal numbers may be several weights.
bool GraphImport::is_shared_node(const OnnxNode& n, size_t i, const Constant& c) const {
  if (!options_.for_training || !learns(n, i)) return false;
  if (origins_.all_weights() || origins_.sharing(n.inputs[i]) == Origins::Sharing::multiple)
    return true;
  return std::ranges::any_of(c.values, [&](double v) { return v != c.values[0]; });
}

Result<GraphImport::Value> GraphImport::stream(const OnnxNode& n, size_t i) {
  LOOM_ASSIGN(const Value* v, value(n, i));
  if (!v->is_constant()) {
    if (v->items != nullptr) return refuse(n, "its input is a list");
    if (v->at.node < kGraphInput)
      return refuse(n, cat("its input '", printable(n.inputs[i]),
                           "' is a function that no layer computes by itself"));
    if (!is_float(v->type) && !(ids_ && v->at == GraphValue{}) && !moves_only(n.op))
      return refuse(n, cat("computes with computed ", onnx_type_name(v->type), " values"));
    return *v;
  }
  LOOM_ASSIGN(const ConstantRef c, constant(n, i));
  if (!is_float(c->type)) return refuse(n, "computes with integers beside computed values");
  if (!is_shared_node(n, i, *c)) {
    LOOM_ASSIGN(const Value made, constant_stream(n, *c, learns(n, i)));
    if (c->count() == 1 && learns(n, i))
      nodes_[static_cast<size_t>(made.at.node)].weight = n.inputs[i];
    return made;
  }
  const auto known = tied_.find(n.inputs[i]);
  if (known != tied_.end()) return known->second;
  LOOM_ASSIGN(Value made, constant_stream(n, *c, learns(n, i)));
  if (c->count() == 1) nodes_[static_cast<size_t>(made.at.node)].weight = n.inputs[i];
  tied_.emplace(n.inputs[i], made);
  return made;
}

Result<GraphImport::Value> GraphImport::emit(const OnnxNode& n, LayerKind kind,
                                             const std::vector<Field>& fields,
                                             const std::vector<Value>& inputs,
                                             std::vector<ItemParam> params) {
  Result<LayerConfig> layer = make_layer(kind, fields);
  if (!layer.ok()) return refuse(n, layer.error().message);
  GraphNode made{std::move(*layer), std::move(params), {}};
  made.where = cat("node '", printable(n.name), "' (", printable(n.op), ")");
  if (!made.params.empty())
    made.source = source_of(n, cat(made.layer.def->name, " ", with_weights_++));
  std::vector<Shape> shapes;
  for (const Value& v : inputs) {
    made.from.push_back(v.at);
    shapes.push_back(v.shape);
    // An Input reads no values of its source.
    if (ids_ && v.at == GraphValue{} && kind != LayerKind::input && !takes_ids(made.layer))
      return refuse(n, "computes with the ids of the input; only an embedding reads ids");
  }
  Result<std::vector<Shape>> out = infer_all(made.layer, shapes);
  if (!out.ok()) return refuse(n, out.error().message);
  compare_layer(made.layer, made.params, shapes, *out);
  made.bound = bound_of(made, inputs);
  nodes_.push_back(std::move(made));
  Value v;
  v.at = {static_cast<int64_t>(nodes_.size()) - 1, 0};
  v.shape = (*out)[0];
  keep_inner(inputs, v);
  return v;
}

Status GraphImport::define(const OnnxNode& n, Value value, size_t output) {
  if (output >= n.outputs.size() || n.outputs[output].empty()) return {};
  value.type = result_;
  if (!is_float(result_) && value.at.node >= 0 && !value.is_constant()) {
    const double most = bound(value);
    if (most < 0 || most > max_of(result_))
      return refuse(n, cat("computes ", onnx_type_name(result_),
                           " values that may be beyond what a float counts exactly"));
  }
  if (!value.is_constant() && value.at.node >= 0) {
    GraphNode& made = nodes_[static_cast<size_t>(value.at.node)];
    const auto read = uses_.find(made.name);
    if (!made.name.empty() && (read == uses_.end() || read->second != 1)) made.shared = true;
    made.name = n.outputs[output];
  }
  if (!values_.emplace(n.outputs[output], std::move(value)).second)
    return refuse(n, cat("its output '", printable(n.outputs[output]), "' occurs twice"));
  return {};
}

bool GraphImport::read_once(const std::string& name, const Value& x) const {
  if (x.is_constant() || x.at.node < 0 || nodes_[static_cast<size_t>(x.at.node)].shared)
    return false;
  const auto read = uses_.find(name);
  return read != uses_.end() && read->second == 1;
}

double GraphImport::bound(const Value& v) const {
  return v.at.node >= 0 ? nodes_[static_cast<size_t>(v.at.node)].bound : -1;
}

// A bound of the values of a node, from the bounds of its inputs. It shows that integers stay
// exact, and that a difference is a number.
double GraphImport::bound_of(const GraphNode& made, const std::vector<Value>& inputs) const {
  const LayerKind kind = made.layer.def->kind;
  if (kind == LayerKind::constant) {
    double most = 0;
    for (const float v : *made.params[0].values) {
      if (!(std::abs(v) <= std::numeric_limits<float>::max())) return -1;
      most = std::max(most, std::abs(static_cast<double>(v)));
    }
    return most;
  }
  double largest = 0, sum = 0, product = 1;
  for (const Value& v : inputs) {
    const double one = bound(v);
    largest = one < 0 || largest < 0 ? -1 : std::max(largest, one);
    sum += one;
    product *= one;
  }
  const int at = field_index(made.layer, "function");
  const std::string_view function = at < 0 ? std::string_view() : made.layer.text(at);
  if (kind == LayerKind::unary && function == "step") return 1;
  if (largest < 0) return -1;
  constexpr LayerKind kMoves[] = {LayerKind::view, LayerKind::transpose, LayerKind::slice,
                                  LayerKind::concat, LayerKind::expand};
  if (std::ranges::find(kMoves, kind) != std::end(kMoves)) return largest;
  if (kind == LayerKind::matmul) return product * static_cast<double>(inputs[0].shape.last());
  if (kind == LayerKind::unary) return function == "abs" || function == "neg" ? largest : -1;
  if (kind == LayerKind::binary) {
    if (function == "add" || function == "sub") return sum;
    if (function == "mul") return product;
    return function == "div" ? -1 : largest;
  }
  if (kind != LayerKind::reduce) return -1;
  if (function == "max" || function == "min" || function == "mean") return largest;
  return function == "sum" ? largest * static_cast<double>(inputs[0].shape.count()) : -1;
}

std::span<const GraphImport::Row> GraphImport::rows() {
  using G = GraphImport;
  // clang-format off
  static constexpr Row kRows[] = {
      {"Attention", &G::attention_node}, {"If", &G::if_node},
      {"SplitToSequence", &G::split_to_list_node}, {"SequenceConstruct", &G::make_list_node},
      {"SequenceAt", &G::list_item_node}, {"SequenceLength", &G::list_length_node},
      {"SequenceInsert", &G::change_list_node}, {"SequenceErase", &G::change_list_node},
      {"ConcatFromSequence", &G::join_list_node}, {"Size", &G::size_node},
      {"Split", &G::split_node}, {"GatherND", &G::gather_nd_node}, {"binary", &G::binary_node},
      {"Pow", &G::pow_node}, {"Clip", &G::clip_node}, {"activation", &G::leaky_node},
      {"HardSigmoid", &G::hard_sigmoid_node}, {"reduce", &G::reduce_node},
      {"Einsum", &G::einsum_node}, {"pool", &G::pool_node},
      {"InstanceNormalization", &G::instance_norm_node}, {"norm layer", &G::layer_norm_node},
      {"Pad", &G::pad_node}, {"blocks", &G::blocks_node}, {"compare", &G::compare_node},
      {"logic", &G::logic_node}, {"CumSum", &G::sum_so_far_node}, {"round", &G::round_node},
      {"sine", &G::sine_node}, {"arg", &G::arg_node}, {"OneHot", &G::one_hot_node},
      {"GatherElements", &G::gather_elements_node}, {"LRN", &G::lrn_node}, {"Tile", &G::tile_node},
      {"Trilu", &G::trilu_node}, {"resize", &G::resize_node},
  };
  // clang-format on
  return kRows;
}

bool GraphImport::is_computed_by_row(const std::string& op) {
  return expr_knows(op, 1) || handler_of(rows(), op) != nullptr ||
         handler_of(readers(), op) != nullptr;
}

// Whether a node is folded as tensors. Nodes that only move or name constants are not, nor those
// that have an extent for each sample of an open batch.
bool GraphImport::folds_as_tensors(const OnnxNode& n) const {
  if (!(options_.folder || folds_tensors(n)) || folds(n) || moves_only(n.op)) return false;
  const std::string_view kind = layer_of(n.op).kind;
  if (kind == "shape" || kind == "same" || n.op == "Size" || n.op.find("Sequence") != n.op.npos)
    return false;
  return std::ranges::none_of(n.inputs, [&](const std::string& name) {
    const auto found = values_.find(name);
    if (found == values_.end()) return false;
    const Value& v = found->second;
    const std::vector<int64_t>& dims = v.tensor != nullptr ? v.tensor->shape : v.constant->dims;
    return batch_ == open_batch_ && std::ranges::find(dims, batch_) != dims.end();
  });
}

// Constants by rows of operators, or by the interpreter of the caller. The results are copied like
// weights.
Status GraphImport::fold_as_tensors(const OnnxNode& n) {
  std::vector<OnnxTensor> made;
  made.reserve(n.inputs.size());
  std::vector<const OnnxTensor*> inputs;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    inputs.push_back(nullptr);
    if (!has_input(n, i)) continue;
    LOOM_ASSIGN(const Value* v, value(n, i));
    inputs.back() = v->tensor;
    if (v->tensor != nullptr) continue;
    LOOM_ASSIGN(const ConstantRef c, constant(n, i));
    if (c->count() > kMaxFolded) return refuse(n, cat("a constant of more than ", kMaxFolded));
    LOOM_ASSIGN(OnnxTensor tensor, tensor_of(*c));
    made.push_back(std::move(tensor));
    inputs.back() = &made.back();
  }
  Result<std::vector<OnnxTensor>> out =
      folds_tensors(n) ? fold_tensors(n, opset_, inputs) : options_.folder(n, opset_, inputs);
  if (!out.ok()) return refused(out.error().message);
  for (size_t i = 0; i < out->size(); ++i) {
    LOOM_ASSIGN(Constant c, constant_of((*out)[i]));
    left_ -= static_cast<int64_t>(c.values.size());
    if (left_ < 0) return refuse(n, "the model copies its values too often");
    result_ = c.type;
    Value v;
    v.constant = std::make_shared<const Constant>(std::move(c));
    LOOM_TRY(define(n, std::move(v), i));
  }
  return {};
}

// An Expand of different numbers to every sample of an open batch: a node, which knows how many
// there are.
bool GraphImport::grows_with_batch(const OnnxNode& n) const {
  if (layer_of(n.op).kind != "expand" || batch_ != open_batch_) return false;
  const Result<const Value*> x = value(n, 0), to = value(n, 1);
  if (!is_float((*x)->type)) return false;  // places: no node reads them
  const auto holds_batch = [&](const Value& v) {
    if (v.constant == nullptr) return false;  // the file does not know the number
    return std::ranges::any_of(v.constant->values, [&](double extent) {
      return opened(static_cast<int64_t>(extent), 1) == batch_;
    });
  };
  const bool varies =
      (*x)->tensor != nullptr ? (*x)->tensor->count() > 1 : (*x)->constant->values.size() > 1;
  return varies && holds_batch(**to);
}

// Training changes weights, and not what was made of them: functions of weights stay nodes, and so
// do the layouts of weights that products read in several.
bool GraphImport::stays_nodes(const OnnxNode& n) const {
  if (!options_.for_training || n.inputs.empty() || n.outputs.empty()) return false;
  if (origins_.of(n.outputs[0]) == Origin::derived) return is_computed_by_row(n.op);
  return origins_.sharing(n.outputs[0]) == Origins::Sharing::multiple && is_computed_by_row(n.op);
}

Status GraphImport::node(const OnnxNode& n) {
  with_weights_ = 0;
  if (!n.domain.empty() && n.domain != "ai.onnx")
    return refuse(n, cat("the domain '", printable(n.domain), "' is not read"));
  if (is_cast_like(n)) {
    LOOM_ASSIGN(const OnnxType like, checked(n));
    return node(cast_of(n, like));
  }
  LOOM_ASSIGN(bool known, all_known(n));
  if (n.op == "If") return if_node(n);
  known = known && !stays_nodes(n);
  if (known && folds_as_tensors(n)) return fold_as_tensors(n);
  LOOM_ASSIGN(result_, checked(n));
  LOOM_TRY(check_lists(n));
  if (known && folds(n) && !grows_with_batch(n)) return fold_node(n);
  if (const ReaderRow* row = handler_of(readers(), n.op)) return (this->*row->read)(n);
  if (const Row* row = handler_of(rows(), n.op)) return (this->*row->handle)(n);
  if (expr_knows(n.op, 1)) return unary_node(n);
  return refuse(n, "is read where all its inputs are constants");
}

// A weight of one number is a node, so that it trains. A layer may be known by such numbers alone,
// as the Gelu of a file that gives its half as an initializer: then they are part of its function.
// A file for one sample that computes with all of its batch is for one sample at a time here too.
Result<ImportedNetwork> GraphImport::run() {
  Result<ImportedNetwork> made = walk();
  const bool alone = refusal_ == Refusal::mixes_samples && batch_ == 1 && !ids_ && !alone_;
  if (made.ok() || (numbers_.empty() && !alone)) return made;
  GraphImport again(model_, where_, options_, open_batch_, fixed_);
  again.alone_ = alone;
  again.folds_numbers_ = !alone;
  made = alone ? again.run() : again.walk();
  refusal_ = again.refusal_;
  depends_on_batch_ = again.depends_on_batch_;
  return made;
}

Result<ImportedNetwork> GraphImport::walk() {
  for (const auto& [domain, version] : model_.opsets) {
    if (domain.empty() || domain == "ai.onnx") opset_ = version;
  }
  if (opset_ == 0) return unsupported("the model imports no opset of ONNX itself", where_);
  if (opset_ < kMinGeneral || opset_ > kMaxGeneral)
    return unsupported(cat("opset ", opset_, " is not read; export with one from ", kMinGeneral,
                           " to ", kMaxGeneral),
                       where_);
  left_ = kFree;
  LOOM_TRY(read_constants(model_.graph));
  LOOM_TRY(read_inputs());
  count_uses(model_.graph);
  for (const OnnxNode& n : model_.graph.nodes) LOOM_TRY(node(n));
  return finish();
}

}  // namespace loom::core
