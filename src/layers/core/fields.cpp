#include "layers/core/fields.hpp"

#include "base/text.hpp"

namespace loom::core {
namespace {

// The default of a field as text: "0", "silu".
std::string default_of(const FieldDesc& desc) {
  if (desc.type == FieldType::text) return cat("'", desc.default_text, "'");
  if (desc.type == FieldType::list && desc.default_number < desc.min) return "an empty list";
  return cat(desc.default_number);
}

bool at_default(const LayerConfig& layer, int field) {
  const FieldDesc& desc = layer.def->fields[static_cast<size_t>(field)];
  if (desc.type == FieldType::text) return layer.text(field) == desc.default_text;
  if (desc.type != FieldType::list) return layer.real(field) == desc.default_number;
  const std::vector<int64_t>& list = layer.list(field);
  if (desc.default_number < desc.min) return list.empty();
  return list.size() == 1 && list[0] == static_cast<int64_t>(desc.default_number);
}

}  // namespace

int FieldReader::find(std::string_view name) {
  const int field = field_index(layer_, name);
  if (field >= 0) read_[static_cast<size_t>(field)] = true;
  return field;
}

double FieldReader::real(std::string_view name) {
  const int field = find(name);
  return field < 0 ? 0 : layer_.real(field);
}

std::string_view FieldReader::text(std::string_view name) {
  const int field = find(name);
  return field < 0 ? std::string_view() : layer_.text(field);
}

const std::vector<int64_t>& FieldReader::list(std::string_view name) {
  static const std::vector<int64_t> kNone;
  const int field = find(name);
  return field < 0 ? kNone : layer_.list(field);
}

std::vector<int64_t> FieldReader::per_axis(std::string_view name, size_t axes) {
  const std::vector<int64_t>& given = list(name);
  return given.size() == 1 ? std::vector<int64_t>(axes, given[0]) : given;
}

void FieldReader::skip(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) find(name);
}

Status FieldReader::check_all_read(std::string_view format) const {
  for (size_t i = 0; i < read_.size(); ++i) {
    if (read_[i] || at_default(layer_, static_cast<int>(i))) continue;
    const FieldDesc& desc = layer_.def->fields[i];
    return unsupported(cat("the field ", desc.name, " has no form in ", format,
                           "; give it its default, ", default_of(desc)));
  }
  return {};
}

}  // namespace loom::core
