// The functions that a model may call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/json.hpp"

namespace loom::core {

struct Tool {
  std::string name;
  JsonValue parameters;  // a JSON schema of an object; null: any
  bool strict = false;   // arguments are held to the schema while they are written
};

class Tools {
 public:
  // An array of {"type": "function", "function": {...}} or of {"name", "parameters"}; null: none.
  // Errors: invalid_argument, with the element.
  static Result<Tools> read(const JsonValue& json);

  const std::vector<Tool>& all() const { return all_; }
  const Tool* find(std::string_view name) const;
  // What is wrong with a call, in one line; "": nothing.
  std::string problem(std::string_view name, const std::string& arguments) const;

 private:
  std::vector<Tool> all_;
};

}  // namespace loom::core
