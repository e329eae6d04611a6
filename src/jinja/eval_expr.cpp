// Expressions. Operators accept the same types as in Python; any other combination is an Error that
// names the types.
#include <algorithm>

#include "base/text.hpp"
#include "jinja/eval.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::jinja {
namespace {

using Kind = Value::Kind;

// Python's index: negative counts from the end. False if outside.
bool resolve_index(int64_t index, size_t size, size_t& out) {
  const auto count = static_cast<int64_t>(size);
  if (index < 0) index += count;
  if (index < 0 || index >= count) return false;
  out = static_cast<size_t>(index);
  return true;
}

// The indices of a Python slice of `size` items.
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

Result<Value> TemplateEvaluator::evaluate(const Expr& expr) {
  LOOM_TRY(deeper(expr.offset));
  ++depth_;
  Result<Value> value = evaluate_inside(expr);
  --depth_;
  return value;
}

Result<Value> TemplateEvaluator::evaluate_inside(const Expr& expr) {
  switch (expr.kind) {
    case Expr::Kind::list:
    case Expr::Kind::tuple:
    case Expr::Kind::dict: return collection(expr);
    case Expr::Kind::attribute: return attribute(expr);
    case Expr::Kind::item: return item(expr);
    case Expr::Kind::slice: return slice(expr);
    case Expr::Kind::call: return call(expr);
    case Expr::Kind::filter:
    case Expr::Kind::test: return filter_or_test(expr);
    case Expr::Kind::binary: return binary(expr);
    case Expr::Kind::comparison: return comparison(expr);
    case Expr::Kind::conditional: return conditional(expr);
    case Expr::Kind::negation: {
      LOOM_ASSIGN(const Value value, evaluate(*expr.children[0]));
      return Value::boolean(!value.truthy());
    }
    case Expr::Kind::minus:
    case Expr::Kind::plus: {
      LOOM_ASSIGN(const Value value, evaluate(*expr.children[0]));
      if (value.is(Kind::undefined)) return meter_.undefined(value, expr.offset);
      if (!value.is_number()) {
        return meter_.fail(cat("no sign of ", kind_name(value)), expr.offset);
      }
      const bool minus = expr.kind == Expr::Kind::minus;
      if (value.is(Kind::real)) return Value::real(minus ? -value.as_real() : value.as_real());
      return operate(minus ? "-" : "+", Value::integer(0), value, meter_, expr.offset);
    }
    default: return literal(expr);
  }
}

Result<Value> TemplateEvaluator::literal(const Expr& expr) {
  switch (expr.kind) {
    case Expr::Kind::string: return meter_.make(expr.name, expr.offset);
    case Expr::Kind::integer: return Value::integer(expr.number);
    case Expr::Kind::real: return Value::real(expr.real);
    case Expr::Kind::boolean: return Value::boolean(expr.number != 0);
    case Expr::Kind::variable: {
      if (const Value* found = lookup(expr.name)) return *found;
      if (!is_function(expr.name)) return Value::undefined(expr.name);
      auto function = std::make_shared<Callable>();
      function->name = expr.name;
      return Value::function(std::move(function));
    }
    default: return Value::none();
  }
}

Result<Value> TemplateEvaluator::collection(const Expr& expr) {
  if (expr.kind != Expr::Kind::dict) {
    Value::List list;
    for (const ExprPtr& child : expr.children) {
      LOOM_ASSIGN(Value value, evaluate(*child));
      list.push_back(std::move(value));
    }
    const bool tuple = expr.kind == Expr::Kind::tuple;
    return meter_.make(std::move(list), expr.offset,
                       tuple ? Value::Sequence::tuple : Value::Sequence::list);
  }
  Value::Dict dict;
  for (size_t i = 0; i + 1 < expr.children.size(); i += 2) {
    LOOM_ASSIGN(const Value key, evaluate(*expr.children[i]));
    LOOM_ASSIGN(Value value, evaluate(*expr.children[i + 1]));
    if (!key.is(Kind::string) && !key.is_integer())
      return meter_.refuse("a key that is neither a string nor an integer", expr.offset);
    const std::string name = dict_key(key);
    const auto found = std::find_if(dict.begin(), dict.end(),
                                    [&](const auto& member) { return member.first == name; });
    if (found != dict.end()) {
      found->second = std::move(value);
    } else {
      dict.emplace_back(name, std::move(value));
    }
  }
  return meter_.make(std::move(dict), expr.offset);
}

Result<Value> TemplateEvaluator::binary(const Expr& expr) {
  LOOM_ASSIGN(Value left, evaluate(*expr.children[0]));
  if (expr.name == "and" && !left.truthy()) return left;
  if (expr.name == "or" && left.truthy()) return left;
  LOOM_ASSIGN(Value right, evaluate(*expr.children[1]));
  if (expr.name == "and" || expr.name == "or") return right;
  return operate(expr.name, left, right, meter_, expr.offset);
}

// a < b < c: each operand is evaluated once, and none after the first failed comparison.
Result<Value> TemplateEvaluator::comparison(const Expr& expr) {
  LOOM_ASSIGN(Value left, evaluate(*expr.children[0]));
  for (size_t i = 0; i < expr.keywords.size(); ++i) {
    LOOM_ASSIGN(Value right, evaluate(*expr.children[i + 1]));
    LOOM_ASSIGN(const bool holds, compare(expr.keywords[i], left, right, meter_, expr.offset));
    if (!holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Result<Value> TemplateEvaluator::attribute(const Expr& expr) {
  LOOM_ASSIGN(const Value object, evaluate(*expr.children[0]));
  return attribute_of(object, expr.name, expr.offset);
}

// Python looks for a method before Jinja looks for a key: x.items is never the key "items".
Result<Value> TemplateEvaluator::attribute_of(const Value& object, const std::string& name,
                                              int64_t offset) {
  if (object.is(Kind::undefined)) return meter_.undefined(object, offset);
  switch (method_of(object, name)) {
    case Method::changes: return Value::undefined(name);
    case Method::known: {
      auto method = std::make_shared<Callable>();
      method->kind = Callable::Kind::method;
      method->name = name;
      method->self = object;
      return Value::function(std::move(method));
    }
    case Method::none: break;
  }
  const Value* found = object.find(name);
  return found != nullptr ? *found : Value::undefined(name);
}

Result<Value> TemplateEvaluator::item(const Expr& expr) {
  LOOM_ASSIGN(const Value object, evaluate(*expr.children[0]));
  LOOM_ASSIGN(const Value key, evaluate(*expr.children[1]));
  if (object.is(Kind::undefined)) return meter_.undefined(object, expr.offset);
  if (key.is(Kind::string)) {
    const Value* found = object.find(key.text());
    if (found != nullptr) return *found;
    return attribute_of(object, key.text(), expr.offset);
  }
  if (key.is_integer() && object.is(Kind::dict)) {
    const Value* found = object.find(dict_key(key));
    if (found != nullptr) return *found;
  }
  size_t index = 0;
  const bool indexed = object.sequence() <= Value::Sequence::tuple;
  if (key.is_integer() && object.is(Kind::list) && indexed &&
      resolve_index(key.number(), object.items().size(), index)) {
    return object.items()[index];
  }
  if (key.is_integer() && object.is(Kind::string)) {
    LOOM_TRY(meter_.work(object.text().size(), expr.offset));
    const auto list = characters(object.text());
    if (resolve_index(key.number(), list.size(), index)) {
      return meter_.make(std::string(list[index]), expr.offset);
    }
  }
  return Value::undefined(key.is_integer() ? cat("item ", key.number()) : std::string("item"));
}

Result<Value> TemplateEvaluator::slice(const Expr& expr) {
  LOOM_ASSIGN(const Value object, evaluate(*expr.children[0]));
  Value bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    if (!expr.children[i + 1]) continue;
    LOOM_ASSIGN(bounds[i], evaluate(*expr.children[i + 1]));
    if (!bounds[i].is_integer() && !bounds[i].is(Kind::none)) {
      return meter_.fail("a slice needs integers", expr.offset);
    }
  }
  if (object.is(Kind::undefined)) return meter_.undefined(object, expr.offset);
  const int64_t step = bounds[2].is_integer() ? bounds[2].number() : 1;
  constexpr int64_t kMax = int64_t{1} << 32;  // beyond any list, and far from overflow
  for (const Value& bound : bounds) {
    if (bound.number() > kMax || bound.number() < -kMax) {
      return meter_.refuse("a slice bound that large", expr.offset);
    }
  }
  if (step == 0) return meter_.fail("a slice with step 0", expr.offset);
  LOOM_TRY(meter_.work(object.text().size() + object.items().size() * 8, expr.offset));
  if (object.is(Kind::list) && object.sequence() <= Value::Sequence::tuple) {
    Value::List list;
    for (const size_t i : slice_indices(bounds[0], bounds[1], step, object.items().size())) {
      list.push_back(object.items()[i]);
    }
    return meter_.make(std::move(list), expr.offset, object.sequence());
  }
  if (!object.is(Kind::string)) return Value::undefined("slice");
  const auto list = characters(object.text());
  std::string text;
  for (const size_t i : slice_indices(bounds[0], bounds[1], step, list.size())) text += list[i];
  return meter_.make(std::move(text), expr.offset);
}

Result<Value> TemplateEvaluator::conditional(const Expr& expr) {
  LOOM_ASSIGN(const Value condition, evaluate(*expr.children[1]));
  if (condition.truthy()) return evaluate(*expr.children[0]);
  if (!expr.children[2]) return Value();
  return evaluate(*expr.children[2]);
}

// "*list" and "**mapping" as arguments.
Status TemplateEvaluator::spread(const std::string& stars, const Value& value, Call& call) {
  if (stars == "**") {
    if (!value.is(Kind::dict)) return meter_.fail("'**' needs a mapping", call.offset);
    call.named.insert(call.named.end(), value.members().begin(), value.members().end());
    return meter_.work(32 * value.members().size(), call.offset);
  }
  LOOM_ASSIGN(const Value::List items, iterate(value, meter_, call.offset));
  call.arguments.insert(call.arguments.end(), items.begin(), items.end());
  return meter_.work(32 * items.size(), call.offset);
}

Status TemplateEvaluator::arguments(const Expr& expr, Call& call) {
  const size_t positional = expr.children.size() - 1 - expr.keywords.size();
  for (size_t i = 1; i < expr.children.size(); ++i) {
    LOOM_ASSIGN(Value value, evaluate(*expr.children[i]));
    if (i <= positional) {
      call.arguments.push_back(std::move(value));
      continue;
    }
    const std::string& keyword = expr.keywords[i - 1 - positional];
    if (keyword[0] == '*') {
      LOOM_TRY(spread(keyword, value, call));
    } else {
      call.named.emplace_back(keyword, std::move(value));
    }
  }
  return {};
}

// `input`: the input of the innermost filter of a block.
Result<Value> TemplateEvaluator::filter_or_test(const Expr& expr, const Value* input) {
  Call call;
  call.offset = expr.offset;
  call.name = expr.name;
  if (input != nullptr) {
    call.self = *input;
  } else {
    LOOM_ASSIGN(call.self, evaluate(*expr.children[0]));
  }
  LOOM_TRY(arguments(expr, call));
  if (expr.kind == Expr::Kind::filter) return call_filter(call, meter_);
  LOOM_ASSIGN(const bool passes, call_test(call, meter_));
  return Value::boolean(passes);
}

Result<Value> TemplateEvaluator::filtered(const Expr& chain, const Value& input) {
  const Expr* inner = chain.children.empty() ? nullptr : chain.children[0].get();
  if (inner == nullptr) return filter_or_test(chain, &input);
  LOOM_ASSIGN(const Value value, filtered(*inner, input));
  return filter_or_test(chain, &value);
}

Result<Value> TemplateEvaluator::call(const Expr& expr, const Value* caller) {
  Call call;
  call.offset = expr.offset;
  LOOM_ASSIGN(const Value function, evaluate(*expr.children[0]));
  LOOM_TRY(arguments(expr, call));
  if (caller != nullptr) call.named.emplace_back("caller", *caller);
  return call_value(function, call);
}

Result<Value> TemplateEvaluator::call_value(const Value& function, Call& call) {
  if (function.is(Kind::undefined)) return meter_.undefined(function, call.offset);
  const Callable* callable = function.callable();
  if (callable == nullptr) {
    return meter_.fail(cat(kind_name(function), " is not a function"), call.offset);
  }
  call.name = callable->name;
  switch (callable->kind) {
    case Callable::Kind::library: return call_function(call, now_, meter_);
    case Callable::Kind::macro: return call_macro(*callable, call);
    case Callable::Kind::loop: return call_loop(*callable, call);
    case Callable::Kind::method: break;
  }
  call.self = callable->self;
  return call_method(call, meter_);
}

}  // namespace loom::core::jinja
