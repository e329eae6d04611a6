// Inputs and outputs of the general way: which input carries the batch, what the others are, and
// the Graph at its end. See general.hpp.
#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "layers/spatial/axes.hpp"
#include "onnx/import/general/general.hpp"
#include "onnx/import/one_sample.hpp"

namespace loom::core {
namespace {

constexpr int64_t kLargestExtent = int64_t{1} << 24;
// Whole numbers of an input are floats here. Up to this size sums of a few of them are exact.
constexpr double kMaxWhole = 1048576;
constexpr int64_t kMaxSample = int64_t{1} << 31;

std::string called(const OnnxValue& given) {
  return cat("input '", printable(given.name), "'");
}

// A name of the file as a Graph may have it.
std::string graph_name(std::string_view name, std::set<std::string>& taken) {
  std::string out(name);
  for (char& c : out) {
    if (c == ':' || static_cast<unsigned char>(c) < ' ') c = '_';
  }
  const bool number =
      std::ranges::all_of(out, [](char c) { return c >= '0' && c <= '9'; });  // and where empty
  if (number) out = cat("value ", out);
  while (!taken.insert(out).second) out += '_';
  return out;
}

// Whether the first axis of an input is the batch of the first: both open by one name, or both of
// one extent.
bool shares_batch(const OnnxValue& given, const OnnxValue& first) {
  if (given.shape.empty()) return false;
  const OnnxDim &mine = given.shape[0], &theirs = first.shape[0];
  if (mine.extent >= 1 || theirs.extent >= 1)
    return mine.extent == theirs.extent && given.shape.size() > 1;
  return mine.symbol == theirs.symbol;
}

}  // namespace

Result<int64_t> GraphImport::extent_of(const OnnxValue& given, size_t axis) const {
  const int64_t declared = given.shape[axis].extent;
  const int64_t extent = declared < 0 ? options_.open_extent : declared;
  if (extent >= 1 && extent <= kLargestExtent) return extent;
  return unsupported(
      cat(called(given), " leaves axis ", axis, " open ('", printable(given.shape[axis].symbol),
          "') or too large; give its extent with --open-extent"),
      where_);
}

Status GraphImport::read_first(const OnnxValue& given) {
  const std::string who = called(given);
  ids_ = given.type == OnnxType::i64 || given.type == OnnxType::i32;
  if (!ids_ && !is_float(given.type))
    return unsupported(cat(who, " holds ", onnx_type_name(given.type), " values"), where_);
  if (given.shape.empty() || given.shape.size() >= Shape::kMaxRank)
    return unsupported(cat(who, " has ", given.shape.size(), " axes; a batch and 0 to ",
                           Shape::kMaxRank - 2, " more are read"),
                       where_);
  batch_ = given.shape[0].extent >= 1 && fixed_ == 0 ? given.shape[0].extent : open_batch_;
  int64_t count = batch_;
  std::vector<int64_t> dims;
  for (size_t i = 1; i < given.shape.size(); ++i) {
    LOOM_ASSIGN(const int64_t extent, extent_of(given, i));
    if (count > kMaxSample / extent * batch_) return unsupported(cat(who, " is too large"), where_);
    dims.push_back(extent);
    count *= extent;
  }
  const bool numbers = dims.empty();  // one a sample: a network has them as rows of one
  if (numbers) dims.push_back(1);
  for (size_t i = dims.size(); i-- > 0;) sample_ = sample_.after(dims[i]);
  input_name_ = given.name;
  Value x;
  x.at = {};
  x.shape = sample_.after(batch_);
  if (numbers && !ids_) {
    OnnxNode n;
    n.op = "input";
    n.name = given.name;
    LOOM_ASSIGN(x, view(n, x, {batch_}));
  }
  if (alone_) {  // a view of one sample
    OnnxNode n;
    n.op = "input";
    n.name = given.name;
    std::vector<int64_t> one = axis_extents(x.shape);
    LOOM_ASSIGN(x, emit(n, LayerKind::view, {{"shape", std::move(one)}}, {x}));
  }
  x.type = given.type;
  values_.emplace(given.name, std::move(x));
  return {};
}

// An input besides the first: a node that brings what the caller gives under its name.
Status GraphImport::read_more(const OnnxValue& given, const OnnxValue& first) {
  const std::string who = called(given);
  const bool truths = given.type == OnnxType::boolean;  // given as 1 and 0
  const bool whole = given.type == OnnxType::i64 || given.type == OnnxType::i32;
  if (!is_float(given.type) && !truths && !whole)
    return unsupported(cat(who, " holds ", onnx_type_name(given.type),
                           " values; floats, booleans, int32 and int64 are read"),
                       where_);
  if (given.shape.size() + 1 > Shape::kMaxRank)
    return unsupported(cat(who, " has ", given.shape.size(), " axes"), where_);
  // States of recurrent layers have the batch as their second axis.
  size_t batch_axis = shares_batch(given, first) ? 0 : given.shape.size();
  for (size_t i = given.shape.size(); batch_axis > 0 && i-- > 0;) {
    const bool open = given.shape[i].extent < 0 && first.shape[0].extent < 0;
    if (open && !given.shape[i].symbol.empty() && given.shape[i].symbol == first.shape[0].symbol)
      batch_axis = i;
  }
  const bool batched = batch_axis < given.shape.size();
  std::vector<int64_t> dims;
  int64_t count = 1;
  for (size_t i = 0; i < given.shape.size(); ++i) {
    if (i == batch_axis) continue;
    LOOM_ASSIGN(const int64_t extent, extent_of(given, i));
    if (count > kMaxSample / extent) return unsupported(cat(who, " is too large"), where_);
    dims.push_back(extent);
    count *= extent;
  }
  const bool scalar = dims.empty() && !batched;
  if (dims.empty()) dims.push_back(1);
  OnnxNode n;
  n.op = "input";
  n.name = given.name;
  Value base;
  base.at = {};
  base.shape = sample_.after(batch_);
  LOOM_ASSIGN(Value x,
              emit(n, LayerKind::input,
                   {{"input", given.name}, {"shape", dims}, {"batched", batched}}, {base}));
  if (truths) nodes_.back().bound = 1;
  if (whole) nodes_.back().bound = kMaxWhole;
  const int64_t input = x.at.node;
  if (batched && given.shape.size() == 1) {  // one number a sample: an axis, as the file has it
    LOOM_ASSIGN(x, view(n, x, {batch_}));
  }
  if (batched && batch_axis > 0) {
    std::vector<int64_t> axes;
    for (size_t i = 1; i <= dims.size(); ++i) axes.push_back(static_cast<int64_t>(i));
    axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(batch_axis), 0);
    LOOM_ASSIGN(x, emit(n, LayerKind::transpose, {{"axes", axes}}, {x}));
    std::vector<std::string> extents = {"batch"};
    for (const int64_t extent : dims) extents.push_back(cat(extent));
    notes_.push_back(cat("input '", printable(given.name), "' is given with its batch first, as [",
                         join(extents, ", "), "]"));
  }
  x.scalar = scalar;
  x.type = given.type;
  if (whole && (!batched || batch_axis == 0)) whole_inputs_[x.at.node] = {input, -1};
  values_.emplace(given.name, std::move(x));
  return {};
}

