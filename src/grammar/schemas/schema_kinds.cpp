// Strings, numbers, arrays and objects of a schema.
#include <algorithm>

#include "base/text.hpp"
#include "grammar/pattern.hpp"
#include "grammar/schemas/numbers.hpp"
#include "grammar/schemas/schema_reader.hpp"

namespace loom::core::grammar {
namespace {

constexpr uint32_t kUnlimited = Builder::kEndless;

struct FormatPattern {
  std::string_view name, pattern;
};

// Parts of RFC 3339, RFC 4122, RFC 2673, RFC 4291, RFC 1123, RFC 5321, RFC 3986. Years are 1000 to
// 2999 and leap days those of the Gregorian calendar; there are no leap seconds.
#define LOOM_DATE                                                                      \
  "([12][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][" \
  "0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|([12][0-9](0[48]|[2468][048]|[13579][26])|(1"   \
  "2|16|20|24|28)00)-02-29)"
#define LOOM_TIME                                                                           \
  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5]" \
  "[0-9])"
#define LOOM_BYTE "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define LOOM_LABEL "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
constexpr FormatPattern kFormats[] = {
    {"date", "^" LOOM_DATE "$"},
    {"time", "^" LOOM_TIME "$"},
    {"date-time", "^" LOOM_DATE "T" LOOM_TIME "$"},
    {"duration",
     "^P([0-9]{1,6}W|([0-9]{1,6}Y([0-9]{1,6}M([0-9]{1,6}D)?)?|[0-9]{1,6}M([0-9]{1,6}D)?|[0-9]{1,6}"
     "D)"
     "(T([0-9]{1,6}H([0-9]{1,6}M([0-9]{1,6}S)?)?|[0-9]{1,6}M([0-9]{1,6}S)?|[0-9]{1,6}S))?|"
     "T([0-9]{1,6}H([0-9]{1,6}M([0-9]{1,6}S)?)?|[0-9]{1,6}M([0-9]{1,6}S)?|[0-9]{1,6}S))$"},
    {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
    {"ipv4", "^" LOOM_BYTE "(\\." LOOM_BYTE "){3}$"},
    {"ipv6", "^[0-9a-f]{1,4}(:[0-9a-f]{1,4}){7}$"},
    {"hostname", "^" LOOM_LABEL "(\\." LOOM_LABEL "){0,3}$"},
    {"email",
     "^[a-z0-9_+-]{1,30}(\\.[a-z0-9_+-]{1,30}){0,1}@" LOOM_LABEL "(\\." LOOM_LABEL "){1,3}$"},
    {"uri", "^(https?|ftp)://" LOOM_LABEL "(\\." LOOM_LABEL
            "){0,3}(:[1-9][0-9]{0,3})?(/[A-Za-z0-9_.~-]*)*(\\?[A-Za-z0-9_.~=&-]*)?(#[A-Za-z0-9_.~-]"
            "*)?$"},
};
#undef LOOM_DATE
#undef LOOM_TIME
#undef LOOM_BYTE
#undef LOOM_LABEL

Error at_keyword(Error error, const std::string& where, std::string_view key) {
  error.where = cat(where, "/", key);
  return error;
}

}  // namespace

Result<ExprId> SchemaReader::read_string(const JsonValue& schema, const std::string& where) {
  LOOM_ASSIGN(const uint32_t least, count(schema, "minLength", 0, where));
  LOOM_ASSIGN(const uint32_t most, count(schema, "maxLength", kUnlimited, where));
  const JsonValue* pattern = schema.find("pattern");
  const JsonValue* format = schema.find("format");
  if (pattern == nullptr && format == nullptr) {
    if (most < least) return b_.choice({});
    if (least == 0 && most == kUnlimited) return parts_.string();
    return b_.sequence(
        {b_.literal("\""), b_.repeat(parts_.character(), least, most), b_.literal("\"")});
  }
  const char* key = pattern != nullptr ? "pattern" : "format";
  if (least > 0 || most != kUnlimited || (pattern != nullptr && format != nullptr)) {
    return at_keyword(unsupported("a pattern or format beside another one, or beside a length, "
                                  "cannot be held to; a pattern may say the length: ^.{1,9}$"),
                      where, key);
  }
  const JsonValue& value = pattern != nullptr ? *pattern : *format;
  if (!value.is_string())
    return at_keyword(invalid(cat("must be a string; got ", value.describe())), where, key);
  std::string_view text = value.text();
  if (format != nullptr) {
    const auto known = std::ranges::find(kFormats, text, &FormatPattern::name);
    if (known == std::end(kFormats)) {
      std::vector<std::string> names;
      for (const FormatPattern& f : kFormats) names.emplace_back(f.name);
      return at_keyword(unsupported(cat("the format ", printable(text),
                                        " cannot be held to; there are ", join(names, ", "))),
                        where, key);
    }
    text = known->pattern;
  }
  const Result<ExprId> inside = add_pattern(b_, text);
  if (!inside.ok()) return at_keyword(inside.error(), where, key);
  return b_.sequence({b_.literal("\""), *inside, b_.literal("\"")});
}

