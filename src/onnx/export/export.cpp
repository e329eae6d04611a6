// The walk over a network that writes it as ONNX: cells in the order of the pass, links, and
// containers. export_layers.cpp and its neighbours have the nodes of single layers. See
// export.hpp.
#include "onnx/export/export.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "io/files/file.hpp"
#include "layers/core/graph.hpp"
#include "onnx/export/builder.hpp"

namespace loom::core {
namespace {

constexpr int kMinOpset = 20, kMaxOpset = 23;

int64_t per_sample(const Shape& shape) {
  return shape.count() / shape[0];
}

// The name of a Graph for its first input or output.
std::string first_name(const GridNode& cell, bool output) {
  const LayerConfig& layer = cell.node.config;
  if (!layer.def->wired || layer.disabled) return output ? "output" : "input";
  const GraphNames names = graph_names(layer);
  return output ? names.outputs[0] : names.inputs[0];
}

std::vector<int64_t> rest_of(const Shape& shape) {
  std::vector<int64_t> rest;
  for (int i = 1; i < shape.rank(); ++i) rest.push_back(shape[i]);
  return rest;
}

using ExportValues = std::vector<ExportValue>;

class Exporter {
 public:
  Exporter(const Network& network, const OnnxExportOptions& options)
      : network_(network), options_(options), g_(network, options) {}
  Result<OnnxModel> run(const Shape& sample);

 private:
  Result<ExportValues> cell(const GridNode& cell, const ExportValue& x, const ExportValue& skip);
  Result<ExportValues> wired(const Node& node, const std::string& path, ExportInputs in);
  Result<ExportValues> wired_node(const Node& node, const std::string& path, ExportInputs in);
  Result<ExportValue> layer(const Node& node, const std::string& path, const ExportValue& x,
                            const ExportValue& skip);
  Result<std::string> emitted(const Node& node, ExportInputs in);
  Result<ExportValue> sequence(const Node& node, const std::string& path, const ExportValue& x);
  Result<std::string> residual(const Node& node, const std::string& path, const ExportValue& x,
                               const ExportValue& skip);
  Result<std::string> parallel(const Node& node, const std::string& path, const ExportValue& x,
                               const Shape& out);
  Result<std::vector<std::string>> gate(const Node& node, const std::string& path,
                                        const ExportValue& x);
  std::string flat(const ExportValue& v);
  Result<std::string> normalized(const ExportValue& x, bool ids);
  Result<std::string> extra_input(const Node& node);
  Status finish(const Shape& sample, const ExportValues& outputs);
  void give(const std::string& value, const std::string& name);
  std::string free_name(std::string expected);
  OnnxValue value_info(const std::string& name, const Shape& shape, OnnxType type) const;

