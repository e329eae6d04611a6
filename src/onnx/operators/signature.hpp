// The inputs, outputs and attributes of an operator as text: one version per range of opsets, apart
// by |, the oldest first. docs/decisions/0097-onnx-once.md has examples.
//   version     [opset] inputs [>result [outputs]] attribute...    apart by spaces
//   opset       the first of the version; 1 by default. It ends where the next one begins.
//   inputs      a letter of types each (import/schema.cpp); a capital is one type in all its
//               inputs. Those after ? are optional. + repeats the last. A dot: none.
//   result      a letter of the inputs; b boolean, l int64, c the type that an attribute names.
//               Importers refuse a version without one; the interpreter runs it.
//   outputs     the largest number, 1 by default; + for any
//   attribute   name:kind, and ! if it is required. Kinds: f number, i integer, g 0 or 1, s text,
//               t tensor; F, I and S lists. The interpreter alone takes one without a kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace loom::core::evaluate {

struct AttributeRule {
  std::string_view name;
  char kind = 0;  // 0 if importers do not read it
  bool required = false;
};

// One version of an operator.
struct Version {
  int64_t since = 1;
  std::string_view letters;     // of the inputs, with the ? of optional ones
  size_t min_inputs = 0;        // those in front of the ?
  size_t inputs = 0;            // letters
  bool repeats = false;         // the last one any number of times
  char result = 0;              // 0 if importers do not read it
  size_t outputs = 1;           // the largest number
  std::string_view attributes;  // apart by spaces

  char letter(size_t input) const;
};

// Takes the first off the text; nothing at its end.
std::optional<Version> next_version(std::string_view& signature);
std::optional<AttributeRule> next_attribute(std::string_view& attributes);

// The version of an opset that importers read; nothing if there is none.
std::optional<Version> version_at(std::string_view signature, int64_t opset);

// Over all versions. If max is below 0, any number is right.
struct InputCount {
  int min = 1, max = 1;
};
InputCount input_count(std::string_view signature);

}  // namespace loom::core::evaluate
