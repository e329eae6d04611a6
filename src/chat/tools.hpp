// The functions that a model may call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/json/json.hpp"

namespace loom::core {

struct Tool {
  std::string name;
  JsonValue parameters;  // a JSON schema of an object; null means any
  bool strict = false;   // the schema constrains arguments during generation
};

class Tools {
 public:
  // An array of {"type": "function", "function": {...}} or of {"name", "parameters"}; null means
  // none. Errors: invalid_argument, with the element.
  static Result<Tools> read(const JsonValue& json);

  const std::vector<Tool>& all() const { return all_; }
  const Tool* find(std::string_view name) const;
  // The problem of a call, in one line; "" if there is none.
  std::string problem(std::string_view name, const std::string& arguments) const;

 private:
  std::vector<Tool> all_;
};

}  // namespace loom::core