  const Network& network_;
  const OnnxExportOptions& options_;
  GraphBuilder g_;
  std::vector<std::string> given_;          // names of extra_inputs() that are in the graph
  std::map<std::string, std::string> out_;  // values that are outputs, and their names there
  std::set<std::string> ports_;             // names of inputs and outputs
};

// [batch, values of one sample]
std::string Exporter::flat(const ExportValue& v) {
  return v.shape.rank() == 2 ? v.name : g_.reshape(v.name, {per_sample(v.shape)});
}

Result<ExportValue> Exporter::sequence(const Node& node, const std::string& path,
                                       const ExportValue& x) {
  ExportValue value = x, before = x;
  for (size_t i = 0; i < node.children.size(); ++i) {
    if (node.children[i].disabled()) continue;
    LOOM_ASSIGN(ExportValue next, layer(node.children[i], cat(path, "/", i), value, before));
    before = value;
    value = std::move(next);
  }
  return value;
}

Result<std::string> Exporter::residual(const Node& node, const std::string& path,
                                       const ExportValue& x, const ExportValue& skip) {
  ExportValue other = skip;
  if (!node.children.empty()) {
    LOOM_ASSIGN(other, sequence(node, path, x));
  }
  g_.enter(path);
  return g_.add("Add", {x.name, emit_scale(g_, other.name, g_.fields(node).real("scale"))});
}

// The weight of every branch, [batch, 1] each.
Result<std::vector<std::string>> Exporter::gate(const Node& node, const std::string& path,
                                                const ExportValue& x) {
  const size_t experts = node.children.size() - 1;
  const Node& child = node.children[experts];
  LOOM_ASSIGN(const ExportValue raw, layer(child, cat(path, "/", experts), x, x));
  g_.enter(path);
  if (g_.fields(node).integer("top_k") > 0)
    return g_.refuse(node, "top_k has no operator that computes it; export with top_k 0");
  const std::string p = g_.add("Softmax", {flat(raw)}, {onnx_attribute("axis", int64_t{-1})});
  std::vector<std::string> weights;
  for (int64_t i = 0; i < static_cast<int64_t>(experts); ++i) {
    weights.push_back(
        g_.add("Slice", {p, g_.integers({i}), g_.integers({i + 1}), g_.integers({1})}));
  }
  return weights;
}

Result<std::string> Exporter::parallel(const Node& node, const std::string& path,
                                       const ExportValue& x, const Shape& out) {
  FieldReader& fields = g_.fields(node);
  fields.skip({"balance"});  // of training alone
  if (fields.text("combine") != "grid_scatter") fields.skip({"rows", "cols", "targets"});
  if (fields.text("combine") != "filter") fields.skip({"top_k"});
  const std::string_view combine = fields.text("combine");
  const bool scatters =
      combine == "grid_scatter" && fields.integer("rows") * fields.integer("cols") > 0;
  const bool joins = combine == "concat" || combine == "grid_scatter";
  g_.enter(path);
  if (scatters) return g_.refuse(node, "grid_scatter has no operator that computes it");
  std::vector<std::string> parts, weights;
  for (size_t i = 0; i + (combine == "filter" ? 1 : 0) < node.children.size(); ++i) {
    const Node& child = node.children[i];
    ExportValue y = x;
    if (!child.disabled()) {
      LOOM_ASSIGN(y, layer(child, cat(path, "/", i), x, x));
    }
    g_.enter(path);
    parts.push_back(y.shape == out && !joins && combine != "filter" ? y.name : flat(y));
  }
  if (joins)
    return parts.size() == 1 ? parts[0]
                             : g_.add("Concat", parts, {onnx_attribute("axis", int64_t{1})});
  if (combine == "filter") {
    LOOM_ASSIGN(weights, gate(node, path, x));
    for (size_t i = 0; i < parts.size(); ++i) parts[i] = g_.add("Mul", {parts[i], weights[i]});
  }
  std::string sum = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) sum = g_.add("Add", {sum, parts[i]});
  if (combine == "avg") sum = g_.add("Div", {sum, g_.number(static_cast<float>(parts.size()))});
  return out.rank() == 2 ? sum : g_.reshape(sum, rest_of(out));
}

// A layer without children, every field of it accounted for.
Result<std::string> Exporter::emitted(const Node& node, ExportInputs in) {
  const EmitLayer emit = emitter_of(node.config.def->kind);
  if (emit == nullptr) return g_.refuse(node, "the kind has no form in ONNX");
  LOOM_ASSIGN(std::string y, emit(g_, node, in));
  LOOM_TRY(g_.check_fields(node));
  return y;
}

Result<ExportValue> Exporter::layer(const Node& node, const std::string& path, const ExportValue& x,
                                    const ExportValue& skip) {
  if (node.disabled()) return x;
  if (node.config.def->wired) {
    LOOM_ASSIGN(const ExportValues all, wired(node, path, std::span(&x, 1)));
    return all[0];
  }
  g_.enter(path);
  if (g_.fields(node).flag("final_state"))
    return g_.refuse(node, "final_state has no form in ONNX; give it its default, 0");
  ExportValue y;
  LOOM_ASSIGN(y.shape, infer_after(node.config, x.shape, skip.shape));
  if (node.config.def->kind == LayerKind::sequential) return sequence(node, path, x);
  if (node.config.def->kind == LayerKind::residual) {
    LOOM_ASSIGN(y.name, residual(node, path, x, skip));
    return y;
  }
  if (node.config.def->kind == LayerKind::parallel) {
    LOOM_ASSIGN(y.name, parallel(node, path, x, y.shape));
    g_.enter(path);
    LOOM_TRY(g_.check_fields(node));
    return y;
  }
  g_.enter(path);
  LOOM_ASSIGN(y.name, emitted(node, std::span(&x, 1)));
  return y;
}

// An input besides the first: nodes of one name are one.
Result<std::string> Exporter::extra_input(const Node& node) {
  const auto index = static_cast<size_t>(node.input);
  const InputSpec& spec = network_.extra_inputs()[index];
  given_.resize(network_.extra_inputs().size());
  if (!given_[index].empty()) return given_[index];
  given_[index] = free_name(spec.name);
  OnnxValue info =
      value_info(given_[index], spec.batch(1), spec.ids > 0 ? OnnxType::i64 : OnnxType::f32);
  if (!spec.batched) info.shape[0] = {spec.batch(1)[0], ""};
  g_.graph().inputs.push_back(std::move(info));
  return given_[index];
}

Result<ExportValues> Exporter::wired_node(const Node& node, const std::string& path,
                                          ExportInputs in) {
  const LayerConfig& config = node.config;
  if (node.disabled() && !in.empty()) return ExportValues{in[0]};
  if (config.def->wired) return wired(node, path, in);
  std::vector<Shape> shapes;
  for (const ExportValue& x : in) shapes.push_back(x.shape);
  LOOM_ASSIGN(const std::vector<Shape> out, infer_all(config, shapes));
  const auto least = static_cast<size_t>(config.def->min_inputs);
  if (out.size() > 1 || (config.def->state != nullptr && in.size() > least)) {
    g_.enter(path);
    return g_.refuse(node, "states that a node reads or gives have no form here");
  }
  ExportValue y{"", out[0]};
  if (config.def->input != nullptr) {
    LOOM_ASSIGN(y.name, extra_input(node));
  } else if (config.def->infer.reads_list()) {
    g_.enter(path);
    LOOM_ASSIGN(y.name, emitted(node, in));
  } else {
    LOOM_ASSIGN(y, layer(node, path, in.front(), in.back()));
  }
  return ExportValues{std::move(y)};
}

Result<ExportValues> Exporter::wired(const Node& node, const std::string& path, ExportInputs in) {
  const GraphWiring wiring = graph_wiring(node.config);
  std::vector<ExportValues> made;
  const auto find = [&](const GraphValue& v) {
    const auto output = static_cast<size_t>(v.output);
    return v.node == kGraphInput ? in[output] : made[static_cast<size_t>(v.node)][output];
  };
  for (size_t i = 0; i < node.children.size(); ++i) {
    ExportValues read;
    for (const GraphValue& v : wiring.nodes[i]) read.push_back(find(v));
    LOOM_ASSIGN(ExportValues outputs, wired_node(node.children[i], cat(path, "/", i), read));
    made.push_back(std::move(outputs));
  }
  ExportValues out;
  for (const GraphValue& v : wiring.outputs) out.push_back(find(v));
  return out;
}

Result<ExportValues> Exporter::cell(const GridNode& cell, const ExportValue& x,
                                    const ExportValue& skip) {
  if (cell.node.config.def->wired && !cell.node.disabled())
    return wired(cell.node, cell.at.str(), std::span(&x, 1));
  LOOM_ASSIGN(ExportValue y, layer(cell.node, cell.at.str(), x, skip));
  return ExportValues{std::move(y)};
}

OnnxValue Exporter::value_info(const std::string& name, const Shape& shape, OnnxType type) const {
  OnnxValue v;
  v.name = name;
  v.type = type;
  v.has_shape = true;
  v.shape.emplace_back();
  if (options_.batch > 0) {
    v.shape[0].extent = options_.batch;
  } else {
    v.shape[0].symbol = "batch";
  }
  for (int i = 1; i < shape.rank(); ++i) v.shape.push_back({shape[i], ""});
  return v;
}

std::string Exporter::free_name(std::string expected) {
  while (!ports_.insert(expected).second) expected += '_';
  return expected;
}

// Gives a value the name of an output. One that no node makes, or that is an output already, is
// copied.
void Exporter::give(const std::string& value, const std::string& name) {
  OnnxGraph& graph = g_.graph();
  bool found = false;
  for (OnnxNode& node : graph.nodes) {
    for (std::string& output : node.outputs) {
      if (output != value) continue;
      found = true;
      output = name;
    }
    for (std::string& input : node.inputs) {
      if (found && input == value) input = name;
    }
  }
  const auto before = out_.find(value);
  if (!found) {
    OnnxNode copy;
    copy.op = "Identity";
    copy.name = cat("Identity of ", name);
    copy.inputs = {before == out_.end() ? value : before->second};
    copy.outputs = {name};
    graph.nodes.push_back(std::move(copy));
  } else {
    out_[value] = name;
  }
}

// An axis whose extent does not follow from one sample alone is left open.
Status Exporter::finish(const Shape& sample, const ExportValues& outputs) {
  const Cell& last = *network_.cells().back().cell;
  std::vector<std::string> names;
  if (last.layer.def->wired && !last.layer.disabled) names = graph_names(last.layer).outputs;
  const Result<std::vector<CellShapes>> of_two = network_.shapes(sample.after(2));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Shape& shape = outputs[i].shape;
    const std::string name =
        i == 0 ? options_.output : free_name(i < names.size() ? names[i] : cat("output", i));
    give(outputs[i].name, name);
    OnnxValue info = value_info(name, shape, OnnxType::f32);
    for (int axis = 0; axis < shape.rank() && options_.batch == 0 && of_two.ok(); ++axis) {
      const Shape& grown = i == 0 ? of_two->back().out : of_two->back().more[i - 1];
      const bool follows = grown[axis] == 2 * shape[axis] && axis == 0 && shape[0] == 1;
      if (follows) continue;  // "batch"
      auto& extent = info.shape[static_cast<size_t>(axis)];
      extent = {grown[axis] == shape[axis] ? shape[axis] : -1, ""};
    }
    g_.graph().outputs.push_back(std::move(info));
  }
  return {};
}

