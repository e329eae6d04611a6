// The cost account of one rendering, and the conversions that every part of the library needs.
#include "base/text.hpp"
#include "jinja/library.hpp"
#include "text/unicode.hpp"

namespace loom::core::jinja {
namespace {
constexpr int kMaxValueDepth = 32;
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
  if (value.holds_space()) return refuse("a namespace inside of another value", offset);
  return {};
}

Result<Value> Meter::make(std::string text, int64_t offset) {
  LOOM_TRY(spend(text.size() + kValueBytes, offset));
  return Value::string(std::move(text));
}

Result<Value> Meter::make(Value::List list, int64_t offset) {
  LOOM_TRY(spend((list.size() + 1) * kValueBytes, offset));
  Value value = Value::list(std::move(list));
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
    case Value::Kind::none: return std::string("None");
    case Value::Kind::boolean: return std::string(value.number() != 0 ? "True" : "False");
    case Value::Kind::integer: return std::to_string(value.number());
    case Value::Kind::string: return value.text();
    default: return refuse(cat("printing ", kind_name(value.kind())), offset);
  }
}

Value Call::argument(size_t index, std::string_view key) const {
  if (index < arguments.size()) return arguments[index];
  for (const auto& [name_of, value] : named) {
    if (!key.empty() && name_of == key) return value;
  }
  return {};
}

Result<bool> contains(const Value& container, const Value& item, Meter& meter, int64_t offset) {
  LOOM_TRY(meter.work(container.text().size() + 32 * container.weight(), offset));
  switch (container.kind()) {
    case Value::Kind::string:
      if (!item.is(Value::Kind::string)) {
        return meter.fail(cat("cannot look for ", kind_name(item.kind()), " in a string"), offset);
      }
      return container.text().find(item.text()) != std::string::npos;
    case Value::Kind::list:
      for (const Value& candidate : container.items()) {
        LOOM_TRY(meter.work(item.text().size(), offset));
        if (candidate.equals(item)) return true;
      }
      return false;
    case Value::Kind::dict:
      return item.is(Value::Kind::string) && container.find(item.text()) != nullptr;
    case Value::Kind::undefined: return false;
    default: return meter.fail(cat("cannot look into ", kind_name(container.kind())), offset);
  }
}

Result<Value::List> iterate(const Value& value, Meter& meter, int64_t offset) {
  Value::List list;
  switch (value.kind()) {
    case Value::Kind::list: return value.items();
    case Value::Kind::undefined: return list;
    case Value::Kind::dict:
      for (const Value::Member& member : value.members()) {
        LOOM_ASSIGN(Value key, meter.make(member.first, offset));
        list.push_back(std::move(key));
      }
      return list;
    case Value::Kind::string:
      for (size_t at = 0; at < value.text().size();) {
        const size_t length = text::code_point_at(value.text(), at).length;
        LOOM_ASSIGN(Value character, meter.make(value.text().substr(at, length), offset));
        list.push_back(std::move(character));
        at += length;
      }
      return list;
    default: return meter.fail(cat("cannot iterate over ", kind_name(value.kind())), offset);
  }
}

}  // namespace loom::core::jinja
