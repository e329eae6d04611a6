#include "chat/tools.hpp"

#include "base/text.hpp"
#include "chat/json_schema.hpp"

namespace loom::core {

Result<Tools> Tools::read(const JsonValue& json) {
  Tools tools;
  if (json.is_null()) return tools;
  if (!json.is_array()) return invalid("tools must be an array of functions", "tools");
  for (size_t i = 0; i < json.elements().size(); ++i) {
    const JsonValue& element = json.elements()[i];
    const JsonValue* function = element.find("function");
    if (function == nullptr) function = &element;
    const JsonValue* name = function->find("name");
    const std::string where = cat("tools[", i, "]");
    if (name == nullptr || !name->is_string() || name->text().empty())
      return invalid("a function needs a name", where);
    if (tools.find(name->text()) != nullptr)
      return invalid(cat("two functions are called '", printable(name->text()), "'"), where);
    Tool tool;
    tool.name = name->text();
    if (const JsonValue* parameters = function->find("parameters")) tool.parameters = *parameters;
    if (!tool.parameters.is_null() && !tool.parameters.is_object())
      return invalid("parameters must be a JSON schema, an object", where);
    if (const JsonValue* strict = function->find("strict")) {
      if (!strict->is_bool() && !strict->is_null())
        return invalid("strict must be true or false", where);
      tool.strict = strict->is_bool() && strict->as_bool("strict").value_or(false);
    }
    tools.all_.push_back(std::move(tool));
  }
  return tools;
}

const Tool* Tools::find(std::string_view name) const {
  for (const Tool& tool : all_) {
    if (tool.name == name) return &tool;
  }
  return nullptr;
}

std::string Tools::problem(std::string_view name, const std::string& arguments) const {
  const Result<JsonValue> json = parse_json(arguments, "arguments");
  if (!json.ok()) return json.error().str();
  if (!json->is_object()) return "arguments: must be an object";
  if (all_.empty()) return {};
  const Tool* tool = find(name);
  if (tool == nullptr) return cat("there is no tool '", printable(name), "'");
  return schema_problem(*json, tool->parameters, "arguments");
}

}  // namespace loom::core
