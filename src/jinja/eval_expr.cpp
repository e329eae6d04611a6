// Expressions. Operators take the kinds that Python takes; everything else is an Error that says
// what met.
#include <algorithm>

#include "base/text.hpp"
#include "jinja/eval.hpp"
#include "text/unicode.hpp"

namespace loom::core::jinja {
namespace {

using Kind = Value::Kind;

// Python's index: negative counts from the end. False when outside.
bool resolve_index(int64_t index, size_t size, size_t& out) {
  const auto count = static_cast<int64_t>(size);
  if (index < 0) index += count;
  if (index < 0 || index >= count) return false;
  out = static_cast<size_t>(index);
  return true;
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> list;
  for (size_t at = 0; at < text.size();) {
    const size_t length = text::code_point_at(text, at).length;
    list.push_back(text.substr(at, length));
    at += length;
  }
  return list;
}

// The indices that a Python slice takes of `size` items.
std::vector<size_t> slice_indices(const Value& low, const Value& high, int64_t step, size_t size) {
  const auto count = static_cast<int64_t>(size);
  const auto clamp = [&](const Value& bound, int64_t otherwise) {
    if (!bound.is_number()) return otherwise;
    const int64_t index = bound.number() < 0 ? bound.number() + count : bound.number();
    return step > 0 ? std::clamp<int64_t>(index, 0, count)
                    : std::clamp<int64_t>(index, -1, count - 1);
  };
  const int64_t begin = clamp(low, step > 0 ? 0 : count - 1);
  const int64_t end = clamp(high, step > 0 ? count : -1);
  std::vector<size_t> indices;
  for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
    indices.push_back(static_cast<size_t>(i));
  }
  return indices;
}

}  // namespace

Result<Value> Evaluator::evaluate(const Expr& expr) {
  LOOM_TRY(meter_.work(0, expr.offset));
  switch (expr.kind) {
    case Expr::Kind::list:
    case Expr::Kind::dict: return collection(expr);
    case Expr::Kind::attribute: return attribute(expr);
    case Expr::Kind::item: return item(expr);
    case Expr::Kind::slice: return slice(expr);
    case Expr::Kind::call:
    case Expr::Kind::filter:
    case Expr::Kind::test: return call(expr);
    case Expr::Kind::binary: return binary(expr);
    case Expr::Kind::conditional: return conditional(expr);
    case Expr::Kind::negation: {
      LOOM_ASSIGN(const Value value, evaluate(*expr.children[0]));
      return Value::boolean(!value.truthy());
    }
    case Expr::Kind::minus: {
      LOOM_ASSIGN(const Value value, evaluate(*expr.children[0]));
      if (value.is_number()) return arithmetic(expr, Value::integer(0), value);
      return meter_.fail(cat("no minus of ", kind_name(value.kind())), expr.offset);
    }
    default: return literal(expr);
  }
}

Result<Value> Evaluator::literal(const Expr& expr) {
  switch (expr.kind) {
    case Expr::Kind::string: return meter_.make(expr.name, expr.offset);
    case Expr::Kind::integer: return Value::integer(expr.number);
    case Expr::Kind::boolean: return Value::boolean(expr.number != 0);
    case Expr::Kind::variable: {
      const Value* found = lookup(expr.name);
      if (found != nullptr) return *found;
      return is_function(expr.name) ? Value::function() : Value::undefined(expr.name);
    }
    default: return Value::none();
  }
}

Result<Value> Evaluator::collection(const Expr& expr) {
  if (expr.kind == Expr::Kind::list) {
    Value::List list;
    for (const ExprPtr& child : expr.children) {
      LOOM_ASSIGN(Value value, evaluate(*child));
      list.push_back(std::move(value));
    }
    return meter_.make(std::move(list), expr.offset);
  }
  Value::Dict dict;
  for (size_t i = 0; i + 1 < expr.children.size(); i += 2) {
    LOOM_ASSIGN(const Value key, evaluate(*expr.children[i]));
    LOOM_ASSIGN(Value value, evaluate(*expr.children[i + 1]));
    if (!key.is(Kind::string)) return meter_.refuse("a key that is no string", expr.offset);
    const auto found = std::find_if(dict.begin(), dict.end(),
                                    [&](const auto& member) { return member.first == key.text(); });
    if (found != dict.end()) {
      found->second = std::move(value);
    } else {
      dict.emplace_back(key.text(), std::move(value));
    }
  }
  return meter_.make(std::move(dict), expr.offset);
}