// (x - shift) * scale, in this order: the bits of normalize().
Result<std::string> Exporter::normalized(const ExportValue& x, bool ids) {
  const Normalization& n = options_.normalization;
  if (n.empty()) return x.name;
  const auto values = static_cast<int64_t>(n.shift.size());
  if (ids || values != per_sample(x.shape) || n.scale.size() != n.shift.size())
    return invalid(cat("a normalization of ", values, " values for an input of ",
                       ids ? "ids" : std::to_string(per_sample(x.shape))));
  g_.enter("input");
  const std::vector<int64_t> dims = rest_of(x.shape);
  const std::string shifted = g_.add("Sub", {x.name, g_.constant("shift", dims, n.shift)});
  return g_.add("Mul", {shifted, g_.constant("scale", dims, n.scale)});
}

Result<OnnxModel> Exporter::run(const Shape& sample) {
  const bool ids = takes_ids(network_.cells()[0].node.config);
  std::vector<ExportValue> out;
  ports_ = {options_.input, options_.output};
  ExportValue value{options_.input, sample.after(std::max<int64_t>(options_.batch, 1))};
  g_.graph().name = "loom";
  g_.graph().inputs = {value_info(value.name, value.shape, ids ? OnnxType::i64 : OnnxType::f32)};
  LOOM_ASSIGN(value.name, normalized(value, ids));
  ExportValue before = value;
  ExportValues outputs;
  for (const GridNode& cell : network_.cells()) {
    ExportValue x = value, skip = before;
    g_.enter(cell.at.str());
    if (cell.feedback)
      return g_.refuse(cell.node, "a feedback link needs the pass before; ONNX graphs have one");
    if (cell.link >= 0) (cell.skip ? skip : x) = out[static_cast<size_t>(cell.link)];
    LOOM_ASSIGN(outputs, this->cell(cell, x, skip));
    before = x;
    value = outputs[0];
    out.push_back(value);
  }
  LOOM_TRY(finish(sample, outputs));
  OnnxModel model;
  model.ir_version = options_.opset >= 23 ? 11 : options_.opset > 20 ? 10 : 9;
  model.producer = "loom";
  model.opsets = {{"", options_.opset}};
  model.metadata = options_.metadata;
  model.graph = std::move(g_.graph());
  return model;
}

}  // namespace

