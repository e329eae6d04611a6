#include "layers/layer.hpp"

#include "base/text.hpp"

namespace loom {

#define LOOM_LAYER(id, enumerator, definition) extern const LayerDef definition;
#include "layers/registry.def"
#undef LOOM_LAYER

namespace {

const LayerDef* const kLayers[] = {
#define LOOM_LAYER(id, enumerator, definition) &definition,
#include "layers/registry.def"
#undef LOOM_LAYER
};

Status set_field(LayerConfig& layer, const Field& field) {
  const std::span<const FieldDesc> fields = layer.def->fields;
  for (size_t i = 0; i < fields.size(); ++i) {
    const FieldDesc& desc = fields[i];
    if (desc.name != field.name) continue;
    if (desc.type != FieldType::text && (field.number < desc.min || field.number > desc.max)) {
      return invalid(cat(layer.def->name, ": ", field.name, " is ", field.number, ", must be from ",
                         desc.min, " to ", desc.max));
    }
    layer.values[i] = {field.number, field.text};
    return {};
  }
  std::vector<std::string> known;
  for (const FieldDesc& desc : fields) known.emplace_back(desc.name);
  return invalid(cat(layer.def->name, " has no field '", printable(field.name), "'; it has ",
                     join(known, ", ")));
}

}  // namespace

std::span<const LayerDef* const> layer_table() {
  return kLayers;
}

const LayerDef& layer_def(LayerKind kind) {
  for (const LayerDef* def : kLayers) {
    if (def->kind == kind) return *def;
  }
  return *kLayers[0];  // not reached: the enum is made from the same table
}

Result<LayerConfig> make_layer(LayerKind kind, const std::vector<Field>& fields,
                               std::vector<LayerConfig> children) {
  LayerConfig layer;
  layer.def = &layer_def(kind);
  for (const FieldDesc& desc : layer.def->fields) {
    layer.values.push_back({desc.default_number, std::string(desc.default_text)});
  }
  for (const Field& field : fields) LOOM_TRY(set_field(layer, field));
  if (!children.empty() && !layer.def->container) {
    return invalid(
        cat(layer.def->name, " is no container, but ", children.size(), " children were given"));
  }
  layer.children = std::move(children);
  return layer;
}

Result<Shape> infer_shape(const LayerConfig& layer, const Shape& in) {
  if (layer.disabled) return in;
  return layer.def->infer(layer, in);
}

}  // namespace loom
