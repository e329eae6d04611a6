// Construction, comparison and access of values. Depth and weight are stored, so the cost of
// walking a value is known before. Shared parts make a value exponentially larger than its memory.
#include "jinja/value.hpp"

#include <algorithm>
#include <charconv>

namespace loom::core::jinja {

void Value::note(const Value& child) {
  depth_ = std::max(depth_, child.depth_ + 1);
  holds_space_ = holds_space_ || child.holds_space_;
  weight_ = std::min(weight_ + child.weight_, uint64_t{1} << 60);
}

Value Value::undefined(std::string name) {
  Value value;
  value.text_ = std::make_shared<const std::string>(std::move(name));
  return value;
}

Value Value::real(double v) {
  Value value(Kind::real);
  value.real_ = v;
  return value;
}

Value Value::string(std::string v, bool safe) {
  Value value(Kind::string);
  value.safe_ = safe;
  value.text_ = std::make_shared<const std::string>(std::move(v));
  return value;
}

Value Value::list(List v, Sequence sequence) {
  Value value(Kind::list);
  value.sequence_ = sequence;
  for (const Value& item : v) value.note(item);
  value.list_ = std::make_shared<const List>(std::move(v));
  return value;
}

Value Value::dict(Dict v) {
  Value value(Kind::dict);
  for (const Member& member : v) value.note(member.second);
  value.dict_ = std::make_shared<Dict>(std::move(v));
  return value;
}

Value Value::space(Dict v) {
  Value value(Kind::space);
  value.holds_space_ = true;
  value.dict_ = std::make_shared<Dict>(std::move(v));
  return value;
}

Value Value::function(std::shared_ptr<const Callable> v) {
  Value value(Kind::function);
  value.holds_space_ = true;
  value.function_ = std::move(v);
  return value;
}

Value Value::from_json(const JsonValue& json) {
  switch (json.type()) {
    case JsonValue::Type::null: return none();
    case JsonValue::Type::boolean: return boolean(json.as_bool("").value_or(false));
    case JsonValue::Type::integer: return integer(json.as_int("").value_or(0));
    case JsonValue::Type::unsigned_integer:
    case JsonValue::Type::real: return real(json.as_double("").value_or(0));
    case JsonValue::Type::string: return string(json.text());
    case JsonValue::Type::array: {
      List items;
      for (const JsonValue& element : json.elements()) items.push_back(from_json(element));
      return list(std::move(items));
    }
    case JsonValue::Type::object: {
      Dict members;
      for (const auto& [key, value] : json.members()) members.emplace_back(key, from_json(value));
      return dict(std::move(members));
    }
  }
  return {};
}

const std::string& Value::text() const {
  static const std::string empty;
  return text_ ? *text_ : empty;
}

const Value::List& Value::items() const {
  static const List empty;
  return list_ ? *list_ : empty;
}

const Value::Dict& Value::members() const {
  static const Dict empty;
  if (function_) return function_->members;
  return dict_ ? *dict_ : empty;
}

const Value* Value::find(std::string_view key) const {
  for (const Member& member : members()) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

void Value::set_attribute(const std::string& key, Value value) const {
  if (kind_ != Kind::space) return;
  for (Member& member : *dict_) {
    if (member.first != key) continue;
    member.second = std::move(value);
    return;
  }
  dict_->emplace_back(key, std::move(value));
}

bool Value::truthy() const {
  switch (kind_) {
    case Kind::undefined:
    case Kind::none: return false;
    case Kind::boolean:
    case Kind::integer: return number_ != 0;
    case Kind::real: return real_ != 0;
    case Kind::string: return !text().empty();
    case Kind::list: return sequence_ == Sequence::generator || !items().empty();
    case Kind::dict: return !members().empty();
    case Kind::space:
    case Kind::function: return true;
  }
  return false;
}

bool Value::equals(const Value& other) const {
  if (is_integer() && other.is_integer()) return number_ == other.number_;
  if (is_number() && other.is_number()) return as_real() == other.as_real();
  if (kind_ != other.kind_) return false;
  switch (kind_) {
    case Kind::undefined:
    case Kind::none: return true;
    case Kind::string: return text() == other.text();
    case Kind::list:
      if (sequence_ == Sequence::generator || sequence_ != other.sequence_)
        return list_ == other.list_;
      return std::equal(items().begin(), items().end(), other.items().begin(), other.items().end(),
                        [](const Value& a, const Value& b) { return a.equals(b); });
    case Kind::dict:
      return members().size() == other.members().size() &&
             std::all_of(members().begin(), members().end(), [&](const Member& member) {
               const Value* found = other.find(member.first);
               return found != nullptr && member.second.equals(*found);
             });
    default: return dict_ == other.dict_ && function_ == other.function_;
  }
}

bool Value::is_same(const Value& other) const {
  return kind_ == other.kind_ && list_ == other.list_ && dict_ == other.dict_ && equals(other);
}

std::string dict_key(const Value& key) {
  if (key.is(Value::Kind::string)) return key.text();
  return "\xFF" + std::to_string(key.number());
}

bool is_integer_key(const std::string& key, int64_t& number) {
  if (key.empty() || key[0] != '\xFF') return false;
  return std::from_chars(key.data() + 1, key.data() + key.size(), number).ec == std::errc();
}

std::string_view kind_name(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::undefined: return "an undefined value";
    case Value::Kind::none: return "none";
    case Value::Kind::boolean: return "a boolean";
    case Value::Kind::integer: return "an integer";
    case Value::Kind::real: return "a number";
    case Value::Kind::string: return "a string";
    case Value::Kind::list: return "a list";
    case Value::Kind::dict: return "a mapping";
    case Value::Kind::space: return "a namespace";
    case Value::Kind::function: return "a function";
  }
  return "a value";
}

std::string kind_name(const Value& value) {
  if (value.is(Value::Kind::list) && value.sequence() == Value::Sequence::tuple) return "a tuple";
  if (value.is(Value::Kind::list) && value.sequence() == Value::Sequence::generator)
    return "a generator";
  return std::string(kind_name(value.kind()));
}

}  // namespace loom::core::jinja
