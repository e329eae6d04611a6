#include "grammar/schemas/schema_merge.hpp"

#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "grammar/schemas/schema_reader.hpp"

namespace loom::core::grammar {
namespace {

constexpr int kMaxSteps = 16;

struct KindName {
  std::string_view name;
  unsigned kinds;
};
constexpr KindName kKindNames[] = {{"null", kNull},       {"boolean", kBoolean},
                                   {"integer", kInteger}, {"number", kInteger | kFraction},
                                   {"string", kString},   {"array", kArray},
                                   {"object", kObject}};

JsonValue type_of_kinds(unsigned kinds) {
  JsonValue out = JsonValue::array();
  for (const KindName& k : kKindNames) {
    const bool covered = k.kinds == kInteger && (kinds & kFraction) != 0;
    if ((kinds & k.kinds) == k.kinds && !covered) out.push(JsonValue::string(std::string(k.name)));
  }
  return out;
}

void set_member(JsonValue& object, const std::string& key, JsonValue value) {
  JsonValue out = JsonValue::object();
  bool found = false;
  for (const JsonValue::Member& m : object.members()) {
    const bool here = m.first == key;
    found |= here;
    out.add(m.first, here ? value : m.second);
  }
  if (!found) out.add(key, std::move(value));
  object = std::move(out);
}

JsonValue all_of(const JsonValue& a, const JsonValue& b) {
  if (same_json(a, b)) return a;
  JsonValue both = JsonValue::array();
  both.push(a);
  both.push(b);
  JsonValue out = JsonValue::object();
  out.add("allOf", std::move(both));
  return out;
}

JsonValue united_names(const JsonValue& a, const JsonValue& b) {
  JsonValue out = a;
  for (const JsonValue& name : b.elements()) {
    const auto same = [&](const JsonValue& v) { return v.text() == name.text(); };
    if (std::ranges::none_of(out.elements(), same)) out.push(name);
  }
  return out;
}

JsonValue united_properties(const JsonValue& a, const JsonValue& b) {
  JsonValue out = a;
  for (const JsonValue::Member& m : b.members()) {
    const JsonValue* there = a.find(m.first);
    set_member(out, m.first, there == nullptr ? m.second : all_of(*there, m.second));
  }
  return out;
}

JsonValue common_values(const JsonValue& a, const JsonValue& b) {
  JsonValue out = JsonValue::array();
  for (const JsonValue& v : a.elements()) {
    const auto same = [&](const JsonValue& w) { return same_json(v, w); };
    if (std::ranges::any_of(b.elements(), same)) out.push(v);
  }
  return out;
}

// The combination of a keyword of both schemas.
Result<JsonValue> merge_keyword(const std::string& key, const JsonValue& a, const JsonValue& b,
                                std::string_view where) {
  if (same_json(a, b) || is_annotation(key)) return a;
  const auto larger = [&]() -> Result<bool> {
    LOOM_ASSIGN(const double x, a.as_double(key));
    LOOM_ASSIGN(const double y, b.as_double(key));
    return x > y;
  };
  constexpr std::string_view kLowest[] = {"minimum", "exclusiveMinimum", "minLength", "minItems",
                                          "minProperties"};
  constexpr std::string_view kHighest[] = {"maximum", "exclusiveMaximum", "maxLength", "maxItems",
                                           "maxProperties"};
  if (std::ranges::find(kLowest, key) != std::end(kLowest)) {
    LOOM_ASSIGN(const bool first, larger());
    return first ? a : b;
  }
  if (std::ranges::find(kHighest, key) != std::end(kHighest)) {
    LOOM_ASSIGN(const bool first, larger());
    return first ? b : a;
  }
  if (key == "type") return type_of_kinds(kinds_of_type(a) & kinds_of_type(b));
  if (key == "required") return united_names(a, b);
  if (key == "properties") return united_properties(a, b);
  if (key == "enum") return common_values(a, b);
  if (key == "items" || key == "additionalProperties") return all_of(a, b);
  return unsupported(cat("\"", printable(key), "\" is said twice, and both cannot be held to"),
                     std::string(where));
}

// `additionalProperties` of one schema covers the members that its own `properties` do not name.
Status check_additional(const JsonValue& a, const JsonValue& b, std::string_view where) {
  if (a.find("items") != nullptr && b.find("prefixItems") != nullptr) {
    return unsupported("\"items\" and \"prefixItems\" of another part cannot be held to together",
                       std::string(where));
  }
  const JsonValue* limit = a.find("additionalProperties");
  if (limit == nullptr || (limit->is_bool() && limit->as_bool("").value_or(false))) return {};
  const JsonValue* own = a.find("properties");
  const JsonValue* other = b.find("properties");
  if (other == nullptr) return {};
  for (const JsonValue::Member& m : other->members()) {
    if (own == nullptr || own->find(m.first) == nullptr) {
      return unsupported(cat("\"additionalProperties\" and the property ", printable(m.first),
                             " of another part cannot be held to together"),
                         std::string(where));
    }
  }
  return {};
}

const JsonValue* followed(const JsonValue* schema, const FindSchema& find) {
  for (int i = 0; schema != nullptr && i < kMaxSteps; ++i) {
    const JsonValue* ref = schema->find("$ref");
    if (ref == nullptr || !ref->is_string()) return schema;
    schema = find(ref->text());
  }
  return nullptr;
}

// The only values that a schema allows; false if it does not list them.
bool values_of(const JsonValue& schema, std::vector<const JsonValue*>& out) {
  if (const JsonValue* one = schema.find("const")) {
    out.push_back(one);
    return true;
  }
  const JsonValue* all = schema.find("enum");
  if (all == nullptr) return false;
  for (const JsonValue& v : all->elements()) out.push_back(&v);
  return true;
}

unsigned kinds_of_schema(const JsonValue& schema) {
  std::vector<const JsonValue*> values;
  unsigned kinds = kAnyKind;
  if (values_of(schema, values)) {
    kinds = 0;
    for (const JsonValue* v : values) kinds |= kind_of_value(*v);
  }
  const JsonValue* type = schema.find("type");
  return type == nullptr ? kinds : kinds & kinds_of_type(*type);
}

bool requires_name(const JsonValue& schema, const std::string& name) {
  const JsonValue* list = schema.find("required");
  if (list == nullptr) return false;
  return std::ranges::any_of(list->elements(),
                             [&](const JsonValue& v) { return v.text() == name; });
}

// Whether an object of one schema has a member that the other forbids.
bool members_exclude(const JsonValue& a, const JsonValue& b, const FindSchema& find, int depth) {
  const JsonValue* pa = a.find("properties");
  const JsonValue* pb = b.find("properties");
  if (pa == nullptr || pb == nullptr) return false;
  for (const JsonValue::Member& m : pa->members()) {
    if (!requires_name(a, m.first)) continue;
    const JsonValue* other = pb->find(m.first);
    if (other != nullptr && requires_name(b, m.first) &&
        exclude_each_other(m.second, *other, find, depth + 1))
      return true;
    const JsonValue* more = b.find("additionalProperties");
    const bool closed = more != nullptr && more->is_bool() && !more->as_bool("").value_or(true);
    if (other == nullptr && closed) return true;
  }
  return false;
}

}  // namespace

unsigned kind_of_value(const JsonValue& value) {
  switch (value.type()) {
    case JsonValue::Type::null: return kNull;
    case JsonValue::Type::boolean: return kBoolean;
    case JsonValue::Type::integer:
    case JsonValue::Type::unsigned_integer: return kInteger;
    case JsonValue::Type::real: {
      const double v = value.as_double("").value_or(0.5);
      return v >= -9e15 && v <= 9e15 && static_cast<double>(static_cast<int64_t>(v)) != v
                 ? kFraction
                 : kInteger;
    }
    case JsonValue::Type::string: return kString;
    case JsonValue::Type::array: return kArray;
    case JsonValue::Type::object: return kObject;
  }
  return 0;
}

unsigned kinds_of_type(const JsonValue& type) {
  unsigned out = 0;
  for (const KindName& k : kKindNames) {
    const auto names = [&](const JsonValue& v) { return v.is_string() && v.text() == k.name; };
    if (names(type) || std::ranges::any_of(type.elements(), names)) out |= k.kinds;
  }
  return out;
}

bool same_json(const JsonValue& a, const JsonValue& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_int() && b.is_int()) return dump_json(a) == dump_json(b);
    const Result<double> x = a.as_double(""), y = b.as_double("");
    return x.ok() && y.ok() && *x == *y;
  }
  if (a.type() != b.type()) return false;
  if (a.is_array()) {
    return std::ranges::equal(a.elements(), b.elements(), same_json);
  }
  if (!a.is_object()) return dump_json(a) == dump_json(b);
  if (a.members().size() != b.members().size()) return false;
  return std::ranges::all_of(a.members(), [&](const JsonValue::Member& m) {
    const JsonValue* other = b.find(m.first);
    return other != nullptr && same_json(m.second, *other);
  });
}

