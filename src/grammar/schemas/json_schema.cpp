#include "grammar/schemas/json_schema.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "grammar/schemas/schema_reader.hpp"

namespace loom::core::grammar {

bool is_annotation(std::string_view key) {
  constexpr std::string_view kAnnotations[] = {"title",
                                               "description",
                                               "default",
                                               "examples",
                                               "$comment",
                                               "$schema",
                                               "$id",
                                               "deprecated",
                                               "readOnly",
                                               "writeOnly",
                                               "$defs",
                                               "definitions",
                                               "contentEncoding",
                                               "contentMediaType",
                                               "contentSchema",
                                               "$anchor",
                                               "$vocabulary",
                                               "discriminator",
                                               "example",
                                               "externalDocs",
                                               "xml",
                                               "errorMessage",
                                               "enumNames",
                                               "enumDescriptions",
                                               "markdownDescription",
                                               "defaultSnippets"};
  return key.starts_with("x-") || std::ranges::find(kAnnotations, key) != std::end(kAnnotations);
}

namespace {

constexpr int kMaxSchemaDepth = 100, kMaxReads = 20000;

constexpr std::string_view kKnown[] = {"type",
                                       "enum",
                                       "const",
                                       "properties",
                                       "required",
                                       "items",
                                       "prefixItems",
                                       "minItems",
                                       "maxItems",
                                       "uniqueItems",
                                       "minLength",
                                       "maxLength",
                                       "pattern",
                                       "format",
                                       "minimum",
                                       "maximum",
                                       "exclusiveMinimum",
                                       "exclusiveMaximum",
                                       "multipleOf",
                                       "anyOf",
                                       "oneOf",
                                       "allOf",
                                       "$ref",
                                       "minProperties",
                                       "maxProperties",
                                       "propertyNames",
                                       "additionalProperties"};

template <class List>
bool is_one_of(const List& list, std::string_view key) {
  return std::ranges::find(list, key) != std::end(list);
}
JsonValue without(const JsonValue& schema, std::string_view key) {
  JsonValue out = JsonValue::object();
  for (const JsonValue::Member& m : schema.members()) {
    if (m.first != key && !is_annotation(m.first)) out.add(m.first, m.second);
  }
  return out;
}

std::string pointer_to(const std::string& where, std::string_view key) {
  std::string out = where + "/";
  for (const char c : key) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

Status check_keywords(const JsonValue& schema, const std::string& where) {
  for (const JsonValue::Member& m : schema.members()) {
    if (is_one_of(kKnown, m.first) || is_annotation(m.first)) continue;
    const bool open = m.second.is_bool() && m.second.as_bool("").value_or(false);
    if (open && (m.first == "unevaluatedProperties" || m.first == "unevaluatedItems")) continue;
    return unsupported(cat("the keyword \"", printable(m.first), "\" cannot be held to"),
                       pointer_to(where, m.first));
  }
  return {};
}

}  // namespace

// "#", "#/$defs/a", with the escapes of JSON pointers and of URLs.
const JsonValue* SchemaReader::find(std::string_view reference) const {
  if (reference.empty() || reference[0] != '#') return nullptr;
  const JsonValue* at = &root_;
  for (std::string_view rest = reference.substr(1); !rest.empty();) {
    if (rest[0] != '/') return nullptr;
    const size_t end = rest.find('/', 1);
    const std::string_view part = rest.substr(1, end == std::string_view::npos ? end : end - 1);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end);
    std::string key;
    for (size_t i = 0; i < part.size(); ++i) {
      if (part.substr(i, 2) == "~0" || part.substr(i, 2) == "~1") {
        key += part[++i] == '0' ? '~' : '/';
      } else if (part.substr(i, 3) == "%25") {
        key += '%', i += 2;
      } else if (part.substr(i, 3) == "%22") {
        key += '"', i += 2;
      } else {
        key += part[i];
      }
    }
    if (at->is_array()) {
      size_t index = 0;
      for (const char c : key)
        index = c >= '0' && c <= '9' ? index * 10 + size_t(c - '0') : SIZE_MAX;
      at = index < at->elements().size() ? &at->elements()[index] : nullptr;
    } else {
      at = at->find(key);
    }
    if (at == nullptr) return nullptr;
  }
  return at;
}

Result<uint32_t> SchemaReader::count(const JsonValue& schema, const char* key, uint32_t otherwise,
                                     const std::string& where) const {
  const JsonValue* value = schema.find(key);
  if (value == nullptr) return otherwise;
  const Result<double> number = value->as_double(key);
  const bool fits = value->is_number() && number.ok() && *number >= 0 && *number <= 1e9 &&
                    static_cast<double>(static_cast<uint32_t>(*number)) == *number;
  if (!fits) {
    return invalid(cat("must be an integer from 0 to 1000000000; got ", value->describe()),
                   pointer_to(where, key));
  }
  return static_cast<uint32_t>(*number);
}

Result<ExprId> SchemaReader::read(const JsonValue& schema, const std::string& where) {
  if (schema.is_bool())
    return schema.as_bool(where).value_or(false) ? parts_.value() : b_.choice({});
  if (!schema.is_object())
    return invalid(cat("a schema is an object, true or false; got ", schema.describe()), where);
  if (depth_ >= kMaxSchemaDepth || ++reads_ > kMaxReads)
    return unsupported("the schema is too large, or refers to itself without end", where);
  LOOM_TRY(check_keywords(schema, where));
  ++depth_;
  const auto read_one = [&]() -> Result<ExprId> {
    if (schema.find("$ref") != nullptr) return read_ref(schema, where);
    if (schema.find("allOf") != nullptr) return read_all(schema, where);
    if (schema.find("anyOf") != nullptr) return read_any(schema, "anyOf", where);
    if (schema.find("oneOf") != nullptr) return read_any(schema, "oneOf", where);
    if (schema.find("enum") != nullptr || schema.find("const") != nullptr)
      return read_values(schema, where);
    return read_kinds(schema, where);
  };
  Result<ExprId> out = read_one();
  --depth_;
  return out;
}

Result<ExprId> SchemaReader::read_ref(const JsonValue& schema, const std::string& where) {
  const JsonValue& ref = *schema.find("$ref");
  const std::string at = pointer_to(where, "$ref");
  if (!ref.is_string()) return invalid(cat("must be a string; got ", ref.describe()), at);
  const JsonValue* target = find(ref.text());
  if (target == nullptr) {
    return unsupported(cat("the reference ", printable(ref.text()),
                           " leads nowhere in this schema; it may be # or #/..."),
                       at);
  }
  const JsonValue rest = without(schema, "$ref");
  if (!rest.members().empty()) {
    LOOM_ASSIGN(const JsonValue both, merge_schemas(*target, rest, where));
    return read(both, where);
  }
  const auto [found, is_new] = refs_.try_emplace(ref.text(), 0);
  if (is_new) {
    const RuleId rule = found->second = b_.new_rule(ref.text());
    LOOM_ASSIGN(const ExprId body, read(*target, ref.text()));
    b_.define(rule, body);
    return b_.ref(rule);
  }
  return b_.ref(found->second);
}

Result<ExprId> SchemaReader::read_all(const JsonValue& schema, const std::string& where) {
  const JsonValue& list = *schema.find("allOf");
  if (!list.is_array() || list.elements().empty())
    return invalid("must be a list of schemas", pointer_to(where, "allOf"));
  JsonValue all = without(schema, "allOf");
  for (const JsonValue& part : list.elements()) {
    const JsonValue* one = &part;
    const JsonValue* ref = part.find("$ref");
    if (ref != nullptr && without(part, "$ref").members().empty()) one = find(ref->text());
    if (one == nullptr) return unsupported("a reference that leads nowhere", where);
    LOOM_ASSIGN(all, merge_schemas(all, *one, pointer_to(where, "allOf")));
  }
  return read(all, where);
}

Result<ExprId> SchemaReader::read_any(const JsonValue& schema, const std::string& key,
                                      const std::string& where) {
  const JsonValue& list = *schema.find(key);
  const std::string at = pointer_to(where, key);
  if (!list.is_array() || list.elements().empty()) return invalid("must be a list of schemas", at);
  const std::vector<JsonValue>& parts = list.elements();
  const FindSchema finder = [this](std::string_view ref) { return find(ref); };
  for (size_t i = 0; key == "oneOf" && i < parts.size(); ++i) {
    for (size_t j = i + 1; j < parts.size(); ++j) {
      if (exclude_each_other(parts[i], parts[j], finder)) continue;
      return unsupported(cat("parts ", i, " and ", j,
                             " may fit the same value; let their types, values or required "
                             "members differ, or use anyOf"),
                         at);
    }
  }
  const JsonValue rest = without(schema, key);
  std::vector<ExprId> choices;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string here = cat(at, "/", i);
    if (rest.members().empty()) {
      LOOM_ASSIGN(const ExprId one, read(parts[i], here));
      choices.push_back(one);
      continue;
    }
    const JsonValue* part = &parts[i];
    const JsonValue* ref = part->find("$ref");
    if (ref != nullptr && without(*part, "$ref").members().empty()) part = find(ref->text());
    if (part == nullptr) return unsupported("a reference that leads nowhere", here);
    LOOM_ASSIGN(const JsonValue both, merge_schemas(rest, *part, here));
    LOOM_ASSIGN(const ExprId one, read(both, here));
    choices.push_back(one);
  }
  return b_.choice(std::move(choices));
}

