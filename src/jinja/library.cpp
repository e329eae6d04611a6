// The names that templates may call. Each follows the Jinja or Python function of that name for the
// kinds of values that exist here.
#include "jinja/library.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "text/unicode.hpp"

namespace loom::core::jinja {
namespace {

using Kind = Value::Kind;

Result<Value> length_of(const Call& call, Meter& meter) {
  const Value& self = call.self;
  LOOM_TRY(meter.work(self.text().size(), call.offset));
  switch (self.kind()) {
    case Kind::undefined: return Value::integer(0);
    case Kind::string:
      return Value::integer(static_cast<int64_t>(text::count_code_points(self.text())));
    case Kind::list: return Value::integer(static_cast<int64_t>(self.items().size()));
    case Kind::dict: return Value::integer(static_cast<int64_t>(self.members().size()));
    default: return meter.fail(cat("no length of ", kind_name(self.kind())), call.offset);
  }
}

Result<Value> join_items(const Call& call, const Value& list, const Value& separator,
                         Meter& meter) {
  LOOM_ASSIGN(const std::string between, meter.to_text(separator, call.offset));
  LOOM_ASSIGN(const Value::List items, iterate(list, meter, call.offset));
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    LOOM_ASSIGN(const std::string text, meter.to_text(items[i], call.offset));
    LOOM_TRY(meter.work(between.size(), call.offset));
    if (i > 0) out += between;
    out += text;
  }
  return meter.make(std::move(out), call.offset);
}

// selectattr("role", "equalto", "user"), reject("none") and the like.
Result<Value> select(const Call& call, bool by_attribute, bool keep, Meter& meter) {
  if (!call.self.truthy()) return meter.make(Value::List(), call.offset);
  LOOM_ASSIGN(const Value::List items, iterate(call.self, meter, call.offset));
  const size_t first = by_attribute ? 1 : 0;
  if (call.arguments.size() < first || !call.named.empty()) {
    return meter.refuse(cat("this use of '", call.name, "'"), call.offset);
  }
  Value::List kept;
  for (const Value& item : items) {
    LOOM_TRY(meter.work(0, call.offset));
    Call test;
    test.self = item;
    test.offset = call.offset;
    if (by_attribute) {
      const Value* found = item.find(call.arguments[0].text());
      test.self = found != nullptr ? *found : Value::undefined(call.arguments[0].text());
    }
    bool passes = test.self.truthy();
    if (call.arguments.size() > first) {
      test.name = call.arguments[first].text();
      test.arguments.assign(call.arguments.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                            call.arguments.end());
      LOOM_ASSIGN(passes, call_test(test, meter));
    }
    if (passes == keep) kept.push_back(item);
  }
  return meter.make(std::move(kept), call.offset);
}

Result<Value> map_attribute(const Call& call, Meter& meter) {
  const Value attribute = call.argument(SIZE_MAX, "attribute");
  if (!attribute.is(Kind::string) || !call.arguments.empty()) {
    return meter.refuse("'map' without an attribute", call.offset);
  }
  if (!call.self.truthy()) return meter.make(Value::List(), call.offset);
  LOOM_ASSIGN(const Value::List items, iterate(call.self, meter, call.offset));
  Value::List mapped;
  for (const Value& item : items) {
    const Value* found = item.find(attribute.text());
    mapped.push_back(found != nullptr ? *found : Value::undefined(attribute.text()));
  }
  return meter.make(std::move(mapped), call.offset);
}

Result<Value> end_of_list(const Call& call, Meter& meter) {
  LOOM_ASSIGN(const Value::List items, iterate(call.self, meter, call.offset));
  if (items.empty()) return Value::undefined(std::string(call.name));
  return call.name == "first" ? items.front() : items.back();
}

Result<Value> to_integer(const Call& call, Meter& meter) {
  if (call.self.is_number()) return Value::integer(call.self.number());
  const std::string& text = call.self.text();
  const bool digits =
      !text.empty() && text.size() < 18 &&
      std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) return meter.refuse("'int' of anything but digits", call.offset);
  int64_t value = 0;
  for (const char c : text) value = value * 10 + (c - '0');
  return Value::integer(value);
}

