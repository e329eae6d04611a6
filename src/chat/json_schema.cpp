// The common keywords of tool schemas. Other keywords are not checked.
#include "chat/json_schema.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr int kMaxSchemaDepth = 48;

bool same_json(const JsonValue& a, const JsonValue& b) {
  if (a.is_number() && b.is_number()) {
    return a.as_double("").value_or(0) == b.as_double("").value_or(1);
  }
  return a.type() == b.type() && dump_json(a) == dump_json(b);
}

bool has_type(const JsonValue& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_bool();
  if (type == "null") return value.is_null();
  if (type == "number") return value.is_number();
  if (type != "integer") return true;  // not a type of JSON Schema
  const double number = value.as_double("").value_or(0.5);
  return value.is_number() && number == static_cast<double>(static_cast<int64_t>(number));
}

class Checker {
 public:
  explicit Checker(const JsonValue& root) : root_(root) {}

  // The first violation, or "".
  std::string check(const JsonValue& value, const JsonValue& schema, const std::string& path,
                    int depth) const {
    if (depth > kMaxSchemaDepth || !schema.is_object()) {
      const bool never = schema.is_bool() && !schema.as_bool("").value_or(true);
      return never ? cat(path, " must not be there") : std::string();
    }
    if (const JsonValue* ref = schema.find("$ref")) {
      const JsonValue* target = resolve(ref->text());
      return target != nullptr ? check(value, *target, path, depth + 1) : std::string();
    }
    std::string problem = type_problem(value, schema, path);
    if (problem.empty()) problem = choice_problem(value, schema, path, depth);
    if (problem.empty()) problem = size_problem(value, schema, path);
    if (problem.empty() && value.is_object()) problem = members(value, schema, path, depth);
    if (problem.empty() && value.is_array()) problem = elements(value, schema, path, depth);
    return problem;
  }

 private:
  // "#/$defs/place": only inside of the same schema.
  const JsonValue* resolve(const std::string& ref) const {
    if (ref.substr(0, 1) != "#") return nullptr;
    const JsonValue* at = &root_;
    for (size_t begin = 2; begin < ref.size() && at != nullptr;) {
      const size_t end = std::min(ref.find('/', begin), ref.size());
      at = at->find(ref.substr(begin, end - begin));
      begin = end + 1;
    }
    return at;
  }

  static std::string type_problem(const JsonValue& value, const JsonValue& schema,
                                  const std::string& path) {
    const JsonValue* type = schema.find("type");
    if (type == nullptr) return {};
    bool fits = type->is_string() && has_type(value, type->text());
    std::string names = type->text();
    for (const JsonValue& one : type->elements()) {
      fits = fits || has_type(value, one.text());
      names += (names.empty() ? "" : " or ") + one.text();
    }
    if (fits || names.empty()) return {};
    return cat(path, " must be of type ", printable(names), ", not ", value.describe());
  }

  std::string choice_problem(const JsonValue& value, const JsonValue& schema,
                             const std::string& path, int depth) const {
    const auto same = [&](const JsonValue& other) { return same_json(value, other); };
    const JsonValue* choices = schema.find("enum");
    if (choices != nullptr && choices->is_array() &&
        std::none_of(choices->elements().begin(), choices->elements().end(), same)) {
      return cat(path, " must be one of ", printable(dump_json(*choices), 120), ", not ",
                 value.describe());
    }
    const JsonValue* constant = schema.find("const");
    if (constant != nullptr && !same(*constant)) {
      return cat(path, " must be ", constant->describe(), ", not ", value.describe());
    }
    for (const char* key : {"anyOf", "oneOf"}) {
      const JsonValue* any = schema.find(key);
      if (any == nullptr || any->elements().empty()) continue;
      std::string first;
      bool fits = false;
      for (const JsonValue& one : any->elements()) {
        const std::string problem = check(value, one, path, depth + 1);
        fits = fits || problem.empty();
        if (first.empty()) first = problem;
      }
      if (!fits) return first;
    }
    const JsonValue* all = schema.find("allOf");
    for (const JsonValue& one : all != nullptr ? all->elements() : std::vector<JsonValue>()) {
      std::string problem = check(value, one, path, depth + 1);
      if (!problem.empty()) return problem;
    }
    return {};
  }

  static std::string size_problem(const JsonValue& value, const JsonValue& schema,
                                  const std::string& path) {
    struct Bound {
      const char* key;
      bool applies, least, open;
      double size;
    };
    const bool number = value.is_number();
    const double amount = value.as_double("").value_or(0);
    const auto length = static_cast<double>(std::count_if(
        value.text().begin(), value.text().end(), [](char c) { return (c & 0xC0) != 0x80; }));
    const auto count = static_cast<double>(value.elements().size());
    const Bound bounds[] = {{"minimum", number, true, false, amount},
                            {"maximum", number, false, false, amount},
                            {"exclusiveMinimum", number, true, true, amount},
                            {"exclusiveMaximum", number, false, true, amount},
                            {"minLength", value.is_string(), true, false, length},
                            {"maxLength", value.is_string(), false, false, length},
                            {"minItems", value.is_array(), true, false, count},
                            {"maxItems", value.is_array(), false, false, count}};
    for (const Bound& bound : bounds) {
      const JsonValue* limit = schema.find(bound.key);
      if (!bound.applies || limit == nullptr || !limit->is_number()) continue;
      const double most = limit->as_double("").value_or(0);
      const bool holds = bound.open ? (bound.least ? bound.size > most : bound.size < most)
                                    : (bound.least ? bound.size >= most : bound.size <= most);
      if (!holds) return cat(path, " has ", bound.key, " ", most, ", but is ", bound.size);
    }
    return {};
  }

  std::string members(const JsonValue& value, const JsonValue& schema, const std::string& path,
                      int depth) const {
    const JsonValue* required = schema.find("required");
    for (const JsonValue& name : required ? required->elements() : std::vector<JsonValue>()) {
      if (name.is_string() && value.find(name.text()) == nullptr)
        return cat(path, ".", printable(name.text()), " is missing");
    }
    const JsonValue* properties = schema.find("properties");
    const JsonValue* others = schema.find("additionalProperties");
    for (const auto& [key, member] : value.members()) {
      const std::string inner = cat(path, ".", printable(key));
      const JsonValue* known = properties != nullptr ? properties->find(key) : nullptr;
      const JsonValue* rule = known != nullptr ? known : others;
      if (rule == nullptr) continue;
      std::string problem = check(member, *rule, inner, depth + 1);
      if (!problem.empty()) return problem;
    }
    return {};
  }

  std::string elements(const JsonValue& value, const JsonValue& schema, const std::string& path,
                       int depth) const {
    const JsonValue* items = schema.find("items");
    if (items == nullptr) return {};
    for (size_t i = 0; i < value.elements().size(); ++i) {
      std::string problem = check(value.elements()[i], *items, cat(path, "[", i, "]"), depth + 1);
      if (!problem.empty()) return problem;
    }
    return {};
  }

  const JsonValue& root_;
};

}  // namespace

std::string schema_problem(const JsonValue& value, const JsonValue& schema,
                           const std::string& name) {
  return Checker(schema).check(value, schema, name, 0);
}

}  // namespace loom::core
