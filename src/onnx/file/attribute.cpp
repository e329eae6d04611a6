// Attributes of nodes, by the type of their value. See model.hpp.
#include "onnx/file/model.hpp"

namespace loom::core {

OnnxAttribute onnx_attribute(std::string name, int64_t value) {
  OnnxAttribute a;
  a.name = std::move(name);
  a.integer = value;
  return a;
}

OnnxAttribute onnx_attribute(std::string name, float value) {
  OnnxAttribute a;
  a.name = std::move(name);
  a.type = OnnxAttributeType::real;
  a.real = value;
  return a;
}

OnnxAttribute onnx_attribute(std::string name, std::string value) {
  OnnxAttribute a;
  a.name = std::move(name);
  a.type = OnnxAttributeType::text;
  a.text = std::move(value);
  return a;
}

OnnxAttribute onnx_attribute(std::string name, std::vector<int64_t> values) {
  OnnxAttribute a;
  a.name = std::move(name);
  a.type = OnnxAttributeType::integers;
  a.integers = std::move(values);
  return a;
}

OnnxAttribute onnx_attribute(std::string name, std::vector<float> values) {
  OnnxAttribute a;
  a.name = std::move(name);
  a.type = OnnxAttributeType::reals;
  a.reals = std::move(values);
  return a;
}

OnnxAttribute onnx_attribute(std::string name, std::vector<std::string> values) {
  OnnxAttribute a;
  a.name = std::move(name);
  a.type = OnnxAttributeType::texts;
  a.texts = std::move(values);
  return a;
}

}  // namespace loom::core
