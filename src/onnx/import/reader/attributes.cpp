// The attributes of an ONNX node by name, each with what holds where it is absent. Their types were
// checked against the operator (schema.hpp) before anyone asks. See importer.hpp.
#include "onnx/import/reader/importer.hpp"

namespace loom::core {

int64_t attribute(const OnnxNode& node, std::string_view name, int64_t otherwise) {
  const OnnxAttribute* a = node.find(name);
  return a != nullptr && a->type == OnnxAttributeType::integer ? a->integer : otherwise;
}

double attribute_real(const OnnxNode& node, std::string_view name, double otherwise) {
  const OnnxAttribute* a = node.find(name);
  return a != nullptr && a->type == OnnxAttributeType::real ? static_cast<double>(a->real)
                                                            : otherwise;
}

std::string attribute_text(const OnnxNode& node, std::string_view name, std::string otherwise) {
  const OnnxAttribute* a = node.find(name);
  return a != nullptr && a->type == OnnxAttributeType::text ? a->text : otherwise;
}

std::vector<int64_t> attribute_list(const OnnxNode& node, std::string_view name,
                                    std::vector<int64_t> otherwise) {
  const OnnxAttribute* a = node.find(name);
  return a != nullptr && a->type == OnnxAttributeType::integers ? a->integers : otherwise;
}

}  // namespace loom::core
