#include <map>
#include <mutex>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/graph.hpp"
#include "layers/core/layer.hpp"

namespace loom::core {

#define LOOM_LAYER(id, enumerator, definition) extern const LayerDef definition;
#include "layers/core/registry.def"
#undef LOOM_LAYER

namespace {

const LayerDef* const kLayers[] = {
#define LOOM_LAYER(id, enumerator, definition) &definition,
#include "layers/core/registry.def"
#undef LOOM_LAYER
};

Status check_range(const LayerConfig& layer, const FieldDesc& desc, double value) {
  if (value >= desc.min && value <= desc.max) return {};
  return invalid(cat(layer.def->name, ": ", desc.name, " is ", value, ", must be from ", desc.min,
                     " to ", desc.max));
}

// Whether a value of type `given` is valid for type `wanted`: numbers also serve as booleans and as
// lists of one.
bool fits(FieldType expected, FieldType given) {
  if (expected == given) return true;
  if (expected == FieldType::text || given == FieldType::text) return false;
  return given != FieldType::list;
}

Status set_field(LayerConfig& layer, const Field& field) {
  const std::span<const FieldDesc> fields = layer.def->fields;
  for (size_t i = 0; i < fields.size(); ++i) {
    const FieldDesc& desc = fields[i];
    if (desc.name != field.name && (desc.old_name.empty() || desc.old_name != field.name)) continue;
    if (!fits(desc.type, field.type)) {
      return invalid(cat(layer.def->name, ": ", desc.name, " must be a ",
                         desc.type == FieldType::text   ? "text"
                         : desc.type == FieldType::list ? "list of integers"
                                                        : "number"));
    }
    std::vector<int64_t> list = field.list;
    if (desc.type == FieldType::list && field.type != FieldType::list) {
      list = {static_cast<int64_t>(field.number)};
    }
    for (int64_t item : list) {
      LOOM_TRY(check_range(layer, desc, static_cast<double>(item)));
    }
    if (desc.type != FieldType::text && desc.type != FieldType::list) {
      LOOM_TRY(check_range(layer, desc, field.number));
    }
    if (desc.type == FieldType::integer &&
        field.number != static_cast<double>(static_cast<int64_t>(field.number))) {
      return invalid(
          cat(layer.def->name, ": ", desc.name, " is ", field.number, ", must be an integer"));
    }
    const auto index = static_cast<int>(i);
    layer.values[i] = FieldValue(field.number);
    if (desc.type == FieldType::text) layer.set_text(index, field.text);
    if (desc.type == FieldType::list) layer.set_list(index, std::move(list));
    return {};
  }
  std::vector<std::string> known;
  for (const FieldDesc& desc : fields) known.emplace_back(desc.name);
  return invalid(cat(layer.def->name, " has no field '", printable(field.name), "'; it has ",
                     join(known, ", ")));
}

// The list of an unset field: [default], or empty if the default is not a valid number. Created
// once and kept.
const std::vector<int64_t>& default_list(const FieldDesc& desc) {
  static const std::vector<int64_t> kNone;
  if (desc.default_number < desc.min) return kNone;
  static std::mutex mutex;
  static std::map<int64_t, const std::vector<int64_t>> made;
  const auto number = static_cast<int64_t>(desc.default_number);
  const std::lock_guard lock(mutex);
  return made.try_emplace(number, std::vector<int64_t>{number}).first->second;
}

}  // namespace

FieldValue::FieldValue(const FieldValue& other)
    : number(other.number),
      more_(other.more_ == nullptr ? nullptr : std::make_unique<const More>(*other.more_)) {}

std::string_view LayerConfig::text(int field) const {
  const auto i = static_cast<size_t>(field);
  if (values[i].more_ == nullptr) return def->fields[i].default_text;
  return values[i].more_->text;
}

const std::vector<int64_t>& LayerConfig::list(int field) const {
  const auto i = static_cast<size_t>(field);
  if (values[i].more_ == nullptr) return default_list(def->fields[i]);
  return values[i].more_->list;
}

void LayerConfig::set_text(int field, std::string text) {
  const auto i = static_cast<size_t>(field);
  const bool usual = text == def->fields[i].default_text;
  values[i].more_ =
      usual ? nullptr
            : std::make_unique<const FieldValue::More>(FieldValue::More{std::move(text), {}});
}

void LayerConfig::set_list(int field, std::vector<int64_t> list) {
  const auto i = static_cast<size_t>(field);
  const bool usual = list == default_list(def->fields[i]);
  values[i].more_ =
      usual ? nullptr
            : std::make_unique<const FieldValue::More>(FieldValue::More{{}, std::move(list)});
}

std::span<const LayerDef* const> layer_table() {
  return kLayers;
}

const LayerDef& layer_def(LayerKind kind) {
  for (const LayerDef* def : kLayers) {
    if (def->kind == kind) return *def;
  }
  return *kLayers[0];  // unreachable: the enum is made from the same table
}

Result<LayerConfig> make_layer(LayerKind kind, const std::vector<Field>& fields,
                               std::vector<LayerConfig> children) {
  return make_layer(layer_def(kind), fields, std::move(children));
}

Result<LayerConfig> make_layer(const LayerDef& def, const std::vector<Field>& fields,
                               std::vector<LayerConfig> children) {
  LayerConfig layer;
  layer.def = &def;
  layer.values.reserve(layer.def->fields.size());
  for (const FieldDesc& desc : layer.def->fields) layer.values.emplace_back(desc.default_number);
  for (const Field& field : fields) LOOM_TRY(set_field(layer, field));
  if (!children.empty() && !layer.def->container) {
    return invalid(
        cat(layer.def->name, " is not a container, but ", children.size(), " children were given"));
  }
  layer.children = std::move(children);
  if (def.expand != nullptr) return def.expand(layer);
  return layer;
}

Result<std::vector<LayerConfig>> make_layers(const std::vector<LayerSketch>& sketches) {
  std::vector<LayerConfig> layers;
  for (const LayerSketch& sketch : sketches) {
    LOOM_ASSIGN(std::vector<LayerConfig> children, make_layers(sketch.children));
    LOOM_ASSIGN(LayerConfig layer, make_layer(sketch.kind, sketch.fields, std::move(children)));
    layers.push_back(std::move(layer));
  }
  return layers;
}

LayerSketch sketch_dense(int64_t in, int64_t out, std::string_view activation) {
  return {LayerKind::dense, {{"in", in}, {"out", out}, {"activation", std::string(activation)}}};
}

namespace {

// Extents are products of fields, so a description can request a count that overflows.
Status check_size(const LayerConfig& layer, const Shape& out) {
  constexpr uint64_t kMaxValues = uint64_t{1} << 40;
  uint64_t values = 1;
  for (int i = 0; i < out.rank(); ++i) {
    if (checked_mul(values, static_cast<uint64_t>(out[i]), values) && values <= kMaxValues)
      continue;
    return invalid(cat(layer.def->name, ": its output ", out.str(), " is too large"));
  }
  return {};
}

Status check_input_count(const LayerConfig& layer, size_t count) {
  const LayerDef& def = *layer.def;
  const auto least = static_cast<size_t>(def.min_inputs);
  const auto most = static_cast<size_t>(wants_skip(layer) ? 2 : def.max_inputs);
  if (count >= least && count <= most) return {};
  const std::string expected = least == most   ? std::to_string(least)
                               : count < least ? cat("at least ", least)
                                               : cat("at most ", most);
  return invalid(cat(def.name, " takes ", expected,
                     least == most && most == 1 ? " input" : " inputs", ", but ", count,
                     count == 1 ? " is given" : " are given"));
}

}  // namespace

Result<std::vector<Shape>> InferRule::operator()(const LayerConfig& layer,
                                                 std::span<const Shape> in) const {
  if (list_ != nullptr) return list_(layer, in);
  LOOM_ASSIGN(const Shape out, one_(layer, in[0]));
  return std::vector<Shape>{out};
}

Result<LayerOutputs> ForwardRule::operator()(ForwardCall& call) const {
  if (list_ != nullptr) {
    LOOM_ASSIGN(std::vector<Tensor> all, list_(call));
    return LayerOutputs(std::move(all));
  }
  LOOM_ASSIGN(const Tensor only, one_(call));
  return LayerOutputs(only);
}

Result<std::vector<Shape>> infer_all(const LayerConfig& layer, std::span<const Shape> in) {
  if (layer.disabled && !in.empty()) return std::vector<Shape>{in[0]};
  LOOM_TRY(check_input_count(layer, in.size()));
  if (wants_skip(layer) && in.size() == 2 && !(in[0] == in[1])) {
    return invalid(cat(layer.def->name, ": its input ", in[0].str(), " and what it adds to it, ",
                       in[1].str(), ", differ in shape"));
  }
  LOOM_ASSIGN(std::vector<Shape> out, layer.def->infer(layer, in));
  for (const Shape& shape : out) LOOM_TRY(check_size(layer, shape));
  return out;
}

namespace {

Result<Shape> infer_only(const LayerConfig& layer, std::span<const Shape> in) {
  LOOM_ASSIGN(const std::vector<Shape> out, infer_all(layer, in));
  if (out.size() == 1) return out[0];
  return invalid(cat(layer.def->name, " gives ", out.size(),
                     " outputs, which only a Graph around it can tell apart"));
}

}  // namespace

Result<Shape> infer_shape(const LayerConfig& layer, const Shape& in) {
  return infer_only(layer, {&in, 1});
}

Result<Shape> infer_after(const LayerConfig& layer, const Shape& in, const Shape& skip) {
  const std::array<Shape, 2> shapes = {in, skip};
  return infer_only(layer, inputs_after(layer, shapes));
}

bool wants_skip(const LayerConfig& layer) {
  return !layer.disabled && layer.def->wants_skip != nullptr && layer.def->wants_skip(layer);
}

bool takes_ids(const LayerConfig& layer) {
  if (layer.disabled) return false;
  if (layer.def->takes_ids) return true;
  if (layer.def->wired) return graph_takes_ids(layer);
  for (const LayerConfig& child : layer.children) {
    if (!child.disabled) return takes_ids(child);
  }
  return false;
}

int64_t id_rows(const LayerConfig& layer) {
  if (layer.disabled) return 0;
  if (layer.def->takes_ids) {
    std::vector<ParamSpec> specs;
    layer.def->params(layer, specs);
    return specs[0].shape[0];
  }
  if (layer.def->wired) return graph_id_rows(layer);
  int64_t least = 0;
  for (const LayerConfig& child : layer.children) {
    const int64_t rows = id_rows(child);
    if (rows > 0 && (least == 0 || rows < least)) least = rows;
  }
  return least;
}

Tensor as_matrix(const Tensor& t, int64_t rows, int64_t cols) {
  Tensor m = t;
  m.shape = Shape{rows, cols};
  m.row_stride = cols;
  return m;
}

Tensor slice_cols(const Tensor& t, int64_t first, int64_t count) {
  Tensor part = t;
  part.shape = Shape{t.rows(), count};
  part.data = t.data + first * (dtype_info(t.dtype).bits / 8);
  return part;
}

Tensor step_rows(const Tensor& t, int64_t sequences, int64_t i) {
  const int64_t length = t.rows() / sequences;
  Tensor rows = t;
  rows.shape = Shape{sequences, t.cols()};
  rows.row_stride = length * t.row_stride;
  rows.data = t.data + i * t.row_stride * (dtype_info(t.dtype).bits / 8);
  return rows;
}

}  // namespace loom::core