Result<JsonValue> merge_schemas(const JsonValue& a, const JsonValue& b, std::string_view where) {
  if (a.is_bool()) return a.as_bool("").value_or(true) ? b : a;
  if (b.is_bool()) return b.as_bool("").value_or(true) ? a : b;
  LOOM_TRY(check_additional(a, b, where));
  LOOM_TRY(check_additional(b, a, where));
  JsonValue out = a;
  for (const JsonValue::Member& m : b.members()) {
    const JsonValue* there = a.find(m.first);
    if (there == nullptr) {
      out.add(m.first, m.second);
      continue;
    }
    LOOM_ASSIGN(JsonValue both, merge_keyword(m.first, *there, m.second, where));
    set_member(out, m.first, std::move(both));
  }
  return out;
}

bool exclude_each_other(const JsonValue& a, const JsonValue& b, const FindSchema& find, int depth) {
  const JsonValue* x = followed(&a, find);
  const JsonValue* y = followed(&b, find);
  if (x == nullptr || y == nullptr || depth > kMaxSteps) return false;
  if ((x->is_bool() && !x->as_bool("").value_or(true)) ||
      (y->is_bool() && !y->as_bool("").value_or(true)))
    return true;
  const unsigned common = kinds_of_schema(*x) & kinds_of_schema(*y);
  if (common == 0) return true;
  std::vector<const JsonValue*> vx, vy;
  if (values_of(*x, vx) && values_of(*y, vy)) {
    return std::ranges::none_of(vx, [&](const JsonValue* v) {
      return std::ranges::any_of(vy, [&](const JsonValue* w) { return same_json(*v, *w); });
    });
  }
  if (common != kObject) return false;
  return members_exclude(*x, *y, find, depth) || members_exclude(*y, *x, find, depth);
}

}  // namespace loom::core::grammar
