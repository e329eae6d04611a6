#include "convert/model_report.hpp"

#include <algorithm>

#include "base/numbers/bits.hpp"
#include "base/text.hpp"
#include "bridge/entity_network.hpp"
#include "convert/language_model.hpp"
#include "io/files/file.hpp"
#include "io/json/json.hpp"
#include "io/weights/safetensors_file.hpp"
#include "layers/core/graph.hpp"
#include "llm/decoder.hpp"

#ifdef LOOM_WITHOUT_GGUF
#include "base/left_out.hpp"
#else
#include "formats/gguf/file.hpp"
#endif

namespace loom::core {
namespace {

std::string number_text(double value) {
  const auto whole = static_cast<int64_t>(value);
  if (static_cast<double>(whole) == value) return std::to_string(whole);
  return JsonValue::real(value).describe();
}

std::string list_text(const std::vector<int64_t>& list) {
  std::vector<std::string> parts;
  for (const int64_t n : list) parts.push_back(std::to_string(n));
  return "[" + join(parts, ", ") + "]";
}

std::string node_name(const GraphNames& names, size_t i) {
  return names.nodes[i].name.empty() ? std::to_string(i) : names.nodes[i].name;
}

std::string inputs_of(const GraphNames::Node& node) {
  return cat(join(node.from.value_or(std::vector<std::string>()), ", "),
             node.shared_with.empty() ? "" : cat("; weights of ", node.shared_with));
}

}  // namespace

std::string graph_text(const LayerConfig& graph) {
  const GraphNames names = graph_names(graph);
  std::vector<std::string> nodes;
  for (size_t i = 0; i < names.nodes.size(); ++i)
    nodes.push_back(cat(node_name(names, i), "(", inputs_of(names.nodes[i]), ")"));
  return cat(join(nodes, ", "), "; outputs ", join(names.outputs, ", "));
}

std::string settings_of(const LayerConfig& layer) {
  std::vector<std::string> parts;
  if (layer.def->wired && !layer.disabled) {
    const GraphNames names = graph_names(layer);
    return cat(names.nodes.size(), " nodes, inputs ", join(names.inputs, ", "), ", outputs ",
               join(names.outputs, ", "));
  }
  for (size_t i = 0; i < layer.def->fields.size(); ++i) {
    const FieldDesc& desc = layer.def->fields[i];
    const auto field = static_cast<int>(i);
    const double number = layer.real(field);
    switch (desc.type) {
      case FieldType::text:
        if (layer.text(field) != desc.default_text)
          parts.push_back(cat(desc.name, " ", layer.text(field)));
        break;
      case FieldType::list:
        if (!layer.list(field).empty())
          parts.push_back(cat(desc.name, " ", list_text(layer.list(field))));
        break;
      case FieldType::boolean:
        if (number != desc.default_number)
          parts.push_back(cat(number != 0 ? "" : "no ", desc.name));
        break;
      default:
        if (number != desc.default_number)
          parts.push_back(cat(desc.name, " ", number_text(number)));
    }
  }
  return join(parts, ", ");
}

namespace {

int64_t parameters_of(const Network& network, const Node& node, bool deep) {
  int64_t count = 0;
  for (const int index : node.params)
    count += network.params()[static_cast<size_t>(index)].spec.shape.count();
  for (const Node& child : node.children) {
    if (deep) count += parameters_of(network, child, true);
  }
  return count;
}

using EachLayer = std::function<void(const LayerReport&)>;

void report_children(const Network& network, const Node& node, const std::string& at, int depth,
                     const EachLayer& each) {
  std::optional<GraphNames> names;
  if (node.config.def->wired && !node.disabled()) names = graph_names(node.config);
  for (size_t i = 0; i < node.children.size(); ++i) {
    const Node& child = node.children[i];
    LayerReport r;
    r.depth = depth;
    r.at = cat(at, "/", i);
    r.type = child.config.def->name;
    r.settings = settings_of(child.config);
    if (names && i < names->nodes.size())
      r.notes = cat(node_name(*names, i), " of ", inputs_of(names->nodes[i]));
    if (child.disabled()) r.notes += r.notes.empty() ? "disabled" : ", disabled";
    r.parameters = parameters_of(network, child, true);
    each(r);
    report_children(network, child, r.at, depth + 1, each);
  }
}

std::string cell_notes(const Cell& cell) {
  std::vector<std::string> notes;
  if (cell.layer.disabled) notes.emplace_back("disabled");
  if (cell.dtype) notes.push_back(std::string(dtype_name(*cell.dtype)));
  if (cell.shared_with) notes.push_back(cat("weights of ", cell.shared_with->str()));
  if (!cell.frozen.empty()) notes.push_back(cat("frozen: ", join(cell.frozen, ", ")));
  if (cell.link)
    notes.push_back(cat(cell.link->feedback ? "feedback from " : "from ", cell.link->from.str()));
  return join(notes, ", ");
}

}  // namespace

Result<std::unique_ptr<TensorFile>> open_tensor_file(const FileRef& path) {
  if (is_directory(path)) return SafeTensorsFile::open(path);
  LOOM_ASSIGN(const MappedFile file, MappedFile::open(path));
  const std::span<const std::byte> bytes = file.bytes();
  if (entity_version(bytes) == kEntityVersion) {
    LOOM_ASSIGN(std::unique_ptr<Entity> entity, Entity::open(path));
    return std::unique_ptr<TensorFile>(std::move(entity));
  }
  if (model_file_kind(path) == ModelFileKind::gguf) {
#ifdef LOOM_WITHOUT_GGUF
    return left_out_of_build("reader for GGUF files", LOOM_BUILD_WITH("LOOM_GGUF=ON"), path);
#else
    LOOM_ASSIGN(Gguf gguf, Gguf::open(path));
    return std::unique_ptr<TensorFile>(std::make_unique<Gguf>(std::move(gguf)));
#endif
  }
  if (!bytes.empty() && bytes[0] == std::byte{'{'})
    return unsupported("a description has no tensors; give a file with weights", path);
  Result<std::unique_ptr<TensorFile>> tensors = SafeTensorsFile::open(path);
  // For a file of another kind, the reader's error would be misleading.
  if (!tensors.ok() && tensors.error().code == Code::bad_file &&
      !path.name().ends_with(".safetensors"))
    return bad_file("holds no tensors that can be read; give an .entity, GGUF or safetensors file",
                    path);
  return tensors;
}

namespace {

Result<NetworkSpec> spec_of(const OpenedModel& model) {
  if (model.network != nullptr) return model.network->spec;
  LOOM_ASSIGN(GridSpec grid, model_grid(*model.decoder));
  return NetworkSpec{std::move(grid), Shape{1}};
}

class ModelParameters : public TensorFile {
 public:
  Status open(std::shared_ptr<const OpenedModel> model);
  std::span<const TensorEntry> entries() const override { return entries_; }
  std::span<const std::byte> bytes(size_t) const override { return {}; }
  void release(size_t index) const override {
    if (weights_[index].release) weights_[index].release();
  }
  Status to_f32(size_t index, int64_t first, int64_t count, float* out) const override;

