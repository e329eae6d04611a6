// Operators on values, with Python's types and results. Integers that exceed 64 bits are an Error
// here.
#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "jinja/library.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::jinja {
namespace {

using Kind = Value::Kind;

Error cannot(std::string_view name, const Value& left, const Value& right, const Meter& meter,
             int64_t offset) {
  return meter.fail(cat("cannot compute ", kind_name(left), " ", name, " ", kind_name(right)),
                    offset);
}

Result<Value> repeat(const Value& what, int64_t count, Meter& meter, int64_t offset) {
  if (what.is(Kind::list)) {
    Value::List list;
    for (int64_t i = 0; i < count && !what.items().empty(); ++i) {
      LOOM_TRY(meter.work(64 * what.items().size(), offset));
      list.insert(list.end(), what.items().begin(), what.items().end());
    }
    return meter.make(std::move(list), offset, what.sequence());
  }
  std::string out;
  for (int64_t i = 0; i < count && !what.text().empty(); ++i) {
    LOOM_TRY(meter.work(what.text().size(), offset));
    out += what.text();
  }
  return meter.make(std::move(out), offset, what.is_safe());
}

Result<Value> add(const Value& left, const Value& right, Meter& meter, int64_t offset) {
  if (left.is(Kind::string) && right.is(Kind::string)) {
    const bool safe = left.is_safe() || right.is_safe();
    const auto part = [&](const Value& v) {
      return safe && !v.is_safe() ? escape_html(v.text()) : v.text();
    };
    return meter.make(part(left) + part(right), offset, safe);
  }
  if (left.is(Kind::list) && right.is(Kind::list) && left.sequence() == right.sequence() &&
      left.sequence() <= Value::Sequence::tuple) {
    Value::List list = left.items();
    list.insert(list.end(), right.items().begin(), right.items().end());
    return meter.make(std::move(list), offset, left.sequence());
  }
  return cannot("+", left, right, meter, offset);
}

double floor_modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) return rest + b;
  return rest == 0 ? std::copysign(0.0, b) : rest;
}

Result<Value> real_operation(std::string_view name, double a, double b, Meter& meter,
                             int64_t offset) {
  if (name == "+") return Value::real(a + b);
  if (name == "-") return Value::real(a - b);
  if (name == "*") return Value::real(a * b);
  if (name == "**") {
    const double power = std::pow(a, b);
    if (!std::isfinite(power)) return meter.fail("'**' has no finite result", offset);
    return Value::real(power);
  }
  if (b == 0) return meter.fail(cat("'", name, "' divides by zero"), offset);
  if (name == "/") return Value::real(a / b);
  if (name == "%") return Value::real(floor_modulo(a, b));
  return Value::real((a - floor_modulo(a, b)) / b);
}

// False if the result does not fit.
bool integer_power(int64_t base, int64_t exponent, int64_t& out) {
  out = 1;
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(out, base, &out)) return false;
    if (base >= -1 && base <= 1) exponent = 2 - exponent % 2;  // 1, -1 and 0 repeat
  }
  return true;
}

Result<Value> integer_operation(std::string_view name, int64_t a, int64_t b, Meter& meter,
                                int64_t offset) {
  int64_t out = 0;
  bool bad = false;
  if (name == "+") {
    bad = __builtin_add_overflow(a, b, &out);
  } else if (name == "-") {
    bad = __builtin_sub_overflow(a, b, &out);
  } else if (name == "*") {
    bad = __builtin_mul_overflow(a, b, &out);
  } else if (name == "**") {
    if (b < 0)
      return real_operation(name, static_cast<double>(a), static_cast<double>(b), meter, offset);
    bad = !integer_power(a, b, out);
  } else {  // "//" and "%" round down, as in Python
    bad = b == 0 || (a == INT64_MIN && b == -1);
    if (!bad) {
      const bool down = a % b != 0 && (a < 0) != (b < 0);
      out = name == "//" ? a / b - (down ? 1 : 0) : a % b + (down ? b : 0);
    }
  }
  if (bad) return meter.fail(cat("'", name, "' overflows or divides by zero"), offset);
  return Value::integer(out);
}

}  // namespace

Result<Value> operate(std::string_view name, const Value& left, const Value& right, Meter& meter,
                      int64_t offset) {
  if (name == "~") {
    LOOM_ASSIGN(const std::string a, meter.to_text(left, offset));
    LOOM_ASSIGN(const std::string b, meter.to_text(right, offset));
    return meter.make(a + b, offset);
  }
  if (left.is(Kind::undefined) && !(name == "%" && right.is(Kind::string)))
    return meter.undefined(left, offset);
  if (name == "%" && left.is(Kind::string)) {
    return format_percent(left.text(), right, meter, offset);
  }
  if (right.is(Kind::undefined)) return meter.undefined(right, offset);
  if (left.is_number() && right.is_number()) {
    const bool whole = left.is_integer() && right.is_integer() && name != "/";
    if (whole) return integer_operation(name, left.number(), right.number(), meter, offset);
    return real_operation(name, left.as_real(), right.as_real(), meter, offset);
  }
  if (name == "+") return add(left, right, meter, offset);
  const auto repeats = [](const Value& v) {
    return v.is(Kind::string) || (v.is(Kind::list) && v.sequence() <= Value::Sequence::tuple);
  };
  if (name == "*" && repeats(left) && right.is_integer())
    return repeat(left, right.number(), meter, offset);
  if (name == "*" && repeats(right) && left.is_integer())
    return repeat(right, left.number(), meter, offset);
  return cannot(name, left, right, meter, offset);
}

