// Filters over the items of a sequence: selecting, mapping, joining, grouping in rows.
#include <algorithm>

#include "base/text.hpp"
#include "jinja/library.hpp"

namespace loom::core::jinja {
namespace {

using Kind = Value::Kind;

// The part of an item at "role" or "function.name"; the default if it has none.
Result<Value> part_of(const Value& item, const Value& path, const Value& otherwise, Meter& meter,
                      int64_t offset) {
  LOOM_ASSIGN(Value part, attribute_path(item, path, meter, offset));
  if (part.is(Kind::undefined) && !otherwise.is(Kind::undefined)) return otherwise;
  return part;
}

// The result of selecting from an empty or none input: filters test the truth of their input first.
Result<Value> nothing(const Call& call, Meter& meter) {
  return meter.make(Value::List(), call.offset, Value::Sequence::generator);
}

// selectattr("role", "equalto", "user"), reject("none") and the like.
Result<Value> select(const Call& call, bool by_attribute, bool keep, Meter& meter) {
  if (!call.self.truthy()) return nothing(call, meter);
  LOOM_ASSIGN(const Value::List items, iterate(call.self, meter, call.offset));
  const size_t first = by_attribute ? 1 : 0;
  if (call.arguments.size() < first || (!call.named.empty() && call.arguments.size() == first)) {
    return meter.refuse(cat("this use of '", call.name, "'"), call.offset);
  }
  Value::List kept;
  for (const Value& item : items) {
    LOOM_TRY(meter.work(0, call.offset));
    Call test;
    test.self = item;
    test.offset = call.offset;
    if (by_attribute) {
      LOOM_ASSIGN(test.self, attribute_path(item, call.arguments[0], meter, call.offset));
    }
    bool passes = test.self.truthy();
    if (call.arguments.size() > first) {
      test.name = call.arguments[first].text();
      test.arguments.assign(call.arguments.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                            call.arguments.end());
      test.named = call.named;
      LOOM_ASSIGN(passes, call_test(test, meter));
    }
    if (passes == keep) kept.push_back(item);
  }
  return meter.make(std::move(kept), call.offset, Value::Sequence::generator);
}

// map(attribute="name", default=""), or map("upper").
Result<Value> map_items(const Call& call, Meter& meter) {
  if (!call.self.truthy()) return nothing(call, meter);
  LOOM_ASSIGN(const Value::List items, iterate(call.self, meter, call.offset));
  const Value attribute = call.argument(SIZE_MAX, "attribute");
  const bool by_attribute = call.arguments.empty() && !attribute.is(Kind::undefined);
  if (!by_attribute && (call.arguments.empty() || !call.arguments[0].is(Kind::string))) {
    return meter.refuse("this use of 'map'", call.offset);
  }
  Value::List mapped;
  for (const Value& item : items) {
    LOOM_TRY(meter.work(0, call.offset));
    Value value;
    if (by_attribute) {
      LOOM_ASSIGN(value,
                  part_of(item, attribute, call.argument(SIZE_MAX, "default"), meter, call.offset));
    } else {
      Call filter;
      filter.name = call.arguments[0].text();
      filter.self = item;
      filter.arguments.assign(call.arguments.begin() + 1, call.arguments.end());
      filter.named = call.named;
      filter.offset = call.offset;
      // Nested map filters would recurse without a bound.
      if (filter.name == "map") return meter.refuse("'map' of 'map'", call.offset);
      LOOM_ASSIGN(value, call_filter(filter, meter));
    }
    mapped.push_back(std::move(value));
  }
  return meter.make(std::move(mapped), call.offset, Value::Sequence::generator);
}

Result<Value> end_of_list(const Call& call, Meter& meter) {
  LOOM_ASSIGN(const Value::List items, iterate(call.self, meter, call.offset));
  if (items.empty()) return Value::undefined(std::string(call.name));
  return call.name == "first" ? items.front() : items.back();
}

Result<Value> join_filter(const Call& call, Meter& meter) {
  const Value attribute = call.argument(1, "attribute");
  const Value separator = call.argument(0, "d");
  if (attribute.is(Kind::undefined)) return join_items(call, call.self, separator, meter);
  LOOM_ASSIGN(const Value::List items, iterate(call.self, meter, call.offset));
  Value::List parts;
  for (const Value& item : items) {
    LOOM_ASSIGN(Value part, attribute_path(item, attribute, meter, call.offset));
    parts.push_back(std::move(part));
  }
  LOOM_ASSIGN(const Value list, meter.make(std::move(parts), call.offset));
  return join_items(call, list, separator, meter);
}

Result<Value> reverse(const Call& call, Meter& meter) {
  LOOM_ASSIGN(Value::List items, iterate(call.self, meter, call.offset));
  std::reverse(items.begin(), items.end());
  if (!call.self.is(Kind::string))
    return meter.make(std::move(items), call.offset, Value::Sequence::generator);
  std::string out;
  for (const Value& item : items) out += item.text();
  return meter.make(std::move(out), call.offset);
}

// Rows of `count` items; the last one is filled up if a fill value is given.
Result<Value> batch(const Call& call, Meter& meter) {
  const Value count = call.argument(0, "linecount"), fill = call.argument(1, "fill_with");
  LOOM_ASSIGN(const Value::List items, iterate(call.self, meter, call.offset));
  if (!count.is_integer() || count.number() < 1 || count.number() > 1'000'000)
    return meter.fail("'batch' needs a count of items", call.offset);
  const auto size = static_cast<size_t>(count.number());
  Value::List rows;
  for (size_t i = 0; i < items.size(); i += size) {
    Value::List row(items.begin() + static_cast<std::ptrdiff_t>(i),
                    items.begin() + static_cast<std::ptrdiff_t>(std::min(i + size, items.size())));
    if (!fill.is(Kind::undefined) && !fill.is(Kind::none)) row.resize(size, fill);
    LOOM_ASSIGN(Value made, meter.make(std::move(row), call.offset));
    rows.push_back(std::move(made));
  }
  return meter.make(std::move(rows), call.offset, Value::Sequence::generator);
}

// `count` columns of nearly equal length.
Result<Value> columns(const Call& call, Meter& meter) {
  const Value count = call.argument(0, "slices"), fill = call.argument(1, "fill_with");
  LOOM_ASSIGN(const Value::List items, iterate(call.self, meter, call.offset));
  if (!count.is_integer() || count.number() < 1 || count.number() > 10'000)
    return meter.fail("'slice' needs a count of columns", call.offset);
  const auto size = static_cast<size_t>(count.number());
  const size_t each = items.size() / size, longer = items.size() % size;
  Value::List rows;
  size_t at = 0;
  for (size_t i = 0; i < size; ++i) {
    const size_t length = each + (i < longer ? 1 : 0);
    Value::List row(items.begin() + static_cast<std::ptrdiff_t>(at),
                    items.begin() + static_cast<std::ptrdiff_t>(at + length));
    at += length;
    if (!fill.is(Kind::undefined) && !fill.is(Kind::none) && i >= longer) row.push_back(fill);
    LOOM_ASSIGN(Value made, meter.make(std::move(row), call.offset));
    rows.push_back(std::move(made));
  }
  return meter.make(std::move(rows), call.offset, Value::Sequence::generator);
}

Result<Value> items_filter(const Call& call, Meter& meter) {
  if (!call.self.is(Kind::dict) && !call.self.is(Kind::undefined))
    return meter.fail(cat("no items of ", kind_name(call.self)), call.offset);
  return items_of(call.self, "items", meter, call.offset);
}

}  // namespace

// Path parts are keys, or indices if they are digits.
Result<Value> attribute_path(const Value& item, const Value& path, Meter& meter, int64_t offset) {
  LOOM_TRY(meter.work(path.text().size(), offset));
  Value at = item;
  std::string rest = path.is_integer() ? std::to_string(path.number()) : path.text();
  for (bool more = true; more;) {
    const size_t dot = rest.find('.');
    const std::string part = rest.substr(0, dot);
    more = dot != std::string::npos;
    if (more) rest = rest.substr(dot + 1);
    if (at.is(Kind::undefined)) return meter.undefined(at, offset);
    const bool index =
        !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos;
    const auto number = static_cast<size_t>(index ? std::stoul(part) : 0);
    if (index && at.is(Kind::list)) {
      at = number < at.items().size() ? at.items()[number] : Value::undefined(part);
      continue;
    }
    const Value* found = at.find(part);
    at = found != nullptr ? *found : Value::undefined(part);
  }
  return at;
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

Result<Value> items_of(const Value& dict, std::string_view what, Meter& meter, int64_t offset) {
  Value::List list;
  for (const Value::Member& member : dict.members()) {
    if (what == "values") {
      list.push_back(member.second);
      continue;
    }
    LOOM_ASSIGN(Value key, key_value(member.first, meter, offset));
    if (what == "keys") {
      list.push_back(std::move(key));
    } else {
      LOOM_ASSIGN(Value pair, meter.make(Value::List{std::move(key), member.second}, offset,
                                         Value::Sequence::tuple));
      list.push_back(std::move(pair));
    }
  }
  return meter.make(std::move(list), offset, Value::Sequence::view);
}

Result<Value> list_filter(const Call& call, bool& known, Meter& meter) {
  const std::string_view name = call.name;
  known = true;
  if (name == "first" || name == "last") return end_of_list(call, meter);
  if (name == "selectattr") return select(call, true, true, meter);
  if (name == "rejectattr") return select(call, true, false, meter);
  if (name == "select") return select(call, false, true, meter);
  if (name == "reject") return select(call, false, false, meter);
  if (name == "map") return map_items(call, meter);
  if (name == "join") return join_filter(call, meter);
  if (name == "items") return items_filter(call, meter);
  if (name == "reverse") return reverse(call, meter);
  if (name == "batch") return batch(call, meter);
  if (name == "slice") return columns(call, meter);
  if (name == "list") {
    LOOM_ASSIGN(Value::List items, iterate(call.self, meter, call.offset));
    return meter.make(std::move(items), call.offset);
  }
  known = false;
  return Value();
}

}  // namespace loom::core::jinja