// Whether the ids of an input name rows of a table of the file.
bool GraphImport::names_rows(const OnnxValue& given) const {
  std::set<std::string_view> same = {given.name};
  for (const OnnxNode& n : model_.graph.nodes) {
    if (n.inputs.empty() || n.outputs.empty()) continue;
    const evaluate::LayerName layer = layer_of(n.op);
    const bool copies = layer.kind == "cast" || (layer.kind == "same" && layer.function.empty());
    if (copies && same.contains(n.inputs[0])) same.insert(n.outputs[0]);
    if (layer.kind == "gather" && n.inputs.size() > 1 && same.contains(n.inputs[1]) &&
        values_.contains(n.inputs[0]))
      return true;
  }
  return false;
}

// Rows of a table that an input besides the first names. As ids it is a node of its own, whose
// values are checked when they come; several tables read one, with rows for all in each.
Result<GraphImport::Value> GraphImport::rows_of_input(const OnnxNode& n, const Value& indices,
                                                      const Constant& table) {
  WholeInput& input = whole_inputs_.at(indices.at.node);
  const int64_t rows = table.dims[0], width = table.dims[1];
  const InputSpec spec = [&] {
    const LayerConfig& layer = nodes_[static_cast<size_t>(input.numbers)].layer;
    return layer.def->input(layer);
  }();
  const std::vector<Field> fields = {{"input", spec.name},
                                     {"shape", axis_extents(spec.shape)},
                                     {"batched", spec.batched},
                                     {"ids", rows}};
  Value ids;
  ids.at = {};
  ids.shape = sample_.after(batch_);
  if (input.ids < 0) {
    LOOM_ASSIGN(ids, emit(n, LayerKind::input, fields, {ids}));
    input.ids = ids.at.node;
  } else {
    LayerConfig& known = nodes_[static_cast<size_t>(input.ids)].layer;
    if (rows < known.def->input(known).ids) {
      LOOM_ASSIGN(known, make_layer(LayerKind::input, fields));
    }
    ids.at = {input.ids, 0};
    ids.shape = spec.batch(batch_);
  }
  LOOM_ASSIGN(Value y, emit(n, LayerKind::embedding, {{"vocab", rows}, {"width", width}}, {ids},
                            {param(n, 0, "weight", Shape{rows, width}, table.floats())}));
  if (shares_rows(n, 0)) nodes_.back().source = source_of_rows(n, 0);
  std::vector<int64_t> dims = axis_extents(indices.shape);
  if (indices.scalar) dims.clear();
  dims.push_back(width);
  if (dims == axis_extents(y.shape)) return y;
  return view(n, y, dims);
}