Result<ExprId> SchemaReader::read_number(const JsonValue& schema, bool whole,
                                         const std::string& where) {
  NumberRange range;
  struct Limit {
    const char* key;
    bool low, open;
  };
  for (const Limit& l : {Limit{"minimum", true, false}, Limit{"exclusiveMinimum", true, true},
                         Limit{"maximum", false, false}, Limit{"exclusiveMaximum", false, true}}) {
    const JsonValue* value = schema.find(l.key);
    if (value == nullptr) continue;
    const Result<Bound> bound = bound_of(*value, l.open);
    if (!bound.ok()) return at_keyword(bound.error(), where, l.key);
    std::optional<Bound>& to = l.low ? range.low : range.high;
    const int order = to.has_value() ? compare(*bound, *to) : 0;
    const bool tighter = l.low ? order > 0 : order < 0;
    if (!to.has_value() || tighter || (order == 0 && l.open)) to = *bound;
  }
  if (const JsonValue* step = schema.find("multipleOf")) {
    const Result<double> value = step->as_double("multipleOf");
    if (!value.ok() || *value != 1.0) {
      return at_keyword(unsupported("multiples of anything but 1 cannot be held to"), where,
                        "multipleOf");
    }
    whole = true;
  }
  return whole ? add_integers(b_, range) : add_reals(b_, range);
}

Result<ExprId> SchemaReader::read_array(const JsonValue& schema, const std::string& where) {
  LOOM_ASSIGN(const uint32_t least, count(schema, "minItems", 0, where));
  LOOM_ASSIGN(uint32_t most, count(schema, "maxItems", kUnlimited, where));
  const JsonValue* unique = schema.find("uniqueItems");
  if (unique != nullptr && most > 1 && unique->as_bool("uniqueItems").value_or(true))
    return at_keyword(unsupported("items that differ cannot be held to"), where, "uniqueItems");
  std::vector<ExprId> first;
  if (const JsonValue* prefix = schema.find("prefixItems")) {
    if (!prefix->is_array())
      return at_keyword(invalid("must be a list of schemas"), where, "prefixItems");
    for (size_t i = 0; i < prefix->elements().size(); ++i) {
      const std::string here = cat(where, "/prefixItems/", i);
      LOOM_ASSIGN(const ExprId item, read(prefix->elements()[i], here));
      first.push_back(b_.named(here, item));
    }
  }
  const JsonValue* items = schema.find("items");
  ExprId item = 0;
  if (items == nullptr) {
    item = parts_.value();
  } else if (items->is_bool() && !items->as_bool("items").value_or(true)) {
    most = std::min(most, static_cast<uint32_t>(first.size()));
  } else {
    LOOM_ASSIGN(const ExprId one, read(*items, where + "/items"));
    item = b_.named(where + "/items", one);
  }
  if (most < least) return b_.choice({});
  // Backward from the last of the first items: each may be the last of all if the minimum is
  // reached.
  const auto fixed = static_cast<uint32_t>(std::min<size_t>(first.size(), most));
  ExprId rest = b_.empty();
  if (most > fixed) {
    const uint32_t more = most == kUnlimited ? kUnlimited : most - fixed;
    const uint32_t need = least > fixed ? least - fixed : 0;
    if (fixed == 0) return parts_.wrapped("[", parts_.list(item, need, more), "]");
    rest = b_.repeat(b_.sequence({parts_.comma(), item}), need, more);
  }
  for (uint32_t i = fixed; i-- > 0;) {
    const ExprId here = i == 0 ? first[0] : b_.sequence({parts_.comma(), first[i]});
    const ExprId whole = b_.sequence({here, rest});
    rest = least > i ? whole : b_.optional(whole);
  }
  return parts_.wrapped("[", rest, "]");
}

Result<ExprId> SchemaReader::read_object(const JsonValue& schema, const std::string& where) {
  std::vector<std::string> names;
  LOOM_ASSIGN(const std::vector<Member> members, read_members(schema, names, where));
  LOOM_ASSIGN(More more, read_more(schema, names, where));
  LOOM_TRY(count_members(schema, members, more, where));
  return parts_.wrapped("{", member_list(members, more), "}");
}