 private:
  Status add_normalization();

  std::shared_ptr<const OpenedModel> model_;
  Normalization normalization_;
  std::vector<TensorEntry> entries_;
  std::vector<SourceWeight> weights_;
};

Status ModelParameters::open(std::shared_ptr<const OpenedModel> model) {
  model_ = std::move(model);
  LOOM_ASSIGN(const NetworkSpec spec, spec_of(*model_));
  LOOM_ASSIGN(const Network network, Network::finalize(spec.grid, spec.input.after(1)));
  const WeightSource& source = model_->decoder != nullptr
                                   ? static_cast<const WeightSource&>(*model_->decoder)
                                   : *model_->network;
  for (const Param& param : network.params()) {
    LOOM_ASSIGN(SourceWeight weight, source.weight(param));
    TensorEntry entry;
    entry.name = param.path;
    entry.dtype = dtype_name(weight.stored);
    for (int axis = 0; axis < param.spec.shape.rank(); ++axis)
      entry.shape.push_back(param.spec.shape[axis]);
    entries_.push_back(std::move(entry));
    weights_.push_back(std::move(weight));
  }
  return model_->network != nullptr ? add_normalization() : Status{};
}

// Equal weights with another input normalization are another model.
Status ModelParameters::add_normalization() {
  LOOM_ASSIGN(normalization_, normalization_of(*model_->network));
  for (const auto& [name, values] : {std::pair("input/shift", &normalization_.shift),
                                     std::pair("input/scale", &normalization_.scale)}) {
    if (values->empty()) continue;
    TensorEntry entry;
    entry.name = name;
    entry.dtype = dtype_name(DType::f32);
    entry.shape = {static_cast<int64_t>(values->size())};
    entries_.push_back(std::move(entry));
    SourceWeight weight;
    weight.rows = [kept = values](int64_t first, int64_t count, float* out) -> Status {
      std::copy_n(kept->begin() + first, count, out);
      return {};
    };
    weights_.push_back(std::move(weight));
  }
  return {};
}

// Sources return whole rows.
Status ModelParameters::to_f32(size_t index, int64_t first, int64_t count, float* out) const {
  const std::vector<int64_t>& shape = entries_[index].shape;
  const int64_t cols = shape.size() == 2 ? std::max<int64_t>(shape[1], 1) : 1;
  const int64_t row = first / cols, end = (first + count + cols - 1) / cols;
  std::vector<float> rows(static_cast<size_t>((end - row) * cols));
  LOOM_TRY(weights_[index].rows(row, end - row, rows.data()));
  std::copy_n(rows.data() + (first - row * cols), count, out);
  return {};
}

}  // namespace

Result<std::unique_ptr<TensorFile>> open_parameters(std::shared_ptr<const OpenedModel> model) {
  auto parameters = std::make_unique<ModelParameters>();
  LOOM_TRY(parameters->open(std::move(model)));
  return std::unique_ptr<TensorFile>(std::move(parameters));
}

Result<ModelReport> report_model(const OpenedModel& model) {
  ModelReport report;
  report.format = model.format;
  report.notes = model.notes;
  LOOM_ASSIGN(const NetworkSpec spec, spec_of(model));
  LOOM_ASSIGN(Network network, Network::finalize(spec.grid, spec.input.after(1)));
  report.grid = spec.grid.extents();
  report.parameters = network.param_count();
  report.network = std::make_shared<const Network>(std::move(network));
  return report;
}

void report_layers(const ModelReport& report, const EachLayer& each) {
  for (const GridNode& node : report.network->cells()) {
    LayerReport r;
    r.at = node.at.str();
    r.type = node.node.config.def->name;
    r.settings = settings_of(node.node.config);
    r.in = node.in.str();
    r.out = node.out.str();
    r.notes = cell_notes(*node.cell);
    r.parameters = parameters_of(*report.network, node.node, true);
    each(r);
    report_children(*report.network, node.node, r.at, 1, each);
  }
}

namespace {

// f32 bits as integers in the order of the values.
int64_t ordered(float value) {
  const auto bits = static_cast<int64_t>(bit_cast<uint32_t>(value));
  return bits < 0x80000000 ? bits : int64_t{0x80000000} - bits;
}

std::string shape_text(const TensorEntry& entry) {
  return list_text(entry.shape);
}

Status compare_values(const TensorFile& a, size_t ia, const TensorFile& b, size_t ib,
                      TensorDifference& d) {
  constexpr int64_t kStep = int64_t{1} << 16;
  std::vector<float> va(static_cast<size_t>(std::min(kStep, d.count))), vb = va;
  double aa = 0, bb = 0, ab = 0, dd = 0;
  for (int64_t first = 0; first < d.count; first += kStep) {
    const int64_t n = std::min(kStep, d.count - first);
    LOOM_TRY(a.to_f32(ia, first, n, va.data()));
    LOOM_TRY(b.to_f32(ib, first, n, vb.data()));
    for (int64_t i = 0; i < n; ++i) {
      const float x = va[static_cast<size_t>(i)], y = vb[static_cast<size_t>(i)];
      const auto u = static_cast<double>(x), v = static_cast<double>(y);
      aa += u * u;
      bb += v * v;
      ab += u * v;
      dd += (u - v) * (u - v);
      if (bit_cast<uint32_t>(x) == bit_cast<uint32_t>(y)) continue;
      ++d.different;
      const int64_t steps = ordered(x) - ordered(y);
      d.max_ulp = std::max(d.max_ulp, steps < 0 ? -steps : steps);
      d.max_abs = std::max(d.max_abs, u > v ? u - v : v - u);
    }
  }
  d.relative = aa > 0 ? __builtin_sqrt(dd / aa) : dd > 0 ? 1.0 : 0.0;
  const double lengths = __builtin_sqrt(aa) * __builtin_sqrt(bb);
  d.cosine = lengths > 0 ? ab / lengths : aa == bb ? 1.0 : 0.0;
  a.release(ia);
  b.release(ib);
  return {};
}

}  // namespace

Result<std::vector<TensorDifference>> compare_tensors(
    const TensorFile& a, const TensorFile& b,
    const std::function<bool(uint64_t done, uint64_t total)>& progress) {
  std::vector<TensorDifference> out;
  for (size_t i = 0; i < a.entries().size(); ++i) {
    const TensorEntry& ea = a.entries()[i];
    TensorDifference d;
    d.name = ea.name;
    d.dtype_a = ea.dtype;
    d.shape_a = shape_text(ea);
    d.count = ea.count();
    const int64_t found = b.find(ea.name);
    d.only_a = found < 0;
    if (!d.only_a) {
      const auto j = static_cast<size_t>(found);
      const TensorEntry& eb = b.entries()[j];
      d.dtype_b = eb.dtype;
      d.shape_b = shape_text(eb);
      const auto ba = a.bytes(i), bb = b.bytes(j);
      // A tensor without stored bytes is compared by its values only.
      d.same_bytes = ea.dtype == eb.dtype && !ba.empty() && ba.size() == bb.size() &&
                     std::equal(ba.begin(), ba.end(), bb.begin());
      const bool text = ea.dtype == "text" || eb.dtype == "text";
      if (d.comparable() && !text) LOOM_TRY(compare_values(a, i, b, j, d));
      if (text && !d.same_bytes) d.different = d.count;
    }
    out.push_back(std::move(d));
    if (progress && !progress(i + 1, a.entries().size()))
      return make_error(Code::cancelled, "comparing was stopped");
  }
  for (const TensorEntry& eb : b.entries()) {
    if (a.find(eb.name) >= 0) continue;
    TensorDifference d;
    d.name = eb.name;
    d.only_b = true;
    d.dtype_b = eb.dtype;
    d.shape_b = shape_text(eb);
    d.count = eb.count();
    out.push_back(std::move(d));
  }
  return out;
}

}  // namespace loom::core