// Whether an Input that no output needs is needed as ids, or the other way around.
bool GraphImport::is_read_otherwise(size_t node, const std::vector<bool>& needed) const {
  return std::ranges::any_of(whole_inputs_, [&](const auto& entry) {
    const WholeInput& input = entry.second;
    const bool mine =
        static_cast<int64_t>(node) == input.numbers || static_cast<int64_t>(node) == input.ids;
    return mine && input.ids >= 0 &&
           (needed[static_cast<size_t>(input.numbers)] || needed[static_cast<size_t>(input.ids)]);
  });
}

// An input is ids of tables or numbers: a caller gives it in one type.
Status GraphImport::check_one_use(const std::vector<bool>& needed) const {
  for (const auto& [value, input] : whole_inputs_) {
    if (input.ids < 0 || !needed[static_cast<size_t>(input.ids)] ||
        !needed[static_cast<size_t>(input.numbers)])
      continue;
    const LayerConfig& layer = nodes_[static_cast<size_t>(input.ids)].layer;
    return unsupported(cat("input '", printable(layer.def->input(layer).name),
                           "' names rows of a table and is computed with; a network takes it as "
                           "ids or as numbers"),
                       where_);
  }
  return {};
}

// The same values as a node of their own: an input that is an output, or a second name of one.
Result<GraphImport::Value> GraphImport::same_again(const OnnxNode& n, const Value& x) {
  const std::vector<int64_t> same(static_cast<size_t>(x.shape.rank()), 0);
  LOOM_ASSIGN(Value y, emit(n, LayerKind::view, {{"shape", same}}, {x}));
  y.type = x.type;
  y.scalar = x.scalar;
  return y;
}

// Outputs have the batch first, and each is a node of its own, for its name.
Status GraphImport::settle_outputs() {
  std::vector<GraphValue> given;
  for (size_t i = 0; i < model_.graph.outputs.size(); ++i) {
    const auto found = values_.find(model_.graph.outputs[i].name);
    if (found == values_.end() || found->second.is_constant()) continue;
    Value& y = found->second;
    OnnxNode n;
    n.op = "output";
    n.name = found->first;
    std::vector<int64_t> axes;
    for (int axis = 0; axis < y.shape.rank(); ++axis) {
      if (batch_ == open_batch_ && y.shape[axis] == batch_) axes.push_back(axis);
    }
    const OnnxType type = y.type;
    if (axes.size() == 1 && axes[0] != 0) {
      for (int axis = 0; axis < y.shape.rank(); ++axis) {
        if (axis != axes[0]) axes.push_back(axis);
      }
      LOOM_ASSIGN(y, emit(n, LayerKind::transpose, {{"axes", axes}}, {y}));
      notes_.push_back(cat("output '", printable(found->first), "' is given with its batch first"));
    } else if ((y.at.node == kGraphInput && !ids_) ||
               std::ranges::find(given, y.at) != given.end()) {
      LOOM_ASSIGN(y, same_again(n, y));
    }
    y.type = type;
    given.push_back(y.at);
  }
  return {};
}