Result<Value> Evaluator::binary(const Expr& expr) {
  LOOM_ASSIGN(Value left, evaluate(*expr.children[0]));
  if (expr.name == "and" && !left.truthy()) return left;
  if (expr.name == "or" && left.truthy()) return left;
  LOOM_ASSIGN(Value right, evaluate(*expr.children[1]));
  if (expr.name == "and" || expr.name == "or") return right;
  if (expr.name == "~") {
    LOOM_ASSIGN(const std::string a, meter_.to_text(left, expr.offset));
    LOOM_ASSIGN(const std::string b, meter_.to_text(right, expr.offset));
    return meter_.make(a + b, expr.offset);
  }
  if (expr.name == "in" || expr.name == "not in") {
    LOOM_ASSIGN(const bool found, contains(right, left, meter_, expr.offset));
    return Value::boolean(found == (expr.name == "in"));
  }
  if (expr.name == "+") return addition(expr, left, right);
  if (expr.name == "*" && left.is(Kind::string) && right.is_number()) {
    return repetition(expr, left.text(), right.number());
  }
  static constexpr std::string_view kComparisons[] = {"==", "!=", "<", ">", "<=", ">="};
  for (const std::string_view name : kComparisons) {
    if (expr.name == name) return compare(expr, left, right);
  }
  return arithmetic(expr, left, right);
}

Result<Value> Evaluator::addition(const Expr& expr, const Value& left, const Value& right) {
  if (left.is(Kind::string) && right.is(Kind::string)) {
    return meter_.make(left.text() + right.text(), expr.offset);
  }
  if (left.is(Kind::list) && right.is(Kind::list)) {
    Value::List list = left.items();
    list.insert(list.end(), right.items().begin(), right.items().end());
    return meter_.make(std::move(list), expr.offset);
  }
  return arithmetic(expr, left, right);
}

Result<Value> Evaluator::repetition(const Expr& expr, const std::string& text, int64_t count) {
  std::string out;
  for (int64_t i = 0; i < count && !text.empty(); ++i) {
    LOOM_TRY(meter_.work(text.size(), expr.offset));
    out += text;
  }
  return meter_.make(std::move(out), expr.offset);
}

Result<Value> Evaluator::arithmetic(const Expr& expr, const Value& left, const Value& right) {
  if (left.is(Kind::undefined)) return meter_.undefined(left, expr.offset);
  if (right.is(Kind::undefined)) return meter_.undefined(right, expr.offset);
  const int64_t a = left.number(), b = right.number();
  int64_t out = 0;
  bool overflow = false;
  if (expr.name == "/") return meter_.refuse("the operator '/'", expr.offset);
  if (!left.is_number() || !right.is_number()) {
    return meter_.fail(cat("cannot compute ", kind_name(left.kind()), " ", expr.name, " ",
                           kind_name(right.kind())),
                       expr.offset);
  }
  if (expr.name == "+") {
    overflow = __builtin_add_overflow(a, b, &out);
  } else if (expr.name == "-") {
    overflow = __builtin_sub_overflow(a, b, &out);
  } else if (expr.name == "*") {
    overflow = __builtin_mul_overflow(a, b, &out);
  } else {  // "//" and "%" round down, as in Python
    overflow = b == 0 || (a == INT64_MIN && b == -1);
    if (!overflow) {
      const bool down = a % b != 0 && (a < 0) != (b < 0);
      out = expr.name == "//" ? a / b - (down ? 1 : 0) : a % b + (down ? b : 0);
    }
  }
  if (overflow)
    return meter_.fail(cat("'", expr.name, "' overflows or divides by zero"), expr.offset);
  return Value::integer(out);
}

Result<Value> Evaluator::compare(const Expr& expr, const Value& left, const Value& right) {
  LOOM_TRY(meter_.work(32 * left.weight() + left.text().size(), expr.offset));
  if (expr.name == "==") return Value::boolean(left.equals(right));
  if (expr.name == "!=") return Value::boolean(!left.equals(right));
  if (left.is(Kind::undefined)) return meter_.undefined(left, expr.offset);
  if (right.is(Kind::undefined)) return meter_.undefined(right, expr.offset);
  int order = 0;
  if (left.is_number() && right.is_number()) {
    order = left.number() < right.number() ? -1 : left.number() > right.number() ? 1 : 0;
  } else if (left.is(Kind::string) && right.is(Kind::string)) {
    order = left.text().compare(right.text());  // bytes of UTF-8 order as code points do
  } else {
    return meter_.fail(
        cat("cannot order ", kind_name(left.kind()), " and ", kind_name(right.kind())),
        expr.offset);
  }
  const bool equal_passes = expr.name.size() == 2;
  if (order == 0) return Value::boolean(equal_passes);
  return Value::boolean(expr.name[0] == '<' ? order < 0 : order > 0);
}

