// The cost account of one rendering, and conversions that all parts of the library need.
#include "base/text.hpp"
#include "jinja/library.hpp"

namespace loom::core::jinja {
namespace {
constexpr int kMaxValueDepth = 80;
constexpr uint64_t kMaxWeight = 1'000'000;
constexpr uint64_t kValueBytes = sizeof(Value) + 16;
}  // namespace

Error Meter::fail(std::string message, int64_t offset) const {
  return make_error(Code::invalid_argument, std::move(message), where_, offset);
}

Error Meter::refuse(std::string_view what, int64_t offset) const {
  return make_error(Code::unsupported, cat(what, " is not supported"), where_, offset);
}

Error Meter::undefined(const Value& value, int64_t offset) const {
  return fail(cat("'", printable(value.text()), "' is undefined"), offset);
}

Status Meter::work(uint64_t bytes, int64_t offset) {
  const uint64_t cost = 1 + bytes / 32;
  if (cost > steps_) return fail("rendering takes too many steps", offset);
  steps_ -= cost;
  return {};
}

Status Meter::spend(uint64_t bytes, int64_t offset) {
  if (bytes > bytes_) return fail("rendering takes too much memory", offset);
  bytes_ -= bytes;
  return work(bytes, offset);
}

Status Meter::check(const Value& value, int64_t offset) const {
  if (value.depth() > kMaxValueDepth || value.weight() > kMaxWeight) {
    return refuse("a value of so many parts", offset);
  }
  if (value.holds_space()) {
    return refuse("a namespace or a function inside of another value", offset);
  }
  return {};
}

Result<Value> Meter::make(std::string text, int64_t offset, bool safe) {
  LOOM_TRY(spend(text.size() + kValueBytes, offset));
  return Value::string(std::move(text), safe);
}

Result<Value> Meter::make(Value::List list, int64_t offset, Value::Sequence sequence) {
  LOOM_TRY(spend((list.size() + 1) * kValueBytes, offset));
  Value value = Value::list(std::move(list), sequence);
  LOOM_TRY(check(value, offset));
  return value;
}

Result<Value> Meter::make(Value::Dict dict, int64_t offset) {
  LOOM_TRY(spend((dict.size() + 1) * 2 * kValueBytes, offset));
  Value value = Value::dict(std::move(dict));
  LOOM_TRY(check(value, offset));
  return value;
}

Result<std::string> Meter::to_text(const Value& value, int64_t offset) {
  LOOM_TRY(work(value.text().size(), offset));
  switch (value.kind()) {
    case Value::Kind::undefined: return std::string();
    case Value::Kind::string: return value.text();
    case Value::Kind::space:
    case Value::Kind::function: return refuse(cat("printing ", kind_name(value)), offset);
    case Value::Kind::list:
      if (value.sequence() > Value::Sequence::tuple) {
        return refuse("printing a generator or a view of a mapping", offset);
      }
      break;
    default: break;
  }
  LOOM_TRY(spend(32 * value.weight(), offset));
  std::string text = python_repr(value);
  LOOM_TRY(spend(text.size(), offset));
  return text;
}

Result<Value> key_value(const std::string& key, Meter& meter, int64_t offset) {
  int64_t number = 0;
  if (is_integer_key(key, number)) return Value::integer(number);
  return meter.make(key, offset);
}

Value Call::argument(size_t index, std::string_view key) const {
  if (index < arguments.size()) return arguments[index];
  for (const auto& [name_of, value] : named) {
    if (!key.empty() && name_of == key) return value;
  }
  return {};
}

}  // namespace loom::core::jinja