Result<OnnxModel> export_onnx(const Network& network, const Shape& sample,
                              const OnnxExportOptions& options) {
  if (options.opset < kMinOpset || options.opset > kMaxOpset)
    return invalid(
        cat("opset ", options.opset, " is not written; use ", kMinOpset, " to ", kMaxOpset));
  if (network.has_adapters())
    return unsupported("an ONNX file has no adapters; merge those of the network into its weights");
  if (sample.rank() < 1 || sample.rank() >= Shape::kMaxRank)
    return invalid(cat("a sample of shape ", sample.str(), " cannot be exported"));
  OnnxExportOptions how = options;
  if (how.input.empty()) how.input = first_name(network.cells().front(), false);
  if (how.output.empty()) how.output = first_name(network.cells().back(), true);
  if (options.batch < 0 || how.input == how.output)
    return invalid("batch must not be below 0, input and output need two names");
  // A network that takes one sample at a time is written for one.
  if (how.batch == 0 && !network.shapes(sample.after(2)).ok()) how.batch = 1;
  return Exporter(network, how).run(sample);
}

Status write_onnx(const FileRef& path, const Network& network, const Shape& sample,
                  const OnnxExportOptions& options) {
  LOOM_ASSIGN(const OnnxModel model, export_onnx(network, sample, options));
  LOOM_ASSIGN(const std::string file, onnx_bytes(model));
  return write_file_atomic(path, std::as_bytes(std::span(file)));
}

}  // namespace loom::core