Status GraphImport::read_inputs() {
  std::vector<const OnnxValue*> given;
  for (const OnnxValue& v : model_.graph.inputs) {
    if (!values_.contains(v.name)) given.push_back(&v);
  }
  if (given.empty()) return unsupported("the model has no input", where_);
  // The first that can hold samples says how many there are. Whole numbers are ids there: a mask
  // before them comes after them.
  const auto holds_samples = [](const OnnxValue* v) { return v->shape.size() >= 2; };
  auto first = std::ranges::find_if(given, holds_samples);
  if (first != given.end() && !is_float((*first)->type) && !names_rows(**first)) {
    const auto better = std::ranges::find_if(given, [&](const OnnxValue* v) {
      return holds_samples(v) && (is_float(v->type) || (is_integer(v->type) && names_rows(*v)));
    });
    if (better != given.end()) first = better;
  }
  if (first == given.end()) first = given.begin();
  LOOM_TRY(read_first(**first));
  for (const OnnxValue* v : given) {
    if (v != *first) LOOM_TRY(read_more(*v, **first));
  }
  return {};
}

Status GraphImport::check_first(const OnnxNode& end, const Value& y) {
  if (y.is_constant() || y.at.node < 0) return refuse(end, "is not what a layer computes");
  if (y.scalar || y.shape[0] != batch_) {
    refusal_ = Refusal::not_the_batch;
    return refuse(end, cat("is ", y.shape.str(), ", whose first axis is not the batch"));
  }
  const std::string mixed = mixed_for({&y, end.name});
  if (!mixed.empty()) {
    refusal_ = Refusal::mixes_samples;
    return unsupported(mixed, where_);
  }
  const OnnxType declared = model_.graph.outputs[0].type;
  if (y.type != declared && declared != OnnxType::undefined)
    return refuse(end, cat("holds ", onnx_type_name(y.type), " values; the file says ",
                           onnx_type_name(declared)));
  return {};
}

// Outputs after the first. An output that a network cannot have is left out, with a note.
std::vector<GraphImport::NamedOutput> GraphImport::read_outputs(
    std::vector<std::string>& notes) const {
  std::vector<NamedOutput> out;
  for (size_t i = 1; i < model_.graph.outputs.size(); ++i) {
    const OnnxValue& asked = model_.graph.outputs[i];
    const auto found = values_.find(asked.name);
    const bool computed =
        found != values_.end() && !found->second.is_constant() && found->second.at.node >= 0;
    const NamedOutput output{computed ? &found->second : nullptr, asked.name};
    const std::string mixed = computed ? mixed_for(output) : "no layer computes it";
    if (mixed.empty())
      out.push_back(output);
    else
      notes.push_back(cat("output '", printable(asked.name), "' is left out: ", mixed));
  }
  return out;
}

// The reason why an output needs several samples at once; "" if it does not.
std::string GraphImport::mixed_for(const NamedOutput& output) const {
  const std::vector<bool> needed = needed_for({output});
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (needed[i] && nodes_[i].mixes)
      return cat(nodes_[i].where, ": computes with several samples of the batch at once");
  }
  return {};
}

std::vector<bool> GraphImport::needed_for(const std::vector<NamedOutput>& outputs) const {
  std::vector<bool> needed(nodes_.size());
  for (const NamedOutput& y : outputs) needed[static_cast<size_t>(y.value->at.node)] = true;
  for (size_t i = nodes_.size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (const GraphValue& v : nodes_[i].from) {
      if (v.node >= 0) needed[static_cast<size_t>(v.node)] = true;
    }
  }
  return needed;
}