Result<std::vector<SchemaReader::Member>> SchemaReader::read_members(
    const JsonValue& schema, std::vector<std::string>& names, const std::string& where) {
  std::vector<std::string> required;
  if (const JsonValue* list = schema.find("required")) {
    for (const JsonValue& name : list->elements()) required.push_back(name.text());
  }
  const auto is_required = [&](const std::string& name) {
    return std::ranges::find(required, name) != required.end();
  };
  std::vector<Member> out;
  const auto add = [&](const std::string& name, ExprId value) {
    names.push_back(name);
    const ExprId member = b_.sequence({parts_.name(name), parts_.colon(), value});
    out.push_back({b_.named(cat(where, "/properties/", name), member), is_required(name)});
  };
  if (const JsonValue* properties = schema.find("properties")) {
    if (!properties->is_object())
      return at_keyword(invalid("must be an object of schemas"), where, "properties");
    for (const JsonValue::Member& p : properties->members()) {
      const bool never = p.second.is_bool() && !p.second.as_bool("").value_or(true);
      if (never && !is_required(p.first)) {
        names.push_back(p.first);
        continue;
      }
      LOOM_ASSIGN(const ExprId value, read(p.second, cat(where, "/properties/", p.first)));
      add(p.first, value);
    }
  }
  for (const std::string& name : required) {
    if (std::ranges::find(names, name) != names.end()) continue;
    LOOM_ASSIGN(const ExprId value, value_of_more(schema, where));
    add(name, value);
  }
  return out;
}

// The schema of members that `properties` does not name.
Result<ExprId> SchemaReader::value_of_more(const JsonValue& schema, const std::string& where) {
  const JsonValue* more = schema.find("additionalProperties");
  if (more != nullptr) return read(*more, where + "/additionalProperties");
  return parts_.options.closed ? b_.choice({}) : parts_.value();
}

Result<SchemaReader::More> SchemaReader::read_more(const JsonValue& schema,
                                                   const std::vector<std::string>& names,
                                                   const std::string& where) {
  More out;
  const JsonValue* more = schema.find("additionalProperties");
  out.allowed = more != nullptr ? !more->is_bool() || more->as_bool("").value_or(true)
                                : !parts_.options.closed;
  if (!out.allowed) return out;
  ExprId name = parts_.other_name(names);
  if (const JsonValue* rule = schema.find("propertyNames")) {
    if (!names.empty()) {
      return at_keyword(unsupported("beside \"properties\" it cannot be held to"), where,
                        "propertyNames");
    }
    LOOM_ASSIGN(JsonValue both, merge_schemas(*rule, *parse_json("{\"type\":\"string\"}", "type"),
                                              where + "/propertyNames"));
    LOOM_ASSIGN(name, read(both, where + "/propertyNames"));
  }
  LOOM_ASSIGN(const ExprId value, value_of_more(schema, where));
  out.expr = b_.named(where + "/additionalProperties", b_.sequence({name, parts_.colon(), value}));
  return out;
}

// minProperties and maxProperties: for objects without named members, or if they hold anyway.
Status SchemaReader::count_members(const JsonValue& schema, const std::vector<Member>& members,
                                   More& more, const std::string& where) {
  LOOM_ASSIGN(const uint32_t least, count(schema, "minProperties", 0, where));
  LOOM_ASSIGN(const uint32_t most, count(schema, "maxProperties", kUnlimited, where));
  const auto required = static_cast<uint32_t>(std::ranges::count_if(members, &Member::required));
  const auto named = static_cast<uint32_t>(members.size());
  if (members.empty() && more.allowed && most >= least) {
    more.least = least;
    more.most = most;
    return {};
  }
  const bool enough = required >= least;
  const bool is_small = most == kUnlimited || (!more.allowed && named <= most);
  // All named members are required, so the others make up the count.
  if (required == named && more.allowed && most >= std::max(named, least)) {
    more.least = least > named ? least - named : 0;
    more.most = most == kUnlimited ? kUnlimited : most - named;
    return {};
  }
  if (enough && is_small) return {};
  return at_keyword(unsupported("beside members that may be absent it cannot be held to"), where,
                    enough ? "maxProperties" : "minProperties");
}

// Two chains over the members in order: one before the first written member, one after it, which
// starts with a comma.
ExprId SchemaReader::member_list(const std::vector<Member>& members, const More& more) {
  ExprId first = b_.empty(), next = b_.empty();
  if (more.allowed && more.most > 0) {
    first = parts_.list(more.expr, more.least, more.most);
    next = b_.repeat(b_.sequence({parts_.comma(), more.expr}), more.least, more.most);
  }
  for (size_t i = members.size(); i-- > 0;) {
    const Member& m = members[i];
    const ExprId after = b_.named("members", next);
    const ExprId begin = b_.sequence({m.expr, after});
    const ExprId go_on = b_.sequence({parts_.comma(), m.expr, after});
    first = m.required ? begin : b_.choice({begin, b_.named("first members", first)});
    next = m.required ? go_on : b_.choice({go_on, after});
  }
  return first;
}

}  // namespace loom::core::grammar