Result<ExprId> SchemaReader::read_values(const JsonValue& schema, const std::string& where) {
  for (const JsonValue::Member& m : schema.members()) {
    if (m.first != "enum" && m.first != "const" && m.first != "type" && !is_annotation(m.first)) {
      return unsupported(cat("\"", printable(m.first), "\" beside values cannot be held to"),
                         pointer_to(where, m.first));
    }
  }
  const JsonValue* type = schema.find("type");
  const unsigned kinds = type != nullptr ? kinds_of_type(*type) : unsigned{kAnyKind};
  const JsonValue* one = schema.find("const");
  const JsonValue* all = schema.find("enum");
  if (all != nullptr && !all->is_array())
    return invalid(cat("must be a list; got ", all->describe()), pointer_to(where, "enum"));
  std::vector<ExprId> choices;
  const auto take = [&](const JsonValue& value) {
    const bool fits = one == nullptr || same_json(*one, value);
    if (fits && (kind_of_value(value) & kinds) != 0)
      choices.push_back(b_.literal(dump_json(value)));
  };
  if (all == nullptr) {
    take(*one);
  } else {
    for (const JsonValue& value : all->elements()) take(value);
  }
  return b_.choice(std::move(choices));
}

Result<ExprId> SchemaReader::read_kinds(const JsonValue& schema, const std::string& where) {
  const JsonValue* type = schema.find("type");
  unsigned kinds = kAnyKind;
  if (type != nullptr) {
    kinds = kinds_of_type(*type);
    const std::vector<JsonValue>& names = type->elements();
    const auto unknown = [](const JsonValue& v) { return kinds_of_type(v) == 0; };
    if ((type->is_string() && kinds == 0) || (!type->is_string() && !type->is_array()) ||
        std::ranges::any_of(names, unknown))
      return invalid(cat("no such type: ", type->describe()), pointer_to(where, "type"));
  } else if (without(schema, "").members().empty()) {
    return parts_.value();
  }
  std::vector<ExprId> choices;
  if ((kinds & kObject) != 0) {
    LOOM_ASSIGN(const ExprId object, read_object(schema, where));
    choices.push_back(object);
  }
  if ((kinds & kArray) != 0) {
    LOOM_ASSIGN(const ExprId array, read_array(schema, where));
    choices.push_back(array);
  }
  if ((kinds & kString) != 0) {
    LOOM_ASSIGN(const ExprId string, read_string(schema, where));
    choices.push_back(string);
  }
  if ((kinds & (kInteger | kFraction)) != 0) {
    LOOM_ASSIGN(const ExprId number, read_number(schema, (kinds & kFraction) == 0, where));
    choices.push_back(number);
  }
  if ((kinds & kBoolean) != 0) {
    choices.push_back(b_.literal("true"));
    choices.push_back(b_.literal("false"));
  }
  if ((kinds & kNull) != 0) choices.push_back(b_.literal("null"));
  return b_.choice(std::move(choices));
}

Result<ExprId> add_json_schema(Builder& builder, const JsonValue& schema,
                               const SchemaOptions& options) {
  return SchemaReader(builder, schema, options).read(schema, "#");
}
ExprId add_json_value(Builder& builder, const SchemaOptions& options) {
  return JsonParts(builder, options).value();
}
ExprId add_json_object(Builder& builder, const SchemaOptions& options) {
  return JsonParts(builder, options).object();
}

}  // namespace loom::core::grammar