Result<Value> items_of(const Value& dict, std::string_view what, Meter& meter, int64_t offset) {
  Value::List list;
  for (const Value::Member& member : dict.members()) {
    LOOM_ASSIGN(Value key, meter.make(member.first, offset));
    if (what == "keys") {
      list.push_back(std::move(key));
    } else if (what == "values") {
      list.push_back(member.second);
    } else {
      LOOM_ASSIGN(Value pair, meter.make(Value::List{std::move(key), member.second}, offset));
      list.push_back(std::move(pair));
    }
  }
  return meter.make(std::move(list), offset);
}

Result<Value> list_filter(const Call& call, bool& known, Meter& meter) {
  const std::string_view name = call.name;
  known = true;
  if (name == "first" || name == "last") return end_of_list(call, meter);
  if (name == "selectattr") return select(call, true, true, meter);
  if (name == "rejectattr") return select(call, true, false, meter);
  if (name == "select") return select(call, false, true, meter);
  if (name == "reject") return select(call, false, false, meter);
  if (name == "map") return map_attribute(call, meter);
  if (name == "join") return join_items(call, call.self, call.argument(0, "d"), meter);
  if (name == "items" && call.self.is(Kind::dict)) {
    return items_of(call.self, "items", meter, call.offset);
  }
  if (name == "list" || name == "reverse") {
    LOOM_ASSIGN(Value::List items, iterate(call.self, meter, call.offset));
    if (name == "reverse") std::reverse(items.begin(), items.end());
    return meter.make(std::move(items), call.offset);
  }
  known = false;
  return Value();
}

}  // namespace

Result<Value> call_filter(const Call& call, Meter& meter) {
  const std::string_view name = call.name;
  if (name == "length" || name == "count") return length_of(call, meter);
  if (name == "default" || name == "d") {
    const bool missing = call.self.is(Kind::undefined) ||
                         (call.argument(1, "boolean").truthy() && !call.self.truthy());
    return missing ? call.argument(0, "default_value") : call.self;
  }
  if (name == "tojson") {
    if (!call.arguments.empty() || !call.named.empty()) {
      return meter.refuse("'tojson' with arguments", call.offset);
    }
    LOOM_TRY(meter.work(call.self.weight() * 32 + call.self.text().size(), call.offset));
    std::string json;
    if (!append_json(json, call.self)) {
      return meter.fail("'tojson' of an undefined value or a namespace", call.offset);
    }
    return meter.make(std::move(json), call.offset);
  }
  if (name == "int") return to_integer(call, meter);
  if (name == "safe") return call.self;
  bool known = false;
  Result<Value> listed = list_filter(call, known, meter);
  if (known) return listed;
  static constexpr std::string_view kOfText[] = {"trim",       "lower", "upper",  "string",
                                                 "capitalize", "title", "replace"};
  if (std::find(std::begin(kOfText), std::end(kOfText), name) == std::end(kOfText)) {
    return meter.refuse(cat("the filter '", printable(name), "'"), call.offset);
  }
  LOOM_ASSIGN(std::string text, meter.to_text(call.self, call.offset));
  if (name == "string") return meter.make(std::move(text), call.offset);
  return text_operation(call, text, known, meter);
}

Result<Value> call_method(const Call& call, Meter& meter) {
  const std::string_view name = call.name;
  if (call.self.is(Kind::undefined)) return meter.undefined(call.self, call.offset);
  if (call.self.is(Kind::string)) {
    if (name == "join" && call.arguments.size() == 1) {
      return join_items(call, call.arguments[0], call.self, meter);
    }
    bool known = false;
    Result<Value> result = text_operation(call, call.self.text(), known, meter);
    if (known && name != "trim") return result;
  }
  if (call.self.is(Kind::dict)) {
    if (name == "get") {
      const Value* found = call.self.find(call.argument(0).text());
      if (found != nullptr) return *found;
      return call.arguments.size() > 1 ? call.arguments[1] : Value::none();
    }
    if (name == "items" || name == "keys" || name == "values") {
      return items_of(call.self, name, meter, call.offset);
    }
  }
  return meter.refuse(cat("the method '", printable(name), "' of ", kind_name(call.self.kind())),
                      call.offset);
}