// Nodes that the outputs need, in their order, as one Graph at one cell.
Result<ImportedNetwork> GraphImport::finish() {
  if (model_.graph.outputs.empty()) return unsupported("the model has no output", where_);
  OnnxNode end;
  end.op = "output";
  end.name = model_.graph.outputs[0].name;
  end.inputs = {end.name};
  LOOM_ASSIGN(const Value* y, value(end, 0));
  LOOM_TRY(settle_outputs());
  find_mixing();
  LOOM_TRY(check_first(end, *y));
  ImportedNetwork out{{GridSpec(1, 1, 1, 1), sample_}, {}, {}, {}};
  out.notes = notes_;
  std::vector<NamedOutput> outputs = read_outputs(out.notes);
  outputs.insert(outputs.begin(), {y, end.name});
  const std::vector<bool> needed = needed_for(outputs);
  LOOM_TRY(check_one_use(needed));
  for (const auto& [value, input] : whole_inputs_) {
    if (!needed[static_cast<size_t>(input.numbers)]) continue;
    const LayerConfig& layer = nodes_[static_cast<size_t>(input.numbers)].layer;
    out.notes.push_back(cat("input '", printable(layer.def->input(layer).name),
                            "' holds integers in the file; here floats, up to 1048576"));
  }
  std::vector<int64_t> layer_index(nodes_.size(), -1);
  GraphWiring wiring;
  std::vector<int64_t> first(static_cast<size_t>(sources_) + 1, -1);
  std::vector<LayerConfig> layers;
  std::vector<std::string> frozen;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!needed[i]) {
      const LayerConfig& layer = nodes_[i].layer;
      if (layer.def->input != nullptr && !is_read_otherwise(i, needed))
        out.notes.push_back(cat("input '", printable(layer.def->input(layer).name),
                                "' is left out: no output needs it"));
      continue;
    }
    numbers_.erase(nodes_[i].weight);
    layer_index[i] = static_cast<int64_t>(layers.size());
    std::vector<GraphValue>& from = wiring.nodes.emplace_back();
    for (GraphValue v : nodes_[i].from) {
      if (v.node >= 0) v.node = layer_index[static_cast<size_t>(v.node)];
      from.push_back(v);
    }
    const int64_t owner = owner_of(i, first);
    wiring.owners.push_back(owner < 0 ? -1 : layer_index[static_cast<size_t>(owner)]);
    const std::string path = cat(Coord{}.str(), "/", layers.size(), "/");
    for (const ItemParam& p : owner < 0 ? nodes_[i].params : std::vector<ItemParam>()) {
      out.params.push_back({cat(path, p.path), p.shape, *p.values});
      if (p.frozen) frozen.push_back(cat(layer_index[i], "/", p.path));
    }
    layers.push_back(std::move(nodes_[i].layer));
  }
  for (const std::string& name : numbers_)
    out.notes.push_back(
        cat("the weight '", printable(name), "' is part of a function and does not train"));
  // Values that callers see go by the names of the file.
  std::set<std::string> taken;
  wiring.names.assign(layers.size() + 1, "");
  wiring.names[0] = graph_name(input_name_, taken);
  for (const NamedOutput& v : outputs) {
    const int64_t node = layer_index[static_cast<size_t>(v.value->at.node)];
    wiring.outputs.push_back({node, v.value->at.output});
    std::string& name = wiring.names[static_cast<size_t>(node) + 1];
    if (name.empty() && v.value->at.output == 0) name = graph_name(v.name, taken);
  }
  Result<LayerConfig> graph = make_graph(wiring, std::move(layers));
  if (!graph.ok()) return refuse(end, graph.error().message);
  Cell cell{std::move(*graph)};
  cell.frozen = std::move(frozen);
  LOOM_TRY(out.network.grid.put({}, std::move(cell)));
  const Result<Network> whole = Network::finalize(out.network.grid, sample_.after(batch_));
  if (!whole.ok()) return refuse(end, whole.error().message);
  // A constant may have an axis that is the batch of the file.
  const int64_t other = 2 * batch_ + 1;
  const Result<Network> larger = Network::finalize(out.network.grid, sample_.after(other));
  if (!larger.ok() || larger->output()[0] != other) {
    if (batch_ != 1)
      return refuse(
          end, cat("works for a batch of ", batch_, " alone: export the model with an open batch"));
    out.notes.emplace_back(kOneByOne);
  }
  out.input = input_name_;
  out.output = end.name;
  out.metadata = model_.metadata;
  for (const NamedOutput& v : outputs) {
    if (!is_float(v.value->type))
      out.notes.push_back(cat("output '", printable(v.name), "' holds ",
                              onnx_type_name(v.value->type),
                              " values in the file; here the same numbers as floats"));
  }
  return out;
}

}  // namespace loom::core