Result<Value> Evaluator::attribute(const Expr& expr) {
  LOOM_ASSIGN(const Value object, evaluate(*expr.children[0]));
  if (object.is(Kind::undefined)) return meter_.undefined(object, expr.offset);
  const Value* found = object.find(expr.name);
  return found != nullptr ? *found : Value::undefined(expr.name);
}

Result<Value> Evaluator::item(const Expr& expr) {
  LOOM_ASSIGN(const Value object, evaluate(*expr.children[0]));
  LOOM_ASSIGN(const Value key, evaluate(*expr.children[1]));
  if (object.is(Kind::undefined)) return meter_.undefined(object, expr.offset);
  if (key.is(Kind::string)) {
    const Value* found = object.find(key.text());
    return found != nullptr ? *found : Value::undefined(key.text());
  }
  size_t index = 0;
  if (key.is_number() && object.is(Kind::list) &&
      resolve_index(key.number(), object.items().size(), index)) {
    return object.items()[index];
  }
  if (key.is_number() && object.is(Kind::string)) {
    LOOM_TRY(meter_.work(object.text().size(), expr.offset));
    const auto list = characters(object.text());
    if (resolve_index(key.number(), list.size(), index)) {
      return meter_.make(std::string(list[index]), expr.offset);
    }
  }
  return Value::undefined(key.is_number() ? cat("item ", key.number()) : std::string("item"));
}

Result<Value> Evaluator::slice(const Expr& expr) {
  LOOM_ASSIGN(const Value object, evaluate(*expr.children[0]));
  Value bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    if (!expr.children[i + 1]) continue;
    LOOM_ASSIGN(bounds[i], evaluate(*expr.children[i + 1]));
    if (!bounds[i].is_number() && !bounds[i].is(Kind::none)) {
      return meter_.fail("a slice needs integers", expr.offset);
    }
  }
  if (object.is(Kind::undefined)) return meter_.undefined(object, expr.offset);
  const int64_t step = bounds[2].is_number() ? bounds[2].number() : 1;
  constexpr int64_t kMax = int64_t{1} << 32;  // beyond any list, and far from overflow
  for (const Value& bound : bounds) {
    if (bound.number() > kMax || bound.number() < -kMax) {
      return meter_.refuse("a slice bound that large", expr.offset);
    }
  }
  if (step == 0) return meter_.fail("a slice with step 0", expr.offset);
  LOOM_TRY(meter_.work(object.text().size() + object.items().size() * 8, expr.offset));
  if (object.is(Kind::list)) {
    Value::List list;
    for (const size_t i : slice_indices(bounds[0], bounds[1], step, object.items().size())) {
      list.push_back(object.items()[i]);
    }
    return meter_.make(std::move(list), expr.offset);
  }
  if (!object.is(Kind::string)) return Value::undefined("slice");
  const auto list = characters(object.text());
  std::string text;
  for (const size_t i : slice_indices(bounds[0], bounds[1], step, list.size())) text += list[i];
  return meter_.make(std::move(text), expr.offset);
}

Result<Value> Evaluator::conditional(const Expr& expr) {
  LOOM_ASSIGN(const Value condition, evaluate(*expr.children[1]));
  if (condition.truthy()) return evaluate(*expr.children[0]);
  if (!expr.children[2]) return Value();
  return evaluate(*expr.children[2]);
}

Status Evaluator::arguments(const Expr& expr, Call& call) {
  const size_t positional = expr.children.size() - 1 - expr.keywords.size();
  for (size_t i = 1; i < expr.children.size(); ++i) {
    LOOM_ASSIGN(Value value, evaluate(*expr.children[i]));
    if (i <= positional) {
      call.arguments.push_back(std::move(value));
    } else {
      call.named.emplace_back(expr.keywords[i - 1 - positional], std::move(value));
    }
  }
  return {};
}

Result<Value> Evaluator::call(const Expr& expr) {
  Call call;
  call.offset = expr.offset;
  const Expr& target = *expr.children[0];
  if (expr.kind != Expr::Kind::call) {
    call.name = expr.name;
    LOOM_ASSIGN(call.self, evaluate(target));
    LOOM_TRY(arguments(expr, call));
    if (expr.kind == Expr::Kind::filter) return call_filter(call, meter_);
    LOOM_ASSIGN(const bool passes, call_test(call, meter_));
    return Value::boolean(passes);
  }
  call.name = target.name;
  if (target.kind == Expr::Kind::attribute) {
    LOOM_ASSIGN(call.self, evaluate(*target.children[0]));
    LOOM_TRY(arguments(expr, call));
    return call_method(call, meter_);
  }
  if (target.kind != Expr::Kind::variable || lookup(target.name) != nullptr) {
    return meter_.fail("this value is no function", expr.offset);
  }
  LOOM_TRY(arguments(expr, call));
  return call_function(call, now_, meter_);
}

}  // namespace loom::core::jinja