Result<int> order(const Value& left, const Value& right, Meter& meter, int64_t offset) {
  LOOM_TRY(meter.work(left.text().size(), offset));
  if (left.is(Kind::undefined)) return meter.undefined(left, offset);
  if (right.is(Kind::undefined)) return meter.undefined(right, offset);
  if (left.is_integer() && right.is_integer())
    return left.number() < right.number() ? -1 : left.number() > right.number() ? 1 : 0;
  if (left.is_number() && right.is_number())
    return left.as_real() < right.as_real() ? -1 : left.as_real() > right.as_real() ? 1 : 0;
  if (left.is(Kind::string) && right.is(Kind::string)) {
    const int compared = left.text().compare(right.text());  // UTF-8 orders as code points do
    return compared < 0 ? -1 : compared > 0 ? 1 : 0;
  }
  const bool lists = left.is(Kind::list) && right.is(Kind::list) &&
                     left.sequence() == right.sequence() &&
                     left.sequence() <= Value::Sequence::tuple;
  if (!lists) {
    return meter.fail(cat("cannot order ", kind_name(left), " and ", kind_name(right)), offset);
  }
  const size_t common = std::min(left.items().size(), right.items().size());
  for (size_t i = 0; i < common; ++i) {
    LOOM_TRY(meter.work(32 * left.items()[i].weight(), offset));
    if (left.items()[i].equals(right.items()[i])) continue;
    return order(left.items()[i], right.items()[i], meter, offset);
  }
  const size_t a = left.items().size(), b = right.items().size();
  return a < b ? -1 : a > b ? 1 : 0;
}

Result<bool> compare(std::string_view name, const Value& left, const Value& right, Meter& meter,
                     int64_t offset) {
  if (name == "in" || name == "not in") {
    LOOM_ASSIGN(const bool found, contains(right, left, meter, offset));
    return found == (name == "in");
  }
  LOOM_TRY(meter.work(32 * left.weight() + left.text().size(), offset));
  if (name == "==") return left.equals(right);
  if (name == "!=") return !left.equals(right);
  LOOM_ASSIGN(const int compared, order(left, right, meter, offset));
  const bool unordered = left.is_number() && right.is_number() &&
                         (std::isnan(left.as_real()) || std::isnan(right.as_real()));
  if (unordered) return false;
  if (compared == 0) return name.size() == 2;
  return name[0] == '<' ? compared < 0 : compared > 0;
}

Result<bool> contains(const Value& container, const Value& item, Meter& meter, int64_t offset) {
  LOOM_TRY(meter.work(container.text().size() + 32 * container.weight(), offset));
  switch (container.kind()) {
    case Kind::string:
      if (item.is(Kind::undefined)) return meter.undefined(item, offset);
      if (!item.is(Kind::string)) {
        return meter.fail(cat("cannot look for ", kind_name(item), " in a string"), offset);
      }
      return container.text().find(item.text()) != std::string::npos;
    case Kind::list:
      for (const Value& candidate : container.items()) {
        LOOM_TRY(meter.work(item.text().size(), offset));
        if (candidate.equals(item)) return true;
      }
      return false;
    case Kind::dict:
      return (item.is(Kind::string) || item.is_integer()) &&
             container.find(dict_key(item)) != nullptr;
    case Kind::undefined: return false;
    default: return meter.fail(cat("cannot look into ", kind_name(container)), offset);
  }
}

Result<Value::List> iterate(const Value& value, Meter& meter, int64_t offset) {
  Value::List list;
  switch (value.kind()) {
    case Kind::list: LOOM_TRY(meter.work(32 * value.items().size(), offset)); return value.items();
    case Kind::undefined: return list;
    case Kind::dict:
      for (const Value::Member& member : value.members()) {
        LOOM_ASSIGN(Value key, key_value(member.first, meter, offset));
        list.push_back(std::move(key));
      }
      return list;
    case Kind::string:
      for (const std::string_view one : characters(value.text())) {
        LOOM_ASSIGN(Value character, meter.make(std::string(one), offset));
        list.push_back(std::move(character));
      }
      return list;
    default: return meter.fail(cat("cannot iterate over ", kind_name(value)), offset);
  }
}

}  // namespace loom::core::jinja