bool is_function(std::string_view name) {
  static constexpr std::string_view kNames[] = {"raise_exception", "namespace", "dict", "range",
                                                "strftime_now"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

Result<Value> call_function(const Call& call, const CivilTime& now, Meter& meter) {
  if (call.name == "raise_exception") {
    LOOM_ASSIGN(const std::string message, meter.to_text(call.argument(0, "message"), call.offset));
    return meter.fail(cat("the template refuses the messages: ", printable(message, 500)),
                      call.offset);
  }
  if (call.name == "namespace" && call.arguments.empty()) {
    Value::Dict members;
    for (const auto& [key, value] : call.named) {
      if (value.holds_space()) return meter.refuse("a namespace in a namespace", call.offset);
      members.emplace_back(key, value);
    }
    return Value::space(std::move(members));
  }
  if (call.name == "dict" && call.arguments.empty()) {
    return meter.make(Value::Dict(call.named.begin(), call.named.end()), call.offset);
  }
  if (call.name == "strftime_now") {
    const Value format = call.argument(0, "format");
    if (!format.is(Kind::string)) return meter.fail("strftime_now() needs a format", call.offset);
    LOOM_TRY(meter.work(16 * format.text().size(), call.offset));
    std::optional<std::string> text = format_time(now, format.text());
    if (!text) return meter.refuse(cat("the format '", printable(format.text()), "'"), call.offset);
    return meter.make(std::move(*text), call.offset);
  }
  if (call.name == "range" && !call.arguments.empty() && call.arguments.size() <= 2) {
    const bool both = call.arguments.size() == 2;
    const Value low = both ? call.arguments[0] : Value::integer(0);
    const Value high = call.arguments.back();
    if (!low.is_number() || !high.is_number())
      return meter.fail("range() needs integers", call.offset);
    Value::List list;
    for (int64_t i = low.number(); i < high.number(); ++i) {
      LOOM_TRY(meter.work(64, call.offset));
      list.push_back(Value::integer(i));
    }
    return meter.make(std::move(list), call.offset);
  }
  return meter.refuse(cat("the function '", printable(call.name), "'"), call.offset);
}

Result<bool> call_test(const Call& call, Meter& meter) {
  const std::string_view name = call.name;
  const Value& self = call.self;
  if (name == "defined") return !self.is(Kind::undefined);
  if (name == "undefined") return self.is(Kind::undefined);
  if (name == "none") return self.is(Kind::none);
  if (name == "string") return self.is(Kind::string);
  if (name == "boolean") return self.is(Kind::boolean);
  if (name == "true") return self.is(Kind::boolean) && self.number() != 0;
  if (name == "false") return self.is(Kind::boolean) && self.number() == 0;
  if (name == "integer") return self.is(Kind::integer);
  if (name == "number") return self.is_number();
  if (name == "mapping") return self.is(Kind::dict);
  if (name == "sequence" || name == "iterable") {
    const bool holds = self.is(Kind::string) || self.is(Kind::list) || self.is(Kind::dict);
    return holds || self.is(Kind::undefined);
  }
  if ((name == "odd" || name == "even") && self.is_number()) {
    return (self.number() % 2 != 0) == (name == "odd");
  }
  if (call.arguments.size() == 1) {
    const Value& other = call.arguments[0];
    LOOM_TRY(meter.work(32 * self.weight() + self.text().size(), call.offset));
    if (name == "equalto" || name == "eq" || name == "==") return self.equals(other);
    if (name == "ne" || name == "!=") return !self.equals(other);
    if (name == "in") return contains(other, self, meter, call.offset);
  }
  return meter.refuse(cat("the test '", printable(name), "'"), call.offset);
}

}  // namespace loom::core::jinja
