// Filters that compare items: sort, unique, groupby, dictsort, min, max; and sum.
#include <algorithm>

#include "base/text.hpp"
#include "jinja/library.hpp"

namespace loom::core::jinja {
namespace {

using Kind = Value::Kind;

struct Keyed {
  Value key, item;
};

// Strings compare without case by default.
Result<Value> key_of(const Value& item, const Value& attribute, bool cased, Meter& meter,
                     int64_t offset) {
  Value key = item;
  if (attribute.is(Kind::string) && attribute.text().find(',') != std::string::npos) {
    Value::List keys;
    std::string rest = attribute.text();
    while (true) {
      const size_t comma = rest.find(',');
      LOOM_ASSIGN(Value part,
                  key_of(item, Value::string(rest.substr(0, comma)), cased, meter, offset));
      keys.push_back(std::move(part));
      if (comma == std::string::npos) break;
      rest = rest.substr(comma + 1);
    }
    return meter.make(std::move(keys), offset);
  }
  if (attribute.is(Kind::string) || attribute.is_integer()) {
    LOOM_ASSIGN(key, attribute_path(item, attribute, meter, offset));
  }
  if (cased || !key.is(Kind::string)) return key;
  return meter.make(lower_text(key.text()), offset);
}

Result<std::vector<Keyed>> keyed(const Value::List& items, const Value& attribute, bool cased,
                                 Meter& meter, int64_t offset) {
  std::vector<Keyed> all;
  for (const Value& item : items) {
    LOOM_ASSIGN(Value key, key_of(item, attribute, cased, meter, offset));
    all.push_back({std::move(key), item});
  }
  return all;
}

// A stable merge sort whose comparisons may fail: std::stable_sort cannot stop.
Status sort_keyed(std::vector<Keyed>& all, bool reverse, Meter& meter, int64_t offset) {
  std::vector<Keyed> next(all.size());
  for (size_t width = 1; width < all.size(); width *= 2) {
    for (size_t begin = 0; begin < all.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, all.size());
      const size_t end = std::min(begin + 2 * width, all.size());
      size_t a = begin, b = middle;
      for (size_t out = begin; out < end; ++out) {
        bool right = a == middle;
        if (!right && b < end) {
          LOOM_ASSIGN(const int compared, order(all[b].key, all[a].key, meter, offset));
          right = reverse ? compared > 0 : compared < 0;
        }
        next[out] = right ? all[b++] : all[a++];
      }
    }
    std::swap(all, next);
  }
  return {};
}

Result<Value> values_of(std::vector<Keyed> all, Meter& meter, int64_t offset) {
  Value::List list;
  for (Keyed& one : all) list.push_back(std::move(one.item));
  return meter.make(std::move(list), offset);
}

Result<Value> sort(const Call& call, Meter& meter) {
  LOOM_ASSIGN(const Value::List items, iterate(call.self, meter, call.offset));
  const bool cased = call.argument(1, "case_sensitive").truthy();
  LOOM_ASSIGN(auto all, keyed(items, call.argument(2, "attribute"), cased, meter, call.offset));
  LOOM_TRY(sort_keyed(all, call.argument(0, "reverse").truthy(), meter, call.offset));
  return values_of(std::move(all), meter, call.offset);
}

Result<Value> unique(const Call& call, Meter& meter) {
  LOOM_ASSIGN(const Value::List items, iterate(call.self, meter, call.offset));
  const bool cased = call.argument(0, "case_sensitive").truthy();
  LOOM_ASSIGN(const auto all,
              keyed(items, call.argument(1, "attribute"), cased, meter, call.offset));
  std::vector<Keyed> kept;
  for (const Keyed& one : all) {
    bool seen = false;
    for (const Keyed& other : kept) {
      LOOM_TRY(meter.work(32 * one.key.weight() + one.key.text().size(), call.offset));
      seen = seen || other.key.equals(one.key);
    }
    if (!seen) kept.push_back(one);
  }
  LOOM_ASSIGN(const Value list, values_of(std::move(kept), meter, call.offset));
  return Value::list(list.items(), Value::Sequence::generator);
}

// Pairs of a shared value and its items.
Result<Value> groupby(const Call& call, Meter& meter) {
  LOOM_ASSIGN(const Value::List items, iterate(call.self, meter, call.offset));
  const Value attribute = call.argument(0, "attribute");
  const bool cased = call.argument(2, "case_sensitive").truthy();
  if (!attribute.is(Kind::string) && !attribute.is_integer())
    return meter.fail("'groupby' needs an attribute", call.offset);
  LOOM_ASSIGN(auto all, keyed(items, attribute, cased, meter, call.offset));
  LOOM_TRY(sort_keyed(all, false, meter, call.offset));
  Value::List groups;
  for (size_t i = 0; i < all.size();) {
    size_t end = i;
    Value::List group;
    while (end < all.size() && all[end].key.equals(all[i].key)) group.push_back(all[end++].item);
    LOOM_ASSIGN(const Value key, attribute_path(all[i].item, attribute, meter, call.offset));
    LOOM_ASSIGN(Value list, meter.make(std::move(group), call.offset));
    LOOM_ASSIGN(Value pair,
                meter.make(Value::List{key, std::move(list)}, call.offset, Value::Sequence::tuple));
    groups.push_back(std::move(pair));
    i = end;
  }
  return meter.make(std::move(groups), call.offset);
}

Result<Value> dictsort(const Call& call, Meter& meter) {
  if (!call.self.is(Kind::dict))
    return meter.fail(cat("'dictsort' of ", kind_name(call.self)), call.offset);
  const Value by = call.argument(1, "by");
  const bool by_value = by.is(Kind::string) && by.text() == "value";
  LOOM_ASSIGN(const Value pairs, items_of(call.self, "items", meter, call.offset));
  LOOM_ASSIGN(auto all, keyed(pairs.items(), Value::integer(by_value ? 1 : 0),
                              call.argument(0, "case_sensitive").truthy(), meter, call.offset));
  LOOM_TRY(sort_keyed(all, call.argument(2, "reverse").truthy(), meter, call.offset));
  return values_of(std::move(all), meter, call.offset);
}

Result<Value> extreme(const Call& call, Meter& meter) {
  LOOM_ASSIGN(const Value::List items, iterate(call.self, meter, call.offset));
  if (items.empty()) return Value::undefined("an item of an empty sequence");
  const bool cased = call.argument(0, "case_sensitive").truthy();
  LOOM_ASSIGN(const auto all,
              keyed(items, call.argument(1, "attribute"), cased, meter, call.offset));
  size_t best = 0;
  for (size_t i = 1; i < all.size(); ++i) {
    LOOM_ASSIGN(const int compared, order(all[i].key, all[best].key, meter, call.offset));
    if (call.name == "max" ? compared > 0 : compared < 0) best = i;
  }
  return all[best].item;
}

Result<Value> sum(const Call& call, Meter& meter) {
  LOOM_ASSIGN(const Value::List items, iterate(call.self, meter, call.offset));
  const Value attribute = call.argument(0, "attribute"), start = call.argument(1, "start");
  Value total = start.is(Kind::undefined) ? Value::integer(0) : start;
  for (const Value& item : items) {
    LOOM_ASSIGN(const Value part, key_of(item, attribute, true, meter, call.offset));
    LOOM_ASSIGN(total, operate("+", total, part, meter, call.offset));
  }
  return total;
}

}  // namespace

Result<Value> ordered_filter(const Call& call, bool& known, Meter& meter) {
  const std::string_view name = call.name;
  known = true;
  if (name == "sort") return sort(call, meter);
  if (name == "unique") return unique(call, meter);
  if (name == "groupby") return groupby(call, meter);
  if (name == "dictsort") return dictsort(call, meter);
  if (name == "min" || name == "max") return extreme(call, meter);
  if (name == "sum") return sum(call, meter);
  known = false;
  return Value();
}

}  // namespace loom::core::jinja
