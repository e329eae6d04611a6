// The tests of the operator "is".
#include <algorithm>

#include "base/text.hpp"
#include "jinja/library.hpp"

namespace loom::core::jinja {
namespace {

using Kind = Value::Kind;

// Whether a test without arguments holds; `known` is false if `name` is not such a test.
bool plain_test(std::string_view name, const Value& self, bool& known) {
  const bool listed = self.is(Kind::list);
  known = true;
  if (name == "defined") return !self.is(Kind::undefined);
  if (name == "undefined") return self.is(Kind::undefined);
  if (name == "none") return self.is(Kind::none);
  if (name == "string") return self.is(Kind::string);
  if (name == "boolean") return self.is(Kind::boolean);
  if (name == "true") return self.is(Kind::boolean) && self.number() != 0;
  if (name == "false") return self.is(Kind::boolean) && self.number() == 0;
  if (name == "integer") return self.is(Kind::integer);
  if (name == "float") return self.is(Kind::real);
  if (name == "number") return self.is_number();
  if (name == "mapping") return self.is(Kind::dict);
  if (name == "callable") return self.is(Kind::function);
  if (name == "escaped") return self.is_safe();
  if (name == "iterable") {
    return self.is(Kind::string) || listed || self.is(Kind::dict) || self.is(Kind::undefined);
  }
  if (name == "sequence") {
    const bool indexed = listed && self.sequence() <= Value::Sequence::tuple;
    return self.is(Kind::string) || indexed || self.is(Kind::dict) || self.is(Kind::undefined);
  }
  known = false;
  return false;
}

Result<bool> case_test(const Call& call, Meter& meter) {
  LOOM_ASSIGN(const std::string text, meter.to_text(call.self, call.offset));
  LOOM_TRY(meter.work(4 * text.size(), call.offset));
  const std::string small = lower_text(text), large = upper_text(text);
  return small != large && text == (call.name == "lower" ? small : large);
}

Result<bool> divides(const Call& call, const Value& by, Meter& meter) {
  LOOM_ASSIGN(const Value rest, operate("%", call.self, by, meter, call.offset));
  return rest.equals(Value::integer(0));
}

std::string_view comparison_of(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"equalto", "=="},    {"eq", "=="}, {"==", "=="}, {"ne", "!="},
      {"!=", "!="},         {"lt", "<"},  {"<", "<"},   {"lessthan", "<"},
      {"gt", ">"},          {">", ">"},   {"le", "<="}, {"<=", "<="},
      {"greaterthan", ">"}, {"ge", ">="}, {">=", ">="}, {"in", "in"}};
  for (const auto& [test, symbol] : kNames) {
    if (test == name) return symbol;
  }
  return {};
}

}  // namespace

Result<bool> call_test(const Call& call, Meter& meter) {
  const std::string_view name = call.name;
  bool known = false;
  const bool holds = plain_test(name, call.self, known);
  if (known) return holds;
  if (name == "lower" || name == "upper") return case_test(call, meter);
  if (name == "odd" || name == "even") {
    LOOM_ASSIGN(const Value rest, operate("%", call.self, Value::integer(2), meter, call.offset));
    return rest.equals(Value::integer(name == "odd" ? 1 : 0));
  }
  if (call.arguments.size() + call.named.size() == 1) {
    const Value& other = call.arguments.empty() ? call.named[0].second : call.arguments[0];
    const std::string_view symbol = comparison_of(name);
    if (!symbol.empty()) return compare(symbol, call.self, other, meter, call.offset);
    if (name == "divisibleby") return divides(call, other, meter);
    LOOM_TRY(meter.work(32 * call.self.weight() + call.self.text().size(), call.offset));
    if (name == "sameas") return call.self.is_same(other);
  }
  return meter.refuse(cat("the test '", printable(name), "'"), call.offset);
}

}  // namespace loom::core::jinja
